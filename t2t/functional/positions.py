"""Positions of tokens and functions of relative positions."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from t2t.functional import precision


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


def interleaved_sinusoids(num_positions: int, width: int) -> Float[np.ndarray, "P D"]:
    """Sines in the even and cosines in the odd columns of each position, float64: the 2 i-th turns by 10000**(-2i/D).

    Example:
        >>> interleaved_sinusoids(2, 4).round(3).tolist()
        [[0.0, 1.0, 0.0, 1.0], [0.841, 0.54, 0.01, 1.0]]

    Reference: Vaswani et al., Attention Is All You Need, arXiv:1706.03762, section 3.5.
    """
    rates = 10_000.0 ** (-np.arange(0, width, 2, dtype=np.float64) / width)
    angles = np.arange(num_positions)[:, None] * rates[None]
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(num_positions, -1)[:, :width]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RotaryAngles:
    """Cosines and sines [T, R / 2] of the angles of each position, and which values of a head make a pair."""

    cos: Any
    sin: Any
    interleaved: bool = dataclasses.field(metadata={"static": True})


def rotate(x: Float[Array, "B N T H"], angles: RotaryAngles) -> Float[Array, "B N T H"]:
    """Turns the first R values of every head, pair by pair, in float32 at least; the others stay.

    A pair is values (i, i + R / 2), or (2 i, 2 i + 1) where `interleaved`.

    Example:
        >>> quarter = RotaryAngles(jnp.array([[0.0]]), jnp.array([[1.0]]), interleaved=False)
        >>> rotate(jnp.array([[[[3.0, 4.0, 7.0]]]]), quarter).tolist()
        [[[[-4.0, 3.0, 7.0]]]]

    Reference: Su et al., RoFormer, arXiv:2104.09864, equation 34.
    """
    wide = x.astype(precision.at_least_float32(x.dtype))
    cos, sin = (angle.astype(wide.dtype)[None, None] for angle in (angles.cos, angles.sin))
    size = 2 * cos.shape[-1]
    turned, rest = wide[..., :size], wide[..., size:]
    if angles.interleaved:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = jnp.split(turned, 2, axis=-1)
    pair = (first * cos - second * sin, second * cos + first * sin)
    turned = jnp.stack(pair, axis=-1).reshape(turned.shape) if angles.interleaved else jnp.concatenate(pair, axis=-1)
    return jnp.concatenate([turned, rest], axis=-1).astype(x.dtype)
