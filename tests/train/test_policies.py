"""Runs with bad batches: each policy to the end, and killed and interrupted runs equal to those left alone."""

import os
import signal

import numpy as np
import pytest

from t2t.config import Faults
from t2t.train import beginning, build, checkpoint, loop, progress, signals, tasks, writer
from t2t.vocabulary import ByteVocabulary
from tests.train import tiny_run
from tests.train.test_loop import Killed, assert_same_run, kill, stop_before

pytestmark = pytest.mark.slow

STEPS = 12


def experiment(**settings):
    return tiny_run.experiment(evaluate={"every": 6}, train={"steps": STEPS}, faults=Faults(**settings))


def batches_in_order(tmp_path, number: int) -> list[bytes]:
    """What tells the first batches of the data apart."""
    run = experiment()
    pieces = build.build(run, ByteVocabulary())
    tasks.register(run)
    with (
        progress.Progress(tmp_path / "reading.txt", total=1) as report,
        beginning.read_data(pieces, tasks.to_train(run), report)(None) as batches,
    ):
        return [mark(next(batches)) for _ in range(number)]


def mark(batch) -> bytes:
    return batch["encoder_input_tokens"].tobytes() + batch["decoder_target_tokens"].tobytes()


@pytest.fixture
def spoil(tmp_path, monkeypatch):
    """spoil(3, 8) makes the third and the eighth batch of the data bad, whenever they come; `taken` lists all taken."""
    order = batches_in_order(tmp_path, 2 * STEPS)
    original = beginning.Batches.__next__
    taken: list[int] = []

    def install(*numbers: int, jump: bool = False):
        def next_batch(self):
            batch = original(self)
            number = order.index(mark(batch)) + 1
            taken.append(number)
            if number in numbers and jump:  # a token that never occurs, at every position
                batch = batch | {"decoder_target_tokens": np.full_like(batch["decoder_target_tokens"], 380)}
            elif number in numbers:
                batch = batch | {"decoder_loss_weights": batch["decoder_loss_weights"] * np.float32(np.nan)}
            return batch

        monkeypatch.setattr(beginning.Batches, "__next__", next_batch)
        return taken

    return install


def last_line(path):
    return [line for line in writer.read(path / "metrics.jsonl") if line["split"] == "train"][-1]


def killed_at(monkeypatch, run, path, *steps: int):
    """Trains and kills; then trains to the end."""
    for step in steps:
        with monkeypatch.context() as patched:
            stop_before(patched, step, kill)
            with pytest.raises(Killed):
                loop.train(run, path)
    loop.train(run, path)


def test_skipped_batches_change_nothing_but_the_count(tmp_path, spoil, monkeypatch):
    spoil(3, 9)
    run = experiment(on_nan="skip", max_skips=2)
    state = loop.train(run, tmp_path / "run")
    assert (int(state.step), int(state.guard.skipped)) == (STEPS, 2)
    lines = [line for line in writer.read(tmp_path / "run/metrics.jsonl") if line["split"] == "train"]
    assert [line["skipped_steps"] for line in lines] == [1.0, 1.0, 2.0]
    assert all(np.isfinite(line["loss"]) for line in lines)
    assert "step 9 is left out" in (tmp_path / "run/log.txt").read_text()
    killed_at(monkeypatch, run, tmp_path / "killed", 8)
    assert_same_run(tmp_path / "run", tmp_path / "killed")


def test_more_skips_than_allowed_end_the_run(tmp_path, spoil):
    spoil(3, 8)
    with pytest.raises(beginning.FatalError, match=r"2 of the last 1000 steps .*max_skips is 1.*checkpoints/5"):
        loop.train(experiment(on_nan="skip", max_skips=1), tmp_path / "run")


def test_a_run_goes_back_and_on_with_the_data_after_the_bad_batch(tmp_path, spoil, monkeypatch):
    taken = spoil(8)
    run = experiment(on_nan="roll_back")
    state = loop.train(run, tmp_path / "run")
    assert int(state.step) == STEPS
    assert taken == [*range(1, 9), *range(9, 9 + STEPS - 5)], "back to step 5, whose next batch is the ninth"
    lines = writer.read(tmp_path / "run/metrics.jsonl")
    assert [(line["step"], line["split"]) for line in lines] == [
        (4, "train"), (6, "validation"), (8, "train"), (12, "train"), (12, "validation"),
    ]  # fmt: skip
    assert [line["roll_backs"] for line in lines if line["split"] == "train"] == [0.0, 1.0, 1.0]
    data = checkpoint.CheckpointStore(tmp_path / "run/checkpoints").data(10)
    assert data["faults"]["roll_backs"] == [[8, 5]]

    # Killed before the bad batch, and after the run has gone back but before it has saved again.
    killed_at(monkeypatch, run, tmp_path / "killed", 7, 5)
    assert_same_run(tmp_path / "run", tmp_path / "killed")


def test_an_interrupted_run_goes_back_as_far_as_one_left_alone(tmp_path, spoil, monkeypatch):
    spoil(8)
    run = experiment(on_nan="roll_back")
    loop.train(run, tmp_path / "run")
    with monkeypatch.context() as patched:
        stop_before(patched, 7, lambda: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(signals.Interrupted):
            loop.train(run, tmp_path / "stopped")
    store = checkpoint.CheckpointStore(tmp_path / "stopped/checkpoints")
    assert store.steps() == [5, 7]
    loop.train(run, tmp_path / "stopped")
    assert store.steps() == [5, 10, 12]
    assert_same_run(tmp_path / "run", tmp_path / "stopped")


def test_a_run_without_a_checkpoint_begins_again_and_not_too_often(tmp_path, spoil):
    taken = spoil(2, 4)
    run = experiment(on_nan="roll_back", max_roll_backs=1)
    with pytest.raises(beginning.FatalError, match=r"gone back 1 times.*max_roll_backs is 1.*No checkpoint"):
        loop.train(run, tmp_path / "run")
    assert taken == [1, 2, 3, 4, *range(3, 7)], "found at the log line after step 4; then step 1 has batch 3"
    assert int(loop.train(experiment(on_nan="roll_back"), tmp_path / "again").step) == STEPS


@pytest.mark.parametrize("action", ["skip", "roll_back", "stop"])
def test_a_loss_that_jumps(tmp_path, spoil, action):
    spoil(9, jump=True)
    # The loss falls at every other step; that of the bad batch lies 1.4 deviations above the mean of those before it.
    run = experiment(on_spike=action, spike_window=4, spike_deviations=1.0)
    if action == "stop":
        with pytest.raises(beginning.FatalError, match=r"step 9: the loss jumped; training stops.*checkpoints/5"):
            loop.train(run, tmp_path / "run")
        return
    assert int(loop.train(run, tmp_path / "run").step) == STEPS
    counted = {"skip": "skipped_steps", "roll_back": "roll_backs"}[action]
    assert last_line(tmp_path / "run")[counted] == 1.0


def test_a_stopped_run_goes_on_with_another_policy(tmp_path, spoil):
    spoil(8)
    with pytest.raises(beginning.FatalError, match="--faults.on-nan skip"):
        loop.train(experiment(), tmp_path / "run")
    assert int(loop.train(experiment(on_nan="skip"), tmp_path / "run").guard.skipped) == 1
