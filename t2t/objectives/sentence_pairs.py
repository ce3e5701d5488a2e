"""Predict masked tokens, and from the pooled first token how the two segments of a pair belong together (BERT, ALBERT).

| batch key                  |                                                                         |
|----------------------------|-------------------------------------------------------------------------|
| next_sentence_labels       | [B] 0 = the second segment follows the first, 1 = not; -1 = no pair     |
| what masked words need     | see `t2t/objectives/masked.py`                                          |
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from t2t.functional import losses
from t2t.objectives.base import Carry, Metrics, Scalar, Term
from t2t.objectives.language_modeling import metrics, terms
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.types import Batch


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentencePairModeling(MaskedLanguageModeling):
    """Masked language modelling and, of the same pass, whether the second segment of each row follows its first.

    The pairs decide what that means: next-sentence prediction of BERT's pairs, sentence-order prediction of ALBERT's.
    Terms: those of masked language modelling, and `next_sentence`, divided by the number of rows with a label. Metrics:
    theirs, and `next_sentence_accuracy`.

    Reference: Devlin et al., "BERT", arXiv:1810.04805, section 3.1: the two losses are added; Lan et al., "ALBERT",
        arXiv:1909.11942, section 3.1.
    """

    next_sentence: float = 1.0
    """Coefficient of the loss of pairs."""

    def __post_init__(self):
        super().__post_init__()
        if self.next_sentence <= 0:
            raise ValueError(
                f"next_sentence={self.next_sentence} must be positive; MaskedLanguageModeling is the objective without"
            )

    def weights(self, batch: Batch) -> dict[str, Scalar]:
        """The sum of the loss weights, and the number of rows with a label."""
        labels = jnp.asarray(batch["next_sentence_labels"])
        return super().weights(batch) | {"next_sentence": jnp.sum((labels >= 0).astype(jnp.float32))}

    def loss(
        self, models: Mapping[str, Any], params: Mapping[str, Any], batch: Batch, *, key: Array | None, carry: Carry
    ) -> tuple[dict[str, Term], Metrics, Carry]:
        """Terms and metrics over the predicted positions and the rows; the carry passes through.

        Raises:
            ValueError: the model has no next-sentence classifier.
        """
        network, theta = models["model"], params["model"]
        output = network.hidden(theta, batch, key=key)
        if output.next_sentence_logits is None:
            raise ValueError(
                "SentencePairModeling needs a model with a next-sentence classifier: give its preset "
                "head=heads.PRETRAINING, or use MaskedLanguageModeling"
            )
        sums = self.sums(network, theta, output.last_hidden, batch)
        labels = jnp.asarray(batch["next_sentence_labels"])
        pairs = losses.cross_entropy(
            output.next_sentence_logits, targets=jnp.maximum(labels, 0), weights=(labels >= 0).astype(jnp.float32)
        )
        term = Term(sum=pairs.cross_entropy, weight=pairs.weight, coefficient=self.next_sentence)
        return (
            terms(sums, self.z_loss) | {"next_sentence": term},
            metrics(sums) | {"next_sentence_accuracy": (pairs.correct, pairs.weight)},
            carry,
        )
