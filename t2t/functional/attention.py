"""Scaled dot-product attention as functions of arrays, in the layout [batch, heads, length, head_dim].

This layout keeps each head's matrix contiguous, so both products are plain batched matrix products: on CPU the scores
come a third faster than from [batch, length, heads, head_dim].
"""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Key

from t2t.functional import dropout, gradients, precision

MASKED_SCORE = float(np.finfo(np.float32).min)
"""Score of a pair that may not attend: finite, so a row without any allowed pair is uniform instead of NaN."""


def attention_scores(
    query: Float[Array, "B N T H"], key: Float[Array, "B G S H"], *, scale: float = 1.0
) -> Float[Array, "B N T S"]:
    """Scaled products of queries and keys, in float32 at least.

    `scores[b, n, t, s] = scale * sum_h query[b, n, t, h] key[b, g(n), s, h]`. With fewer key heads than query heads
    (G < N), query head n reads key head `n // (N / G)`.

    Reference: Vaswani et al., Attention Is All You Need, arXiv:1706.03762, section 3.2.1; Ainslie et al., GQA,
    arXiv:2305.13245, for G < N.
    """
    batch, num_heads, length, head_dim = query.shape
    num_kv_heads = key.shape[1]
    wide = precision.at_least_float32(query.dtype)
    query_BGTH = query.reshape(batch, num_kv_heads, num_heads // num_kv_heads * length, head_dim)
    scores_BGTS = jnp.einsum("BGTH,BGSH->BGTS", query_BGTH, key, preferred_element_type=wide)
    scores_BNTS = scores_BGTS.reshape(batch, num_heads, length, key.shape[2])
    return scores_BNTS if scale == 1.0 else scores_BNTS * scale


def attention_weights(
    scores: Float[Array, "B N T S"],
    *,
    mask: Bool[Array, "#B T S"] | None = None,
    bias: Float[Array, "#B N T S"] | None = None,
) -> Float[Array, "B N T S"]:
    """Softmax over the read positions, in the dtype of the scores: `softmax_s(scores + bias)` where allowed, else 0.

    A row in which nothing may be read (padding) gets uniform weights: finite, with zero gradient to the scores.

    Example:
        >>> scores = jnp.zeros((1, 1, 2, 2))
        >>> attention_weights(scores, mask=jnp.array([[[True, False], [True, True]]]))[0, 0].tolist()
        [[1.0, 0.0], [0.5, 0.5]]
    """
    if bias is not None:
        bias = bias.astype(scores.dtype)
        scores = gradients.add_shared(scores, bias) if bias.shape[0] == 1 else scores + bias
    if mask is not None:
        scores = jnp.where(mask[:, None], scores, MASKED_SCORE)
    return gradients.softmax(scores)


def weighted_values(
    weights: Float[Array, "B N T S"],
    value: Float[Array, "B G S H"],
    *,
    dropout_rate: float = 0.0,
    key: Key[Array, ""] | None = None,
) -> Float[Array, "B N T H"]:
    """Sums of the values, weighted per query: `out[b, n, t] = sum_s weights[b, n, t, s] value[b, g(n), s]`.

    With a key, weights are dropped first; the backward pass drops them again, so that only `weights` is stored.
    """
    if key is None or dropout_rate == 0.0:
        return _weighted_values(weights, value)

    @gradients.recomputed
    def drop_and_sum(weights: Array, value: Array) -> Array:
        return _weighted_values(dropout.dropout(weights, rate=dropout_rate, key=key), value)

    return drop_and_sum(weights, value)


def _weighted_values(weights: Array, value: Array) -> Array:
    batch, num_heads, length, _ = weights.shape
    _, num_kv_heads, key_length, head_dim = value.shape
    weights_BGTS = weights.astype(value.dtype).reshape(
        batch, num_kv_heads, num_heads // num_kv_heads * length, key_length
    )
    mixed_BGTH = jnp.einsum("BGTS,BGSH->BGTH", weights_BGTS, value)
    return mixed_BGTH.reshape(batch, num_heads, length, head_dim)
