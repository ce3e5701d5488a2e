"""Embeddings of relative positions, which attention layers compare with contents (DeBERTa)."""

import dataclasses
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
import numpy as np

from t2t.functional import disentangled
from t2t.nn import checks, projection
from t2t.nn.norm import Norm
from t2t.nn.positions.context import PositionContext, RelativeTable


@dataclasses.dataclass(frozen=True, kw_only=True)
class RelativeEmbeddings:
    """A table with a row for each distance, reader minus read, or for each bucket of distances.

    Distances are differences of indices: within an example these are the differences of positions, packed or not.

    Reference: He et al., DeBERTa, arXiv:2006.03654, section 3.1; with buckets and norm as in its second version's
    released code and DeBERTaV3, arXiv:2111.09543.
    """

    dim: int
    """Width of the table: that of the hidden states."""
    max_distance: int
    """Tokens; without buckets, longer distances share the row of this one."""
    num_buckets: int | None = None
    """Buckets for either sign, half of them logarithmic; None = a row for each distance."""
    norm: Norm | None = None
    """Of the rows, before any layer reads them."""
    dropout: float = 0.0
    """Fraction in [0, 1) of the values dropped, by each layer anew."""
    initializer_std: float = 0.02
    initializer: projection.Initializer = "normal"

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_positive(self, "dim", "max_distance")
        if self.num_buckets is not None:
            repair = "The published values are 256 and 512."
            is_valid = self.num_buckets >= 4 and self.num_buckets // 2 < self.max_distance - 1
            allowed = f"at least 4, with half of it below max_distance - 1 = {self.max_distance - 1}"
            checks.check(is_valid, self, "num_buckets", allowed=allowed, repair=repair)
        checks.check_fraction(self, "dropout")
        checks.check_deviation(self, "initializer_std")
        checks.check_choice(self, "initializer", projection.INITIALIZERS)

    @property
    def num_rows(self) -> int:
        """Rows of the table."""
        return 2 * (self.max_distance if self.num_buckets is None else self.num_buckets)

    def make(
        self,
        num_heads: int,
        *,
        head_dim: int,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        name: str | None = None,
    ) -> "RelativeEmbeddingsModule":
        """The linen module; the heads do not matter."""
        del num_heads, head_dim
        return RelativeEmbeddingsModule(self, dtype=dtype, param_dtype=param_dtype, name=name)


class RelativeEmbeddingsModule(nn.Module):
    """Owns the table and its norm."""

    config: RelativeEmbeddings
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, context: PositionContext) -> PositionContext:
        """Returns the context with those rows of the table whose distances occur."""
        config = self.config
        if context.offset is not None or context.length != context.key_length:
            raise ValueError("RelativeEmbeddings: a stack that reads another length than its own cannot have them.")
        initializer = projection.make_initializer(config.initializer, config.initializer_std)
        table = self.param(
            "positions",  # looked up, and decayed as the other tables are
            nn.with_logical_partitioning(initializer, ("positions", "embed")),
            (config.num_rows, config.dim),
            self.param_dtype,
        )
        rows = disentangled.distance_rows(
            context.length, max_distance=config.max_distance, num_buckets=config.num_buckets
        )
        first, last = int(rows[0]), int(rows[-1])
        used = table[first : last + 1].astype(self.dtype)
        if config.norm is not None:
            used = config.norm.make(name="norm", dtype=self.dtype, param_dtype=self.param_dtype)(used)
        is_line = np.array_equal(rows, np.arange(first, last + 1))
        relative = RelativeTable(
            embeddings=used, rows=None if is_line else jnp.asarray(rows - first), dropout=config.dropout
        )
        return dataclasses.replace(context, relative=relative)
