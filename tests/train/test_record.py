"""Log lines: what they hold, and time that neither compilation nor evaluation spoils."""

import jax.numpy as jnp
import pytest

from t2t.train import build, progress, record, run_directory, writer
from t2t.train import clock as clock_lib
from t2t.train.interval import Interval
from t2t.vocabulary import ByteVocabulary
from tests.train import tiny_run


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    ticking = Clock()
    monkeypatch.setattr(record.time, "monotonic", ticking)
    monkeypatch.setattr(record, "peak_flops", lambda: 1e9)
    return ticking


def test_a_line_holds_means_tokens_and_times(tmp_path, clock):
    run = run_directory.RunDirectory(tmp_path)
    pieces = build.build(tiny_run.experiment(), ByteVocabulary())
    interval = Interval()
    for step in range(1, 5):
        interval.add(step, {"cross_entropy": (jnp.float32(60.0), jnp.float32(30.0))}, tokens=200)
    interval.fetch()
    with (
        progress.Progress(run.log, total=12) as report,
        record.Recorder(pieces, run, report, step=0, evaluated=0, clock=clock_lib.Clock()) as recorder,
    ):
        clock.now = 160.0  # a minute of compilation
        recorder.completed(1)
        clock.now = 161.0
        with recorder.paused():
            clock.now = 171.0  # an evaluation
        clock.now = 172.0
        recorder.log(4, interval)
        recorder.evaluation(4, {"tiny_first": {"accuracy": 50.0, "f1": None, "examples": 13.0}})
    line, evaluation = writer.read(run.metrics)
    assert (line["step"], line["split"], line["task"]) == (4, "train", "tiny_span_corruption")
    assert (line["cross_entropy"], line["target_tokens"], line["tokens"]) == (2.0, 120.0, 800)
    assert (line["seconds"], line["steps_per_second"], line["tokens_per_second"]) == (2.0, 1.5, 300.0)
    assert line["mfu"] == pytest.approx(1.5 * record.step_flops(pieces) / 1e9)
    assert evaluation == {
        "step": 4, "split": "validation", "task": "tiny_first", "accuracy": 50.0, "f1": None, "examples": 13.0,
    }  # fmt: skip
    log = run.log.read_text()
    assert "ETA 0:05" in log and "accuracy 50  f1 nan" in log


def test_results_are_named_as_the_best_checkpoint_names_them():
    results = {"a": {"loss": 1.0, "f1": 2.0}, "b": {"f1": 3.0, "loss": None}}
    assert record.flat(results) == {"a/loss": 1.0, "a/f1": 2.0, "b/f1": 3.0}
