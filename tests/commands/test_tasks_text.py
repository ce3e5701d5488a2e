"""Rows on a terminal: colours where there are some, else signs, pictures of blocks, and lines of numbers."""

import io

import numpy as np
from data import toy
from rich.console import Console

from t2t.commands import tasks_text
from t2t.commands.pieces import Speller
from t2t.data.views import Mark, Strip

SPELLER = Speller(toy.word_vocabulary("<pad>", "</s>", "<mask>", "red", "[bold]x"))
ROW = {
    "name": "row 1: [red]",
    "strips": [
        Strip(
            name="encoder inputs",
            tokens=np.array([3, 2, 3, 4, 3, 0, 0]),
            marks=np.array([Mark.TEXT, Mark.MASKED, Mark.REPLACED, Mark.KEPT, Mark.TEXT, Mark.PADDING, Mark.PADDING]),
            segments=np.array([1, 1, 1, 1, 2, 0, 0]),
            weights=np.array([0.0, 1, 1, 1, 0, 0, 0]),
            types=np.array([0, 0, 1, 1, 0, 0, 0]),
        )
    ],
    "attention": {"encoder": np.eye(2, dtype=bool)},
}


def shown(**console) -> str:
    out = io.StringIO()
    tasks_text.show_row(Console(file=out, width=100, **console), ROW, SPELLER)
    return out.getvalue()


def test_signs_where_there_are_no_colours():
    lines = [line.rstrip() for line in shown().splitlines()]
    assert lines == [
        "row 1: [red]",
        "  encoder inputs red «<mask>» <type 1> «~red~ =[bold]x=» | red  … 2 padding; loss on 3 of 5",
        "  encoder",
        "  ▀▄",
        "",
    ]


def test_colours_where_there_are_some():
    text = shown(force_terminal=True, color_system="standard")
    assert "\x1b[4;30;43m<mask>\x1b[0m" in text  # underlined, black on yellow
    assert "\x1b[4;30;41mred\x1b[0m" in text and "~red~" not in text
    legend = io.StringIO()
    console = Console(file=legend, force_terminal=True, color_system="standard", width=100)
    console.print(tasks_text.legend(["masked", "text"], colours=True))
    assert "masked" in legend.getvalue() and "replaced" not in legend.getvalue()


def test_the_legend_explains_the_signs_there_are():
    assert (
        str(tasks_text.legend(["kept", "masked", "text"], colours=False))
        == "  =kept= «counts in the loss» | next example"
    )


def test_large_pictures_are_shrunk():
    lines = tasks_text.draw(np.tri(100, dtype=bool))
    assert max(map(len, lines)) <= tasks_text.CELLS and len(lines) <= tasks_text.CELLS // 2
    assert lines[0].strip() in ("▄", "█▄") and set(lines[-1]) <= set("▀█")
    assert tasks_text.draw(np.ones((3, 2), bool)) == ["██", "▀▀"]
    assert tasks_text.draw(np.zeros((0, 0), bool)) == []


NUMBERS = {
    "rows": 2,
    "examples": 3,
    "chosen": 0.15,
    "labels": {"0": 1, "1": 3},
    "sides": {
        "encoder": {
            "positions": 200,
            "tokens": 150,
            "padding": 0.25,
            "with_loss": 15,
            "lengths": {"least": 10, "median": 50.0, "mean": 50.0, "greatest": 90},
            "marks": {"text": 130, "masked": 12, "replaced": 2, "kept": 1},
        }
    },
}


def test_numbers_in_lines():
    assert list(tasks_text.statistics(NUMBERS, judged=True)) == [
        "of 3 examples in 2 rows:",
        "  encoder  100 positions a row, 25.0 % padding; examples of 10 to 90 tokens, median 50, mean 50.0",
        "           10.0 % of the tokens with loss",
        "           15.0 % of the text chosen: 80.0 % masked, 13.3 % replaced, 6.7 % kept",
        "           100.0 % of the tokens with loss for the discriminator, which judges what the generator writes",
        "  labels   0 25.0 %, 1 75.0 %",
    ]
