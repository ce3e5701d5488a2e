"""Cross entropy over a vocabulary: per token, summed over a batch, and in chunks so that the logits are never whole.

A loss here is a sum and a weight; dividing is the business of `t2t/train/step.py`, which knows the weight of the whole
global batch.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num

from t2t.functional import precision


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenLosses:
    """What one prediction of one token costs, before any weight."""

    cross_entropy: Any
    """Float[*B]: nats; with label smoothing, nats above the least possible."""
    log_normalizer: Any
    """Float[*B]: log Z = log sum exp(logits); z-loss pulls its square towards 0."""
    correct: Any
    """Float[*B]: 1 where the target has the greatest logit (ties count as correct), else 0."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class LossSums:
    """Weighted sums over the tokens of a batch, and the sum of the weights: scalars in float32 at least."""

    cross_entropy: Any
    squared_log_normalizer: Any
    correct: Any
    weight: Any


def token_losses(
    logits: Float[Array, "*B V"], *, targets: Int[Array, "*B"], label_smoothing: float = 0.0
) -> TokenLosses:
    """Cross entropy of each target under the softmax of its logits.

    Formula, with a target probability p = 1 - s on the target y, q = s / (V - 1) on every other token, and log Z the
    logarithm of the softmax's denominator:

        log Z - (p - q) logits[y] - q sum_v logits[v]  -  H,     H = -p log p - (V - 1) q log q

    Args:
        logits: unnormalised log probabilities; computed on in float32 at least.
        targets: ids in [0, V).
        label_smoothing: s, the probability taken from the target and spread evenly over the V - 1 other tokens.

    Example:
        >>> losses = token_losses(jnp.array([[0.0, 0.0, 0.0, 0.0]]), targets=jnp.array([2]))
        >>> round(float(losses.cross_entropy[0]), 4)  # log 4
        1.3863

    Reference: Szegedy et al., "Rethinking the Inception Architecture", arXiv:1512.00567, section 7; H, the entropy of
        the smoothed target, is subtracted as T5X does (`t5x/losses.py`), so that a perfect prediction costs 0.

    Differs: T5X multiplies one-hot targets with log-softmax; here the target's logit is selected by comparing indices,
        which XLA fuses into the reductions, and which needs no gather where the vocabulary is sharded. Ties for the
        greatest logit count as correct, where argmax would take the first. The gradient is written out: it keeps the
        logits and log Z, where differentiating step by step also keeps exponentials as large as the logits.
    """
    return _token_losses(logits, targets, label_smoothing)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _token_losses(logits: Array, targets: Array, label_smoothing: float) -> TokenLosses:
    return _token_losses_and_saved(logits, targets, label_smoothing)[0]


def _token_losses_and_saved(given: Array, targets: Array, label_smoothing: float) -> tuple[TokenLosses, Any]:
    logits = given.astype(precision.at_least_float32(given.dtype))
    greatest = jnp.max(logits, axis=-1)
    shifted = logits - greatest[..., None]
    target_logit = jnp.sum(jnp.where(_is_target(logits, targets), shifted, 0), axis=-1)
    shifted_normalizer = jnp.log(jnp.sum(jnp.exp(shifted), axis=-1))

    on_target, elsewhere, entropy = _smoothed_target(label_smoothing, vocab_size=logits.shape[-1])
    cross_entropy = shifted_normalizer - (on_target - elsewhere) * target_logit
    if label_smoothing:
        cross_entropy = cross_entropy - elsewhere * jnp.sum(shifted, axis=-1) - entropy
    losses = TokenLosses(
        cross_entropy=cross_entropy,
        log_normalizer=shifted_normalizer + greatest,
        correct=(target_logit >= 0).astype(logits.dtype),
    )
    return losses, (given, targets, greatest, shifted_normalizer)


def _gradient_of_logits(label_smoothing: float, saved: Any, gradient: TokenLosses) -> tuple[Array, np.ndarray]:
    """Of cross entropy: softmax - p on the target, softmax - q elsewhere; of log Z: softmax."""
    logits, targets, greatest, shifted_normalizer = saved
    on_target, elsewhere, _ = _smoothed_target(label_smoothing, vocab_size=logits.shape[-1])
    of_loss, of_normalizer = gradient.cross_entropy[..., None], gradient.log_normalizer[..., None]
    shifted = logits.astype(greatest.dtype) - greatest[..., None]
    softmax = jnp.exp(shifted - shifted_normalizer[..., None])
    wanted = jnp.where(_is_target(logits, targets), of_loss * on_target, of_loss * elsewhere)
    of_logits = (of_loss + of_normalizer) * softmax - wanted
    return of_logits.astype(logits.dtype), np.zeros(targets.shape, jax.dtypes.float0)


_token_losses.defvjp(_token_losses_and_saved, _gradient_of_logits)


def _is_target(logits: Array, targets: Array) -> Array:
    return jax.lax.broadcasted_iota(targets.dtype, logits.shape, logits.ndim - 1) == targets[..., None]


def _smoothed_target(label_smoothing: float, *, vocab_size: int) -> tuple[float, float, float]:
    """Probability on the target, on each other token, and the entropy of that distribution."""
    if not 0.0 <= label_smoothing < 1.0:
        raise ValueError(f"label_smoothing={label_smoothing} is no probability: give a number in [0, 1)")
    if not label_smoothing:
        return 1.0, 0.0, 0.0
    on_target, elsewhere = 1.0 - label_smoothing, label_smoothing / (vocab_size - 1)
    entropy = -on_target * math.log(on_target) - label_smoothing * math.log(elsewhere)
    return on_target, elsewhere, entropy


def cross_entropy(
    logits: Float[Array, "*B V"],
    *,
    targets: Int[Array, "*B"],
    weights: Num[Array, "*B"],
    label_smoothing: float = 0.0,
) -> LossSums:
    """Sums of the token losses, each times its weight.

    A token of weight 0 contributes nothing, neither to the sums nor to the gradient.

    Example:
        >>> sums = cross_entropy(jnp.zeros((1, 3, 4)), targets=jnp.zeros((1, 3), int), weights=jnp.array([[1, 1, 0]]))
        >>> round(float(sums.cross_entropy / sums.weight), 4)  # log 4
        1.3863
    """
    losses = token_losses(logits, targets=targets, label_smoothing=label_smoothing)
    weights = weights.astype(losses.cross_entropy.dtype)
    return LossSums(
        cross_entropy=jnp.sum(losses.cross_entropy * weights),
        squared_log_normalizer=jnp.sum(jnp.square(losses.log_normalizer) * weights),
        correct=jnp.sum(losses.correct * weights),
        weight=jnp.sum(weights),
    )


def chunked_cross_entropy(
    hidden: Float[Array, "B T D"],
    *,
    logits: Callable[[Array], Array],
    targets: Int[Array, "B T"],
    weights: Num[Array, "B T"],
    label_smoothing: float = 0.0,
    chunk: int | None = None,
) -> LossSums:
    """`cross_entropy(logits(hidden), ...)`, holding the logits of only `chunk` positions of each row at a time.

    The chunks are walked by a scan whose body is rematerialised, so that neither the forward nor the backward pass
    keeps an array of [B, T, V]; each chunk's logits are computed twice.

    Args:
        hidden: what the vocabulary projection reads.
        logits: the vocabulary projection, from [B, t, D] to [B, t, V].
        targets: ids in [0, V).
        weights: factor of each position's loss.
        label_smoothing: see `token_losses`.
        chunk: positions of each row in one chunk; None or at least T: all at once.
    """
    length = hidden.shape[1]
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk={chunk}: a chunk holds at least one position (None = the whole length at once)")
    if chunk is None or chunk >= length:
        return cross_entropy(logits(hidden), targets=targets, weights=weights, label_smoothing=label_smoothing)

    num_chunks = -(-length // chunk)

    def split(x: Array) -> Array:
        padding = [(0, 0), (0, num_chunks * chunk - length)] + [(0, 0)] * (x.ndim - 2)
        padded = jnp.pad(x, padding)  # with weight 0
        return jnp.swapaxes(padded.reshape(x.shape[0], num_chunks, chunk, *x.shape[2:]), 0, 1)

    @jax.checkpoint
    def chunk_sums(hidden_BtD: Array, targets: Array, weights: Array) -> LossSums:
        return cross_entropy(logits(hidden_BtD), targets=targets, weights=weights, label_smoothing=label_smoothing)

    def add(total: LossSums, chunk: tuple[Array, Array, Array]) -> tuple[LossSums, None]:
        return jax.tree.map(jnp.add, total, chunk_sums(*chunk)), None

    chunks = (split(hidden), split(targets), split(weights))
    shapes = jax.eval_shape(chunk_sums, *jax.tree.map(lambda x: x[0], chunks))
    zero = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
    return jax.lax.scan(add, zero, chunks)[0]
