"""Steps that go wrong: numbers that are not finite and losses that jump, and what a run does about them.

The verdict over a step falls on the device, inside the one program of the step, and comes to the host with its metrics.

    skip       the update is not made: parameters, optimizer state and carry stay, the step counts, the data go on
    roll back  the run goes back to its last checkpoint and on with the data after the bad batch
    stop       the run ends

What all this remembers is in the checkpoint, so that a killed run still equals one that was never killed: the running
mean of the losses as part of the state, the history of skips and roll-backs beside it.

Reference: Chowdhery et al., "PaLM", arXiv:2204.02311, section 5.1: a spike comes of some batches in some state, so that
going back and leaving these batches out gets around it.
Differs: PaLM went back about 100 steps before the spike and left out 200 to 500 batches, by hand; here the batches from
the checkpoint up to the bad one are left out.
"""

import dataclasses
import logging
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from t2t.config import Faults

log = logging.getLogger(__name__)

VERDICT = "verdict"
"""Name among the metrics of a step under which its verdict travels to the host."""

FINE, SKIPPED_NON_FINITE, SKIPPED_SPIKE, SPIKE = range(4)
"""Verdicts. A step that is not finite and was not skipped needs none: its metrics show it."""


class BadStepError(ArithmeticError):
    """A step went wrong and was not left out."""

    def __init__(self, step: int, names: list[str], text: str):
        super().__init__(text)
        self.step = step
        self.names = names
        self.position: dict[str, Any] | None = None
        """Where the data stood after its batch."""


class NonFiniteError(BadStepError):
    """Loss, gradient or parameters became NaN or infinite."""

    def __init__(self, step: int, names: list[str]):
        super().__init__(step, names, f"step {step}: {', '.join(names)} not finite")


class SpikeError(BadStepError):
    """The loss jumped."""

    def __init__(self, step: int):
        super().__init__(step, ["loss"], f"step {step}: the loss jumped")


class TooManyFaultsError(ArithmeticError):
    """More steps went wrong than the run's settings allow."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Guard:
    """What the device remembers to judge a step; scalars, the same for all settings."""

    skipped: Any
    """Int: updates left out since the run began."""
    losses: Any
    """Int: how many losses the mean is of."""
    mean: Any
    """Float: of the last losses."""
    variance: Any
    """Float: of the last losses."""


def new_guard() -> Guard:
    """The guard of a run that begins."""
    # Each an array of its own: a state whose arrays share a buffer cannot be donated.
    return Guard(
        skipped=jnp.zeros((), jnp.int32),
        losses=jnp.zeros((), jnp.int32),
        mean=jnp.zeros((), jnp.float32),
        variance=jnp.zeros((), jnp.float32),
    )


def is_watching(settings: Faults | None) -> bool:
    """Whether the program of the step must judge at all; a run that only stops at NaN is judged on the host."""
    return settings is not None and (settings.on_nan == "skip" or settings.on_spike != "ignore")


def judge(
    guard: Guard, loss: Float[Array, ""], *, is_finite: Bool[Array, ""], settings: Faults
) -> tuple[Int[Array, ""], Guard]:
    """The verdict over a step, and the guard after it. Losses that are spikes or not finite do not enter the mean."""
    spike = is_finite & is_spike(guard, loss, settings)
    verdict = jnp.where(spike & (settings.on_spike != "ignore"), SPIKE, FINE)
    if settings.on_spike == "skip":
        verdict = jnp.where(spike, SKIPPED_SPIKE, verdict)
    if settings.on_nan == "skip":
        verdict = jnp.where(is_finite, verdict, SKIPPED_NON_FINITE)
    followed = follow(guard, loss, window=settings.spike_window)
    counts = is_finite & ~spike
    guard = jax.tree.map(lambda new, old: jnp.where(counts, new, old), followed, guard)
    return verdict, dataclasses.replace(guard, skipped=guard.skipped + is_skip(verdict))


def is_skip(verdict: Int[Array, ""]) -> Bool[Array, ""]:
    """Whether a step is left out."""
    return (verdict == SKIPPED_NON_FINITE) | (verdict == SKIPPED_SPIKE)


def is_spike(guard: Guard, loss: Float[Array, ""], settings: Faults) -> Bool[Array, ""]:
    """Whether a loss lies too many standard deviations above the mean; never before a window of losses is known."""
    limit = guard.mean + settings.spike_deviations * jnp.sqrt(guard.variance)
    return (guard.losses >= settings.spike_window) & (loss > limit)


def follow(guard: Guard, loss: Float[Array, ""], *, window: int) -> Guard:
    """Mean and variance with one more loss: exact for the first `window` losses, then older ones fade.

    With n losses so far, this one has the share s = 1 / min(n + 1, window) and the distance d = loss - mean:

        mean += s d        variance = (1 - s) (variance + s d^2)

    Reference: Welford, "Note on a method for calculating corrected sums of squares and products" (1962); West,
    "Updating mean and variance estimates" (1979).
    Differs: the last `window` losses weigh 63 % of all instead of 100 %, so that two numbers are enough and the state
    has the same shape for every window.

    Example:
        >>> guard = new_guard()
        >>> for loss in (1.0, 3.0, 8.0):
        ...     guard = follow(guard, jnp.float32(loss), window=10)
        >>> int(guard.losses), float(guard.mean), round(float(guard.variance), 4)  # (9 + 1 + 16) / 3
        (3, 4.0, 8.6667)
    """
    losses = guard.losses + 1
    share = 1.0 / jnp.minimum(losses, window).astype(jnp.float32)
    distance = loss - guard.mean
    return dataclasses.replace(
        guard,
        losses=losses,
        mean=guard.mean + share * distance,
        variance=(1.0 - share) * (guard.variance + share * distance**2),
    )


class History:
    """What went wrong in a run, and whether that is too much; the same on every process.

    Args:
        settings: of the run.
        state: of a checkpoint; None for a run that begins.
    """

    def __init__(self, settings: Faults, state: dict[str, Any] | None = None):
        state = {"skipped": [], "num_skipped": 0, "roll_backs": []} | (state or {})
        self.settings = settings
        self.num_skipped: int = state["num_skipped"]
        self.roll_backs: list[list[int]] = [list(pair) for pair in state["roll_backs"]]
        """Of each the bad step and the step it went back to."""
        self._skipped: list[int] = list(state["skipped"])

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {"skipped": self._skipped, "num_skipped": self.num_skipped, "roll_backs": self.roll_backs}

    def skip(self, step: int, verdict: int) -> None:
        """Notes that the device has left out a step.

        Raises:
            TooManyFaultsError: it has left out too many.
        """
        settings = self.settings
        why = "the loss jumped" if verdict == SKIPPED_SPIKE else "something was not finite"
        log.warning("step %d is left out: %s", step, why)
        self.num_skipped += 1
        self._skipped = [old for old in self._skipped if old > step - settings.skip_window] + [step]
        if len(self._skipped) > settings.max_skips:
            raise TooManyFaultsError(
                f"{len(self._skipped)} of the last {settings.skip_window} steps were left out, the last of them step "
                f"{step} ({why}); faults.max_skips is {settings.max_skips}"
            )

    def roll_back(self, error: BadStepError, *, to: int) -> None:
        """Notes that the run goes back to the step `to`.

        Raises:
            TooManyFaultsError: it has gone back too often.
        """
        allowed = self.settings.max_roll_backs
        if len(self.roll_backs) >= allowed:
            raise TooManyFaultsError(
                f"{error}; the run has gone back {len(self.roll_backs)} times, and faults.max_roll_backs is {allowed}"
            ) from error
        self.roll_backs.append([error.step, to])
        log.warning("%s: going back to step %d, and on with the data after that batch", error, to)

    def rolls_back(self, error: BadStepError) -> bool:
        """Whether the run is to go back because of this."""
        action = self.settings.on_spike if isinstance(error, SpikeError) else self.settings.on_nan
        return action == "roll_back"

    def values(self) -> dict[str, float]:
        """For a log line: the number of skips and roll-backs since the run began, where there can be any."""
        actions = {self.settings.on_nan, self.settings.on_spike}
        values = {}
        if "skip" in actions or self.num_skipped:
            values["skipped_steps"] = float(self.num_skipped)
        if "roll_back" in actions or self.roll_backs:
            values["roll_backs"] = float(len(self.roll_backs))
        return values
