"""Texts go to the model in batches of the size asked for, and each batch draws with a seed of its own."""

import json
import types

import numpy as np
import pytest

import t2t
from t2t import cli
from t2t.decode import refusal
from t2t.vocabulary import ByteVocabulary

WRITES = {"config": types.SimpleNamespace(head=None), "vocabulary": ByteVocabulary()}
"""What commands look at before they have a model write."""


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """The options of each call of a model that answers with its seed; a file of five equal texts."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("one\n" * 5, encoding="utf-8")
    made = []

    def generate(texts, **options):
        made.append({"texts": len(texts), **options})
        return [f"{options['seed']} {row}" for row in range(len(texts))]

    def score(texts, **options):
        made.append({"texts": len(texts), **options})
        return np.zeros(len(texts))

    model = types.SimpleNamespace(generate=generate, score=score, **WRITES)
    monkeypatch.setattr(t2t, "load", lambda path: model, raising=False)
    return made


def generate(capsys, *arguments: str) -> list[str]:
    assert cli.main(["generate", "model", "--input", "in.txt", "--batch-size", "2", *arguments]) == 0
    return [json.loads(line)["output"] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("command", ["generate", "score"])
def test_a_text_that_cannot_be_used_is_named_by_its_line(calls, capsys, monkeypatch, command):
    def refuse(texts, **options):
        if "two" in texts:
            raise refusal.TextError(texts.index("two"), "has 9 tokens: shorten it")
        return ["" for _ in texts] if command == "generate" else np.zeros(len(texts))

    model = types.SimpleNamespace(**{command: refuse}, **WRITES)
    monkeypatch.setattr(t2t, "load", lambda path: model, raising=False)
    with open("in.txt", "w", encoding="utf-8") as file:
        file.write("one\none\none\ntwo\n")
    assert cli.main([command, "model", "--input", "in.txt", "--batch-size", "2"]) == 2
    assert capsys.readouterr().err == "error: in.txt:4 has 9 tokens: shorten it\n"


def test_equal_texts_in_other_batches_draw_anew(calls, capsys):
    first, again, other = (generate(capsys, "--seed", seed) for seed in ("0", "0", "1"))
    assert first == again
    assert len({*first, *other}) == 10
    assert [(call["texts"], call["batch_size"]) for call in calls[:3]] == [(2, 2), (2, 2), (1, 2)]


def test_scores_are_computed_in_batches_of_the_size_asked_for(calls, capsys):
    assert cli.main(["score", "model", "--input", "in.txt", "--batch-size", "3"]) == 0
    assert [(call["texts"], call["batch_size"]) for call in calls] == [(3, 3), (2, 3)]
    assert len(capsys.readouterr().out.splitlines()) == 5
