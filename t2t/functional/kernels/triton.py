"""Fused attention on GPUs by Pallas, which knows packed examples and causality and holds nothing of [T, S].

Reference: jax.experimental.pallas.ops.gpu.attention; Dao, FlashAttention-2, arXiv:2307.08691.
"""

import jax.numpy as jnp
from jax import Array
from jax.experimental.pallas.ops.gpu import attention as library

from t2t.functional.kernels import blocks
from t2t.functional.masks import Mask


def attend(
    query: Array, key: Array, value: Array, *, mask: Mask, bias: None, scale: float, interpret: bool = False
) -> Array:
    """See `attend.attend`."""
    assert bias is None
    batch, num_heads, length, _ = query.shape
    ids = blocks.segments(mask, batch=batch, length=length, key_length=length)
    key, value = (jnp.repeat(x, num_heads // x.shape[1], axis=1) for x in (key, value))
    query, key, value = (blocks.filled(x, axis=2).swapaxes(1, 2) for x in (query, key, value))
    out = library.mha(
        query, key, value, None if ids is None else ids[0], sm_scale=scale, causal=mask.causal, interpret=interpret
    )
    return out.swapaxes(1, 2)[:, :, :length]
