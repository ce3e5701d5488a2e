"""The dtype of what must not be computed in half precision: scores, statistics, logits, losses."""

from typing import Any

import jax.numpy as jnp


def at_least_float32(dtype: Any) -> jnp.dtype:
    """float64 for float64, float32 for float32 and anything narrower.

    Example:
        >>> str(at_least_float32(jnp.bfloat16)), str(at_least_float32(jnp.float64))
        ('float32', 'float64')
    """
    return jnp.dtype(jnp.float64 if dtype == jnp.float64 else jnp.float32)
