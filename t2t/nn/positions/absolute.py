"""Learned absolute positions: a table row per position, added to the token embeddings (BERT, GPT, GPT-2)."""

import dataclasses

from t2t.nn import checks


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnedPositions:
    """Size of the table of positions; `nn/embed.py` owns the parameter and looks it up."""

    max_positions: int
    """Positions an example may have (the table has `offset` rows more)."""
    offset: int = 0
    """Row of position 0 (RoBERTa and BART: 2, the rows before it are never read)."""

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_positive(self, "max_positions")
        checks.check(self.offset >= 0, self, "offset", allowed="0 or more", repair="Set offset=0.")

    @property
    def num_rows(self) -> int:
        """Rows of the table."""
        return self.max_positions + self.offset
