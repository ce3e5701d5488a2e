"""Splash attention on TPU: blocks that a mask leaves empty are not computed.

Reference: jax.experimental.pallas.ops.tpu.splash_attention; Dao, FlashAttention-2, arXiv:2307.08691.
"""

import jax
from jax import Array
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as library
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as rules

from t2t.functional.kernels import blocks
from t2t.functional.masks import Mask


def attend(
    query: Array, key: Array, value: Array, *, mask: Mask, bias: None, scale: float, interpret: bool = False
) -> Array:
    """See `attend.attend`; the kernel knows no scale, so the queries are scaled."""
    assert bias is None
    batch, num_heads, length, head_dim = query.shape
    num_kv_heads, key_length = key.shape[1:3]
    ids = blocks.segments(mask, batch=batch, length=length, key_length=key_length)
    query, key, value = (blocks.filled(x, axis=2) for x in (query * scale, key, value))
    groups = num_heads // num_kv_heads
    one_row = _kernel(mask, groups=groups, length=query.shape[2], key_length=key.shape[2], interpret=interpret)
    query_BGnTH = query.reshape(batch, num_kv_heads, groups, query.shape[2], head_dim)
    segment_ids = None if ids is None else library.SegmentIds(*ids)
    over_heads = jax.vmap(one_row, in_axes=(0, 0, 0, None))
    out_BGnTH = jax.vmap(over_heads, in_axes=(0, 0, 0, None if ids is None else 0))(
        query_BGnTH, key, value, segment_ids
    )
    return out_BGnTH.reshape(query.shape)[:, :, :length].astype(value.dtype)


def _kernel(mask: Mask, *, groups: int, length: int, key_length: int, interpret: bool) -> library.SplashAttentionKernel:
    """The kernel of the query heads that share a key head, for one row."""
    shape = (length, key_length)
    if mask.window is not None:
        allowed = rules.LocalMask(shape, (mask.window, 0 if mask.causal else mask.window), 0)
    else:
        allowed = rules.CausalMask(shape) if mask.causal else rules.FullMask(shape)
    reads, is_read = blocks.block_size(length), blocks.block_size(key_length)
    sizes = library.BlockSizes(
        **dict.fromkeys(("block_q", "block_q_dkv", "block_q_dq"), reads),
        **dict.fromkeys(("block_kv", "block_kv_compute", "block_kv_dkv", "block_kv_dkv_compute"), is_read),
        block_kv_dq=is_read,
    )
    return library.make_splash_mqa(
        rules.MultiHeadMask([allowed] * groups), head_shards=1, q_seq_shards=1, block_sizes=sizes, interpret=interpret
    )
