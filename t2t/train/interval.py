"""Metrics between two log lines, as sums and weights; part of a checkpoint, so that a resumed run logs equal numbers.

Steps leave their metrics on the device. They come to the host together, once for each log line or save, and are added
in float64 in the order of the steps: how often they were fetched in between changes nothing.
"""

from typing import Any

import jax
import numpy as np

from t2t.train import processes

LATEST = ("learning_rate", "param_norm")
"""Metrics of which a log line shows the last value instead of the mean."""


class NonFiniteError(ArithmeticError):
    """Loss, gradient or parameters became NaN or infinite."""

    def __init__(self, step: int, names: list[str]):
        super().__init__(f"step {step}: {', '.join(names)} not finite")
        self.step = step
        self.names = names


class Interval:
    """What happened since the last log line, and the tokens read since the beginning of the run, by all processes."""

    def __init__(self) -> None:
        self.total_tokens = 0
        self.clear()

    def clear(self) -> None:
        """Begin a new interval."""
        self.steps = 0
        self.tokens = 0
        self._sums: dict[str, list[float]] = {}
        self._waiting: list[tuple[int, dict[str, Any], int]] = []

    def add(self, step: int, metrics: dict[str, Any], *, tokens: int) -> None:
        """Notes (sum, weight) of each metric of a step, still on the device, and the tokens this process read."""
        self.steps += 1
        self._waiting.append((step, metrics, tokens))

    def fetch(self) -> None:
        """Waits for the steps noted and adds metrics, and the tokens of all processes. Every process must call it.

        Raises:
            NonFiniteError: naming the first step after which something was not finite.
        """
        waiting, self._waiting = self._waiting, []
        for step, metrics, _ in jax.device_get(waiting):
            bad = [name for name, (total, _) in metrics.items() if not np.isfinite(total)]
            if bad:
                raise NonFiniteError(step, bad)
            for name, (total, weight) in metrics.items():
                sums = self._sums.setdefault(name, [0.0, 0.0])
                if name in LATEST:
                    sums[:] = float(total), float(weight)
                else:
                    sums[0] += float(total)
                    sums[1] += float(weight)
        tokens = sum(processes.gather_json(sum(tokens for _, _, tokens in waiting)))
        self.tokens += tokens
        self.total_tokens += tokens

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
    def of(cls, state: dict[str, Any] | None) -> "Interval":
        """The interval that a `state()` describes; a fresh one for None."""
        interval = cls()
        if state is not None:
            interval.steps, interval.tokens, interval.total_tokens = (
                state[name] for name in ("steps", "tokens", "total_tokens")
            )
            interval._sums = {name: list(pair) for name, pair in state["sums"].items()}
        return interval
