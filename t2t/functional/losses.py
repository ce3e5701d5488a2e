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

from t2t.functional import parallel, precision


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
    logits: Callable[[Any, Array], Array],
    params: Any,
    targets: Int[Array, "B T"],
    weights: Num[Array, "B T"],
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    chunk: int | None = None,
) -> LossSums:
    """`cross_entropy(logits(params, hidden), ...)`, holding the logits of only `chunk` positions of each row at a time.

    The gradient is computed in the forward pass, chunk by chunk while its logits are there, and scaled in the backward
    pass: no chunk is projected twice, and neither pass holds an array of [B, T, V]. For that the share of the squares
    of log Z in what is minimised must be known: the gradient is that of any multiple of `cross_entropy + z_loss *
    squared_log_normalizer`, and NaN for other combinations. Accuracy and weights have no gradient.

    On a mesh each device walks through its own rows and positions. What it adds to the gradient of the vocabulary stays
    its own until the last chunk, and is then added up over the devices once.

    Args:
        hidden: what the vocabulary projection reads.
        logits: the vocabulary projection, from parameters and [B, t, D] to [B, t, V].
        params: a tree of which it reads what it needs.
        targets: ids in [0, V).
        weights: factor of each position's loss.
        label_smoothing: see `token_losses`.
        z_loss: coefficient of the squares of log Z relative to that of the cross entropy; read with a `chunk` only.
        chunk: positions of each row (of each device's part of it) in one chunk; None or at least T: all at once.
    """
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk={chunk}: a chunk holds at least one position (None = the whole length at once)")
    if chunk is None or chunk >= hidden.shape[1]:
        return cross_entropy(logits(params, hidden), targets=targets, weights=weights, label_smoothing=label_smoothing)
    project, read = _only_read(logits, params, hidden[:, :chunk])
    settings = _Chunks(project, label_smoothing, z_loss, chunk)
    return parallel.over_rows(functools.partial(_chunked_sums, settings), (hidden, targets, weights), shared=read)


def _only_read(logits: Callable[[Any, Array], Array], params: Any, hidden: Array) -> tuple[Callable[..., Array], Any]:
    """`logits` as a function of the leaves that it reads and of hidden states, and those leaves.

    The gradient of a scan carries a sum for every array that its body is given, read or not.
    """
    leaves, structure = jax.tree.flatten(params)
    program = jax.make_jaxpr(logits)(params, hidden).jaxpr
    needed = set(map(id, program.outvars))
    for equation in reversed(program.eqns):
        if any(id(variable) in needed for variable in equation.outvars):
            needed.update(map(id, equation.invars))
    is_read = [id(variable) in needed for variable in program.invars[: len(leaves)]]
    unread = [None if is_in else (leaf.shape, leaf.dtype) for leaf, is_in in zip(leaves, is_read, strict=True)]

    def project(read: list[Array], hidden: Array) -> Array:
        remaining = iter(read)
        all_leaves = [next(remaining) if like is None else jnp.zeros(*like) for like in unread]
        return logits(jax.tree.unflatten(structure, all_leaves), hidden)

    return project, [leaf for leaf, is_in in zip(leaves, is_read, strict=True) if is_in]


@dataclasses.dataclass(frozen=True)
class _Chunks:
    project: Callable[..., Array]
    label_smoothing: float
    z_loss: float
    size: int

    def sums(self, read: list[Array], hidden: Array, targets: Array, weights: Array) -> tuple[Array, LossSums]:
        """What is minimised of one chunk, and its sums."""
        logits = self.project(read, hidden)
        sums = cross_entropy(logits, targets=targets, weights=weights, label_smoothing=self.label_smoothing)
        return sums.cross_entropy + self.z_loss * sums.squared_log_normalizer, sums

    def split(self, x: Array) -> Array:
        """[B, T, ...] as [chunks, B, size, ...], padded with 0: the weight of what is added."""
        num_chunks = -(-x.shape[1] // self.size)
        padding = [(0, 0), (0, num_chunks * self.size - x.shape[1])] + [(0, 0)] * (x.ndim - 2)
        return jnp.swapaxes(jnp.pad(x, padding).reshape(x.shape[0], num_chunks, self.size, *x.shape[2:]), 0, 1)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _chunked_sums(chunks: _Chunks, rows: tuple[Array, Array, Array], read: list[Array]) -> LossSums:
    def add(total: LossSums, chunk: tuple[Array, Array, Array]) -> tuple[LossSums, None]:
        return jax.tree.map(jnp.add, total, chunks.sums(read, *chunk)[1]), None

    parts = tuple(map(chunks.split, rows))
    return jax.lax.scan(add, _zero_sums(chunks, read, parts), parts)[0]


def _chunked_sums_and_gradients(chunks: _Chunks, rows: tuple[Array, Array, Array], read: list[Array]) -> Any:
    def add(carry: Any, chunk: tuple[Array, Array, Array]) -> tuple[Any, Array]:
        total, of_read = carry
        gradients = jax.value_and_grad(chunks.sums, argnums=(0, 1), has_aux=True)
        (_, sums), (of_these, of_hidden) = gradients(read, *chunk)
        return jax.tree.map(jnp.add, (total, of_read), (sums, of_these)), of_hidden

    parts = tuple(map(chunks.split, rows))
    zeros = _zero_sums(chunks, read, parts), jax.tree.map(jnp.zeros_like, read)
    (total, of_read), of_hidden = jax.lax.scan(add, zeros, parts)
    hidden, targets, weights = rows
    of_hidden = jnp.swapaxes(of_hidden, 0, 1).reshape(hidden.shape[0], -1, hidden.shape[2])[:, : hidden.shape[1]]
    return total, (of_hidden, jnp.zeros_like(weights), of_read)


def _zero_sums(chunks: _Chunks, read: list[Array], parts: Any) -> LossSums:
    shapes = jax.eval_shape(chunks.sums, read, *jax.tree.map(lambda x: x[0], parts))[1]
    return jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)


def _scaled_gradients(chunks: _Chunks, saved: Any, gradient: LossSums) -> tuple[Any, list[Array]]:
    of_hidden, of_weights, of_read = saved
    wanted = chunks.z_loss * gradient.cross_entropy
    is_known = jnp.isclose(gradient.squared_log_normalizer, wanted, rtol=1e-5, atol=0)
    scale = jnp.where(is_known, gradient.cross_entropy, jnp.nan)
    of_hidden, of_read = jax.tree.map(lambda x: x * scale.astype(x.dtype), (of_hidden, of_read))
    return (of_hidden, None, of_weights), of_read


_chunked_sums.defvjp(_chunked_sums_and_gradients, _scaled_gradients)
