"""The optimizers a config chooses from: `Adafactor`, `AdamW` and `LAMB`, each with its schedule, decay and clipping.

`make(shapes, axes, steps=...)` gives the optax transformation. optax is used wherever it is right, under standard dtype
promotion (it does not run under the strict one):

- Adam's moments, decoupled weight decay and the learning rate are optax's;
- clipping by the global norm is ours: optax's divides every element, which XLA does not fuse into the update, so that
  on CPUs the clipped gradients are one more array of the size of the parameters;
- Adafactor is optax's on a two-dimensional view of each layer (`t2t/train/adafactor.py` says why);
- LAMB is Adam's direction with optax's trust ratio, layer by layer (`t2t/train/lamb.py`);
- Adam without bias correction is ours, since optax has none.
"""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import optax

from t2t.train import adafactor, lamb, roles
from t2t.train.schedules import WSD, Constant, Cosine, InverseSquareRoot, Linear, Schedule

__all__ = [
    "LAMB",
    "WSD",
    "Adafactor",
    "AdamW",
    "Constant",
    "Cosine",
    "InverseSquareRoot",
    "Linear",
    "Optimizer",
    "Schedule",
]

_T5_RELATIVE_PEAK = 0.01
"""Peak of T5's schedule: as a fraction of each parameter's RMS a good rate, as a size of steps a divergent one."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adafactor:
    """Adafactor; with its defaults, T5X's (pretraining: the default schedule; fine-tuning: Constant(peak=1e-3)).

    Two RMS rules are separate: `clip_threshold` bounds the RMS of an update, `scale_by_parameter` multiplies it with
    the RMS of the parameter, so that the learning rate is relative.

    Reference: arXiv:1804.04235; `t5x/adafactor.py`.
    Differs: weight decay is decoupled and follows the schedule (learning rate x weight_decay x parameter) as in AdamW.
    """

    learning_rate: Schedule = InverseSquareRoot()
    """Rate of each step, relative to the parameters' RMS if scale_by_parameter."""
    scale_by_parameter: bool = True
    """Whether updates are relative to the RMS of the parameter (of one layer)."""
    minimum_scale: float = 1e-3
    """Least RMS that a parameter is taken to have, so that zeros can grow."""
    clip_threshold: float | None = 1.0
    """Greatest RMS of an update before the learning rate; None = no clipping."""
    decay_exponent: float = 0.8
    """Second moments at step t = 0, 1, ... keep 1 - (t + 1)^-decay_exponent of their past."""
    epsilon: float = 1e-30
    """Added to squared gradients."""
    factored: bool = True
    """Whether large matrices keep only row and column means of their second moment."""
    min_dim_factored: int = 128
    """A matrix is factored if both its dimensions are at least this."""
    weight_decay: float = 0.0
    """Per unit of learning rate, on kernels and embeddings (t2t/train/roles.py)."""
    clip_norm: float | None = None
    """Greatest global norm of the gradient; None = no clipping."""

    def __post_init__(self):
        _check_positive(self, "minimum_scale", "clip_threshold", "epsilon", "min_dim_factored", "clip_norm")
        _check_fraction(self, "decay_exponent")
        _check_not_negative(self, "weight_decay")
        if not self.factored and self.min_dim_factored != 128:
            raise ValueError(
                f"Adafactor: min_dim_factored={self.min_dim_factored} has no effect with factored=False; "
                "set factored=True, or leave min_dim_factored at its default"
            )
        if self.scale_by_parameter:
            return
        if self.minimum_scale != 1e-3:
            raise ValueError(
                f"Adafactor: minimum_scale={self.minimum_scale} has no effect with scale_by_parameter=False; "
                "set scale_by_parameter=True, or leave minimum_scale at its default"
            )
        if self.learning_rate.peak >= _T5_RELATIVE_PEAK:
            raise ValueError(
                f"Adafactor: a peak of {self.learning_rate.peak} is a rate relative to the parameters' RMS, but "
                "scale_by_parameter=False makes it the size of a step, which diverges. What works: "
                "scale_by_parameter=True with InverseSquareRoot(peak=0.01) (T5 pretraining) or Constant(peak=1e-3) "
                "(T5 fine-tuning); or scale_by_parameter=False with a peak below 0.01, such as Constant(peak=1e-3)"
            )

    def make(self, shapes: Any, axes: Any, *, steps: int | None = None) -> optax.GradientTransformation:
        """The transformation for parameters of these shapes and logical axes, in a run of `steps` steps."""
        direction = adafactor.scale_by_adafactor(
            axes,
            decay_exponent=self.decay_exponent,
            epsilon=self.epsilon,
            clip_threshold=self.clip_threshold,
            minimum_scale=self.minimum_scale if self.scale_by_parameter else None,
            min_dim_factored=self.min_dim_factored if self.factored else None,
        )
        return _around(direction, self, shapes, steps)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdamW:
    """Adam with decoupled weight decay.

    Reference: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", arXiv:1711.05101. Without bias correction
        it is the optimizer BERT and ELECTRA were trained with (`bert/optimization.py`).
    """

    learning_rate: Schedule
    """Rate of each step."""
    b1: float = 0.9
    """Decay of the mean of gradients."""
    b2: float = 0.999
    """Decay of the mean of squared gradients."""
    eps: float = 1e-8
    """Added to the root of the second moment; BERT's is 1e-6."""
    bias_correction: bool = True
    """Whether young moments are divided by 1 - b^t; without, early steps are up to (1 - b1)/sqrt(1 - b2) the size."""
    weight_decay: float = 0.0
    """Per unit of learning rate, on kernels and embeddings (t2t/train/roles.py)."""
    clip_norm: float | None = None
    """Greatest global norm of the gradient; None = no clipping."""

    def __post_init__(self):
        _check_fraction(self, "b1", "b2")
        _check_positive(self, "eps", "clip_norm")
        _check_not_negative(self, "weight_decay")

    def make(self, shapes: Any, axes: Any, *, steps: int | None = None) -> optax.GradientTransformation:
        """The transformation for parameters of these shapes and logical axes, in a run of `steps` steps."""
        del axes  # Adam decides nothing per tensor
        return _around(_adam(self), self, shapes, steps)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LAMB:
    """Adam whose update of each kernel is as long as the kernel, times the rate: for batches of thousands of rows.

    Reference: You et al., "Large Batch Optimization for Deep Learning", arXiv:1904.00962; ALBERT was trained with it,
        without bias correction (`lamb_optimizer.py`).
    Differs: the ratio of lengths is not bounded (the paper's phi is the identity), as in the code of its authors.
    """

    learning_rate: Schedule
    """Rate of each step, relative to the length of the parameters."""
    b1: float = 0.9
    """Decay of the mean of gradients."""
    b2: float = 0.999
    """Decay of the mean of squared gradients."""
    eps: float = 1e-6
    """Added to the root of the second moment."""
    bias_correction: bool = True
    """Whether young moments are divided by 1 - b^t."""
    weight_decay: float = 0.0
    """Added to the direction, times the parameter, before its length is taken; on kernels and embeddings."""
    clip_norm: float | None = None
    """Greatest global norm of the gradient; None = no clipping."""

    def __post_init__(self):
        _check_fraction(self, "b1", "b2")
        _check_positive(self, "eps", "clip_norm")
        _check_not_negative(self, "weight_decay")

    def make(self, shapes: Any, axes: Any, *, steps: int | None = None) -> optax.GradientTransformation:
        """The transformation for parameters of these shapes and logical axes, in a run of `steps` steps."""
        ratio = lamb.scale_by_trust_ratio(axes, adapted=roles.decay_mask(shapes))
        return _around(_adam(self), self, shapes, steps, last=(ratio,))


Optimizer = Adafactor | AdamW | LAMB
"""Any of the optimizers above."""


def clip_by_global_norm(max_norm: float) -> optax.GradientTransformation:
    """Gradients scaled to a global norm of at most `max_norm`, which may be infinite."""

    def update(gradients: Any, state: optax.EmptyState, params: Any = None) -> tuple[Any, optax.EmptyState]:
        del params
        scale = 1.0 / jnp.maximum(optax.tree.norm(gradients) / max_norm, 1.0)
        return jax.tree.map(lambda g: g * scale, gradients), state

    return optax.GradientTransformation(optax.init_empty_state, update)


def scale_by_uncorrected_adam(*, b1: float, b2: float, eps: float) -> optax.GradientTransformation:
    """Adam's direction m / (sqrt(v) + eps) without bias correction, as in `bert/optimization.py`."""

    def init(params: Any) -> optax.ScaleByAdamState:
        return optax.ScaleByAdamState(
            count=jnp.zeros((), jnp.int32),
            mu=jax.tree.map(jnp.zeros_like, params),
            nu=jax.tree.map(jnp.zeros_like, params),
        )

    def update(gradients: Any, state: optax.ScaleByAdamState, params: Any = None) -> tuple[Any, optax.ScaleByAdamState]:
        del params
        mu = jax.tree.map(lambda m, g: b1 * m + (1.0 - b1) * g, state.mu, gradients)
        nu = jax.tree.map(lambda v, g: b2 * v + (1.0 - b2) * jnp.square(g), state.nu, gradients)
        updates = jax.tree.map(lambda m, v: m / (jnp.sqrt(v) + eps), mu, nu)
        return updates, optax.ScaleByAdamState(count=optax.safe_increment(state.count), mu=mu, nu=nu)

    return optax.GradientTransformation(init, update)


def _adam(config: AdamW | LAMB) -> optax.GradientTransformation:
    make = optax.scale_by_adam if config.bias_correction else scale_by_uncorrected_adam
    return make(b1=config.b1, b2=config.b2, eps=config.eps)


def _around(
    direction: optax.GradientTransformation,
    config: Optimizer,
    shapes: Any,
    steps: int | None,
    *,
    last: tuple[optax.GradientTransformation, ...] = (),
) -> optax.GradientTransformation:
    """Clip, `direction`, decay, `last`, learning rate: the order all optimizers share."""
    # Also without clipping the gradients are multiplied by a number: else XLA shares their squares between the norm
    # that the step reports and the second moments, in an array of its own (t5-small's update: 350 ms instead of 200).
    parts = [clip_by_global_norm(math.inf if config.clip_norm is None else config.clip_norm), direction]
    if config.weight_decay:
        parts.append(optax.add_decayed_weights(config.weight_decay, mask=roles.decay_mask(shapes)))
    chain = optax.chain(*parts, *last, optax.scale_by_learning_rate(config.learning_rate.rate(steps)))

    def init(params: Any) -> optax.OptState:
        with jax.numpy_dtype_promotion("standard"):
            return chain.init(params)

    def update(gradients: Any, state: optax.OptState, params: Any = None) -> tuple[Any, optax.OptState]:
        with jax.numpy_dtype_promotion("standard"):
            return chain.update(gradients, state, params)

    return optax.GradientTransformation(init, update)


def _check_positive(config: Any, *fields: str) -> None:
    for field in fields:
        value = getattr(config, field)
        if value is not None and not value > 0:
            none = " (None switches it off)" if field in ("clip_norm", "clip_threshold") else ""
            raise ValueError(f"{type(config).__name__}: {field}={value} must be greater than 0{none}")


def _check_not_negative(config: Any, *fields: str) -> None:
    for field in fields:
        if not getattr(config, field) >= 0:
            raise ValueError(f"{type(config).__name__}: {field}={getattr(config, field)} must not be negative")


def _check_fraction(config: Any, *fields: str) -> None:
    for field in fields:
        if not 0.0 <= getattr(config, field) < 1.0:
            raise ValueError(f"{type(config).__name__}: {field}={getattr(config, field)} must be in [0, 1)")
