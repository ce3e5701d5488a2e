"""Keys and values of positions already read, kept while decoding."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Int


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class KeysValues:
    """What one attention layer reads: `key` and `value`, both [B, G, S, H]."""

    key: Any
    value: Any

    def write(self, new: "KeysValues", *, index: Int[Array, ""] | int) -> "KeysValues":
        """The same with the new positions written from `index` on (clamped: never write past the end)."""
        return KeysValues(
            key=jax.lax.dynamic_update_slice_in_dim(self.key, new.key.astype(self.key.dtype), index, axis=2),
            value=jax.lax.dynamic_update_slice_in_dim(self.value, new.value.astype(self.value.dtype), index, axis=2),
        )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LayerCache:
    """Cache of one block: own keys and values with room for every position, and the encoder's where it reads one."""

    attention: KeysValues
    cross_attention: KeysValues | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Cache:
    """State of decoding a batch. Every array leads with the batch but `index`, so beams can be gathered.

    Attributes:
        layers: One LayerCache per block, in depth order.
        index: Scalar, the column of the next position, the same in every row.
        starts: [B], the column of each row's first real position; the columns before are left padding.
        memory_mask: Boolean [B, S], encoder positions that may be read; None = all, or no encoder.
    """

    layers: Any
    index: Any
    starts: Any
    memory_mask: Any = None

    @property
    def length(self) -> int:
        """Positions there is room for."""
        return self.layers[0].attention.key.shape[2]

    def gather(self, indices: Int[Array, " R"]) -> "Cache":
        """The cache of other rows: row r of the result is row `indices[r]`; more or fewer rows are fine."""
        gathered = jax.tree.map(lambda x: x if x.ndim == 0 else jnp.take(x, indices, axis=0), self)
        return dataclasses.replace(gathered, index=self.index)


def empty_layer(
    *, batch_size: int, num_kv_heads: int, length: int, head_dim: int, dtype: Any, cross_attention: Any = None
) -> LayerCache:
    """A block's cache with room for `length` positions, nothing written."""
    zeros = jnp.zeros((batch_size, num_kv_heads, length, head_dim), dtype)
    return LayerCache(attention=KeysValues(key=zeros, value=zeros), cross_attention=cross_attention)
