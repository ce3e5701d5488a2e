"""Bookkeeping of decoding with a cache, shared by the models that generate."""

import dataclasses

import jax.numpy as jnp
from jax import Array

from t2t.functional import masks
from t2t.models.common import Side
from t2t.nn.cache import Cache, LayerCache, empty_layer
from t2t.nn.positions.context import PositionContext
from t2t.nn.stack import StackConfig


@dataclasses.dataclass(frozen=True)
class Step:
    """What new positions need: their absolute positions [B, T], mask [B, T, S] over the cache, and context."""

    positions: Array
    mask: Array
    context: PositionContext


def empty_cache(
    config: StackConfig, prompt: Side, *, length: int, dtype: object, memory_mask: Array | None = None
) -> Cache:
    """A cache for a left-padded prompt, nothing written yet."""
    batch_size, prompt_length = prompt.tokens.shape
    if length < prompt_length:
        raise ValueError(f"prefill: length = {length} must be at least the prompt's length {prompt_length}.")
    if prompt.segment_ids is None:
        starts = jnp.zeros((batch_size,), jnp.int32)
    else:
        starts = prompt_length - jnp.sum(prompt.segment_ids != 0, axis=1, dtype=jnp.int32)
    layers = tuple(
        empty_layer(
            batch_size=batch_size,
            num_kv_heads=block.attention.kv_heads,
            length=length,
            head_dim=block.attention.head_dim,
            dtype=dtype,
        )
        for block in config.blocks
    )
    return Cache(layers=layers, index=jnp.zeros((), jnp.int32), starts=starts, memory_mask=memory_mask)


def make_step(tokens: Array, cache: Cache, *, offset: Array | None, prefix: Array | None) -> Step:
    """Mask, positions and context of new tokens at `offset` (None = 0, the prompt), the prompt's prefix marked."""
    length, key_length = tokens.shape[1], cache.length
    index = 0 if offset is None else offset
    mask = masks.cache_mask(length, index=index, starts=cache.starts, key_length=key_length)
    both_prefix = None
    if prefix is not None:
        # Left padding is never marked visible, whatever the marks say there.
        real = jnp.arange(length, dtype=jnp.int32)[None] >= cache.starts[:, None]
        marks = jnp.where(real, prefix, 0)
        both_prefix = masks.prefix_mask(marks, jnp.pad(marks, ((0, 0), (0, key_length - length))))
        mask = mask | both_prefix
    positions = index + jnp.arange(length, dtype=jnp.int32)[None] - cache.starts[:, None]
    context = PositionContext(length=length, key_length=key_length, offset=offset, both_prefix=both_prefix)
    return Step(positions=jnp.maximum(positions, 0), mask=mask, context=context)


def advance(cache: Cache, layers: tuple[LayerCache, ...], num_tokens: int) -> Cache:
    """The cache after `num_tokens` more positions."""
    return dataclasses.replace(cache, layers=layers, index=cache.index + num_tokens)
