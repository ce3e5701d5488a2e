"""Learning rates as pure functions of the step.

`step` counts the updates already made: the first update has step 0. Each function returns one float32 number. All of
them rise linearly over the first `warmup_steps` steps (`warmup`); what follows differs. The dataclasses a config
chooses from are in `t2t/train/schedules.py`.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Step = Int[Array, ""] | int
Rate = Float[Array, ""]


def warmup(step: Step, *, warmup_steps: int) -> Rate:
    """The fraction of the peak that `step` of a linear warm-up has reached: step / warmup_steps, at most 1.

    Example:
        >>> [float(warmup(step, warmup_steps=4)) for step in (0, 1, 4, 9)]
        [0.0, 0.25, 1.0, 1.0]
    """
    if warmup_steps == 0:
        return jnp.ones((), jnp.float32)
    return jnp.minimum(1.0, _float(step) / warmup_steps)


def constant(step: Step, *, peak: float, warmup_steps: int = 0) -> Rate:
    """The peak for ever."""
    return peak * warmup(step, warmup_steps=warmup_steps)


def inverse_square_root(step: Step, *, peak: float, warmup_steps: int, flat: bool) -> Rate:
    """The peak until `warmup_steps`, then falling as 1 / sqrt(step).

    Formula: peak sqrt(warmup_steps / max(step, warmup_steps)), times the linear warm-up unless `flat`.

    Args:
        step: updates already made.
        peak: the rate at `warmup_steps`.
        warmup_steps: where the decay begins.
        flat: hold the peak over the first `warmup_steps` instead of rising to it.

    Example:
        >>> [round(float(inverse_square_root(s, peak=0.01, warmup_steps=100, flat=True)), 6) for s in (0, 100, 400)]
        [0.01, 0.01, 0.005]

    Reference: Raffel et al., "Exploring the Limits of Transfer Learning", arXiv:1910.10683, section 3.1.2 (flat,
        1 / sqrt(max(n, 10^4)), so peak 0.01); Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, equation 3
        (linear warm-up, peak = (d_model warmup_steps)^-0.5).
    """
    start = float(max(warmup_steps, 1))
    rate = peak * jnp.sqrt(start / jnp.maximum(_float(step), start))
    return rate if flat else rate * warmup(step, warmup_steps=warmup_steps)


def linear(step: Step, *, peak: float, steps: int, warmup_steps: int = 0, end: float = 0.0) -> Rate:
    """From the peak at `warmup_steps` in a straight line to `end` at `steps`.

    Example:
        >>> [round(float(linear(s, peak=1.0, steps=10, warmup_steps=2)), 4) for s in (1, 2, 6, 10, 99)]
        [0.5, 1.0, 0.5, 0.0, 0.0]

    Reference: `bert/optimization.py`: polynomial decay of power 1 from the peak at step 0, whose warm-up replaces it.
    Differs: BERT's line starts at step 0, so its rate drops by warmup_steps / steps of the peak where the warm-up ends.
    """
    progress = _progress(step, start=warmup_steps, stop=steps)
    return (peak + (end - peak) * progress) * warmup(step, warmup_steps=warmup_steps)


def cosine(step: Step, *, peak: float, steps: int, warmup_steps: int = 0, end: float = 0.0) -> Rate:
    """From the peak at `warmup_steps` along half a cosine to `end` at `steps`.

    Example:
        >>> [round(float(cosine(s, peak=1.0, steps=8)), 4) for s in (0, 4, 8)]
        [1.0, 0.5, 0.0]

    Reference: Loshchilov and Hutter, "SGDR", arXiv:1608.03983, equation 5, without restarts.
    """
    progress = _progress(step, start=warmup_steps, stop=steps)
    remaining = 0.5 * (1.0 + jnp.cos(jnp.pi * progress))
    return (end + (peak - end) * remaining) * warmup(step, warmup_steps=warmup_steps)


def warmup_stable_decay(
    step: Step, *, peak: float, steps: int, warmup_steps: int, decay_steps: int, end: float, square_root: bool
) -> Rate:
    """Warm-up, then the peak, then over the last `decay_steps` steps down to `end`.

    Args:
        step: updates already made.
        peak: the rate between warm-up and decay.
        steps: where the decay ends.
        warmup_steps: length of the linear warm-up.
        decay_steps: length of the decay.
        end: the rate at `steps` and after.
        square_root: fall as 1 - sqrt(progress) (steep first) instead of in a straight line.

    Example:
        >>> options = dict(peak=1.0, steps=10, warmup_steps=2, decay_steps=4, end=0.0, square_root=False)
        >>> [round(float(warmup_stable_decay(s, **options)), 4) for s in (1, 2, 6, 8, 10)]
        [0.5, 1.0, 1.0, 0.5, 0.0]

    Reference: Hu et al., "MiniCPM", arXiv:2404.06395, section 4; the 1 - sqrt shape: Hägele et al., "Scaling Laws and
        Compute-Optimal Training Beyond Fixed Training Durations", arXiv:2405.18392.
    """
    progress = _progress(step, start=steps - decay_steps, stop=steps)
    fallen = jnp.sqrt(progress) if square_root else progress
    return (peak + (end - peak) * fallen) * warmup(step, warmup_steps=warmup_steps)


def _progress(step: Step, *, start: int, stop: int) -> Rate:
    """How far `step` is from `start` to `stop`, in [0, 1]."""
    return jnp.clip((_float(step) - start) / max(stop - start, 1), 0.0, 1.0)


def _float(step: Step) -> Rate:
    return jnp.asarray(step).astype(jnp.float32)
