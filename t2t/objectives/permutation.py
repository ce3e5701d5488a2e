"""Predict tokens in a permuted order, from queries that do not see them (XLNet).

| batch key                  |                                                                            |
|----------------------------|----------------------------------------------------------------------------|
| encoder_predict_positions  | [B, K] where to predict: the queries                                       |
| encoder_predict_targets    | [B, K] ids to predict there                                                |
| encoder_predict_weights    | [B, K] factor of each prediction's loss (0 fills a row up to K)            |
| permutation_mask           | [B, T, T] 1 = position t may not read position s                           |
| whatever the model reads   | encoder_input_tokens, segment ids, token types, which rows are reversed    |
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from t2t.functional import losses
from t2t.objectives import segments
from t2t.objectives.base import Carry, Metrics, Term
from t2t.objectives.language_modeling import metrics, terms
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.types import Batch

READS = ("permutation_mask", "encoder_predict_positions", "encoder_predict_targets", "encoder_predict_weights")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PermutationLanguageModeling(MaskedLanguageModeling):
    """Cross entropy of the tokens at K positions of each row, given what the order lets their queries read.

    Terms, metrics and options are those of masked language modelling, whose loss it is, of other states: the model
    gives K of them itself, those of its query stream. A model that remembers reads, in each row, the segment that this
    row held in the batch before.

    Reference: Yang et al., XLNet, arXiv:1906.08237, sections 2.2 to 2.4.
    Differs: the released code divides by the number of predictions of each device, the step here by that of the global
        batch.
    """

    def initial_carry(self, models: Mapping[str, Any], *, rows: int, micro_batches: int) -> Carry:
        """The memory of every row, empty."""
        return segments.initial(models["model"], rows=rows, micro_batches=micro_batches)

    def carry_axes(self, carry: Carry) -> Any:
        """Of the memory."""
        return segments.axes(carry)

    def loss(
        self, models: Mapping[str, Any], params: Mapping[str, Any], batch: Batch, *, key: Array | None, carry: Carry
    ) -> tuple[dict[str, Term], Metrics, Carry]:
        """Terms and metrics over the predicted positions, and the memory of every row.

        Raises:
            ValueError: the batch has no order, or no positions to predict.
        """
        missing = [name for name in READS if name not in batch]
        if missing:
            raise ValueError(
                f"PermutationLanguageModeling reads {missing}, which the batch lacks: it needs a model with a query "
                "stream (TwoStreamEncoderConfig), a permutation task, and data.lengths['predictions']."
            )
        network, theta = models["model"], params["model"]
        output = network.hidden(theta, batch, key=key, **segments.now(carry))
        sums = losses.chunked_cross_entropy(
            output.last_hidden,
            logits=network.logits,
            params=theta,
            targets=jnp.asarray(batch["encoder_predict_targets"]),
            weights=jnp.asarray(batch["encoder_predict_weights"]),
            label_smoothing=self.label_smoothing,
            z_loss=self.z_loss,
            chunk=self.logits_chunk,
        )
        left = {"memory": output.memory} if carry else {}
        return terms(sums, self.z_loss), metrics(sums), segments.then(carry, **left)
