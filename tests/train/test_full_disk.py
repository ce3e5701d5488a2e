"""A checkpoint that no longer fits on the disk: one message, the last good checkpoint named and whole, and a way on."""

import os
import pathlib
import subprocess
import sys

import pytest

from t2t.train import checkpoint, writer

pytestmark = pytest.mark.slow

CONFIG = """
from tests.train import tiny_run


def get_config():
    return tiny_run.experiment(
        model=tiny_run.model(vocab_size=4096),
        train={"steps": 4, "log_every": 2},
        evaluate={"tasks": ()},
        checkpoint={"every": 4},
    )
"""
LARGEST = 150_000
"""Bytes of a file: less than the embedding, more than anything else that a run writes."""


PROGRAM = """
import resource, sys
limit, *arguments = sys.argv[1:]
if limit != "none":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
from t2t import cli
sys.exit(cli.main(arguments))
"""


def train(directory: pathlib.Path, steps: int, *, limit: int | None = None) -> subprocess.CompletedProcess:
    """Trains in a process of its own, in which files cannot grow beyond the limit."""
    arguments = ["train", "full.py", "--workdir", "run", "--train.steps", str(steps)]
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(limit or "none"), *arguments],
        cwd=directory,
        env=os.environ | {"XLA_FLAGS": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_full_disk_ends_the_run_with_a_message_and_the_run_goes_on_later(tmp_path):
    (tmp_path / "full.py").write_text(CONFIG, encoding="utf-8")
    done = train(tmp_path, 4)
    assert done.returncode == 0, done.stderr

    store = checkpoint.CheckpointStore(tmp_path / "run" / "checkpoints")
    done = train(tmp_path, 8, limit=LARGEST)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("error: step 8 could not be saved")
    assert "File too large" in message
    assert f"the last good checkpoint is {store.path(4)}" in message
    # Nothing else is left, unless a thread that wrote was held up for very long.
    assert {path.name for path in store.directory.iterdir() if not path.name.startswith("8.partial")} == {"4"}
    store.verify(4)

    done = train(tmp_path, 8)
    assert done.returncode == 0, done.stderr
    store.verify(8)
    assert {path.name for path in store.directory.iterdir()} == {"4", "8"}
    assert [record["step"] for record in writer.read(tmp_path / "run" / "metrics.jsonl")] == [2, 4, 6, 8]
