"""Rows of permutation examples in, the batch of a model with a query stream out: the mask of every row's order."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from t2t.data import layout, permutation
from t2t.data.features import EncoderFeatures, Example, OverlongError, Row
from t2t.types import Batch

PER_TOKEN = ("targets", "weights", "order", "token_types")
"""Features with a value for every token of `inputs`."""


@dataclass(frozen=True, kw_only=True)
class PermutationFeatures(EncoderFeatures):
    """What `PermutationLM` makes, for an encoder with queries (XLNet).

    Besides the keys of `EncoderFeatures` with `predictions`:

        permutation_mask     [B, T, T] int8, 1 = position t may not read position s
        encoder_token_types  [B, T]
        encoder_reversed     [B], 1 = the text runs backwards (with `bidirectional`)

    Several examples may share a row: none reads another, and distances are those within an example. A model that
    remembers, or whose batches say which rows are reversed, has `one_a_row`.

    Raises:
        ValueError: no `predictions`, without which there are no queries.

    Differs: the mask is int8, a quarter of the authors' float32 on its way to the device.
    """

    one_a_row: bool = False
    reuse: int | None = None
    """Tokens of each example that the model remembers for the next (`memory_reuse`); None = all, or none."""
    bidirectional: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.predictions is None:
            raise ValueError(
                "a model with queries needs data.lengths['predictions'], the most targets of a row: a sixth of "
                f"'inputs' (here {max(1, self.length // 6)})"
            )

    def check_task(self, name: str, features: Collection[str]) -> None:
        """As `Converter.check_task`; examples must overlap if and only if the model reads them so.

        Raises:
            ValueError: naming what differs.
        """
        super().check_task(name, features)
        if set(features) <= {"inputs", "targets"}:  # of the task; what its corruption adds is known when it is read
            return
        self._check_order(f"Task '{name}'", features)
        if ("reuse" in features) != (self.reuse is not None):
            overlap, has = ("overlap", "no") if "reuse" in features else ("do not overlap", "a")
            raise ValueError(
                f"the examples of task '{name}' {overlap}, and the model has {has} memory_reuse: "
                "PermutationLM(reuse=...) belongs to TwoStreamEncoderConfig(memory_length=..., memory_reuse=...)"
            )
        if "reversed" in features and not self.bidirectional:
            raise ValueError(
                f"task '{name}' says which texts are reversed, which the model would not read: set "
                "TwoStreamEncoderConfig.bidirectional=True"
            )

    def _check_order(self, what: str, features: Collection[str]) -> None:
        missing = [name for name in PER_TOKEN if name not in features]
        if missing:
            raise ValueError(
                f"{what} has the features {sorted(features)} and lacks {missing}: a model with queries learns from "
                "tasks that end in t2t.data.permutation_lm.PermutationLM, such as pydocs_permutation_lm"
            )

    @property
    def capacity(self) -> tuple[int, ...]:
        """Positions of the row, places with loss and, with `one_a_row`, one example."""
        return (*super().capacity, 1) if self.one_a_row else super().capacity

    def sizes(self, example: Example) -> tuple[int, ...]:
        """What the example takes of each."""
        return (*super().sizes(example), 1) if self.one_a_row else super().sizes(example)

    def trim(self, example: Example) -> tuple[Example, int]:
        """The example as it is: the order of a text that is cut is no longer that of its targets.

        Raises:
            ValueError: it is no permutation example.
            OverlongError: it is longer than a row.
        """
        self._check_order("An example", example)
        length = len(example["inputs"])
        wrong = {name: len(example[name]) for name in PER_TOKEN if len(example[name]) != length}
        if wrong:
            raise ValueError(f"'inputs' has {length} tokens but {wrong}: must be equal.")
        if length > self.length:
            raise OverlongError(
                f"A permutation example has {length} tokens and a row {self.length}: cut documents before the "
                "corruption, with t2t.data.preprocessors.Chunk(corruption=PermutationLM(...))."
            )
        return example, 0

    def convert(self, rows: Sequence[Row]) -> Batch:
        """See `Converter.convert`.

        Raises:
            ValueError: examples of another overlap than the model's memory.
        """
        examples = [x for row in rows for x in row]
        side = layout.Side.of(rows, [len(x["inputs"]) for x in examples], self.length)
        weights, order, types = (layout.of_tokens(examples, name, 0) for name in ("weights", "order", "token_types"))
        forbidden = permutation.permutation_mask(side.fill(order, 0), is_target=side.fill(weights, 0) != 0)
        segments = side.segment_ids()
        forbidden |= segments[:, :, None] != segments[:, None, :]
        batch = {
            **super().convert(rows),
            "permutation_mask": forbidden,
            "encoder_token_types": side.fill(types, 0),
        }
        self._check_reuse(examples)
        if self.bidirectional:
            firsts = [int(row[0]["reversed"][0]) if row and "reversed" in row[0] else 0 for row in rows]
            batch["encoder_reversed"] = np.array(firsts, np.int32)
        return batch

    def _check_reuse(self, examples: Sequence[Example]) -> None:
        found = {int(x["reuse"][0]) for x in examples if "reuse" in x}
        if self.reuse is not None and found - {self.reuse}:
            raise ValueError(
                f"examples begin {sorted(found)} tokens behind the one before, and the model remembers the first "
                f"{self.reuse} of each: set memory_reuse to inputs times PermutationLM.reuse"
            )
