"""Predict each target token from what the decoder may read: causal, prefix and encoder-decoder models alike.

| batch key                 |                                                                       |
|---------------------------|-----------------------------------------------------------------------|
| decoder_target_tokens     | [B, T] ids to predict                                                 |
| decoder_loss_weights      | [B, T] factor of each position's loss                                 |
| whatever the model reads  | decoder_input_tokens, encoder_input_tokens, segment ids, positions... |
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array

from t2t.functional import losses
from t2t.objectives import segments
from t2t.objectives.base import Carry, Metrics, Scalar, Term
from t2t.types import Batch


@dataclasses.dataclass(frozen=True, kw_only=True)
class LanguageModeling:
    """Cross entropy of the next token (of causal text, of a suffix, or of T5's targets).

    Terms: `cross_entropy`, and `z_loss` (the square of log Z) if its coefficient is not 0. Metrics: `accuracy`, the
    share of targets with the greatest logit.

    A model that remembers (Transformer-XL) goes on, in each row, where this row ended in the batch before: it reads the
    memory of that segment, and its last token in place of the one that starts a text.

    Reference: z-loss and the smoothing constant as in `t5x/losses.py`.
    Differs: T5X minimises the sum over tokens; the step here divides by the sum of weights of the global batch.
    """

    z_loss: float = 0.0
    """Coefficient of the mean square of log Z; T5X pretrains with 1e-4."""
    label_smoothing: float = 0.0
    """Probability taken from the target and spread over the other tokens, in [0, 1)."""
    logits_chunk: int | None = None
    """Positions of each row whose logits are held at a time; None = all."""

    additive: ClassVar[bool] = True

    def __post_init__(self):
        check_loss_options(self.z_loss, self.label_smoothing, self.logits_chunk)

    def weights(self, batch: Batch) -> dict[str, Scalar]:
        """The sum of the loss weights, for each term."""
        return term_weights(batch["decoder_loss_weights"], self.z_loss)

    def initial_carry(self, models: Mapping[str, Any], *, rows: int, micro_batches: int) -> Carry:
        """The memory and the last token of every row, for a model that remembers."""
        return segments.initial(models["model"], rows=rows, micro_batches=micro_batches, with_tokens=True)

    def carry_axes(self, carry: Carry) -> Any:
        """Of memory and tokens."""
        return segments.axes(carry)

    def loss(
        self, models: Mapping[str, Any], params: Mapping[str, Any], batch: Batch, *, key: Array | None, carry: Carry
    ) -> tuple[dict[str, Term], Metrics, Carry]:
        """Terms and metrics over the target tokens, and what the next segment of every row reads of this one."""
        network, theta = models["model"], params["model"]
        targets, before = jnp.asarray(batch["decoder_target_tokens"]), segments.now(carry)
        if before:
            place = {"token": before.pop("token"), "segment_ids": jnp.asarray(batch["decoder_segment_ids"])}
            inputs = segments.continue_inputs(jnp.asarray(batch["decoder_input_tokens"]), **place)
            batch = {**batch, "decoder_input_tokens": inputs}
        output = network.hidden(theta, batch, key=key, **before)
        if before:
            carry = segments.then(carry, memory=output.memory, token=segments.last_tokens(targets, **place))
        sums = losses.chunked_cross_entropy(
            output.last_hidden,
            logits=network.logits,
            params=theta,
            targets=targets,
            weights=jnp.asarray(batch["decoder_loss_weights"]),
            label_smoothing=self.label_smoothing,
            z_loss=self.z_loss,
            chunk=self.logits_chunk,
        )
        return terms(sums, self.z_loss), metrics(sums), carry


def check_loss_options(z_loss: float, label_smoothing: float, logits_chunk: int | None) -> None:
    """Refuse options no vocabulary loss can have."""
    if z_loss < 0.0:
        raise ValueError(f"z_loss={z_loss} must not be negative (T5X: 1e-4; 0 = none)")
    if not 0.0 <= label_smoothing < 1.0:
        raise ValueError(f"label_smoothing={label_smoothing} must be in [0, 1)")
    if logits_chunk is not None and logits_chunk < 1:
        raise ValueError(f"logits_chunk={logits_chunk} must be at least 1 position, or None for the whole length")


def term_weights(weights: Any, z_loss: float) -> dict[str, Scalar]:
    """The weight of each term of a vocabulary loss."""
    total = jnp.sum(jnp.asarray(weights).astype(jnp.float32))
    return {"cross_entropy": total, "z_loss": total} if z_loss else {"cross_entropy": total}


def terms(sums: losses.LossSums, z_loss: float) -> dict[str, Term]:
    """The terms of a vocabulary loss from its sums."""
    named = {"cross_entropy": Term(sum=sums.cross_entropy, weight=sums.weight)}
    if z_loss:
        named["z_loss"] = Term(sum=sums.squared_log_normalizer, weight=sums.weight, coefficient=z_loss)
    return named


def metrics(sums: losses.LossSums) -> Metrics:
    """What a vocabulary loss reports besides its terms."""
    return {"accuracy": (sums.correct, sums.weight)}
