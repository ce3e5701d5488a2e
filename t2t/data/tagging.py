r"""Tokens with a label each, as text: the labels in the order of the tokens.

    ner: EU rejects German call to boycott British lamb .    ->    B-ORG O B-MISC O O O B-MISC O O
    pos: What if Google Morphed                              ->    PRON SCONJ PROPN VERB

The T5 paper has no such task. One label a token, spaces between, is what the classifier form predicts too, so that
predictions are compared token by token and by seqeval without guessing where a name stands.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from t2t.data.official_files import Example, Row
from t2t.errors import UsageError

NER_LABELS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC")
"""Labels of CoNLL-2003, in TFDS's order."""

UPOS_LABELS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM",
    "VERB", "X", "_",
)  # fmt: skip
"""Universal parts of speech, in TFDS's order."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggedTokens:
    """Rows of tokens with labels.

    Example:
        >>> ner = TaggedTokens(name="ner", field="ner", labels=NER_LABELS)
        >>> ner({"tokens": ["Al", "ran"], "ner": [1, 0]}, "train")
        [{'inputs': 'ner: Al ran', 'targets': 'B-PER O'}]
    """

    name: str
    """What the inputs begin with."""
    field: str
    """The field of the labels."""
    labels: tuple[str, ...] | None
    """The labels in the order of their ids; None takes whatever names rows have."""

    def tags(self, row: Row) -> list[str]:
        """The labels of a row's tokens, by name.

        Raises:
            UsageError: there is one that does not exist, or another number of them than of tokens.
        """
        values = row[self.field]
        if len(values) != len(row["tokens"]):
            raise UsageError(f"{len(row['tokens'])} tokens have {len(values)} labels in {self.field}")
        return [self._tag(value) for value in values]

    def _tag(self, value: Any) -> str:
        if isinstance(value, int) and self.labels is not None and 0 <= value < len(self.labels):
            return self.labels[value]
        if isinstance(value, str) and (self.labels is None or value in self.labels):
            return value
        known = "names" if self.labels is None else f"{', '.join(self.labels)}, or their numbers"
        raise UsageError(f"a label in {self.field} is {value!r}; it can be {known}")

    def __call__(self, row: Row, split: str) -> list[Example]:
        """The example of a row."""
        return [{"inputs": f"{self.name}: {' '.join(row['tokens'])}", "targets": " ".join(self.tags(row))}]


def as_tags(text: str, **_: Any) -> list[str]:
    """The labels that a text lists, as a `postprocess_fn`."""
    return text.split()


def aligned(
    targets: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]], *, labels: Sequence[str], missing: str
) -> tuple[list[list[str]], Mapping[str, int]]:
    """Predicted labels, as many as there are tokens: what is too long is cut, what is missing or no label replaced.

    Args:
        targets: the right labels of each sentence.
        predictions: those that were predicted.
        labels: all that exist.
        missing: what stands for a label that was not predicted or does not exist.

    Returns:
        The predictions, and how many sentences had another number of labels and how many labels do not exist.

    Example:
        >>> aligned([["O", "B-PER"]], [["B-LOK"]], labels=("O", "B-PER"), missing="O")
        ([['O', 'O']], {'wrong_lengths': 1, 'invalid_predictions': 1})
    """
    made, counts = [], {"wrong_lengths": 0, "invalid_predictions": 0}
    known = set(labels)
    for target, prediction in zip(targets, predictions, strict=True):
        counts["wrong_lengths"] += len(target) != len(prediction)
        counts["invalid_predictions"] += sum(tag not in known for tag in prediction)
        tags = [tag if tag in known else missing for tag in prediction[: len(target)]]
        made.append(tags + [missing] * (len(target) - len(tags)))
    return made, counts
