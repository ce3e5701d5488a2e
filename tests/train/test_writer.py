"""metrics.jsonl and TensorBoard events: appended line by line, cut back on resume, also after a kill in mid-line."""

import pathlib

import pytest
from tensorboard.backend.event_processing import event_file_loader

from t2t.train import writer


def write(directory: pathlib.Path, step: int, *steps: int):
    opened = writer.MetricsWriter(directory / "metrics.jsonl", directory / "events", step=step, evaluated=step)
    for at in steps:
        opened.write(at, split="train", task="tiny", values={"loss": 1 / at})
    opened.write(steps[-1], split="validation", task="other", values={"accuracy": 50.0})
    opened.close()


def events(directory: pathlib.Path):
    return [
        event
        for path in sorted((directory / "events").iterdir())
        for event in event_file_loader.LegacyEventFileLoader(str(path)).Load()
    ]


def test_lines_hold_step_split_task_and_values(tmp_path):
    write(tmp_path, 0, 3)
    assert writer.read(tmp_path / "metrics.jsonl") == [
        {"step": 3, "split": "train", "task": "tiny", "loss": 1 / 3},
        {"step": 3, "split": "validation", "task": "other", "accuracy": 50.0},
    ]


def test_a_resumed_run_goes_on_as_if_the_later_lines_had_not_been(tmp_path):
    write(tmp_path, 0, 1, 2, 3, 4)
    write(tmp_path, 2, 3, 4)
    steps = [record["step"] for record in writer.read(tmp_path / "metrics.jsonl") if record["split"] == "train"]
    assert steps == [1, 2, 3, 4]


def test_an_evaluation_that_will_be_made_again_is_cut_back(tmp_path):
    write(tmp_path, 0, 1, 2)
    writer.cut_back(tmp_path / "metrics.jsonl", step=2, evaluated=1)
    assert [(r["step"], r["split"]) for r in writer.read(tmp_path / "metrics.jsonl")] == [(1, "train"), (2, "train")]


def test_a_line_cut_short_by_a_kill_is_dropped(tmp_path):
    write(tmp_path, 0, 1, 2)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 3, "spl')
    write(tmp_path, 2, 3)
    text = (tmp_path / "metrics.jsonl").read_text()
    assert [record["step"] for record in writer.read(tmp_path / "metrics.jsonl")] == [1, 2, 2, 3, 3]
    assert text.count("\n") == 5


def test_nan_is_never_written(tmp_path):
    opened = writer.MetricsWriter(tmp_path / "metrics.jsonl", tmp_path / "events", step=0, evaluated=0)
    with pytest.raises(ValueError, match="JSON compliant"):
        opened.write(1, split="train", task="tiny", values={"loss": float("nan")})
    opened.close()


def test_tensorboard_reads_the_events_and_forgets_what_came_after_a_resume(tmp_path):
    write(tmp_path, 0, 1, 2)
    found = {(e.step, v.tag): v.simple_value for e in events(tmp_path) for v in e.summary.value}
    assert found == {(1, "train/loss"): 1.0, (2, "train/loss"): 0.5, (2, "other/accuracy"): 50.0}
    assert [e.step for e in events(tmp_path) if e.HasField("session_log")] == [1]


def test_a_line_that_is_no_record_is_named(tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    record = b'{"step": 1, "split": "train", "task": "a"}\n'
    for cut_short in (b'{"step": 2, "spl', b"5", b"\xff", b'{"step": 2}'):
        metrics.write_bytes(record + cut_short)
        assert [found["step"] for found in writer.read(metrics)] == [1]
        metrics.write_bytes(record + cut_short + b"\n" + record)
        with pytest.raises(ValueError, match=r"metrics.jsonl, line 2 is no record"):
            writer.read(metrics)
