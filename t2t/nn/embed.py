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
from t2t.nn.positions import absolute
from t2t.nn.positions.absolute import LearnedPositions


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedConfig:
    """Sizes of the embedding tables and what follows them."""

    vocab_size: int
    """Rows of the token table: at least the size of the vocabulary."""
    dim: int
    """Width of the tables."""
    d_model: int | None = None
    """Width of a dense layer behind norm and dropout; None = no such layer (ALBERT, ELECTRA: small tables)."""
    norms_projected: bool = False
    """Whether that layer, then without a bias, comes before the norm instead (DeBERTa)."""
    num_types: int = 0
    """Sentence types (BERT: 2); 0 = no table."""
    num_languages: int = 0
    """Languages that have an embedding of their own (XLM); 0 = no table."""
    position: LearnedPositions | None = None
    scale: float = 1.0
    """Factor of the embedded tokens, before positions are added (mBART: dim**0.5)."""
    norm: Norm | None = None
    dropout: float = 0.0
    """Fraction in [0, 1) of the embedding's values dropped, after the norm."""
    initializer_std: float = 0.02
    """Of all tables. BERT and GPT-2 0.02, T5 1.0."""
    initializer: projection.Initializer = "normal"

    @property
    def width(self) -> int:
        """Width of the result."""
        return self.dim if self.d_model is None else self.d_model

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_positive(self, "vocab_size", "dim")
        if self.d_model is not None:
            checks.check_positive(self, "d_model")
        allowed = "0 (no table) or a positive integer"
        checks.check(self.num_types >= 0, self, "num_types", allowed=allowed, repair="Set num_types=0.")
        checks.check(self.num_languages >= 0, self, "num_languages", allowed=allowed, repair="Set num_languages=0.")
        checks.check_fraction(self, "dropout")
        checks.check_deviation(self, "initializer_std")
        checks.check_choice(self, "initializer", projection.INITIALIZERS)

    def make(
        self,
        *,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        borrows_table: bool = False,
        name: str | None = None,
    ) -> "Embed":
        """The linen module; one that `borrows_table` is given the token table of another at each call."""
        return Embed(self, dtype=dtype, param_dtype=param_dtype, borrows_table=borrows_table, name=name)


class Embed(nn.Module):
    """Owns the tables. Called with token ids; `table()` gives the token table to a tied head."""

    config: EmbedConfig
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32
    borrows_table: bool = False

    def setup(self):
        """Creates the tables that the config asks for."""
        config = self.config
        if not self.borrows_table:
            self.embedding = self._table("embedding", config.vocab_size, "vocab")
        if config.position is not None:
            initializer = absolute.initializer_of(config.position)
            self.positions = self._table("positions", config.position.num_rows, "positions", initializer=initializer)
        if config.num_types:
            self.types = self._table("types", config.num_types, "types")
        if config.num_languages:
            self.languages = self._table("languages", config.num_languages, "types")
        if config.norm is not None:
            self.norm = config.norm.make(dtype=self.dtype, param_dtype=self.param_dtype)
        self.dropout = Dropout(config.dropout)
        if config.d_model is not None:
            self.projection = projection.Projection(
                shape=(config.dim, config.d_model),
                axes=("embed", "mlp"),
                use_bias=not config.norms_projected,
                std=config.initializer_std,
                initializer=config.initializer,
                dtype=self.dtype,
                param_dtype=self.param_dtype,
            )

    def _table(self, name: str, num_rows: int, axis: str, *, initializer: Any = None) -> Array | None:
        """A table; None where a head is called with no more parameters than it reads."""
        config = self.config
        if initializer is None:
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
        languages: Int[Array, "B T"] | None = None,
        table: Float[Array, "V E"] | None = None,
        deterministic: bool = True,
    ) -> Float[Array, "B T D"]:
        """Returns the embedded tokens.

        Token ids outside the table give NaN, so that a wrong vocabulary shows at once. `positions` are read where the
        config has a table of them; `types` absent means all of type 0, `languages` absent or -1 that no embedding of a
        language is added; `table` is the token table where it is borrowed.
        """
        table = table if self.borrows_table else self.embedding
        x_BTE = _look_up(table, "vocab", tokens, mode="fill").astype(self.dtype)
        x_BTE = x_BTE if self.config.scale == 1.0 else x_BTE * self.config.scale
        if self.config.num_types:
            types = jnp.zeros_like(tokens) if types is None else types
            x_BTE = x_BTE + _look_up(self.types, "types", types, mode="clip").astype(self.dtype)
        if self.config.num_languages and languages is not None:
            of_languages_BTE = _look_up(self.languages, "types", languages, mode="fill").astype(self.dtype)
            x_BTE = x_BTE + jnp.where(languages[..., None] < 0, 0, of_languages_BTE)
        if self.config.position is not None:
            # Clipped, not filled: positions at padding may lie beyond the table and must stay finite.
            rows = positions + self.config.position.offset
            positions_BTE = _look_up(self.positions, "positions", rows, mode="clip").astype(self.dtype)
            x_BTE = x_BTE + positions_BTE
        if self.config.norms_projected:
            x_BTE = self._project(x_BTE)
        if self.config.norm is not None:
            x_BTE = self.norm(x_BTE)
        x_BTE = self.dropout(x_BTE, deterministic=deterministic)
        return x_BTE if self.config.norms_projected else self._project(x_BTE)

    def _project(self, x_BTE: Array) -> Array:
        """The embedded tokens at the width of the model."""
        if self.config.d_model is None:
            return x_BTE
        kernel_ED, bias_D = self.projection()
        x_BTD = projection.add_bias(jnp.einsum("BTE,ED->BTD", x_BTE, kernel_ED), bias_D)
        return nn.with_logical_constraint(x_BTD, ("batch", "length", None))


def _look_up(table: Array, axis: str, ids: Array, *, mode: str) -> Array:
    """The rows of a table, split as the ids are.

    The table is gathered over the devices that share its columns, which share the batch too: with parts of both, XLA
    would put together the rows of the whole batch on each device.
    """
    table = nn.with_logical_constraint(table, (axis, None))
    return nn.with_logical_constraint(jnp.take(table, ids, axis=0, mode=mode), ("batch", "length", None))
