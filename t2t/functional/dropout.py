"""Dropout as a function of an array and a key.

The random bits come from a hash of each value's index, salted per example by JAX's generator. That costs as much as
scaling the array, where drawing them from JAX's generator costs ten times that on a CPU; and because they follow from
key and index alone, the backward pass makes them again instead of storing them, and no mesh changes them.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Key, UInt32

from t2t.functional import gradients


def dropout(x: Float[Array, "B *axes"], *, rate: float, key: Key[Array, ""]) -> Float[Array, "B *axes"]:
    """Zeroes each value with probability `rate` and divides the others by the probability to stay.

    The rate is rounded to a multiple of 2**-32. Nothing is stored for the gradient but the key.

    Reference: Srivastava et al., Dropout, JMLR 15 (2014).
    """
    threshold = round(rate * 2**32)
    if threshold == 0:
        return x

    @gradients.recomputed
    def drop(x: Array) -> Array:
        kept = random_bits(key, x.shape) >= jnp.uint32(threshold)
        return jnp.where(kept, x * (1.0 / (1.0 - threshold / 2**32)), 0)

    return drop(x)


def random_bits(key: Key[Array, ""], shape: tuple[int, ...]) -> UInt32[Array, "*shape"]:
    """Uniform 32-bit integers for dropout: independent for all practical purposes, not for cryptography.

    Each example (index of the first axis) has two random salts; a value's bits are two rounds of a 32-bit hash of its
    index in the example, the first salted by addition, so that no two examples read one sequence shifted. The index
    wraps after 2**32 values of one example.

    Reference: the hash is Wellons' lowbias32, whose output bits flip with probability .5 +- 2**-11 or so for each
    input bit (Prospecting for Hash Functions, 2018).
    """
    salts = jax.random.bits(key, (2, shape[0]) + (1,) * (len(shape) - 1), jnp.uint32)
    return _mix(_mix(_index(shape[1:])[None] + salts[0]) ^ salts[1])


def _index(shape: tuple[int, ...]) -> UInt32[Array, "*shape"]:
    """Position of each value in row-major order, as a sum over the axes, which a mesh can partition."""
    index = jnp.zeros(shape, jnp.uint32)
    for axis in range(len(shape)):
        stride = np.uint32(np.prod(shape[axis + 1 :], dtype=np.uint64) & 0xFFFFFFFF)
        index = index + jax.lax.broadcasted_iota(jnp.uint32, shape, axis) * stride
    return index


def _mix(x: UInt32[Array, "*axes"]) -> UInt32[Array, "*axes"]:
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)
