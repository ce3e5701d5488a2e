"""Errors of sources and TensorFlow, told with the task that was read."""

import contextlib
import re
from collections.abc import Iterator

from t2t.data.host_tensorflow import tf  # isort: skip - TensorFlow's settings come before seqio
import seqio


@contextlib.contextmanager
def reading(task: seqio.Task, split: str) -> Iterator[None]:
    """Says which task and split are read, in what the source or TensorFlow raises."""
    try:
        yield
    except (tf.errors.OpError, OSError) as error:
        failure = getattr(task.source, "failure", None)
        if failure is not None:
            raise failure from None
        reason = re.sub(r"\{\{.*?\}\} ?|\[Op:.*", "", getattr(error, "message", None) or str(error)).strip()
        raise ValueError(f"Reading split '{split}' of task '{task.name}' failed: {reason}") from error
