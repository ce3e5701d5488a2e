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
