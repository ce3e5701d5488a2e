"""Metrics between two log lines, as sums and weights; part of a checkpoint, so that a resumed run logs equal numbers.

Steps leave their metrics on the device. They come to the host together, once for each log line or save, and are added
in float64 in the order of the steps: how often they were fetched in between changes nothing.
"""

import dataclasses
from typing import Any

import jax
import numpy as np

from t2t.train import faults, processes

LATEST = ("learning_rate", "param_norm")
"""Metrics of which a log line shows the last value instead of the mean."""


@dataclasses.dataclass(frozen=True)
class _Step:
    """A step whose metrics have not come to the host yet."""

    number: int
    metrics: dict[str, Any]
    tokens: int
    position: dict[str, Any] | None


class Interval:
    """What happened since the last log line, and the tokens read since the beginning of the run, by all processes.

    Args:
        history: hears of steps that were left out; None where there can be none.
    """

    def __init__(self, history: faults.History | None = None) -> None:
        self._history = history
        self.total_tokens = 0
        self.clear()

    def clear(self) -> None:
        """Begin a new interval."""
        self.steps = 0
        self.tokens = 0
        self._sums: dict[str, list[float]] = {}
        self._waiting: list[_Step] = []

    def add(self, step: int, metrics: dict[str, Any], *, tokens: int, position: dict[str, Any] | None = None) -> None:
        """Notes what a step has left behind.

        Args:
            step: its number.
            metrics: (sum, weight) by name, still on the device.
            tokens: that this process read.
            position: where its data stand afterwards.
        """
        self.steps += 1
        self._waiting.append(_Step(step, metrics, tokens, position))

    def fetch(self) -> None:
        """Waits for the steps noted and adds metrics, and the tokens of all processes. Every process must call it.

        Raises:
            NonFiniteError: naming the first step after which something was not finite.
            SpikeError: naming the first step whose loss jumped and which was not left out.
            TooManyFaultsError: more steps were left out than may be.
        """
        waiting, self._waiting = self._waiting, []
        for step, metrics in zip(waiting, jax.device_get([step.metrics for step in waiting]), strict=True):
            try:
                self._judge(step.number, metrics)
            except faults.BadStepError as error:
                error.position = step.position
                raise
            for name, (total, weight) in metrics.items():
                sums = self._sums.setdefault(name, [0.0, 0.0])
                if name in LATEST:
                    sums[:] = float(total), float(weight)
                else:
                    sums[0] += float(total)
                    sums[1] += float(weight)
        tokens = sum(processes.gather_json(sum(step.tokens for step in waiting)))
        self.tokens += tokens
        self.total_tokens += tokens

    def _judge(self, step: int, metrics: dict[str, Any]) -> None:
        """Takes the verdict out of the metrics of a step and raises what it means."""
        verdict = int(metrics.pop(faults.VERDICT, (faults.FINE, 1))[0])
        bad = [name for name, (total, _) in metrics.items() if not np.isfinite(total)]
        if bad:
            raise faults.NonFiniteError(step, bad)
        if verdict == faults.SPIKE:
            raise faults.SpikeError(step)
        if verdict != faults.FINE and self._history is not None:
            self._history.skip(step, verdict)

    def means(self) -> dict[str, float]:
        """The mean of each metric over the steps fetched; metrics without any weight are left out."""
        return {name: total / weight for name, (total, weight) in self._sums.items() if weight}

    def weight(self, name: str) -> float:
        """The total weight of a metric, such as the number of target tokens of cross_entropy."""
        return self._sums.get(name, [0.0, 0.0])[1]

    def state(self) -> dict[str, Any]:
        """Everything fetched, as JSON; floats come back to the bit."""
        sums = {name: list(pair) for name, pair in self._sums.items()}
        return {"steps": self.steps, "tokens": self.tokens, "total_tokens": self.total_tokens, "sums": sums}

    @classmethod
    def of(cls, state: dict[str, Any] | None, history: faults.History | None = None) -> "Interval":
        """The interval that a `state()` describes; a fresh one for None."""
        interval = cls(history)
        if state is not None:
            interval.steps, interval.tokens, interval.total_tokens = (
                state[name] for name in ("steps", "tokens", "total_tokens")
            )
            interval._sums = {name: list(pair) for name, pair in state["sums"].items()}
        return interval
