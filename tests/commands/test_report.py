"""`t2t report`: files of a run that something else has changed are named. What it prints, tests of whole runs say."""

import json

import pytest

from t2t import cli

LINES = "".join(json.dumps({"split": "train", "step": step, "task": "a", "loss": 2.0}) + "\n" for step in (1, 2))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("metrics.jsonl", f"no record\n{LINES}"),
        ("config.json", "[" * 100_000),
        ("config.json", '{"experiment": 5}'),
        ("eval/a/4.json", json.dumps({"task": "a", "split": "b", "step": 4, "metrics": 5, "baseline": None})),
        ("eval/a/4.json", json.dumps({"task": "a", "split": "b", "step": 4, "metrics": {}, "baseline": [3]})),
    ],
)
def test_a_changed_file_is_named(tmp_path, capsys, file, content):
    (tmp_path / "metrics.jsonl").write_text(LINES)
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(content)
    assert cli.main(["report", str(tmp_path)]) == 2
    assert str(tmp_path / file) in capsys.readouterr().err


def test_the_best_step_of_each_metric_is_shown(tmp_path, capsys):
    """The last value beside the best: the highest accuracy, the earliest of equals, and the fewest invalid labels."""
    (tmp_path / "metrics.jsonl").write_text(LINES)
    (tmp_path / "eval" / "a").mkdir(parents=True)
    for step, accuracy, invalid in ((2, 50.0, 4.0), (4, 75.0, 2.0), (6, 75.0, None), (8, 60.0, 3.0)):
        metrics = {"accuracy": accuracy, "invalid_predictions": invalid, "examples": 9.0}
        content = {"task": "a", "split": "validation", "step": step, "metrics": metrics, "baseline": None}
        content["text_metrics"] = ["accuracy", "invalid_predictions"]
        (tmp_path / "eval" / "a" / f"{step}.json").write_text(json.dumps(content))
    assert cli.main(["report", str(tmp_path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("a ")]
    assert ["60", "75", "at", "step", "4"] == lines[0][-5:]
    assert ["3", "2", "at", "step", "4"] == lines[1][-5:]
