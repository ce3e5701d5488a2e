"""Input embeddings: tokens, plus positions and sentence types where a family has them, then norm and dropout."""

import dataclasses
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from t2t.nn import checks, projection
from t2t.nn.dropout import Dropout
from t2t.nn.norm import Norm
from t2t.nn.positions.absolute import LearnedPositions


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedConfig:
    """Sizes of the embedding tables and what follows them."""

    vocab_size: int
    """Rows of the token table: at least the size of the vocabulary."""
    dim: int
    num_types: int = 0
    """Sentence types (BERT: 2); 0 = no table."""
    position: LearnedPositions | None = None
    norm: Norm | None = None
    dropout: float = 0.0
    """Fraction in [0, 1) of the embedding's values dropped, after the norm."""
    initializer_std: float = 0.02
    """Of all tables. BERT and GPT-2 0.02, T5 1.0."""
    initializer: projection.Initializer = "normal"

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_positive(self, "vocab_size", "dim")
        allowed = "0 (no table) or a positive integer"
        checks.check(self.num_types >= 0, self, "num_types", allowed=allowed, repair="Set num_types=0.")
        checks.check_fraction(self, "dropout")
        checks.check_deviation(self, "initializer_std")
        checks.check_choice(self, "initializer", projection.INITIALIZERS)

    def make(self, *, dtype: Any = jnp.float32, param_dtype: Any = jnp.float32, name: str | None = None) -> "Embed":
        """The linen module."""
        return Embed(self, dtype=dtype, param_dtype=param_dtype, name=name)


class Embed(nn.Module):
    """Owns the tables. Called with token ids; `table()` gives the token table to a tied head."""

    config: EmbedConfig
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    def setup(self):
        """Creates the tables that the config asks for."""
        config = self.config
        self.embedding = self._table("embedding", config.vocab_size, "vocab")
        if config.position is not None:
            self.positions = self._table("positions", config.position.num_rows, "positions")
        if config.num_types:
            self.types = self._table("types", config.num_types, "types")
        if config.norm is not None:
            self.norm = config.norm.make(dtype=self.dtype, param_dtype=self.param_dtype)
        self.dropout = Dropout(config.dropout)

    def _table(self, name: str, num_rows: int, axis: str) -> Array:
        config = self.config
        initializer = projection.make_initializer(config.initializer, config.initializer_std)
        partitioned = nn.with_logical_partitioning(initializer, (axis, "embed"))
        return self.param(name, partitioned, (num_rows, config.dim), self.param_dtype)

    def table(self) -> Float[Array, "V E"]:
        """The token table in the compute dtype."""
        return self.embedding.astype(self.dtype)

    def __call__(
        self,
        tokens: Int[Array, "B T"],
        *,
        positions: Int[Array, "#B T"] | None = None,
        types: Int[Array, "B T"] | None = None,
        deterministic: bool = True,
    ) -> Float[Array, "B T E"]:
        """Returns the embedded tokens.

        Token ids outside the table give NaN, so that a wrong vocabulary shows at once. `positions` are read where the
        config has a table of them; `types` absent means all of type 0.
        """
        x_BTE = jnp.take(self.embedding, tokens, axis=0, mode="fill").astype(self.dtype)
        if self.config.num_types:
            types = jnp.zeros_like(tokens) if types is None else types
            x_BTE = x_BTE + jnp.take(self.types, types, axis=0, mode="clip").astype(self.dtype)
        if self.config.position is not None:
            # Clipped, not filled: positions at padding may lie beyond the table and must stay finite.
            rows = positions + self.config.position.offset
            positions_BTE = jnp.take(self.positions, rows, axis=0, mode="clip").astype(self.dtype)
            x_BTE = x_BTE + positions_BTE
        if self.config.norm is not None:
            x_BTE = self.norm(x_BTE)
        return self.dropout(x_BTE, deterministic=deterministic)
