"""T5's relative position bias: one learned scalar per head and bucket of distance, added to attention scores."""

import dataclasses
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from t2t.functional import positions, precision
from t2t.nn import checks, projection
from t2t.nn.positions.context import PositionContext


@dataclasses.dataclass(frozen=True, kw_only=True)
class T5Bias:
    """Relative position bias. As a stack's `position` all layers share one table, as a block's each layer has its own.

    Distances are differences of indices, as in T5X: within an example positions grow by one, packed or not, so they
    equal differences of positions, and one [N, T, S] bias serves every row of a batch.
    """

    num_buckets: int = 32
    max_distance: int = 128
    """Tokens; all longer distances share a bucket."""
    bidirectional: bool = True
    """Half the buckets for keys after the query (encoders); False: such keys share bucket 0 (decoders)."""
    bidirectional_prefix: bool = False
    """Use bidirectional buckets inside the prefix of a prefix-LM; False as in T5X."""
    initializer_std: float | None = None
    """None: uniform with variance 2 / (num_buckets + num_heads), as T5X."""

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_positive(self, "num_buckets", "max_distance")
        checks.check(
            self.num_buckets >= 4 and self.num_buckets % 2 == 0,
            self,
            "num_buckets",
            allowed="an even number of at least 4",
            repair="The published value is 32.",
        )
        allowed = f"above num_buckets // 2 = {self.num_buckets // 2}, the distances that are exact"
        repair = "The published value is 128."
        checks.check(self.max_distance > self.num_buckets // 2, self, "max_distance", allowed=allowed, repair=repair)
        checks.check(
            not (self.bidirectional and self.bidirectional_prefix),
            self,
            "bidirectional_prefix",
            allowed="False where bidirectional=True",
            repair="Set bidirectional=False: the choice exists for the causal part of a prefix-LM.",
        )
        checks.check_deviation(self, "initializer_std")

    def make(
        self,
        num_heads: int,
        *,
        head_dim: int | None = None,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        name: str | None = None,
    ) -> "T5BiasModule":
        """The linen module for so many heads; their size does not matter."""
        del head_dim
        return T5BiasModule(self, num_heads, dtype=dtype, param_dtype=param_dtype, name=name)


class T5BiasModule(nn.Module):
    """Owns the table [buckets, heads] and adds its bias to a position context."""

    config: T5Bias
    num_heads: int
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, context: PositionContext) -> PositionContext:
        """Returns the context with this bias added."""
        table = self.param(
            "embedding", self._initializer(), (self.config.num_buckets, self.num_heads), self.param_dtype
        )
        bias = self._bias(table, context, bidirectional=self.config.bidirectional)
        if self.config.bidirectional_prefix and context.both_prefix is not None:
            within = self._bias(table, context, bidirectional=True)
            bias = jnp.where(context.both_prefix[:, None], within, bias)
        return context.add_bias(bias)

    def _initializer(self) -> Any:
        std = self.config.initializer_std
        if std is None:
            initializer = jax.nn.initializers.variance_scaling(1.0, "fan_avg", "uniform")
        else:
            initializer = projection.make_initializer("normal", std)
        return nn.with_logical_partitioning(initializer, ("positions", "heads"))

    def _bias(self, table: Array, context: PositionContext, *, bidirectional: bool) -> Array:
        """The bias [1, N, T, S], in float32 at least because scores are."""
        length, key_length = context.length, context.key_length
        table = table.astype(precision.at_least_float32(table.dtype))
        if context.offset is None:
            line = self._buckets(np.arange(1 - length, key_length, dtype=np.int32), bidirectional=bidirectional)
            line_NW = table[line].T
            return positions.toeplitz(line_NW, length=length, key_length=key_length)[None]
        # While decoding the first index is traced: look distances up in the buckets of -far...far, which hold all there
        # are, since every distance from max_distance on shares a bucket.
        far = self.config.max_distance
        buckets = self._buckets(np.arange(-far, far + 1, dtype=np.int32), bidirectional=bidirectional)
        rows = context.offset + jnp.arange(length, dtype=jnp.int32)[:, None]
        relative_TS = jnp.arange(key_length, dtype=jnp.int32)[None, :] - rows
        near_TSN = table[buckets][jnp.clip(relative_TS, -far, far) + far]
        return near_TSN.transpose(2, 0, 1)[None]

    def _buckets(self, relative: np.ndarray, *, bidirectional: bool) -> np.ndarray:
        config = self.config
        return positions.relative_position_buckets(
            relative,
            bidirectional=bidirectional,
            num_buckets=config.num_buckets,
            max_distance=config.max_distance,
        )
