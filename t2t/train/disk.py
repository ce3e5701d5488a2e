"""Files as a checkpoint needs them: flushed to the disk, read as JSON, failures in one line."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def flush(paths: Iterable[Path]) -> None:
    """Returns when the content of these files and directories is on the disk."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_json(path: Path) -> dict[str, Any]:
    """The object that a file of JSON holds."""
    return json.loads(path.read_text(encoding="utf-8"))


def first_line(error: Exception) -> str:
    r"""What a library's error says first; its kind where it says nothing.

    Example:
        >>> first_line(OSError("No space left on device.\nSource locations: ..."))
        'No space left on device'
    """
    return (str(error).splitlines() or [type(error).__name__])[0].strip().rstrip(".")
