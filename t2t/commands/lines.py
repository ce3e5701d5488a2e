"""Texts in, JSON lines out: what generate and score share."""

import contextlib
import gzip
import json
import pathlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from t2t.errors import UsageError


def read_texts(path: str, *, field: str = "text") -> list[str]:
    """The texts of a file, or of standard input where `path` is "-": one a line, in .jsonl the column `field`.

    Raises:
        UsageError: For a missing or empty file, and lines without that column.
    """
    if path == "-":
        lines = sys.stdin.read().splitlines()
    elif not pathlib.Path(path).is_file():
        raise UsageError(f"there is no file {path} to read")
    else:
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8") as stream:
            lines = stream.read().splitlines()
    if not lines:
        raise UsageError(f"{'standard input' if path == '-' else path} has no lines")
    if not path.removesuffix(".gz").endswith(".jsonl"):
        return lines
    return [_column(line, field=field, place=f"{path}:{number}") for number, line in enumerate(lines, start=1)]


def _column(line: str, *, field: str, place: str) -> str:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise UsageError(f"{place} is no JSON: {error}") from error
    if not isinstance(row, dict) or not isinstance(row.get(field), str):
        columns = ", ".join(row) if isinstance(row, dict) else "no columns"
        raise UsageError(f"{place} has no text in column {field}; it has {columns} (--field chooses)")
    return row[field]


@contextlib.contextmanager
def writer(path: str) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that writes one JSON line to the file, or to standard output where `path` is "-"."""
    with contextlib.ExitStack() as stack:
        if path == "-":
            stream = sys.stdout
        else:
            pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
            stream = stack.enter_context(open(path, "w", encoding="utf-8"))
        yield lambda row: print(json.dumps(row, ensure_ascii=False), file=stream, flush=True)


def batches(texts: Sequence[str], *, size: int, label: str) -> Iterator[list[str]]:
    """The texts, `size` at a time, with progress on standard error where a person watches it."""
    from rich.console import Console
    from rich.progress import track

    if size < 1:
        raise UsageError(f"--batch-size is {size}; it must be positive")
    starts = range(0, len(texts), size)
    console = Console(stderr=True)
    for start in track(starts, description=label, console=console, disable=not console.is_terminal):
        yield list(texts[start : start + size])
