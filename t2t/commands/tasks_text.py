"""Rows of a task on a terminal: coloured where there are colours, with signs where there are none."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t.commands.pieces import Piece, Speller

STYLES = {
    "masked": "black on yellow",
    "replaced": "black on red",
    "kept": "black on green",
    "predicted": "black on green",
    "sentinel": "black on cyan",
    "mode": "black on magenta",
    "special": "dim",
    "text": "",
}
"""Colours of marks."""

SIGNS = {"replaced": "~", "kept": "=", "predicted": "*"}
"""Signs around a token where there are no colours; others are told by their names."""

IN_LOSS = ("«", "»")
"""Signs around tokens that count in the loss where there are no colours."""

CELLS = 32
"""Rows and columns of a picture, where there is room."""


def show_row(console: Any, row: Mapping[str, Any], speller: Speller) -> None:
    """Prints the sequences of a row and who reads whom.

    Args:
        console: of rich.
        row: its name, its `strips` and its `attention`.
        speller: of the tokens.
    """
    from rich.table import Table

    console.print(row["name"], style="bold", markup=False, highlight=False)
    grid = Table.grid(padding=(0, 1))
    for strip in row["strips"]:
        grid.add_row(_plain(f"  {strip.name}"), _line(strip, speller, colours=console.color_system is not None))
    console.print(grid)
    pictures = row["attention"]
    cells = min(CELLS, console.width // max(1, len(pictures)) - 5)  # two before each, three behind
    grid = Table.grid(padding=(0, 3))
    grid.add_row(*(_plain(f"  {name}") for name in pictures))
    grid.add_row(*(_plain("\n".join(f"  {line}" for line in draw(mask, cells))) for mask in pictures.values()))
    console.print(grid)
    console.print()


def _plain(text: str) -> Any:
    from rich.text import Text

    return Text(text)


def legend(marks: Sequence[str], *, colours: bool) -> Any:
    """What colours or signs mean, of the marks that occur."""
    from rich.text import Text

    line = Text("  ")
    for mark in (mark for mark in STYLES if mark in marks and mark != "text"):
        if colours:
            line.append(f" {mark} ", STYLES[mark])
            line.append(" ")
        elif mark in SIGNS:
            line.append(f"{SIGNS[mark]}{mark}{SIGNS[mark]} ")
    if colours:
        line.append("counts in the loss", "underline")
        line.append(" ")
    else:
        line.append(f"{IN_LOSS[0]}counts in the loss{IN_LOSS[1]} ")
    line.append("| next example")
    return line


def _line(strip: Any, speller: Speller, *, colours: bool) -> Any:
    from rich.text import Text

    line, before = Text(), None
    pieces: list[Piece | None] = list(speller.pieces(strip))
    for piece, after in itertools.pairwise([*pieces, None]):
        for sign in _borders(before, piece):
            line.append(f" {sign} " if not speller.space or before is None else f"{sign} ", "bold")
        if colours:
            line.append(piece.text, _style(piece))
        else:
            line.append(_signed(before, piece, after), _style(piece))
        line.append(speller.space)
        before = piece
    if ends := "; ".join(_ends(strip)):
        line.append(f" … {ends}", "dim")
    return line


def _ends(strip: Any) -> Iterator[str]:
    """What is said behind a sequence."""
    is_real = strip.segments != 0
    if not is_real.all():
        yield f"{int((~is_real).sum()):,} padding"
    if strip.weights is not None:
        yield f"loss on {int((is_real & (strip.weights != 0)).sum()):,} of {int(is_real.sum()):,}"


def _borders(before: Piece | None, piece: Piece) -> Iterator[str]:
    """Signs where an example or a sentence type begins."""
    if before is not None and piece.example != before.example:
        yield "|"
    is_new = before is None or piece.example != before.example
    for name in ("type", "language"):
        value = getattr(piece, name)
        if value is not None and (is_new or value != getattr(before, name)) and (value > 0 or not is_new):
            yield f"<{name} {value}>"


def _signed(before: Piece | None, piece: Piece, after: Piece | None) -> str:
    """A piece between the signs of its mark, and of the loss where its neighbours do not count in it too."""
    sign = SIGNS.get(piece.mark, "")
    first, last = (_counts_with(piece, other) for other in (before, after))
    opening = IN_LOSS[0] if piece.has_loss and not first else ""
    closing = IN_LOSS[1] if piece.has_loss and not last else ""
    return f"{opening}{sign}{piece.text}{sign}{closing}"


def _counts_with(piece: Piece, other: Piece | None) -> bool:
    """Whether a neighbour stands inside the same signs of the loss; borders of examples and sentences part them."""
    same = other is not None and other.has_loss
    return same and (piece.example, piece.type, piece.language) == (other.example, other.type, other.language)


def _style(piece: Piece) -> str:
    return f"{STYLES[piece.mark]} underline".strip() if piece.has_loss else STYLES[piece.mark]


def draw(mask: Any, cells: int = CELLS) -> list[str]:
    """A matrix of booleans in blocks, two rows to a line; a large one is shrunk.

    >>> import numpy as np
    >>> draw(np.tri(3, dtype=bool))
    ['█▄ ', '▀▀▀']
    """
    from t2t.data import views

    small = views.shrink(mask, max(2, cells)).tolist()
    small += [[False] * mask.shape[1]] if len(small) % 2 else []
    pairs = zip(small[::2], small[1::2], strict=True)
    return ["".join(" ▄▀█"[2 * high + low] for high, low in zip(*pair, strict=False)) for pair in pairs]


def statistics(numbers: Mapping[str, Any], *, judged: bool) -> Iterator[str]:
    """The numbers of many rows in some lines.

    Args:
        numbers: of `t2t.data.row_statistics.RowNumbers.to_json`.
        judged: whether a second model judges every token.
    """
    examples, rows = numbers["examples"], numbers["rows"]
    yield f"of {examples:,} example{'s' * (examples != 1)} in {rows:,} row{'s' * (rows != 1)}:"
    for name, side in numbers["sides"].items():
        lengths = side["lengths"]
        yield (
            f"  {name:<9}{side['positions'] / rows:,.0f} positions a row, {_percent(side['padding'])} padding; "
            f"examples of {lengths['least']:,} to {lengths['greatest']:,} tokens, "
            f"median {lengths['median']:,.0f}, mean {lengths['mean']:,.1f}"
        )
        if side["with_loss"]:
            yield f"{'':<11}{_percent(side['with_loss'] / side['tokens'])} of the tokens with loss"
        yield from _chosen(numbers["chosen"], side["marks"]) if name == "encoder" else ()
    if judged:
        yield f"{'':<11}100.0 % of the tokens with loss for the discriminator, which judges what the generator writes"
    if numbers["labels"]:
        total = sum(numbers["labels"].values())
        shares = (f"{label} {_percent(number / total)}" for label, number in numbers["labels"].items())
        yield f"  labels   {', '.join(shares)}"


def _chosen(share: float | None, marks: Mapping[str, int]) -> Iterator[str]:
    if share is None:
        return
    parts = {name: marks[name] for name in ("masked", "replaced", "kept") if name in marks}
    total = sum(parts.values())
    of_them = [f"{_percent(number / total)} {name}" for name, number in parts.items()] if len(parts) > 1 else []
    yield f"{'':<11}{_percent(share)} of the text chosen{': ' * bool(of_them)}{', '.join(of_them)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
