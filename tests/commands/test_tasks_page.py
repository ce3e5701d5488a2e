"""The page of a task: marks as classes, what is behind a token in its title, hostile texts as texts."""

import numpy as np
from commands.test_page import HOSTILE, check_self_contained
from commands.test_tasks_text import NUMBERS
from data import toy

from t2t.commands import tasks_page
from t2t.commands.pieces import Speller
from t2t.data.views import Mark, Strip


def test_a_page():
    evil = HOSTILE.replace("\ud800", "").replace(" ", "_")
    speller = Speller(toy.word_vocabulary("<pad>", "<mask>", "red", evil))
    strip = Strip(
        name="encoder inputs",
        tokens=np.array([3, 1, 2, 0]),
        marks=np.array([Mark.TEXT, Mark.MASKED, Mark.KEPT, Mark.PADDING]),
        segments=np.array([1, 1, 2, 0]),
        weights=np.array([0.0, 1, 1, 0]),
        expected=np.array([3, 3, 2, 0]),
        types=np.array([0, 1, 0, 0]),
    )
    row = {"name": f"row {HOSTILE}", "strips": [strip], "attention": {"encoder": np.eye(2, dtype=bool)}}
    task = {"name": HOSTILE, "about": HOSTILE, "rows": [row], "numbers": NUMBERS, "judged": False}
    content = tasks_page.make([task], speller)
    found = check_self_contained(content)
    tokens = [attributes for name, attributes in found.tags if attributes.get("title")]
    shown = evil.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    assert [(token["class"], token["title"]) for token in tokens] == [
        ("token text", "position 0, id 3, text, type 0"),
        ("token masked loss type1", f"position 1, id 1, masked, predicted: {shown}, type 1"),
        ("token kept loss", "position 2, id 2, kept, type 0"),
    ]
    assert "1 padding" in found.text
    assert sum(attributes.get("class") == "example" for _, attributes in found.tags) == 2
    assert sum(name == "img" for name, _ in found.tags) == 1
    assert "25.0 % padding" in found.text
    for mark in ("masked", "replaced", "kept", "predicted", "sentinel", "mode", "special"):
        assert content.count(f"--{mark}: #") == 2 and f".{mark} {{ background: var(--{mark}); }}" in content
