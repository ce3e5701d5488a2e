r"""One or several texts with a label, as T5 writes them: GLUE, SuperGLUE and what resembles them.

    rte sentence1: A smaller proportion of ... sentence2: Slovenia has 3,000 inhabitants.   ->   not_entailment

Reference: Raffel et al., arXiv:1910.10683, section 2.4 and appendix D; `t5.data.preprocessors` of
google-research/text-to-text-transfer-transformer (glue, stsb, record).
"""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from t2t.data.official_files import Example, Row
from t2t.errors import UsageError

UNKNOWN = "<unk>"
"""The target of rows whose label is not published, such as those of test sets."""

NO_LABEL = -1
"""The id of such a label, and of what is no label at all."""

NEGATIVE_WORDS = {"0": "False", "1": "True", "false": "False", "true": "True"}
"""How files write the labels False and True."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelledTexts:
    """Rows of texts with one of several labels.

    Example:
        >>> cola = LabelledTexts(name="cola", fields=("sentence",), labels=("unacceptable", "acceptable"))
        >>> cola({"sentence": "They sang.", "label": 1, "idx": 7}, "train")
        [{'inputs': 'cola sentence: They sang.', 'targets': 'acceptable', 'idx': 7}]
    """

    name: str
    """What the inputs begin with."""
    fields: tuple[str, ...]
    """The texts of a row, in the order of the inputs."""
    labels: tuple[str, ...]
    """The labels, in the order of their ids."""
    strips_markup: bool = False
    """Whether line breaks and bold type of HTML are taken out (MultiRC)."""

    def texts(self, row: Row) -> tuple[str, ...]:
        """The texts of a row by themselves."""
        return tuple(row[field] for field in self.fields)

    def label(self, row: Row) -> int:
        """The id of a row's label; `NO_LABEL` where it has none.

        Raises:
            UsageError: it has another one.
        """
        return label_id(row.get("label"), self.labels)

    def __call__(self, row: Row, split: str) -> list[Example]:
        """The example of a row; `idx` is its number, or the numbers of its parts as idx/part."""
        named = (f"{field}: {text}" for field, text in zip(self.fields, self.texts(row), strict=True))
        inputs = " ".join([self.name, *named])
        if self.strips_markup:
            inputs = re.sub("</?b>", "", inputs.replace("<br>", " "))
        label = self.label(row)
        targets = UNKNOWN if label == NO_LABEL else self.labels[label]
        return [{"inputs": inputs, "targets": targets, **numbers(row)}]


def label_id(value: Any, labels: Sequence[str]) -> int:
    """The id of a label that is given as an id, a name, or what files write for False and True.

    Example:
        >>> label_id("neutral", ("entailment", "neutral")), label_id(True, ("False", "True")), label_id(-1, ("a", "b"))
        (1, 1, -1)

    Raises:
        UsageError: there is no such label.
    """
    if value in (None, "", "-", UNKNOWN, NO_LABEL, str(NO_LABEL)):
        return NO_LABEL
    text = str(value)
    if text in labels:
        return labels.index(text)
    if text.lower() in NEGATIVE_WORDS and (word := NEGATIVE_WORDS[text.lower()]) in labels:
        return labels.index(word)
    if text.isdecimal() and int(text) < len(labels):
        return int(text)
    raise UsageError(f"the label is {value!r}; it can be {', '.join(labels)}, or a number below {len(labels)}")


def numbers(row: Row) -> dict[str, int]:
    """The number of a row, {"idx": 3}, or of its parts, {"idx/passage": 1, "idx/query": 2}; nothing without."""
    index = row.get("idx", NO_LABEL)
    parts = {f"idx/{name}": value for name, value in index.items()} if isinstance(index, dict) else {"idx": index}
    try:
        return {name: int(value) for name, value in parts.items()}
    except (TypeError, ValueError) as error:
        raise UsageError(f"idx is {index!r}; it must be a whole number") from error


def predicted_label(text: str, *, labels: Sequence[str], **_: Any) -> int:
    """The id of the label that a text is, letter for letter apart from spaces at the ends; else `NO_LABEL`.

    As a `postprocess_fn`, of targets and predictions: what is no label is never right.
    """
    text = text.strip()
    return labels.index(text) if text in labels else NO_LABEL


def grouped_label(
    text: str, *, labels: Sequence[str], by: Sequence[str], together: int = 1, example: Row, is_target: bool, **_: Any
) -> dict[str, Any]:
    """A predicted label as {"value": its id}, and of a target its group: the example's numbers of these names.

    Args:
        text: what is, or is no label.
        labels: in the order of their ids.
        by: names of the numbers.
        together: how many neighbouring numbers are one group.
        example: that the text belongs to.
        is_target: whether the text is its target.
    """
    value = {"value": predicted_label(text, labels=labels)}
    return value | ({"group": tuple(int(example[name]) // together for name in by)} if is_target else {})


def grouped_answer(text: str, *, example: Row, is_target: bool, **_: Any) -> dict[str, Any]:
    """ReCoRD's answer as {"value": text}; of a target all answers, and the query they belong to."""
    if not is_target:
        return {"value": text}
    group = (int(example["idx/passage"]), int(example["idx/query"]))
    return {"value": list(example["answers"]), "group": group}


def similarity(row: Row, split: str) -> list[Example]:
    """STS-B: how similar two sentences are, from 0 to 5, rounded to the nearest fifth.

    Example:
        >>> row = {"sentence1": "Big news.", "sentence2": "No idea.", "label": 1.66, "idx": 1}
        >>> similarity(row, "train")[0]["targets"]
        '1.6'

    Raises:
        UsageError: the label is no number.
    """
    inputs = f"stsb sentence1: {row['sentence1']} sentence2: {row['sentence2']}"
    value = row.get("label")
    if value in (None, ""):
        return [{"inputs": inputs, "targets": UNKNOWN, **numbers(row)}]
    try:
        targets = UNKNOWN if float(value) < 0 else fifths(float(value))
    except ValueError as error:
        raise UsageError(f"the label is {value!r}; it must be a number from 0 to 5") from error
    return [{"inputs": inputs, "targets": targets, **numbers(row)}]


def fifths(value: float) -> str:
    """A number rounded to the nearest multiple of 0.2, in the arithmetic of T5's labels (float32, half to even).

    Example:
        >>> fifths(3.25), fifths(4.7), fifths(5.0)
        ('3.2', '4.8', '5.0')
    """
    number = np.round(np.float32(value) * np.float32(5)) / np.float32(5)
    return f"{float(number):.1f}"


def predicted_number(text: str, **_: Any) -> float:
    """The number that a text is, -1 where it is none, as a `postprocess_fn` of STS-B."""
    try:
        return float(text)
    except ValueError:
        return float(NO_LABEL)


def cloze_answers(row: Row, split: str) -> Iterator[Example]:
    """ReCoRD: which entity of a passage stands for @placeholder in a query.

    In training every right answer is an example of its own; in held-out splits a row is one example.

    Differs: T5 repeats held-out rows for each answer too, and its metric drops the repetitions.
    """
    passage = re.sub(r"(\.|\?|\!|\"|\')\n@highlight\n", r"\1 ", row["passage"])
    passage = re.sub(r"\n@highlight\n", ". ", passage)
    inputs = f"record query: {row['query']} entities: {', '.join(row['entities'])} passage: {passage}"
    answers = list(row.get("answers", ()))
    shown = answers if split == "train" else answers[:1]
    for answer in shown or [UNKNOWN]:
        yield {"inputs": inputs, "targets": answer, "answers": answers, **numbers(row)}
