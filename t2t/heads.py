"""Requests for a head: what `t2t.preset(name, head=...)` and `t2t.load(path, head=...)` take, without importing flax.

A request says what the model shall predict; the family decides what the head looks like (`t2t/families`). No request
(None) is the bare model: an encoder's hidden states, or a language model's logits where the family always has them.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pretraining:
    """Every head the published model was pretrained with; BERT's are masked words and next sentence."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedLM:
    """Predictions of masked words alone, without the pooler that other pretraining objectives need."""


PRETRAINING = Pretraining()
"""The heads of pretraining, for models that go on with it."""

Head = Pretraining | MaskedLM
"""Any request for a head."""
