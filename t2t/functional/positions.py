"""Positions of tokens and functions of relative positions."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int


def segment_positions(segment_ids: Int[Array, "B T"]) -> Int[Array, "B T"]:
    """Positions counted from 0 within each run of equal segment ids (padding is counted too, harmlessly).

    Example:
        >>> segment_positions(jnp.array([[1, 1, 1, 2, 2, 0], [0, 0, 1, 1, 1, 1]])).tolist()
        [[0, 1, 2, 0, 1, 0], [0, 1, 0, 1, 2, 3]]
    """
    indices = jnp.broadcast_to(jnp.arange(segment_ids.shape[1], dtype=jnp.int32), segment_ids.shape)
    is_start = jnp.pad(segment_ids[:, 1:] != segment_ids[:, :-1], ((0, 0), (1, 0)))
    starts = jax.lax.cummax(jnp.where(is_start, indices, 0), axis=1)
    return indices - starts


def relative_position_buckets(
    relative_positions: Int[np.ndarray, "..."], *, bidirectional: bool, num_buckets: int, max_distance: int
) -> Int[np.ndarray, "..."]:
    """T5's bucket of each relative position (key minus query): exact when near, logarithmic up to `max_distance`.

    Bidirectional, keys after the query use the upper half of the buckets. Otherwise such keys share bucket 0. Computed
    in NumPy, float64, when the program is traced: logarithms on accelerators round differently near the borders.

    Example:
        >>> buckets = relative_position_buckets(
        ...     np.array([-200, -20, -2, 0, 2]), bidirectional=True, num_buckets=32, max_distance=128)
        >>> buckets.tolist()
        [15, 10, 2, 0, 18]

    Reference: Raffel et al., arXiv:1910.10683, section 2.1; `_relative_position_bucket` of the released code.
    """
    buckets = np.zeros_like(relative_positions)
    distance = -relative_positions
    if bidirectional:
        num_buckets //= 2
        buckets = buckets + np.where(distance < 0, num_buckets, 0).astype(buckets.dtype)
        distance = np.abs(distance)
    else:
        distance = np.maximum(distance, 0)
    max_exact = num_buckets // 2
    # The tiny summand is T5X's: it keeps exact powers on the upper side of a border.
    position = np.log(distance / max_exact + np.finfo(np.float32).eps) / np.log(max_distance / max_exact)
    far = max_exact + (np.maximum(position, 0) * (num_buckets - max_exact)).astype(buckets.dtype)
    return buckets + np.where(distance < max_exact, distance, np.minimum(far, num_buckets - 1)).astype(buckets.dtype)


def toeplitz(line: Float[Array, "N W"], *, length: int, key_length: int) -> Float[Array, "N T S"]:
    """Matrices that depend on `s - t` alone, `out[n, t, s] = line[n, s - t + T - 1]`, with W = T + S - 1.

    Broadcasting and slicing only: the gradient is a sum over diagonals instead of a scatter of T x S values.

    Example:
        >>> toeplitz(jnp.array([[-2., -1., 0., 1., 2.]]), length=3, key_length=3)[0].tolist()
        [[0.0, 1.0, 2.0], [-1.0, 0.0, 1.0], [-2.0, -1.0, 0.0]]
    """
    num_heads, width = line.shape
    # Row t of a [T, W] view of a repeated line of W + 1 values is that line rolled right by t.
    repeated = jnp.broadcast_to(jnp.pad(line, ((0, 0), (0, 1)))[:, None, :], (num_heads, length, width + 1))
    rolled_NTW = repeated.reshape(num_heads, -1)[:, : length * width].reshape(num_heads, length, width)
    return rolled_NTW[:, :, length - 1 : length - 1 + key_length]
