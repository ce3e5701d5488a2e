"""Rows cut into the blocks that kernels compute: lengths filled up, with what is added read by nobody."""

import jax.numpy as jnp
from jax import Array

from t2t.functional.masks import Mask

UNIT = 128
"""Kernels compute blocks whose sides are multiples of this."""
SIZES = (512, 256, 128)
"""Sides of blocks; larger ones are faster and must divide the length."""


def filled(x: Array, *, axis: int, unit: int = UNIT) -> Array:
    """The array with zeros up to a multiple of `unit` along an axis."""
    missing = -x.shape[axis] % unit
    if not missing:
        return x
    return jnp.pad(x, [(0, missing if dimension == axis else 0) for dimension in range(x.ndim)])


def block_size(length: int) -> int:
    """The largest of `SIZES` that divides a filled length."""
    return next(size for size in SIZES if length % size == 0)


def segments(mask: Mask, *, batch: int, length: int, key_length: int) -> tuple[Array, Array] | None:
    """Segment ids of both sides, filled; None where nothing needs them.

    What fills a side is a segment of its own (0, that of padding), so that real positions do not read it. Causal rows
    need no ids for that: it comes last.
    """
    if mask.reader is None:
        if mask.causal or key_length % UNIT == 0:
            return None
        reader, read = jnp.ones((batch, length), jnp.int32), jnp.ones((batch, key_length), jnp.int32)
    else:
        reader, read = mask.reader, mask.read
    return filled(reader, axis=1), filled(read, axis=1)
