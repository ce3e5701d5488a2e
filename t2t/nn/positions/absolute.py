"""Learned absolute positions: a table row per position, added to the token embeddings (BERT, GPT, GPT-2)."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import jax.numpy as jnp
from jax import Array

from t2t.functional import positions
from t2t.nn import checks

PositionInitializer = Literal["random", "sinusoidal"]
POSITION_INITIALIZERS: tuple[PositionInitializer, ...] = ("random", "sinusoidal")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnedPositions:
    """Size of the table of positions; `nn/embed.py` owns the parameter and looks it up."""

    max_positions: int
    """Positions an example may have (the table has `offset` rows more)."""
    offset: int = 0
    """Row of position 0 (RoBERTa and BART: 2, the rows before it are never read)."""
    initializer: PositionInitializer = "random"
    """How the table begins: as the other tables, or with sines and cosines that are then trained (XLM)."""

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_positive(self, "max_positions")
        checks.check(self.offset >= 0, self, "offset", allowed="0 or more", repair="Set offset=0.")
        checks.check_choice(self, "initializer", POSITION_INITIALIZERS)

    @property
    def num_rows(self) -> int:
        """Rows of the table."""
        return self.max_positions + self.offset


def initializer_of(config: LearnedPositions) -> Callable[..., Array] | None:
    """How the table of positions begins; None = as the other tables."""
    if config.initializer == "random":
        return None

    def sinusoids(key: Any, shape: tuple[int, int], dtype: Any) -> Array:
        del key
        num_rows, width = shape
        return jnp.asarray(positions.interleaved_sinusoids(num_rows, width), dtype)

    return sinusoids
