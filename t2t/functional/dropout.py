"""Dropout as a function of an array and a key."""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Key


def dropout(x: Float[Array, "*axes"], *, rate: float, key: Key[Array, ""]) -> Float[Array, "*axes"]:
    """Zeroes each value with probability `rate` and divides the others by the probability to stay.

    One 16-bit draw per value, half the random bits of a Bernoulli draw; the rate is rounded to a multiple of 2**-16
    and the division uses the rounded one, so the expectation is exact.

    Reference: Srivastava et al., Dropout, JMLR 15 (2014).
    """
    threshold = round(rate * 2**16)
    if threshold == 0:
        return x
    kept = jax.random.bits(key, x.shape, jnp.uint16) >= jnp.uint16(threshold)
    return jnp.where(kept, x * (1.0 / (1.0 - threshold / 2**16)), 0)
