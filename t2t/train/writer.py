"""Numbers of a run on disk: metrics.jsonl, one JSON object a line, and the same as TensorBoard events.

    {"step": 50, "split": "train", "task": "pydocs_span_corruption", "loss": 7.1, ..., "tokens_per_second": 31000}
    {"step": 50, "split": "validation", "task": "pydocs_topic", "accuracy": 31.5, ...}

A resumed run first cuts metrics.jsonl back to the step it goes on from, and to the evaluations it knows of. Of two runs
with equal metrics only the values of `TIME_LIKE` differ. null stands for a result that is not finite.
"""

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer import record_writer

from t2t.train import clock

TIME_LIKE = (
    "seconds", "steps_per_second", "tokens_per_second", "tokens_per_second_per_device", "mfu", "goodput",
    *(f"seconds_{phase}" for phase in clock.PHASES), "device_bytes", "host_bytes",
)  # fmt: skip
"""Values that depend on how fast the machine was, and on what else the process did."""


class MetricsWriter:
    """Appends to metrics.jsonl and to one new file of events.

    Args:
        metrics: path of metrics.jsonl.
        events: directory of the events.
        step: the step the run goes on from; later lines are removed.
        evaluated: the last evaluation that is known there; lines of later ones are removed.
    """

    def __init__(self, metrics: Path, events: Path, *, step: int, evaluated: int):
        cut_back(metrics, step=step, evaluated=evaluated)
        self._lines = metrics.open("a", encoding="utf-8")
        self._events = _Events(events, step=step)

    def write(self, step: int, *, split: str, task: str, values: dict[str, Any]) -> None:
        """Writes one line; it is in the file when this returns."""
        record = {"step": step, "split": split, "task": task, **values}
        self._lines.write(json.dumps(record, allow_nan=False) + "\n")
        self._lines.flush()
        prefix = split if split == "train" else task
        self._events.write(step, {f"{prefix}/{name}": value for name, value in values.items()})

    def close(self) -> None:
        """Write out and close both."""
        self._lines.flush()
        os.fsync(self._lines.fileno())
        self._lines.close()
        self._events.close()


def read(metrics: Path) -> list[dict[str, Any]]:
    """The records of a metrics.jsonl; a last line that was cut short by a kill is left out.

    Raises:
        ValueError: a line before the last is no record: the file was changed by something else.
    """
    if not metrics.exists():
        return []
    lines = metrics.read_bytes().splitlines()
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            if not {"step", "split", "task"} <= set(record):
                raise ValueError("no step, split and task")
        except (ValueError, TypeError) as error:
            if number == len(lines):
                break
            raise ValueError(
                f"{metrics}, line {number} is no record of metrics ({error}): mend or delete it"
            ) from error
        records.append(record)
    return records


def cut_back(metrics: Path, *, step: int, evaluated: int) -> None:
    """Removes the records of training after `step` and those of evaluations after `evaluated`, in one move."""
    if not metrics.exists():
        return
    records = [r for r in read(metrics) if r["step"] <= (step if r["split"] == "train" else evaluated)]
    kept = [json.dumps(record) + "\n" for record in records]
    partial = metrics.with_name(f"{metrics.name}.partial")
    partial.write_text("".join(kept), encoding="utf-8")
    partial.replace(metrics)


class _Events:
    """A file of TensorBoard events. The package's own writer of files would load TensorFlow where it is installed."""

    def __init__(self, directory: Path, *, step: int):
        directory.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time_ns() // 1_000_000_000:010d}.{platform.node()}.{os.getpid()}"
        self._records = record_writer.RecordWriter((directory / name).open("ab"))
        self._add(file_version="brain.Event:2")
        # TensorBoard drops what earlier files hold for this step and later ones.
        self._add(step=step + 1, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START))

    def write(self, step: int, values: dict[str, Any]) -> None:
        numbers = [
            summary_pb2.Summary.Value(tag=name, simple_value=float(value))
            for name, value in values.items()
            if isinstance(value, int | float)
        ]
        self._add(step=step, summary=summary_pb2.Summary(value=numbers))

    def close(self) -> None:
        self._records.close()

    def _add(self, **content: Any) -> None:
        self._records.write(event_pb2.Event(wall_time=time.time(), **content).SerializeToString())
        self._records.flush()
