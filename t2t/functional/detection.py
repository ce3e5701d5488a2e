"""Telling two kinds of tokens apart: the loss, and the counts that accuracy, precision, recall and AUC are made of."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Num

from t2t.functional import metrics, precision

BINS = 200
"""Bins of probability among which `ranked_pairs` does not order."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class DetectionSums:
    """Weighted sums over the tokens of a batch: scalars, float32 at least."""

    loss: Any
    """Nats."""
    weight: Any
    correct: Any
    true_positives: Any
    false_positives: Any
    false_negatives: Any


def detection_loss(
    logits: Float[Array, "*B"], *, labels: Bool[Array, "*B"], weights: Num[Array, "*B"]
) -> DetectionSums:
    """Binary cross entropy of each token, times its weight, and what became of the tokens held to be positive.

    A token is held to be positive where its logit is above 0, a probability above one half.

    Formula: log(1 + exp(logit)) - label * logit

    Example:
        >>> labels, weights = jnp.array([True, False]), jnp.array([1.0, 1.0])
        >>> sums = detection_loss(jnp.array([0.0, 0.0]), labels=labels, weights=weights)
        >>> round(float(sums.loss / sums.weight), 4)  # log 2
        0.6931
    """
    logits = logits.astype(precision.at_least_float32(logits.dtype))
    weights = weights.astype(logits.dtype)
    losses = jax.nn.softplus(logits) - jnp.where(labels, logits, 0)
    predictions = logits > 0
    counts = metrics.binary_counts(predictions.astype(jnp.int32), targets=labels.astype(jnp.int32), weights=weights)
    return DetectionSums(
        loss=jnp.sum(losses * weights),
        weight=jnp.sum(weights),
        correct=jnp.sum(jnp.where(predictions == labels, weights, 0)),
        **counts,
    )


def ranked_pairs(
    logits: Float[Array, "*B"], *, labels: Bool[Array, "*B"], weights: Num[Array, "*B"], bins: int = BINS
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Pairs of a positive and a negative token in the right order, and all pairs: their quotient is the AUC.

    The area under the ROC curve is the probability that a positive token has a higher score than a negative one. Pairs
    of the same bin of probability count one half; only tokens of the same batch are compared, so sums over batches
    divide to a mean over batches.

    Example:
        >>> labels, weights = jnp.array([True, True, False]), jnp.ones(3)
        >>> right, pairs = ranked_pairs(jnp.array([2.0, -1.0, 0.0]), labels=labels, weights=weights)
        >>> float(right), float(pairs)
        (1.0, 2.0)
    """
    weights = weights.astype(jnp.float32)
    probabilities = jax.nn.sigmoid(logits.astype(jnp.float32))
    index = jnp.clip((probabilities * bins).astype(jnp.int32), 0, bins - 1).reshape(-1)
    in_bin = index[:, None] == jnp.arange(bins)[None]  # XLA fuses it into the sums: there is no array of tokens by bins
    sides = (jnp.where(labels, weights, 0), jnp.where(labels, 0, weights))
    positives, negatives = (
        jnp.sum(jnp.where(in_bin, side.reshape(-1, 1), jnp.zeros((), jnp.float32)), axis=0) for side in sides
    )
    below = jnp.cumsum(negatives) - negatives
    return jnp.sum(positives * (below + negatives / 2)), jnp.sum(positives) * jnp.sum(negatives)
