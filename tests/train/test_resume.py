"""kill -9 at random steps, in processes of their own: the run that comes out is the one never killed, bit for bit."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from t2t.train import checkpoint, writer
from tests.train.test_loop import assert_same_run

STEPS = 40

SCRIPT = textwrap.dedent(f"""
    import sys
    from t2t.train import loop
    from tests.train import tiny_run
    loop.train(
        tiny_run.experiment(
            train={{"steps": {STEPS}, "log_every": 3}}, evaluate={{"every": 10}}, checkpoint={{"every": 4}}
        ),
        sys.argv[1],
    )
""")


def start(directory: pathlib.Path) -> subprocess.Popen:
    # One device: what is tested is the order of things, and compilation for eight takes longer.
    environment = os.environ | {"XLA_FLAGS": ""}
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(directory)], env=environment, stdout=subprocess.PIPE)


def finish(directory: pathlib.Path) -> None:
    with start(directory) as process:
        process.stdout.read()
    assert process.returncode == 0


def kill_at(directory: pathlib.Path, step: int, *, delay: float) -> bool:
    """Starts the run and kills it some time after its metrics reach a step; False where it ended before."""
    with start(directory) as process:
        while process.poll() is None:
            records = writer.read(directory / "metrics.jsonl")
            if records and records[-1]["step"] >= step:
                time.sleep(delay)
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.005)
    return process.returncode == -signal.SIGKILL


def check(tmp_path: pathlib.Path, *, kills: int) -> None:
    finish(tmp_path / "straight")
    draw = random.Random(0)
    steps = sorted(draw.randint(1, STEPS - 3) for _ in range(kills))
    landed = 0
    for step in steps:
        landed += kill_at(tmp_path / "killed", step, delay=draw.uniform(0, 0.1))
        store = checkpoint.CheckpointStore(tmp_path / "killed/checkpoints")
        if store.latest() is not None:
            store.verify(store.latest())
    assert landed >= kills - 1, f"{landed} of {kills} kills came before the end of the run"
    finish(tmp_path / "killed")
    assert_same_run(tmp_path / "straight", tmp_path / "killed")


@pytest.mark.slow
def test_a_run_killed_three_times_is_the_run_never_killed(tmp_path):
    check(tmp_path, kills=3)


@pytest.mark.nightly
def test_a_run_killed_twenty_times_is_the_run_never_killed(tmp_path):
    check(tmp_path, kills=20)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_process_ends_with_the_code_of_the_signal(tmp_path, number, code):
    with start(tmp_path / "run") as process:
        while not writer.read(tmp_path / "run/metrics.jsonl"):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        process.stdout.read()
    assert process.returncode == code
    store = checkpoint.CheckpointStore(tmp_path / "run/checkpoints")
    store.verify(store.latest())
