"""Flash attention on TPU, which reads a bias of every pair and gives its gradient (T5, ALiBi).

Reference: jax.experimental.pallas.ops.tpu.flash_attention; Dao et al., FlashAttention, arXiv:2205.14135.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jax.experimental.pallas.ops.tpu import flash_attention as library

from t2t.functional.kernels import blocks
from t2t.functional.masks import Mask


def attend(
    query: Array, key: Array, value: Array, *, mask: Mask, bias: Array | None, scale: float, interpret: bool = False
) -> Array:
    """See `attend.attend`.

    Row after row: the kernel asks for a bias of every row and gives as many gradients, [B, N, T, S] both; so there is
    one of [N, T, S] at a time. A TPU core computes one block after the other in any case. The queries are scaled,
    because the library would scale the bias too. `interpret` changes nothing: the library has no such option.
    """
    batch, num_heads, length, _ = query.shape
    key_length = key.shape[2]
    ids = blocks.segments(mask, batch=batch, length=length, key_length=key_length)
    key, value = (jnp.repeat(x, num_heads // x.shape[1], axis=1) for x in (key, value))
    query, key, value = (blocks.filled(x, axis=2) for x in (query * scale, key, value))
    if bias is not None:
        bias = blocks.filled(blocks.filled(bias.astype(jnp.float32), axis=2), axis=3)
    sizes = _sizes(blocks.block_size(query.shape[2]), blocks.block_size(key.shape[2]))

    def one_row(row: tuple[Array | None, ...]) -> Array:
        query, key, value, *ids, own_bias = (None if x is None else x[None] for x in row)
        return library.flash_attention(
            query,
            key,
            value,
            bias if own_bias is None else own_bias,
            library.SegmentIds(*ids) if ids else None,
            causal=mask.causal,
            block_sizes=sizes,
        )[0]

    of_rows = bias if bias is not None and bias.shape[0] > 1 else None
    out = jax.lax.map(one_row, (query, key, value, *(ids or ()), of_rows))
    return out[:, :, :length]


def _sizes(reads: int, is_read: int) -> library.BlockSizes:
    return library.BlockSizes(
        block_b=1,
        block_q=reads,
        block_k_major=is_read,
        block_k=is_read,
        block_q_major_dkv=reads,
        block_q_dkv=reads,
        block_k_major_dkv=is_read,
        block_k_dkv=is_read,
        block_q_dq=reads,
        block_k_major_dq=is_read,
        block_k_dq=is_read,
    )
