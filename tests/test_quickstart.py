"""The commands of launch/quickstart.sh with small settings, and all of them once more on runs that are done."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
SMALL = "--train.steps 2 --optimizer.learning-rate.warmup-steps 1 --data.batch-size 8 --evaluate.max-examples 8".split()


def commands(small: list[str]) -> list[list[str]]:
    """What the script runs, `t2t` left out; `small` cuts trainings short."""
    script = (ROOT / "launch" / "quickstart.sh").read_text(encoding="utf-8")
    (tuned,) = re.findall(r"^tuned=(.*)$", script, re.MULTILINE)
    lines = re.findall(r"^run t2t (.*)$", script.replace("$tuned", tuned), re.MULTILINE)
    made = [shlex.split(line) for line in lines]
    return [[*words, *small] if words[0] == "train" else words for words in made]


def run(words: list[str], where: pathlib.Path) -> str:
    environment = os.environ | {"XLA_FLAGS": ""}
    done = subprocess.run(
        [sys.executable, "-m", "t2t", *words], cwd=where, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def run_all(wanted: list[list[str]], where: pathlib.Path) -> None:
    held_out = where / "runs" / "quickstart-finetune" / "held_out.jsonl"
    for words in wanted:
        if words[0] == "generate":
            predictions = sorted((held_out.parent / "eval_test").glob("*/predictions.jsonl"))
            rows = [file.read_text(encoding="utf-8").splitlines()[:3] for file in predictions]
            held_out.write_text("\n".join(sum(rows, [])) + "\n", encoding="utf-8")
        run(words, where)


def checkpoints(where: pathlib.Path) -> dict[str, bytes]:
    return {str(path.relative_to(where)): path.read_bytes() for path in where.glob("runs/*/checkpoints/*/MANIFEST*")}


@pytest.mark.nightly
def test_the_commands_of_quickstart_run_twice(tmp_path):
    wanted = commands(SMALL)
    trainings = [words for words in wanted if words[0] == "train"]
    assert [words[0] for words in wanted] == ["train", "train", "eval", "export", "generate", "report"]
    run_all(wanted, tmp_path)
    saved = checkpoints(tmp_path)
    assert len(saved) == 2
    began = time.monotonic()
    for words in trainings:
        assert "done after 2 steps" in run(words, tmp_path)
    assert time.monotonic() - began < 300
    assert checkpoints(tmp_path) == saved
    for words in wanted:
        if words not in trainings:
            run(words, tmp_path)


@pytest.mark.nightly
def test_quickstart_learns_what_it_says(tmp_path):
    began = time.monotonic()
    run_all(commands([]), tmp_path)
    assert time.monotonic() - began < 12 * 60, "on 2 cores with nothing beside it"
    reached = {}
    for file in (tmp_path / "runs/quickstart-finetune/eval_test").glob("*/[0-9]*.json"):
        result = json.loads(file.read_text(encoding="utf-8"))
        reached[result["task"]] = result["metrics"]["accuracy"] / result["baseline"]["accuracy"]
    assert reached.keys() == {"pydocs_topic", "pydocs_kind", "pydocs_cloze"}
    assert min(reached.values()) > 1.25 and reached["pydocs_topic"] > 2, reached
