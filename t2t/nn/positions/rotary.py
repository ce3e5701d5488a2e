"""Rotary positions: queries and keys are turned by angles that grow with their position."""

import dataclasses
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
import numpy as np

from t2t.functional.positions import RotaryAngles
from t2t.nn import checks
from t2t.nn.positions.context import PositionContext


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rotary:
    """Angles `position * theta**(-2 i / dim)` for the i-th pair of values of each head, however long the text.

    Positions are indices of the row: a score depends on the distance of the two alone, which within an example is the
    same, packed or not.

    Reference: Su et al., RoFormer, arXiv:2104.09864, section 3.2.
    """

    theta: float = 10_000.0
    dim: int | None = None
    """Values of each head that are turned, from the first; None = all of them."""
    interleaved: bool = False
    """Pairs are neighbours (GPT-J, as in the paper); False: the i-th of the first half and of the second (GPT-NeoX)."""
    trained_positions: int | None = None
    """The length that the model was trained with, which an export says; None = that of its family. No number depends on
    it here, but transformers' GPT-J can read no longer texts."""

    def __post_init__(self):
        """Refuses values without meaning."""
        if self.trained_positions is not None:
            checks.check_positive(self, "trained_positions")
        checks.check(self.theta > 0, self, "theta", allowed="positive", repair="The published value is 10000.")
        is_even = self.dim is None or (self.dim > 0 and self.dim % 2 == 0)
        checks.check(is_even, self, "dim", allowed="None or a positive even number", repair="Set dim=None for all.")

    def make(
        self,
        num_heads: int,
        *,
        head_dim: int,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        name: str | None = None,
    ) -> "RotaryModule":
        """The module, which has no parameters, for heads of this size."""
        del num_heads, dtype, param_dtype
        dim = head_dim if self.dim is None else self.dim
        allowed = f"at most head_dim = {head_dim}, and even"
        checks.check(dim <= head_dim and dim % 2 == 0, self, "dim", allowed=allowed, repair="Set another dim.")
        return RotaryModule(self, dim, name=name)


class RotaryModule(nn.Module):
    """Puts the angles of a context's positions into it."""

    config: Rotary
    dim: int

    def __call__(self, context: PositionContext) -> PositionContext:
        """Returns the context with cosines and sines [T, dim / 2], float32."""
        rates = self.config.theta ** (-np.arange(0, self.dim, 2, dtype=np.float64) / self.dim)
        if context.offset is None:
            angles = np.arange(context.length)[:, None] * rates[None]
            cos, sin = (jnp.asarray(turn(angles), jnp.float32) for turn in (np.cos, np.sin))
        else:
            rows = (context.offset + jnp.arange(context.length, dtype=jnp.int32)).astype(jnp.float32)
            angles = rows[:, None] * jnp.asarray(rates, jnp.float32)[None]
            cos, sin = jnp.cos(angles), jnp.sin(angles)
        angles = RotaryAngles(cos=cos, sin=sin, interleaved=self.config.interleaved)
        return dataclasses.replace(context, rotary=angles)
