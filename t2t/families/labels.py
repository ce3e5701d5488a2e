"""Heads of labels as all families have them: requests, classes of transformers, and the names of labels."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.hf import config_map
from t2t.hf.table import LINEAR, VECTOR, Entry
from t2t.models.decoder import DecoderConfig
from t2t.nn.classification import ClassificationHead, Task
from t2t.nn.heads import LanguageModelHead

READ: Mapping[str, Any] = {"architectures": None, "id2label": None, "num_labels": None, "problem_type": None}
"""Attributes of config.json that say which head a model has, for `Attributes.read`."""

CLASSES: Mapping[str, Task] = {
    "ForSequenceClassification": "sequence",
    "ForTokenClassification": "tokens",
    "ForQuestionAnswering": "span",
    "ForQuestionAnsweringSimple": "span",
    "ForMultipleChoice": "choice",
}
"""Endings of the names of transformers' classes."""

_REQUESTS: Mapping[Task, type] = {
    "sequence": heads.SequenceClassification,
    "tokens": heads.TokenClassification,
    "span": heads.QuestionAnswering,
    "choice": heads.MultipleChoice,
}


def make(request: heads.Head, **forms: Mapping[str, Any]) -> ClassificationHead | None:
    """The head asked for, in the form the family gives it; None if it has none.

    Args:
        request: which head.
        forms: fields of `ClassificationHead` by task; a task that is not there the family does not have.

    Example:
        >>> make(heads.SequenceClassification(num_labels=3), sequence={"pooling": "pooler"}).num_labels
        3
    """
    task = next((task for task, kind in _REQUESTS.items() if isinstance(request, kind)), None)
    if task is None or task not in forms:
        return None
    named = {} if task in ("span", "choice") else {"num_labels": request.num_labels, "labels": request.labels}
    if isinstance(request, heads.SequenceClassification):
        named["problem_type"] = request.problem_type
    return ClassificationHead(task=task, **{"num_labels": {"span": 2}.get(task, 1), **named, **forms[task]})


def request(values: Mapping[str, Any], *, num_labels: int = 2) -> heads.Labels | None:
    """The head of labels that a config.json means; None where its class has none.

    Args:
        values: of the attributes in `READ`.
        num_labels: transformers' number for the family where the file says none.
    """
    names = values["architectures"] or ("",)
    task = next((task for ending, task in CLASSES.items() if names[0].endswith(ending)), None)
    if task is None:
        return None
    if task in ("span", "choice"):
        return _REQUESTS[task]()
    by_id = {int(token): name for token, name in (values["id2label"] or {}).items()}
    number = len(by_id) or values["num_labels"] or num_labels
    labels = tuple(by_id.get(token, f"LABEL_{token}") for token in range(number))
    if labels == _unnamed(number) or len(set(labels)) < number:
        labels = ()
    problem = {"problem_type": values.get("problem_type")} if task == "sequence" else {}
    return _REQUESTS[task](num_labels=number, labels=labels, **problem)


def attributes(config: Any) -> dict[str, Any]:
    """The names of labels in config.json, and what they are; nothing for models without."""
    head = config.head
    if not isinstance(head, ClassificationHead) or head.task not in ("sequence", "tokens"):
        return {}
    names = head.labels or _unnamed(head.num_labels)
    problem = {} if head.problem_type is None else {"problem_type": head.problem_type}
    return {
        **problem,
        "id2label": {str(token): name for token, name in enumerate(names)},
        "label2id": {name: token for token, name in enumerate(names)},
    }


def architecture(head: ClassificationHead, *, prefix: str, endings: Mapping[str, str] | None = None) -> str:
    """The name of transformers' class with this head.

    Args:
        head: of the model.
        prefix: of the names of the family's classes, such as Bert.
        endings: by task, where the family has another ending, or none (""), than most.

    Raises:
        InexpressibleError: the family has no such class.
    """
    usual = {task: ending for ending, task in reversed(CLASSES.items())}
    ending = {**usual, **(endings or {})}.get(head.task, "")
    if not ending:
        raise config_map.InexpressibleError(f"no class of transformers has its head for the task {head.task!r}")
    return prefix + ending


def linear(
    ours: str, theirs: str, *, needs: str | None = None, unless: str | None = None, task: Task | None = None
) -> tuple[Entry, Entry]:
    """The two tensors of a `Linear` of a head."""
    conditions = {"needs": needs, "unless": unless, "task": task}
    return (
        Entry(f"{ours}/kernel", f"{theirs}.weight", LINEAR, **conditions),
        Entry(f"{ours}/bias", f"{theirs}.bias", VECTOR, **conditions),
    )


DECODER_ENTRIES = (
    Entry("head/classifier/kernel", "score.weight", LINEAR, unless="head/classifier/bias"),
    *linear("head/classifier", "classifier", needs="head/classifier/bias"),
    *linear("head/span", "qa_outputs"),
)
"""The tensors of heads made by `decoder_with_head`, which all decoders of transformers name alike."""


def decoder_with_head(
    config: DecoderConfig,
    head: heads.Head | None,
    *,
    family: str,
    language_model: LanguageModelHead,
    tasks: tuple[Task, ...] = ("sequence", "tokens", "span"),
    initializer_std: float = 0.02,
    tokens_dropout: float = 0.1,
) -> DecoderConfig:
    """A decoder with the head asked for: of the language model (None, PRETRAINING), or of labels.

    A text is scored at its last token by a layer without bias, tokens and the ends of answers each where they are.

    Args:
        config: of the decoder.
        head: which head.
        family: its name in the message of the error.
        language_model: the head of the language model where the config has none.
        tasks: of the classes that transformers has.
        initializer_std: of the layer.
        tokens_dropout: of the states before tokens are scored.

    Raises:
        ValueError: transformers has no such head for the family.
    """
    if head in (None, heads.PRETRAINING):
        has_one = isinstance(config.head, LanguageModelHead)
        return config if has_one else dataclasses.replace(config, head=language_model)
    forms: dict[Task, dict[str, Any]] = {
        "sequence": {"pooling": "last", "use_bias": False},
        "tokens": {"dropout": tokens_dropout},
        "span": {},
    }
    forms = {task: {**form, "initializer_std": initializer_std} for task, form in forms.items() if task in tasks}
    scores = make(head, **forms)
    if scores is None:
        possible = ", ".join(_REQUESTS[task].__name__ for task in tasks)
        raise ValueError(
            f"{family} has no head {head}; possible are None and PRETRAINING, both its language model head, {possible}"
        )
    return dataclasses.replace(config, head=scores)


def decoder_architecture(
    config: DecoderConfig, *, prefix: str, language_model: str, endings: Mapping[str, str] | None = None
) -> str:
    """The name of transformers' class of a decoder: that of the language model, or of a head of labels."""
    if isinstance(config.head, ClassificationHead):
        return architecture(config.head, prefix=prefix, endings={"choice": "", **(endings or {})})
    return language_model


def _unnamed(number: int) -> tuple[str, ...]:
    return tuple(f"LABEL_{token}" for token in range(number))
