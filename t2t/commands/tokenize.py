"""`t2t tokenize VOCABULARY [TEXT ...]`: the pieces and ids of lines, by one vocabulary or by two side by side."""

import dataclasses
import functools
import itertools
import pathlib
import shutil
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import tyro

from t2t.commands import arguments as arguments_lib
from t2t.commands import lines as lines_lib
from t2t.commands.printing import printable
from t2t.errors import UsageError

FILES = ("*.json", "*.txt", "*.model")
"""What is downloaded of a repository of the Hub."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tokenize:
    """Show pieces and ids of texts; with --compare the pieces of two vocabularies side by side, and what they cost."""

    vocabulary: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL_OR_VOCABULARY")]
    """A run, checkpoint, model or Hugging Face directory, a repository of the Hub, a file of a vocabulary, or bytes."""
    texts: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[TEXT ...]")] = ()
    """Texts, each in quotes; none takes the lines of --input."""
    input: Annotated[str, tyro.conf.arg(aliases=["-i"])] = "-"
    """File of texts, one a line (a .jsonl file: the column --field); - is standard input."""
    field: str = "text"
    """Column of a .jsonl input that holds the text."""
    compare: str | None = None
    """Another model or vocabulary."""
    show: int = 20
    """Texts that are shown, from the first; the numbers below are of all."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Read:
    """A vocabulary and what it makes of the texts."""

    name: str
    vocabulary: Any
    rows: list[list[int]]

    def pieces(self, index: int) -> list[str]:
        """The pieces of a text, without characters that would move the cursor."""
        return [printable(self.names[token]) for token in self.rows[index]]

    @functools.cached_property
    def names(self) -> list[str]:
        """The piece of every id."""
        return self.vocabulary.pieces()

    def numbers(self, texts: Sequence[str]) -> dict[str, str]:
        """How many tokens the texts are, and of what use."""
        tokens = sum(map(len, self.rows))
        unknown = sum(row.count(self.vocabulary.unk_id) for row in self.rows)
        return {
            "ids": f"{self.vocabulary.size:,}",
            "tokens": f"{tokens:,}",
            "tokens per word": f"{tokens / max(1, sum(len(text.split()) for text in texts)):.2f}",
            "characters per token": f"{sum(map(len, texts)) / max(1, tokens):.2f}",
            "unknown": f"{100 * unknown / max(1, tokens):.2f} %",
        }


def run(arguments: Sequence[str]) -> int:
    """Read the vocabularies and the texts, show them."""
    options = arguments_lib.parse(Tokenize, arguments, command="tokenize")
    if options.texts and options.input != "-":
        raise UsageError("give either texts or --input FILE")
    if options.show < 0:
        raise UsageError(f"--show is {options.show}; it must not be negative")
    names = [options.vocabulary, *([options.compare] if options.compare else [])]
    vocabularies = [find(name) for name in names]
    texts = list(options.texts) or lines_lib.read_texts(options.input, field=options.field)
    read = [
        Read(name=name, vocabulary=vocabulary, rows=vocabulary.encode_batch(texts))
        for name, vocabulary in zip(names, vocabularies, strict=True)
    ]
    width = max(40, shutil.get_terminal_size((80, 24)).columns)
    for index, text in enumerate(texts[: options.show]):
        print(_cut(printable(text), width))
        lines = _single(read[0], index, width) if len(read) == 1 else _both(read[0], read[1], index, width)
        print("\n".join(lines) + "\n")
    print("\n".join(_summary(read, texts, width)))
    return 0


def find(name: str) -> Any:
    """The vocabulary of a file, a directory, a repository of the Hub, or bytes.

    Raises:
        UsageError: there is none, or it is not understood.
    """
    from t2t import vocabulary
    from t2t.vocabulary import files

    path = pathlib.Path(name)
    if name == vocabulary.ByteVocabulary.kind and not path.exists():
        return vocabulary.ByteVocabulary()
    if not path.exists():
        from t2t.hf import hub

        path = hub.find(name, patterns=FILES)
    if not path.exists():
        raise UsageError(f"there is no {name}")
    inside = path / "vocabulary"
    if path.is_dir() and not files.holds(path) and not inside.is_dir():
        raise UsageError(f"{name} holds no vocabulary, nor a folder vocabulary; looked for {', '.join(files.FILES)}")
    try:
        return vocabulary.Vocabulary.load(inside if path.is_dir() and not files.holds(path) else path)
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from error


def _cells(text: str) -> int:
    """Columns of a terminal that a text takes."""
    from rich import cells

    return cells.cell_len(text)


def _cut(text: str, width: int) -> str:
    """The text in at most so many columns, with an ellipsis where something is left out."""
    if _cells(text) <= width:
        return text
    widths = itertools.accumulate(_cells(char) for char in text)
    return "".join(char for char, end in zip(text, widths, strict=True) if end < width) + "…"


def _pad(text: str, width: int) -> str:
    return text + " " * max(0, width - _cells(text))


def _rows(widths: Sequence[int], room: int) -> Iterator[slice]:
    """Which things fit beside each other, two columns apart."""
    start, used = 0, 0
    for i, width in enumerate(widths):
        if i > start and used + width > room:
            yield slice(start, i)
            start, used = i, 0
        used += width + 2
    if len(widths) > start:
        yield slice(start, len(widths))


def _single(read: Read, index: int, width: int) -> Iterator[str]:
    """The pieces of a text with their ids below them."""
    room = width - 2
    pieces, ids = [_cut(piece, room) for piece in read.pieces(index)], [str(token) for token in read.rows[index]]
    widths = [max(_cells(piece), len(token)) for piece, token in zip(pieces, ids, strict=True)]
    for part in _rows(widths, room):
        for row in (pieces, ids):
            cells = (_pad(cell, size) for cell, size in zip(row[part], widths[part], strict=True))
            yield f"  {'  '.join(cells)}".rstrip()


def _both(left: Read, right: Read, index: int, width: int) -> Iterator[str]:
    """The pieces of a text by two vocabularies beside each other, with their number."""
    room = (width - 5) // 2
    columns = []
    for read in (left, right):
        pieces = [_cut(piece, room) for piece in read.pieces(index)]
        parts = _rows([_cells(piece) for piece in pieces], room)
        columns.append([*("  ".join(pieces[part]) for part in parts), f"({len(pieces)} tokens)"])
    for cells in itertools.zip_longest(*columns, fillvalue=""):
        yield f"  {_pad(cells[0], room)} | {cells[1]}".rstrip()


def _summary(read: Sequence[Read], texts: Sequence[str], width: int) -> Iterator[str]:
    """The numbers of each vocabulary, a column for each."""
    numbers = [one.numbers(texts) for one in read]
    label = max(map(len, numbers[0]))
    room = (width - label) // len(read) - 2
    names = [one.name if len(one.name) <= room else f"…{one.name[1 - room :]}" for one in read]
    columns = [[name, *number.values()] for name, number in zip(names, numbers, strict=True)]
    widths = [max(map(_cells, column)) for column in columns]
    many = f"{len(texts):,} text{'s' * (len(texts) != 1)}"
    for head, *cells in zip([many, *numbers[0]], *columns, strict=True):
        yield f"{head:<{label}}" + "".join(f"  {cell:>{size}}" for cell, size in zip(cells, widths, strict=True))
