"""Predict the tokens that masking hid or touched, from both sides (BERT, RoBERTa).

| batch key                  |                                                                         |
|----------------------------|-------------------------------------------------------------------------|
| encoder_predict_positions  | [B, K] where to predict; with them only K positions reach the vocabulary |
| encoder_predict_targets    | [B, K] ids to predict there                                             |
| encoder_predict_weights    | [B, K] factor of each prediction's loss (0 fills a row up to K)         |
| encoder_target_tokens      | [B, T] ids to predict, where there are no encoder_predict_positions     |
| encoder_loss_weights       | [B, T] factor of each position's loss                                   |
| whatever the model reads   | encoder_input_tokens, segment ids, positions, token types               |
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from t2t.functional import losses
from t2t.objectives.base import Carry, Metrics, Scalar, Term
from t2t.objectives.language_modeling import check_loss_options, metrics, term_weights, terms
from t2t.types import Batch


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedLanguageModeling:
    """Cross entropy of the original token at the positions chosen for prediction.

    Terms: `cross_entropy`, and `z_loss` if its coefficient is not 0. Metrics: `accuracy`.

    Reference: Devlin et al., "BERT", arXiv:1810.04805, section 3.1; hidden states are gathered at the predicted
        positions before the vocabulary projection, as in `bert/run_pretraining.py` (get_masked_lm_output).
    Differs: BERT divides by the number of predictions of each device's batch (plus 1e-5), the step here by that of the
        global batch.
    """

    z_loss: float = 0.0
    """Coefficient of the mean square of log Z."""
    label_smoothing: float = 0.0
    """Probability taken from the target and spread over the other tokens, in [0, 1)."""
    logits_chunk: int | None = None
    """Positions of each row whose logits are held at a time; None = all."""

    additive: ClassVar[bool] = True

    def __post_init__(self):
        check_loss_options(self.z_loss, self.label_smoothing, self.logits_chunk)

    def weights(self, batch: Batch) -> dict[str, Scalar]:
        """The sum of the loss weights, for each term."""
        at_positions = "encoder_predict_positions" in batch
        return term_weights(batch["encoder_predict_weights" if at_positions else "encoder_loss_weights"], self.z_loss)

    def loss(
        self, models: Mapping[str, Any], params: Mapping[str, Any], batch: Batch, *, key: Array | None, carry: Carry
    ) -> tuple[dict[str, Term], Metrics, Carry]:
        """Terms and metrics over the predicted positions; the carry passes through."""
        network, theta = models["model"], params["model"]
        hidden = network.hidden(theta, batch, key=key).last_hidden
        sums = self.sums(network, theta, hidden, batch)
        return terms(sums, self.z_loss), metrics(sums), carry

    def sums(self, network: Any, theta: Any, hidden: Float[Array, "B T D"], batch: Batch) -> losses.LossSums:
        """Sums over the predicted positions, from the hidden states of all."""
        if "encoder_predict_positions" in batch:
            hidden = gather_positions(hidden, positions=jnp.asarray(batch["encoder_predict_positions"]))
            targets, weights = batch["encoder_predict_targets"], batch["encoder_predict_weights"]
        else:
            targets, weights = batch["encoder_target_tokens"], batch["encoder_loss_weights"]
        return losses.chunked_cross_entropy(
            hidden,
            logits=network.logits,
            params=theta,
            targets=jnp.asarray(targets),
            weights=jnp.asarray(weights),
            label_smoothing=self.label_smoothing,
            z_loss=self.z_loss,
            chunk=self.logits_chunk,
        )


def gather_positions(hidden: Float[Array, "B T D"], *, positions: Int[Array, "B K"]) -> Float[Array, "B K D"]:
    """The states of each row at its own positions.

    Example:
        >>> gather_positions(jnp.array([[[1.0], [2.0], [3.0]]]), positions=jnp.array([[2, 0]])).tolist()
        [[[3.0], [1.0]]]
    """
    return jnp.take_along_axis(hidden, positions[:, :, None], axis=1)
