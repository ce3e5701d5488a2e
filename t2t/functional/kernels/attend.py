"""Attention by a kernel, with the result of the reference: on every device of a mesh, for its own rows and heads."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import PartitionSpec
from jaxtyping import Float

from t2t.functional import masks, parallel
from t2t.functional.kernels import choice
from t2t.functional.kernels.choice import Kernel
from t2t.functional.masks import Mask


def attend(
    kernel: Kernel,
    query: Float[Array, "B N T H"],
    key: Float[Array, "B G S H"],
    value: Float[Array, "B G S H"],
    mask: Mask | None = None,
    bias: Float[Array, "#B N T S"] | None = None,
    *,
    scale: float,
    interpret: bool = False,
) -> Float[Array, "B N T H"]:
    """What every position reads: `softmax(scale * query key^T + bias) value` over what the mask allows.

    Positions that may read nothing get the mean of all values, as the reference gives them.

    Args:
        kernel: any but the reference.
        query: of N heads.
        key: of G heads, each read by N / G query heads.
        value: of as many.
        mask: the rules of what is read; None = everything is.
        bias: added to the scores.
        scale: factor of the scores.
        interpret: computes on a CPU what the kernel would do, slowly; for tests.

    Raises:
        ValueError: the kernel cannot honour mask or bias.
    """
    choice.check(kernel, choice.Request.of(query, key, mask, bias))
    mask = Mask() if mask is None else mask
    on_device = functools.partial(_on_device, kernel, scale=scale, interpret=interpret)
    axes = parallel.mesh_axes()
    sizes = jax.sharding.get_abstract_mesh().shape
    rows = axes.rows if query.shape[0] % math.prod(sizes[axis] for axis in axes.rows) == 0 else ()
    parts = math.prod(sizes[axis] for axis in axes.features)
    heads = axes.features if query.shape[1] % parts == 0 else ()
    if not rows + heads:
        return on_device(query, key, value, mask, bias)
    if heads and key.shape[1] % parts:  # the heads of a device then read other groups than whole ones
        key, value = (jnp.repeat(x, query.shape[1] // x.shape[1], axis=1) for x in (key, value))
    of_heads, of_rows = PartitionSpec(rows or None, heads or None), PartitionSpec(rows or None)
    of_bias = None if bias is None else PartitionSpec(rows if bias.shape[0] > 1 and rows else None, heads or None)
    # A kernel is opaque to XLA, which would gather its operands on every device.
    return jax.shard_map(
        on_device,
        in_specs=(of_heads, of_heads, of_heads, jax.tree.map(lambda _: of_rows, mask), of_bias),
        out_specs=of_heads,
        check_vma=False,
    )(query, key, value, mask, bias)


def _on_device(
    kernel: Kernel, query: Array, key: Array, value: Array, mask: Mask, bias: Array | None, **options: Any
) -> Array:
    out = _module(kernel).attend(query, key, value, mask=mask, bias=bias, **options)
    if mask.reader is None:
        return out
    reads = jnp.any(masks.segment_mask(mask.reader, mask.read), axis=-1)
    mean = jnp.mean(value, axis=2, keepdims=True)
    mean = jnp.repeat(mean, query.shape[1] // value.shape[1], axis=1)
    return jnp.where(reads[:, None, :, None], out, mean.astype(out.dtype))


def _module(kernel: Kernel) -> Any:
    # Imported where they are used: Pallas takes longer to import than all of the models.
    if kernel == "splash":
        from t2t.functional.kernels import splash as module
    elif kernel == "flash":
        from t2t.functional.kernels import flash as module
    elif kernel == "cudnn":
        from t2t.functional.kernels import cudnn as module
    else:
        from t2t.functional.kernels import triton as module
    return module
