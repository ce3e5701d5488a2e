"""The learning-rate schedules a config chooses from; the formulas are in `t2t/functional/schedules.py`.

`rate(steps)` gives the function of the step. A schedule with an end takes it from its own `steps`, else from the length
of the run: with `steps=None` a longer run (`--train.steps`) stretches the schedule, also when a run is resumed.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Literal

from jaxtyping import Array, Float

from t2t.functional import schedules

Rate = Callable[..., Float[Array, ""]]
"""The learning rate as a function of the number of updates already made."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Constant:
    """The same rate for ever; T5 fine-tunes with Constant(peak=1e-3)."""

    peak: float
    """The rate; for Adafactor with scale_by_parameter, a fraction of each parameter's RMS."""
    warmup_steps: int = 0
    """Steps of linear warm-up from 0."""

    def __post_init__(self):
        _check_common(self)

    def rate(self, steps: int | None = None) -> Rate:
        """The rate of each step; `steps`, the length of the run, does not matter."""
        del steps
        return functools.partial(schedules.constant, peak=self.peak, warmup_steps=self.warmup_steps)


@dataclasses.dataclass(frozen=True, kw_only=True)
class InverseSquareRoot:
    """The peak until `warmup_steps`, then falling as 1 / sqrt(step).

    The defaults are T5's pretraining: 1 / sqrt(max(step, 10^4)). Vaswani's has warmup="linear".
    """

    peak: float = 0.01
    """The rate at `warmup_steps`: T5X's base learning rate / sqrt(warmup_steps)."""
    warmup_steps: int = 10_000
    """Step at which the decay begins."""
    warmup: Literal["flat", "linear"] = "flat"
    """Before it: hold the peak (T5), or rise to it from 0."""

    def __post_init__(self):
        _check_common(self)
        if self.warmup_steps < 1:
            raise ValueError(f"warmup_steps={self.warmup_steps}: 1/sqrt(step) needs a first step of at least 1")

    def rate(self, steps: int | None = None) -> Rate:
        """The rate of each step; `steps`, the length of the run, does not matter."""
        del steps
        flat = self.warmup == "flat"
        return functools.partial(
            schedules.inverse_square_root, peak=self.peak, warmup_steps=self.warmup_steps, flat=flat
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Linear:
    """From 0 up to the peak over `warmup_steps`, then in a straight line to `end` at `steps`: BERT's and RoBERTa's."""

    peak: float
    """The greatest rate."""
    warmup_steps: int = 0
    """Steps of linear warm-up from 0."""
    end: float = 0.0
    """The rate at the last step."""
    steps: int | None = None
    """Where the schedule ends; None = with the run."""

    def __post_init__(self):
        _check_common(self)
        _check_end(self)

    def rate(self, steps: int | None = None) -> Rate:
        """The rate of each step of a run of `steps` steps."""
        stop = _stop(self, steps)
        return functools.partial(
            schedules.linear, peak=self.peak, steps=stop, warmup_steps=self.warmup_steps, end=self.end
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cosine:
    """From 0 up to the peak over `warmup_steps`, then along half a cosine to `end` at `steps`: GPT's."""

    peak: float
    """The greatest rate."""
    warmup_steps: int = 0
    """Steps of linear warm-up from 0."""
    end: float = 0.0
    """The rate at the last step."""
    steps: int | None = None
    """Where the schedule ends; None = with the run."""

    def __post_init__(self):
        _check_common(self)
        _check_end(self)

    def rate(self, steps: int | None = None) -> Rate:
        """The rate of each step of a run of `steps` steps."""
        stop = _stop(self, steps)
        return functools.partial(
            schedules.cosine, peak=self.peak, steps=stop, warmup_steps=self.warmup_steps, end=self.end
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class WSD:
    """Warm-up, stable, decay: the peak, but for the first `warmup_steps` and the last `decay_steps`.

    State `steps` if the run may be continued: what comes before the decay does not depend on it.
    """

    peak: float
    """The greatest rate."""
    decay_steps: int
    """Steps of the decay, the last of the schedule."""
    warmup_steps: int = 0
    """Steps of linear warm-up from 0."""
    end: float = 0.0
    """The rate at the last step."""
    decay: Literal["linear", "sqrt"] = "linear"
    """Shape of the decay: a straight line, or 1 - sqrt(progress)."""
    steps: int | None = None
    """Where the schedule ends; None = with the run."""

    def __post_init__(self):
        _check_common(self)
        if self.decay_steps < 1:
            raise ValueError(f"decay_steps={self.decay_steps}: give at least 1 (without a decay, use Constant)")
        _check_end(self, decay_steps=self.decay_steps)

    def rate(self, steps: int | None = None) -> Rate:
        """The rate of each step of a run of `steps` steps."""
        stop = _stop(self, steps, decay_steps=self.decay_steps)
        return functools.partial(
            schedules.warmup_stable_decay,
            peak=self.peak,
            steps=stop,
            warmup_steps=self.warmup_steps,
            decay_steps=self.decay_steps,
            end=self.end,
            square_root=self.decay == "sqrt",
        )


Schedule = Constant | InverseSquareRoot | Linear | Cosine | WSD
"""Any of the schedules above."""


def _check_common(schedule: Schedule) -> None:
    """Refuse a peak that is not positive and a negative warm-up."""
    if not schedule.peak > 0.0:
        raise ValueError(f"{type(schedule).__name__}: peak={schedule.peak} must be greater than 0")
    if schedule.warmup_steps < 0:
        raise ValueError(f"{type(schedule).__name__}: warmup_steps={schedule.warmup_steps} must not be negative")


def _check_end(schedule: Linear | Cosine | WSD, *, decay_steps: int = 0) -> None:
    """Refuse an end above the peak and, where its length is stated, a schedule too short for its parts."""
    if not 0.0 <= schedule.end <= schedule.peak:
        raise ValueError(f"{type(schedule).__name__}: end={schedule.end} must be in [0, peak={schedule.peak}]")
    if schedule.steps is not None:
        _check_length(schedule, schedule.steps, decay_steps=decay_steps)


def _stop(schedule: Linear | Cosine | WSD, steps: int | None, *, decay_steps: int = 0) -> int:
    """The step where the schedule ends, checked to leave room for its parts."""
    stop = steps if schedule.steps is None else schedule.steps
    if stop is None:
        raise ValueError(f"{type(schedule).__name__}: steps=None means the length of the run, which was not given")
    _check_length(schedule, stop, decay_steps=decay_steps)
    return stop


def _check_length(schedule: Linear | Cosine | WSD, steps: int, *, decay_steps: int) -> None:
    name, needed = type(schedule).__name__, schedule.warmup_steps + decay_steps
    if needed > steps:
        parts = f"warmup_steps={schedule.warmup_steps}" + (f" and decay_steps={decay_steps}" if decay_steps else "")
        raise ValueError(f"{name}: {parts} do not fit into {steps} steps: shorten them or train {needed} steps or more")
