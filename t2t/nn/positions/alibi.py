"""ALiBi: scores fall linearly with distance, at another rate in every head."""

import dataclasses
import math
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
import numpy as np

from t2t.functional import positions
from t2t.nn.positions.context import PositionContext


@dataclasses.dataclass(frozen=True, kw_only=True)
class ALiBi:
    """The bias `-slope * |t - s|`, with slopes 2**(-8 i / heads) for i = 1, 2, ..., heads.

    Where the number of heads is no power of two, the slopes of the power below come first, then every other one of the
    power above, as in the released code.

    Reference: Press et al., Train Short, Test Long, arXiv:2108.12409, section 3.
    """

    def make(
        self,
        num_heads: int,
        *,
        head_dim: int,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        name: str | None = None,
    ) -> "ALiBiModule":
        """The module, which has no parameters, for so many heads."""
        del head_dim, dtype, param_dtype
        return ALiBiModule(num_heads, name=name)


class ALiBiModule(nn.Module):
    """Adds the bias to a position context."""

    num_heads: int

    def __call__(self, context: PositionContext) -> PositionContext:
        """Returns the context with this bias [1, N, T, S] added."""
        slopes = slopes_of(self.num_heads)
        length, key_length = context.length, context.key_length
        if context.offset is None:
            distance = np.abs(np.arange(1 - length, key_length))
            line = jnp.asarray(-slopes[:, None] * distance[None], jnp.float32)
            return context.add_bias(positions.toeplitz(line, length=length, key_length=key_length)[None])
        rows = context.offset + jnp.arange(length, dtype=jnp.int32)[:, None]
        distance = jnp.abs(jnp.arange(key_length, dtype=jnp.int32)[None] - rows).astype(jnp.float32)
        return context.add_bias(-jnp.asarray(slopes, jnp.float32)[None, :, None, None] * distance[None, None])


def slopes_of(num_heads: int) -> np.ndarray:
    """The slope of each head.

    >>> slopes_of(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    >>> slopes_of(3).tolist()
    [0.0625, 0.00390625, 0.25]
    """
    power = 2 ** math.floor(math.log2(num_heads))
    first = 2.0 ** (-8.0 * np.arange(1, power + 1) / power)
    rest = 2.0 ** (-8.0 * np.arange(1, 2 * power + 1, 2) / (2 * power))
    return np.concatenate([first, rest])[:num_heads]
