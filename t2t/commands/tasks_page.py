"""Rows of tasks as a page: tokens in colours with what stands behind them, attention as pictures, numbers as plots."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t.commands import page, tasks_text
from t2t.commands.page import Html, tag
from t2t.commands.pieces import Piece, Speller

STYLE = """
.token { border-radius: 3px; padding: 0 1px; } .loss { text-decoration: underline; text-underline-offset: 3px; }
.example { border-left: 3px solid var(--line); padding-left: .4rem; margin: .2rem 0; display: block; }
.type1 { border-bottom: 2px dotted var(--dim); } .special { color: var(--dim); }
""" + "".join(
    f".{mark} {{ background: var(--{mark}); }} "
    for mark in ("masked", "replaced", "kept", "predicted", "sentinel", "mode", "special")
)

LEGEND = {
    "masked": "the mask, in place of a token",
    "replaced": "another token than the target",
    "kept": "chosen, and left as it is",
    "predicted": "predicted, in a permuted order",
    "sentinel": "a sentinel, for a span",
    "mode": "the mode of a denoiser",
    "special": "a special token",
}
"""What colours mean."""


def make(shown: Sequence[Mapping[str, Any]], speller: Speller) -> str:
    """The page of some tasks.

    Args:
        shown: of each task its `name`, `about`, `rows` (name, strips, attention), `numbers` and whether it is `judged`.
        speller: of the tokens.
    """
    title = f"What a model gets of {', '.join(task['name'] for task in shown)}"
    return page.document(title, _legend(), (_task(task, speller) for task in shown), style=STYLE)


def _legend() -> Html:
    marks = (tag("span", " ", tag("span", name, _class=f"token {name}"), f" {text} ") for name, text in LEGEND.items())
    loss = tag("span", "underlined", _class="loss")
    return tag("p", marks, loss, " its prediction counts. Point at a token for its id and position.", _class="dim")


def _task(task: Mapping[str, Any], speller: Speller) -> Html:
    return page.section(
        task["name"],
        tag("p", task["about"]),
        _numbers(task["numbers"], judged=task["judged"]) if task["numbers"] else None,
        (_row(row, speller) for row in task["rows"]),
    )


def _numbers(numbers: Mapping[str, Any], *, judged: bool) -> Iterator[Html]:
    first, *lines = tasks_text.statistics(numbers, judged=judged)
    yield tag("p", first)
    yield tag("div", "\n".join(line.strip() for line in lines), _class="text")
    for name, side in numbers["sides"].items():
        yield tag("p", f"Tokens of the {name}'s inputs by what they are:", _class="dim")
        yield page.bars(side["marks"], shares=True)
        padding = side["positions"] - side["tokens"]
        yield tag("p", f"Positions of the {name}:", _class="dim")
        yield page.bars({"with a token": side["tokens"], "padding": padding, "with loss": side["with_loss"]})


def _row(row: Mapping[str, Any], speller: Speller) -> Html:
    pictures = (
        page.picture(mask, caption=f"{name}: each line is a position, blue is what it reads")
        for name, mask in row["attention"].items()
        if mask.size
    )
    strips = ((tag("h3", strip.name), _strip(strip, speller)) for strip in row["strips"])
    return tag("div", tag("b", row["name"]), strips, tag("div", pictures, _class="figures"), _class="card")


def _strip(strip: Any, speller: Speller) -> Html:
    examples: dict[int, list[Piece]] = {}
    for piece in speller.pieces(strip):
        examples.setdefault(piece.example, []).append(piece)
    padding = int((strip.segments == 0).sum())
    return tag(
        "div",
        (
            tag("span", (_token(piece, strip, speller.space) for piece in own), _class="example", dir="auto")
            for own in examples.values()
        ),
        tag("span", f"{padding:,} padding", _class="example dim") if padding else None,
        _class="text",
    )


def _token(piece: Piece, strip: Any, space: str) -> list[Any]:
    ids = " ".join(map(str, strip.tokens[piece.first : piece.last + 1][:20].tolist()))
    place = f"{piece.first}" if piece.first == piece.last else f"{piece.first} to {piece.last}"
    about = [f"position {place}", f"id {ids}", piece.mark]
    about += [f"predicted: {piece.expected}"] if piece.expected else []
    about += [f"{name} {value}" for name in ("type", "language") if (value := getattr(piece, name)) is not None]
    names = ["token", piece.mark, *(["loss"] if piece.has_loss else []), *(["type1"] if piece.type else [])]
    return [tag("span", piece.text, _class=" ".join(names), title=", ".join(about)), space]
