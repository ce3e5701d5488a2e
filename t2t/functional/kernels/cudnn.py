"""cuDNN's fused attention on NVIDIA GPUs, in half precision.

Reference: jax.nn.dot_product_attention(implementation="cudnn").
Differs: biases are rounded to the type of the queries, where the reference adds them in float32.
"""

import jax
from jax import Array

from t2t.functional.masks import Mask


def attend(
    query: Array, key: Array, value: Array, *, mask: Mask, bias: Array | None, scale: float, interpret: bool = False
) -> Array:
    """See `attend.attend`.

    Causal rows, and their windows, are rules of cuDNN. All other masks (packed examples, prefixes, windows to both
    sides) go to it as booleans [B, 1, T, S], which it adds as numbers: a part 1 / N of the scores. `interpret` computes
    the same with XLA.
    """
    length, key_length = query.shape[2], key.shape[2]
    is_rule = mask.causal and mask.reader is None and mask.prefix is None
    pairs = None if is_rule else mask.dense(length=length, key_length=key_length)
    query, key, value = (x.swapaxes(1, 2) for x in (query, key, value))
    return jax.nn.dot_product_attention(
        query,
        key,
        value,
        None if bias is None else bias.astype(query.dtype),
        None if pairs is None else pairs[:, None],
        scale=scale,
        is_causal=is_rule,
        local_window_size=(mask.window, 0) if is_rule and mask.window is not None else None,
        implementation="xla" if interpret else "cudnn",
    ).swapaxes(1, 2)
