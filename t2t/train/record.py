"""What a run writes down while it trains: log lines and evaluations, for people and for programs."""

import contextlib
import math
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

import jax
import numpy as np

from t2t.models.electra import SharingNetwork
from t2t.nn.heads import VocabularyHead
from t2t.train import flops, processes, progress, writer
from t2t.train.build import Pieces
from t2t.train.interval import Interval
from t2t.train.run_directory import RunDirectory
from t2t.types import Batch


class Recorder:
    """Measures time and writes metrics of steps and evaluations; use it as a context manager.

    Args:
        pieces: of the run.
        run: where to write.
        report: where to show.
        step: the step the run goes on from.
        evaluated: the last evaluation that is known there.
    """

    def __init__(self, pieces: Pieces, run: RunDirectory, report: progress.Progress, *, step: int, evaluated: int):
        self._pieces = pieces
        self._report = report
        self._total = pieces.experiment.train.steps
        self._clock: tuple[float, int] | None = None  # when the steps after this one began
        self._writer = None
        if processes.is_first():
            self._writer = writer.MetricsWriter(run.metrics, run.events, step=step, evaluated=evaluated)
        self._flops = step_flops(pieces)
        self._peak = peak_flops()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        if self._writer is not None:
            self._writer.close()

    def completed(self, step: int) -> None:
        """Notes that a step is done; the clock starts at the first, whose time was mostly compilation."""
        if self._clock is None:
            self._clock = time.monotonic(), step
        self._report.phase("training")
        self._report.step(step)

    def log(self, step: int, interval: Interval) -> None:
        """Writes the line of an interval whose steps are all done."""
        values: dict[str, float] = interval.means()
        targets = interval.weight("cross_entropy")
        if targets:
            values["target_tokens"] = targets
        values["tokens"] = interval.total_tokens
        times = self._times(step, interval)
        self._clock = time.monotonic(), step
        self._write(step, "train", self._learned(), {**values, **times})
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
            "mfu": rate * self._flops / self._peak,
        }

    def _write(self, step: int, split: str, task: str, values: dict[str, Any]) -> None:
        if self._writer is not None:
            self._writer.write(step, split=split, task=task, values=values)

    def _learned(self) -> str:
        train = self._pieces.experiment.data.train
        return train if isinstance(train, str) else "+".join(train)


def step_flops(pieces: Pieces) -> float:
    """Operations that one step of a run needs, by formula."""
    empty = pieces.converter.convert([[] for _ in range(pieces.experiment.data.batch_size)])
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
