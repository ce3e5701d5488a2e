"""Normalisation over the last axis, with statistics in float32 at least.

The backward pass computes the statistics again: only the input is stored for it.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from t2t.functional import gradients, precision


@gradients.recomputed
def rms_norm(x: Float[Array, "*axes D"], scale: Float[Array, " D"], *, eps: float) -> Float[Array, "*axes D"]:
    """`x / sqrt(mean(x**2) + eps) * scale`: neither mean nor bias, as in T5.

    Reference: Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv:1910.07467.
    """
    wide = x.astype(precision.at_least_float32(x.dtype))
    inverse = jax.lax.rsqrt(jnp.mean(jnp.square(wide), axis=-1, keepdims=True) + eps)
    return (wide * inverse).astype(x.dtype) * _broadcast(scale, x)


@gradients.recomputed
def layer_norm(
    x: Float[Array, "*axes D"], scale: Float[Array, " D"], bias: Float[Array, " D"] | None, *, eps: float
) -> Float[Array, "*axes D"]:
    """`(x - mean(x)) / sqrt(var(x) + eps) * scale + bias`.

    Reference: Ba et al., Layer Normalization, arXiv:1607.06450.
    """
    wide = x.astype(precision.at_least_float32(x.dtype))
    centred = wide - jnp.mean(wide, axis=-1, keepdims=True)
    inverse = jax.lax.rsqrt(jnp.mean(jnp.square(centred), axis=-1, keepdims=True) + eps)
    normalised = (centred * inverse).astype(x.dtype) * _broadcast(scale, x)
    return normalised if bias is None else normalised + _broadcast(bias, x)


def _broadcast(vector: Array, like: Array) -> Array:
    """The vector in the dtype of `like`, with its leading axes as ones (rank promotion is an error in our tests)."""
    return vector.astype(like.dtype).reshape((1,) * (like.ndim - 1) + vector.shape)
