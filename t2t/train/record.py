"""What a run writes down while it trains: log lines and evaluations, for people and for programs."""

import contextlib
import dataclasses
import math
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

import jax
import numpy as np

from t2t.models.electra import SharingNetwork
from t2t.nn.heads import VocabularyHead
from t2t.train import faults, flops, processes, progress, writer
from t2t.train.build import Pieces
from t2t.train.clock import Clock
from t2t.train.interval import Interval
from t2t.train.run_directory import RunDirectory
from t2t.types import Batch

_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes in the unit of getrusage's resident size."""


class Recorder:
    """Measures time and writes metrics of steps and evaluations; use it as a context manager.

    When it is left, however that is, it shows a summary of what this start and the whole run have done.

    Args:
        pieces: of the run.
        run: where to write.
        report: where to show.
        step: the step the run goes on from.
        evaluated: the last evaluation that is known there.
        clock: of the run.
    """

    def __init__(
        self,
        pieces: Pieces,
        run: RunDirectory,
        report: progress.Progress,
        *,
        step: int,
        evaluated: int,
        clock: Clock,
    ):
        self._pieces = pieces
        self._report = report
        self._total = pieces.experiment.train.steps
        self._run = run
        self._phases = clock
        self._clock: tuple[float, int] | None = None  # when the steps after this one began
        self._done = Done()
        self._writer: writer.MetricsWriter | None = None
        self.cut_back(step=step, evaluated=evaluated)
        self._flops = step_flops(pieces)
        self._peak = peak_flops()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        for line in summary(self._done, self._phases, step_flops=self._flops, peak=self._peak):
            self._report.say(line)
        self._phases.keep()
        if self._writer is not None:
            self._writer.close()

    def cut_back(self, *, step: int, evaluated: int) -> None:
        """Goes on after this step, with the evaluations known there; what was written of later ones is removed."""
        self._clock = None
        if not processes.is_first():
            return
        if self._writer is not None:
            self._writer.close()
        self._writer = writer.MetricsWriter(self._run.metrics, self._run.events, step=step, evaluated=evaluated)

    def completed(self, step: int) -> None:
        """Notes that a step is done; the clock starts at the first, whose time was mostly compilation."""
        if self._clock is None:
            self._clock = time.monotonic(), step
        self._report.phase("training")
        self._report.step(step)

    def log(self, step: int, interval: Interval, history: faults.History | None = None) -> None:
        """Writes the line of an interval whose steps are all done."""
        values: dict[str, float] = interval.means() | (history.values() if history is not None else {})
        targets = interval.weight("cross_entropy")
        if targets:
            values["target_tokens"] = targets
        values["tokens"] = interval.total_tokens
        times = self._times(step, interval)
        self._clock = time.monotonic(), step
        self._done.add(times, interval)
        self._write(step, "train", self._learned(), {**values, **times, **self._phases.log(), **memory()})
        left = (self._total - step) / times["steps_per_second"] if times else None
        self._report.note(progress.line(step, self._total, {**values, **times}, eta=left))
        self._report.step(step)

    def evaluation(self, step: int, results: Mapping[str, Mapping[str, float | None]]) -> None:
        """Writes one line for each task."""
        for task, values in results.items():
            self._write(step, "validation", task, dict(values))
            numbers = {name: math.nan if value is None else value for name, value in values.items()}
            shown = "  ".join(f"{name} {value:.4g}" for name, value in numbers.items() if name != "examples")
            self._report.say(f"step {step}  {task}  {shown}")

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Time that does not count as training."""
        before = time.monotonic()
        yield
        if self._clock is not None:
            self._clock = self._clock[0] + time.monotonic() - before, self._clock[1]

    def _times(self, step: int, interval: Interval) -> dict[str, float]:
        if self._clock is None or step <= self._clock[1]:
            return {}
        seconds = max(time.monotonic() - self._clock[0], 1e-9)
        rate = (step - self._clock[1]) / seconds
        return {
            "seconds": seconds,
            "steps_per_second": rate,
            "tokens_per_second": rate * interval.tokens / interval.steps,
            "tokens_per_second_per_device": rate * interval.tokens / interval.steps / jax.device_count(),
            "mfu": rate * self._flops / self._peak,
        }

    def _write(self, step: int, split: str, task: str, values: dict[str, Any]) -> None:
        if self._writer is not None:
            self._writer.write(step, split=split, task=task, values=values)

    def _learned(self) -> str:
        train = self._pieces.experiment.data.train
        return train if isinstance(train, str) else "+".join(train)


@dataclasses.dataclass
class Done:
    """What one start of a run has done between its log lines, compilation left out."""

    steps: float = 0.0
    tokens: float = 0.0
    seconds: float = 0.0

    def add(self, times: Mapping[str, float], interval: Interval) -> None:
        """Adds an interval; nothing where its time is not known."""
        if times:
            self.seconds += times["seconds"]
            self.steps += times["seconds"] * times["steps_per_second"]
            self.tokens += times["seconds"] * times["tokens_per_second"]


def summary(done: Done, clock: Clock, *, step_flops: float, peak: float) -> Iterator[str]:
    """Two lines: what this start did, and where the time of the whole run went."""
    held = memory()
    parts = []
    if done.steps:
        parts.append(f"{done.tokens / done.seconds:,.0f} tokens/s ({done.tokens:,.0f} in {done.steps:,.0f} steps)")
        parts.append(f"MFU {100 * done.steps * step_flops / done.seconds / peak:.1f} %")
    if clock.cache_hits():
        parts.append(f"{clock.cache_hits()} programs from the cache")
    device = f", {held['device_bytes'] / 2**30:.2f} GiB on a device" if "device_bytes" in held else ""
    parts.append(f"memory {held['host_bytes'] / 2**30:.2f} GiB{device} at most")
    yield f"this start: {', '.join(parts)}"
    yield f"whole run: {clock.summary()}"


def memory() -> dict[str, float]:
    """Bytes at most held so far: by this process (resident), and by one of its devices where they say it."""
    values = {"host_bytes": float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT)}
    stats = [device.memory_stats() or {} for device in jax.local_devices()]
    peaks = [found["peak_bytes_in_use"] for found in stats if "peak_bytes_in_use" in found]
    return values | ({"device_bytes": float(max(peaks))} if peaks else {})


def step_flops(pieces: Pieces) -> float:
    """Operations that one step of a run needs, by formula."""
    rows = pieces.experiment.data.batch_size
    empty = {
        name: jax.ShapeDtypeStruct((rows, *value.shape[1:]), value.dtype)
        for name, value in pieces.converter.convert([[]]).items()
    }
    total = 0.0
    for role, network in pieces.models.items():
        shared = isinstance(network, SharingNetwork)
        params = jax.eval_shape(network.whole, pieces.state.params) if shared else pieces.state.params[role]
        scores_words = isinstance(network.config.head, VocabularyHead)
        batch = {name: value for name, value in empty.items() if scores_words or "_predict_" not in name}
        total += flops.step_flops(params, batch, applications=flops.applications(network.config))
    return total


def peak_flops() -> float:
    """Operations per second of all devices: as their maker states, else (CPUs) as measured now on this host."""
    stated = flops.peak_flops(jax.devices()[0])
    return flops.measured_peak_flops() * jax.process_count() if stated is None else stated * jax.device_count()


def flat(results: Mapping[str, Mapping[str, float | None]]) -> dict[str, float]:
    """Results by TASK/METRIC, as `checkpoint.best` names them, without those that are not finite."""
    return {
        f"{task}/{name}": value
        for task, values in results.items()
        for name, value in values.items()
        if value is not None
    }


def count_tokens(batch: Batch) -> int:
    """Tokens of a host's batch that are no padding, of both sides.

    Example:
        >>> count_tokens({"encoder_segment_ids": np.array([[1, 1, 0]]), "decoder_segment_ids": np.array([[1, 0, 0]])})
        3
    """
    return int(sum(np.count_nonzero(value) for name, value in batch.items() if name.endswith("_segment_ids")))
