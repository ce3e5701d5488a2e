"""Programs that XLA has compiled, kept for the next start of a run.

A program is found again by a hash of all that it depends on: its text, the devices, the versions of JAX and XLA, the
options. A change of any of them compiles anew, and an entry that cannot be read is compiled again: a stale cache costs
space, never results. JAX keeps programs that took more than a second.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache

VARIABLE = "JAX_COMPILATION_CACHE_DIR"
"""Environment variable of JAX: a folder for the programs of all runs. It comes before any setting of a run."""


@contextlib.contextmanager
def used(directory: Path | None) -> Iterator[None]:
    """Programs compiled inside are kept in this directory; None, or the variable of JAX, changes nothing."""
    before = jax.config.jax_compilation_cache_dir
    if directory is None or before is not None or os.environ.get(VARIABLE):
        yield
        return
    jax.config.update("jax_compilation_cache_dir", str(directory))
    compilation_cache.reset_cache()  # JAX decides at its first compilation whether it has a cache
    try:
        yield
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
        compilation_cache.reset_cache()
