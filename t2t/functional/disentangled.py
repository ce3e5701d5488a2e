"""Scores of disentangled attention: of contents with the distances at which they lie, in either direction.

Both kinds of scores depend on the reader `t`, the one read `s` and the row of the table of distances for `t - s`. The
products are taken with the rows of all 2 T - 1 distances in their order and shifted into place by slicing, instead of
being taken with the whole table and gathered: no T x T array of indices, and a gradient without a scatter.

Reference: He et al., DeBERTa: Decoding-enhanced BERT with Disentangled Attention, arXiv:2006.03654, section 3.1.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from t2t.functional import attention


def log_buckets(distances: Int[np.ndarray, "..."], *, num_buckets: int, max_distance: int) -> Int[np.ndarray, "..."]:
    """Distances beyond half the buckets drawn together: logarithmically, so that `max_distance - 1` has the last one.

    Distances beyond `max_distance` have buckets of `num_buckets` and more, which whoever reads a table cuts off.
    Computed in NumPy, float64, when the program is traced.

    Example:
        >>> log_buckets(np.array([-20, -5, -4, 0, 4, 5, 9, 19]), num_buckets=8, max_distance=20).tolist()
        [-8, -5, -4, 0, 4, 5, 6, 7]

    Reference: `make_log_bucket_position` of the released code, github.com/microsoft/DeBERTa, where published models
    have 256 buckets up to 512.
    """
    middle = num_buckets // 2
    far = np.maximum(np.abs(distances), middle)
    share = np.log(far / middle) / np.log((max_distance - 1) / middle)
    logarithmic = np.ceil(share * (middle - 1)).astype(distances.dtype) + middle
    return np.where(far == middle, distances, np.sign(distances) * logarithmic)


def distance_rows(length: int, *, max_distance: int, num_buckets: int | None = None) -> Int[np.ndarray, " W"]:
    """The row of the table of distances for each reader minus read, from `1 - length` to `length - 1`.

    A table has two rows for each distance (or bucket): row `k` for distance 0 among `2 k` rows.

    Example:
        >>> distance_rows(5, max_distance=3).tolist()
        [0, 0, 1, 2, 3, 4, 5, 5, 5]

    Reference: arXiv:2006.03654, equation 3.
    """
    distances = np.arange(1 - length, length, dtype=np.int32)
    span = max_distance if num_buckets is None else num_buckets
    if num_buckets is not None:
        distances = log_buckets(distances, num_buckets=num_buckets, max_distance=max_distance)
    return np.clip(distances + span, 0, 2 * span - 1)


def content_to_position(query: Float[Array, "B N T H"], position_key: Float[Array, "N W H"]) -> Float[Array, "B N T T"]:
    """What readers look for at distances: `out[b, n, t, s] = query[b, n, t] . position_key[n, t - s + T - 1]`."""
    return _shift(_products(query, position_key[:, ::-1]))


def position_to_content(key: Float[Array, "B N T H"], position_query: Float[Array, "N W H"]) -> Float[Array, "B N T T"]:
    """What distances look for in those read: `out[b, n, t, s] = position_query[n, t - s + T - 1] . key[b, n, s]`."""
    return _shift(_products(key, position_query)).swapaxes(2, 3)


def _products(content: Array, positions: Array) -> Array:
    return attention.attention_scores(content, jnp.broadcast_to(positions[None], (content.shape[0], *positions.shape)))


def _shift(line: Float[Array, "B N T W"]) -> Float[Array, "B N T T"]:
    """`out[b, n, t, s] = line[b, n, t, s - t + T - 1]`, with W = 2 T - 1."""
    batch, num_heads, length, width = line.shape
    if length == 1:
        return line
    # In one row of all values, each row of the result begins W - 1 values after the one before it.
    flat = line.reshape(batch, num_heads, length * width)[:, :, length - 1 : -1]
    return flat.reshape(batch, num_heads, length, width - 1)[..., :length]
