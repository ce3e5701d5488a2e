"""What a whole run says of itself: where its time went, what it compiled, what it held, how it ended."""

import os
import re
import signal

import jax
import jax._src.array
import pytest

from t2t.config import Watch
from t2t.train import beginning, checkpoint, loop, signals, writer
from tests.train import tiny_run
from tests.train.test_loop import Killed, kill, stop_before

pytestmark = pytest.mark.slow

PHASES = ("start", "compile", "step", "data_wait", "checkpoint", "evaluation")


def test_lines_hold_goodput_phases_and_memory_and_a_summary_ends_the_log(tmp_path):
    loop.train(tiny_run.experiment(), tmp_path / "run")
    lines = [line for line in writer.read(tmp_path / "run/metrics.jsonl") if line["split"] == "train"]
    for line in lines:
        assert 0 < line["goodput"] < 1
        assert all(line[f"seconds_{phase}"] >= 0 for phase in PHASES)
        assert line["host_bytes"] > 2**20
        assert line["tokens_per_second_per_device"] == pytest.approx(line["tokens_per_second"] / jax.device_count())
    assert lines[0]["seconds_compile"] > lines[-1]["seconds_compile"] == 0
    assert lines[1]["seconds_evaluation"] > 0 and lines[1]["seconds_checkpoint"] > 0
    log = (tmp_path / "run/log.txt").read_text()
    assert re.search(r"this start: .*tokens/s .*MFU .* %.*memory .* GiB at most", log)
    assert re.search(r"whole run: goodput \d+\.\d % of 0:00:\d\d: .*compile", log)


def test_the_time_of_a_run_goes_on_over_kills_and_interruptions(tmp_path, monkeypatch):
    run, path = tiny_run.experiment(), tmp_path / "run"
    with monkeypatch.context() as patched:
        stop_before(patched, 9, kill)
        with pytest.raises(Killed):
            loop.train(run, path)
    with monkeypatch.context() as patched:
        stop_before(patched, 2, lambda: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(signals.Interrupted):
            loop.train(run, path)
    store = checkpoint.CheckpointStore(path / "checkpoints")
    after_kill = store.data(7)["clock"]
    assert after_kill["lost"] > 0 and after_kill["down"] > 0
    loop.train(run, path)
    end = store.data(12)["clock"]
    assert end["step"] > after_kill["step"] and end["down"] > after_kill["down"]
    assert end["lost"] < 2 * after_kill["lost"] + 0.5, "what an interruption saves is not lost"
    assert (path / "log.txt").read_text().count("whole run: goodput") == 3


def test_a_run_that_fails_says_where_its_time_went(tmp_path):
    explosive = tiny_run.Constant(peak=1e30, warmup_steps=1)
    with pytest.raises(beginning.RunError):
        loop.train(
            tiny_run.experiment(optimizer={"learning_rate": explosive}, evaluate={"tasks": ()}), tmp_path / "run"
        )
    assert "whole run: goodput" in (tmp_path / "run/log.txt").read_text()


def test_a_run_profiles_the_steps_it_is_told_to(tmp_path):
    run = tiny_run.experiment(watch=Watch(profile_at=(3,), profile_steps=2), evaluate={"tasks": ()})
    loop.train(run, tmp_path / "run")
    assert list((tmp_path / "run/profile/3").rglob("*.xplane.pb"))
    assert "a profile is in" in (tmp_path / "run/log.txt").read_text()


def test_nothing_comes_to_the_host_between_log_lines(tmp_path, monkeypatch):
    """Arrays are read at log lines and saves: whatever else were read would wait for its step."""
    fetched, steps = [], []
    value = jax._src.array.ArrayImpl._value.fget
    original = loop.Interval.add

    def add(self, step, *args, **options):
        steps.append(step)
        return original(self, step, *args, **options)

    def read(self):
        fetched.append(steps[-1] if steps else 0)
        return value(self)

    monkeypatch.setattr(loop.Interval, "add", add)
    monkeypatch.setattr(jax._src.array.ArrayImpl, "_value", property(read))
    run = tiny_run.experiment(train={"steps": 13, "log_every": 5}, evaluate={"tasks": ()}, checkpoint={"every": 100})
    loop.train(run, tmp_path / "run")
    assert set(fetched) - {0} <= {5, 10, 13}, "steps after which something was read"
    assert {5, 10, 13} <= set(fetched)
