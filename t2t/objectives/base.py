"""What an objective is: pure functions from models, parameters and a batch to named terms.

A term is a sum and the weight that will divide it. Weights depend on the batch alone, so that the training step can add
them over the whole global batch before it differentiates anything: each term keeps one denominator however the batch is
cut into micro-batches and spread over devices.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
from jaxtyping import Array, Float

from t2t.types import Batch

Scalar = Float[Array, ""]

Metrics = dict[str, tuple[Scalar, Scalar]]
"""(sum, weight) of each quantity reported; adding both and dividing gives its mean over any number of batches."""

Carry = Any
"""What an objective takes from one batch to the next (segment memory, baselines); () where there is nothing."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Term:
    """A part of the loss; the step minimises the sum over terms of coefficient * sum / weight of the global batch."""

    sum: Any
    """Scalar: sum over the examples or tokens of the batch."""
    weight: Any
    """Scalar: what divides it: equal to `weights(batch)` of this term."""
    coefficient: Any = 1.0
    """Share in the loss."""


@runtime_checkable
class Objective(Protocol):
    """What the training step asks of an objective; see `t2t/objectives/language_modeling.py` for the simplest."""

    additive: ClassVar[bool]
    """Whether sums of terms over micro-batches are those of the whole batch (not so for in-batch negatives)."""

    def weights(self, batch: Batch) -> dict[str, Scalar]:
        """The weight of each term, from the batch alone."""
        ...

    def loss(
        self, models: Mapping[str, Any], params: Mapping[str, Any], batch: Batch, *, key: Array | None, carry: Carry
    ) -> tuple[dict[str, Term], Metrics, Carry]:
        """The terms, what else is worth reporting, and the next carry.

        Args:
            models: networks by role.
            params: their parameters by role.
            batch: arrays by seqio's keys.
            key: for dropout and sampling; None = deterministic (evaluation).
            carry: from the batch before.
        """
        ...


@runtime_checkable
class KnowsVocabulary(Protocol):
    """What an objective offers besides, that must know special tokens of the vocabulary."""

    def for_vocabulary(self, vocabulary: Any) -> Any:
        """The same objective for this vocabulary."""
        ...


@runtime_checkable
class Recurrent(Protocol):
    """What an objective offers besides, that takes something from one batch to the next."""

    def initial_carry(self, models: Mapping[str, Any], *, rows: int, micro_batches: int) -> Carry:
        """The carry before the first batch, for so many rows of the global batch; () where these models need none."""
        ...

    def carry_axes(self, carry: Carry) -> Any:
        """The logical axes of every array of a carry, as tuples in its structure."""
        ...
