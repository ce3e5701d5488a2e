"""Requests for a head: what `t2t.preset(name, head=...)` and `t2t.load(path, head=...)` take, without importing flax.

A request says what the model shall predict; the family decides what the head looks like (`t2t/families`). No request
(None) of a preset is the bare model: an encoder's hidden states, or a language model's logits where the family always
has them. Of a directory it is the model with the head of the files, and `BARE` the bare model.
"""

import dataclasses
from typing import Literal


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bare:
    """No head: the model that None is of a preset."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pretraining:
    """Every head the published model was pretrained with; BERT's are masked words and next sentence."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedLM:
    """Predictions of masked words alone, without the pooler that other pretraining objectives need."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnhancedMaskedLM:
    """Predictions of masked words by DeBERTa's enhanced mask decoder, which alone knows where in a text they stand."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NextSentence:
    """Whether the second of two texts follows the first (0) or not (1), without predictions of masked words."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SequenceClassification:
    """Scores of labels for each text or pair; one label is a regression."""

    num_labels: int = 2
    labels: tuple[str, ...] = ()
    """Names of the labels in the order of their ids, or none."""
    problem_type: Literal["regression", "single_label_classification", "multi_label_classification"] | None = None
    """What the labels of a text are: a number each, one of them, any of them; None says nothing of it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenClassification:
    """Scores of labels for each token."""

    num_labels: int = 2
    labels: tuple[str, ...] = ()
    """Names of the labels in the order of their ids, or none."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionAnswering:
    """Scores of each token as the first, and as the last, of the answer."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultipleChoice:
    """One score for each of several texts that go with each other, [batch, choices, length]."""


BARE = Bare()
"""No head, for a model of a directory whose files have one."""

PRETRAINING = Pretraining()
"""The heads of pretraining, for models that go on with it."""

Labels = SequenceClassification | TokenClassification | QuestionAnswering | MultipleChoice | NextSentence
"""A request for a head that scores labels."""

Head = Bare | Pretraining | MaskedLM | EnhancedMaskedLM | Labels
"""Any request for a head."""
