"""Standard error while a library is imported whose C++ writes there what nobody asked for."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def standard_error() -> Iterator[None]:
    """Keeps back what is written to standard error, past Python too; shows it on failure.

    TensorFlow has lines about GPUs that no log level stops.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(terminal, kept.read())
            raise
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)
