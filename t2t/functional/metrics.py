"""Metrics of predictions as (sum, weight) pairs, which add over batches, micro-batches and devices before they divide.

Every function reads only positions of weight > 0; a batch whose weights are all zero gives (0, 0), never NaN.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num

Sum = Float[Array, ""]


def accuracy(
    logits: Float[Array, "*B V"], *, targets: Int[Array, "*B"], weights: Num[Array, "*B"] | None = None
) -> tuple[Sum, Sum]:
    """How many targets have the greatest logit (the first of equals wins), and out of how many.

    Args:
        logits: scores of each class or token.
        targets: ids in [0, V).
        weights: factor of each position; None counts all.

    Example:
        >>> correct, total = accuracy(jnp.array([[0.0, 1.0], [0.0, 1.0], [9.0, 1.0]]), targets=jnp.array([1, 0, 0]))
        >>> float(correct), float(total)
        (2.0, 3.0)
    """
    return _weighted(jnp.argmax(logits, axis=-1).astype(targets.dtype) == targets, weights)


def top_k_accuracy(
    logits: Float[Array, "*B V"], *, targets: Int[Array, "*B"], k: int, weights: Num[Array, "*B"] | None = None
) -> tuple[Sum, Sum]:
    """How many targets are among the k greatest logits; a target tied with the k-th counts.

    Raises:
        ValueError: for k < 1.

    Example:
        >>> correct, total = top_k_accuracy(jnp.array([[3.0, 2.0, 1.0]]), targets=jnp.array([1]), k=2)
        >>> float(correct), float(total)
        (1.0, 1.0)
    """
    if k < 1:
        raise ValueError(f"k={k} must be at least 1")
    target_logits = jnp.take_along_axis(logits, targets[..., None], axis=-1)
    return _weighted(jnp.sum(logits > target_logits, axis=-1) < k, weights)


def sequence_accuracy(
    predictions: Int[Array, "*B T"], *, targets: Int[Array, "*B T"], weights: Num[Array, "*B T"]
) -> tuple[Sum, Sum]:
    """How many sequences are right at every position of weight > 0; sequences without such a position do not count.

    Example:
        >>> predictions, targets = jnp.array([[5, 6, 9], [5, 7, 9]]), jnp.array([[5, 6, 0], [5, 6, 0]])
        >>> correct, total = sequence_accuracy(predictions, targets=targets, weights=jnp.array([[1, 1, 0], [1, 1, 0]]))
        >>> float(correct), float(total)
        (1.0, 2.0)
    """
    counts = weights > 0
    right = jnp.all((predictions == targets) | ~counts, axis=-1)
    return _weighted(right, jnp.any(counts, axis=-1))


def binary_counts(
    predictions: Num[Array, "*B"], *, targets: Num[Array, "*B"], weights: Num[Array, "*B"] | None = None
) -> dict[str, Sum]:
    """True and false positives and false negatives of 0/1 predictions: what precision and recall are made of.

    Example:
        >>> counts = binary_counts(jnp.array([1, 1, 0, 0]), targets=jnp.array([1, 0, 1, 0]))
        >>> {name: float(value) for name, value in counts.items()}
        {'true_positives': 1.0, 'false_positives': 1.0, 'false_negatives': 1.0}
    """
    predicted, actual = predictions > 0, targets > 0
    return {
        "true_positives": _weighted(predicted & actual, weights)[0],
        "false_positives": _weighted(predicted & ~actual, weights)[0],
        "false_negatives": _weighted(~predicted & actual, weights)[0],
    }


def mean(total: Sum, weight: Sum) -> Sum:
    """The quotient sum / weight, and 0 where nothing was counted.

    Example:
        >>> float(mean(jnp.array(3.0), jnp.array(4.0))), float(mean(jnp.array(0.0), jnp.array(0.0)))
        (0.75, 0.0)
    """
    return jnp.where(weight > 0, total / jnp.where(weight > 0, weight, 1), 0)


def perplexity(total: Sum, weight: Sum) -> Sum:
    """The exponential of the mean cross entropy: the number of equally likely tokens the model chooses from.

    Args:
        total: summed cross entropy in nats.
        weight: number of tokens.

    Example:
        >>> round(float(perplexity(4 * jnp.log(32.0), jnp.array(4.0))), 3)
        32.0
    """
    return jnp.exp(mean(total, weight))


def _weighted(hits: Array, weights: Array | None) -> tuple[Sum, Sum]:
    """The sum of weights where `hits`, and of all weights, in float32."""
    factors = jnp.ones(hits.shape, jnp.float32) if weights is None else weights.astype(jnp.float32)
    return jnp.sum(jnp.where(hits, factors, 0)), jnp.sum(factors)
