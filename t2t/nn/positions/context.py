"""What the attention layers of a stack know about positions: made once per stack, read by every layer."""

import dataclasses
from typing import Any

import jax
from jax import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RelativeTable:
    """Embedded distances between two positions.

    Attributes:
        embeddings: Float [U, D], the distances that occur.
        rows: int [2 T - 1], their row for each distance from 1 - T to T - 1; None: there are as many, in this order.
        dropout: Fraction in [0, 1) of them dropped, by each layer anew.
    """

    embeddings: Any
    rows: Any = None
    dropout: float = dataclasses.field(default=0.0, metadata={"static": True})


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PositionContext:
    """Positions of one pass through a stack and what position schemes derived from them.

    A scheme is a module that maps a context to a context: T5's bias and ALiBi fill `bias`, rotary positions `rotary`.
    It runs once per stack, or in each block that owns one. Scores that depend on content as well are made of `relative`
    by attention layers of their own.

    Attributes:
        length: T, the number of positions that read.
        key_length: S, the number of positions that are read.
        offset: Index on the key axis of the first reader (a traced scalar while decoding); None = 0, known when the
            program is traced, so everything derived from indices is a constant.
        both_prefix: Boolean [B, T, S], True where reader and read lie in the fully visible prefix of a prefix-LM;
            None outside prefix-LMs.
        bias: Float [B or 1, N, T, S] added to the scores of every head, or None.
        rotary: `RotaryAngles` by which queries and keys are turned, or None.
        relative: What attention layers that score distances by content read of them, or None.
        read_length: How many of the readers, from the first, are read too; None = all (`key_length` of them, unless
            earlier positions or a cache come before).

    Leaves carry no checked annotations, because JAX rebuilds this class around tracers, shapes and axis names.
    """

    length: int = dataclasses.field(metadata={"static": True})
    key_length: int = dataclasses.field(metadata={"static": True})
    offset: Any = None
    both_prefix: Any = None
    bias: Any = None
    rotary: Any = None
    relative: Any = None
    read_length: int | None = dataclasses.field(default=None, metadata={"static": True})

    def add_bias(self, bias: Array) -> "PositionContext":
        """The same context with one more bias."""
        return dataclasses.replace(self, bias=bias if self.bias is None else self.bias + bias)
