"""Texts in, JSON lines out: what generate and score share."""

import contextlib
import gzip
import io
import itertools
import json
import os
import pathlib
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO, TypeVar, cast

from t2t.commands import arguments as arguments_lib
from t2t.decode.refusal import TextError, TextMemoryError
from t2t.errors import UsageError

Item = TypeVar("Item")


def read_texts(path: str, *, field: str = "text") -> list[str]:
    """The texts of a file, or of standard input where `path` is "-": one a line, in .jsonl the column `field`.

    Raises:
        UsageError: For a file that is missing, empty, damaged or not UTF-8, and lines without that column.
    """
    if path != "-" and not pathlib.Path(path).is_file():
        raise UsageError(f"there is no file {path} to read")
    name = _name(path)
    try:
        with _open(path) as stream:
            # Lines end at line ends alone: str.splitlines would also cut at U+2028 and its like, which texts hold.
            lines = [line.removesuffix("\n") for line in stream]
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 ({error}); convert it, for example with iconv") from error
    except (OSError, EOFError, zlib.error) as error:  # gzip says EOFError of a file that was cut off
        raise UsageError(f"{name} cannot be read to its end: {error}") from error
    if not lines:
        raise UsageError(f"{name} has no lines")
    if not path.removesuffix(".gz").endswith(".jsonl"):
        return [_checked(line, place=f"{name}:{number}") for number, line in enumerate(lines, start=1)]
    return [_column(line, field=field, place=f"{path}:{number}") for number, line in enumerate(lines, start=1)]


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


def check_model(model: Any, *, name: str) -> None:
    """Refuses a model that neither writes text nor scores it.

    Args:
        model: a `t2t.Model`.
        name: as the command was given it.

    Raises:
        UsageError: it is an encoder, its head scores labels, or it has no vocabulary.
    """
    from t2t.models.encoder import EncoderConfig
    from t2t.nn.classification import ClassificationHead

    if isinstance(model.config, EncoderConfig):
        raise UsageError(f"{name} is an encoder, which writes no text from left to right: give a model with a decoder")
    if isinstance(model.config.head, ClassificationHead):
        raise UsageError(f"the head of {name} scores labels, not words: give a model with a language model head")
    if model.vocabulary is None:
        reason = model.about.get("no_vocabulary")
        raise UsageError(
            f"{name} has no vocabulary to read text with{f' ({reason})' if reason else ''}: give a directory that "
            "holds one (t2t import --vocabulary PATH adds it)"
        )


def check_processes(path: str, options: arguments_lib.Processes) -> None:
    """Refuses standard input where several processes read: launchers give it to one of them.

    Raises:
        UsageError: it is the input of a process that is one of several.
    """
    if path == "-" and (options.distributed is not None or os.environ.get("JAX_COORDINATOR_ADDRESS")):
        raise UsageError("several processes cannot all read standard input: give --input a file that each of them sees")


@contextlib.contextmanager
def joined(options: arguments_lib.Processes) -> Iterator[None]:
    """Makes this process one of the several of a command; see `t2t.train.processes.joined`."""
    from t2t.train import processes

    with processes.joined(options.distributed, peer_timeout=options.peer_timeout):
        yield


def shared(
    batches: Iterable[list[Item]], work: Callable[[int, list[Item]], list[dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    """The rows that `work` makes of each batch, in order: of batch k in process k modulo their number, given to all.

    Args:
        batches: the same in every process.
        work: from number and items of a batch to its rows, which JSON can hold.
    """
    import jax

    from t2t.train import processes

    mine: list[dict[str, Any]] | None = None
    number = -1
    for number, batch in enumerate(batches):
        if number % jax.process_count() == jax.process_index():
            mine = work(number, batch)
        if number % jax.process_count() == jax.process_count() - 1:
            yield from itertools.chain(*processes.gather_json(mine))
            mine = None
    if (number + 1) % jax.process_count():
        yield from itertools.chain(*(rows for rows in processes.gather_json(mine) if rows))


@contextlib.contextmanager
def name_lines(path: str, *, first: int) -> Iterator[None]:
    """Says in which line a text stands that a model cannot use.

    Args:
        path: of the input.
        first: number of the line of the first text that the model is given.

    Raises:
        ValueError: in place of the model's own, where it is the device's memory that does not suffice.
        UsageError: else.
    """
    try:
        yield
    except TextError as error:
        kind = ValueError if isinstance(error, TextMemoryError) else UsageError
        raise kind(f"{_name(path)}:{first + error.index} {error.problem}") from error


def _column(line: str, *, field: str, place: str) -> str:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place} is no JSON: {error}") from error
    if not isinstance(row, dict) or field not in row:
        columns = ", ".join(row) if isinstance(row, dict) else "no columns"
        raise UsageError(f"{place} has no text in column {field}; it has {columns} (--field chooses)")
    if not isinstance(row[field], str):
        value = json.dumps(row[field], ensure_ascii=False)
        shown = value if len(value) <= 60 else f"{value[:59]}…"
        raise UsageError(f"{place} holds {shown} in column {field}, which is no text: put it in quotes")
    return _checked(row[field], place=place)


def _checked(text: str, *, place: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise UsageError(f"{place} holds {half}, half of a surrogate pair: no character, and no UTF-8") from error
    return text


@contextlib.contextmanager
def _open(path: str) -> Iterator[TextIO]:
    if path == "-":
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="strict")  # whatever the locale says
        yield sys.stdin
        return
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig") as stream:  # with or without a byte order mark
        yield cast(TextIO, stream)


@contextlib.contextmanager
def writer(path: str, *, source: str = "-") -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that writes one JSON line to the file, or to standard output where `path` is "-".

    It does nothing in any but the first of several processes.

    What the file held before stays until there is a first line to write.

    Args:
        path: of the file, whose folder is made.
        source: of the texts, which must not be written over.

    Raises:
        UsageError: For a file that cannot be written, or is the source itself.
    """
    from t2t.train import processes

    if not processes.is_first():
        yield lambda row: None
        return
    if path == "-":
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # as JSON lines are, whatever the locale says
        yield lambda row: print(json.dumps(row, ensure_ascii=False), flush=True)
        return
    file = pathlib.Path(path)
    if file.exists() and source != "-" and file.samefile(source):
        raise UsageError(f"--output {path} is the file that --input names: it would be lost")
    if not file.parent.exists():
        arguments_lib.check_writable(file.parent, instead="give another --output")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        stream = file.open("a", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--output {path} cannot be written: {error}") from error
    began = False

    def write(row: dict[str, Any]) -> None:
        nonlocal began
        if not began and file.is_file():
            stream.truncate(0)
        began = True
        print(json.dumps(row, ensure_ascii=False), file=stream, flush=True)

    with stream:
        yield write


def batches(texts: Sequence[Item], *, size: int, label: str) -> Iterator[list[Item]]:
    """The texts, `size` at a time, with progress on standard error where a person watches it."""
    from rich.console import Console
    from rich.progress import track

    if size < 1:
        raise UsageError(f"--batch-size is {size}; it must be positive")
    starts = range(0, len(texts), size)
    console = Console(stderr=True)
    for start in track(starts, description=label, console=console, disable=not console.is_terminal):
        yield list(texts[start : start + size])
