"""Heads of labels as all families have them: requests, classes of transformers, and the names of labels."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from t2t import heads
from t2t.hf import config_map
from t2t.hf.table import LINEAR, VECTOR, Entry, linear_entries
from t2t.models.decoder import DecoderConfig
from t2t.nn.classification import ClassificationHead, Task
from t2t.nn.heads import LanguageModelHead, MaskedLanguageModelHead

READ: Mapping[str, Any] = {
    "architectures": None, "id2label": None, "num_labels": None, "_num_labels": None, "problem_type": None,
}  # fmt: skip
"""Attributes of config.json that say which head a model has, for `Attributes.read`."""

CLASSES: Mapping[str, Task] = {
    "ForSequenceClassification": "sequence",
    "ForTokenClassification": "tokens",
    "ForQuestionAnswering": "span",
    "ForQuestionAnsweringSimple": "span",
    "ForMultipleChoice": "choice",
    "DoubleHeadsModel": "choice",
    "ForNextSentencePrediction": "next",
}
"""Endings of the names of transformers' classes."""

_REQUESTS: Mapping[Task, type] = {
    "sequence": heads.SequenceClassification,
    "tokens": heads.TokenClassification,
    "span": heads.QuestionAnswering,
    "choice": heads.MultipleChoice,
    "next": heads.NextSentence,
}


def make(request: heads.Head, *, family: str, **forms: Mapping[str, Any]) -> ClassificationHead:
    """The head asked for, in the form the family gives it.

    Args:
        request: which head.
        family: its name in the message of the error.
        forms: fields of `ClassificationHead` by task; a task that is not there the family does not have.

    Raises:
        ValueError: it has no such head.

    Example:
        >>> request = heads.SequenceClassification(num_labels=3)
        >>> make(request, family="BERT", sequence={"pooling": "pooler"}).num_labels
        3
    """
    task = next((task for task, kind in _REQUESTS.items() if isinstance(request, kind)), None)
    if task is None or task not in forms:
        possible = ", ".join(_REQUESTS[task].__name__ for task in forms)
        raise ValueError(f"{family} has no head {request}; besides those of its pretraining it has {possible}")
    named = {}
    if isinstance(request, heads.SequenceClassification | heads.TokenClassification):
        named = {"num_labels": request.num_labels, "labels": request.labels}
    if isinstance(request, heads.SequenceClassification):
        named["problem_type"] = request.problem_type
    return ClassificationHead(task=task, **{"num_labels": {"span": 2, "next": 2}.get(task, 1), **named, **forms[task]})


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
    if task not in ("sequence", "tokens"):
        return _REQUESTS[task]()
    number = count(values, usual=num_labels)
    by_id = {int(token): name for token, name in (values["id2label"] or {}).items()}
    labels = tuple(by_id.get(token, f"LABEL_{token}") for token in range(number))
    if labels == _unnamed(number) or len(set(labels)) < number:
        labels = ()
    problem = {"problem_type": values.get("problem_type")} if task == "sequence" else {}
    return _REQUESTS[task](num_labels=number, labels=labels, **problem)


def order(files: Any, asked: Any) -> tuple[int, ...] | None:
    """Where each label of the head asked for stands among those of the files; None where they stand alike.

    Labels are told by their names: data sets number them otherwise than models (MNLI's).

    Args:
        files: the model that the files hold.
        asked: the model with the head asked for.

    Raises:
        ValueError: equally many labels with other names, whose scores the files do not hold.
    """
    theirs, ours = files.head, asked.head
    if not _score_the_same(theirs, ours) or not (theirs.labels and ours.labels) or theirs.labels == ours.labels:
        return None
    if set(theirs.labels) != set(ours.labels):
        raise ValueError(
            f"the files score the labels {', '.join(theirs.labels)}, not {', '.join(ours.labels)}. Ask for those, in "
            "any order, or leave the head out (head=heads.BARE, t2t import --head none) and begin with a fresh one"
        )
    return tuple(theirs.labels.index(name) for name in ours.labels)


def completed(files: Any, asked: Any) -> Any:
    """The model asked for, with what the files say of its labels where the request says nothing."""
    theirs, ours = files.head, asked.head
    if not _score_the_same(theirs, ours) or ours.labels:
        return asked
    problem = ours.problem_type or theirs.problem_type
    return dataclasses.replace(asked, head=dataclasses.replace(ours, labels=theirs.labels, problem_type=problem))


def _score_the_same(theirs: Any, ours: Any) -> bool:
    """Whether two heads score equally many labels of the same things."""
    are_both = isinstance(theirs, ClassificationHead) and isinstance(ours, ClassificationHead)
    return are_both and (theirs.task, theirs.num_labels) == (ours.task, ours.num_labels)


def count(values: Mapping[str, Any], *, usual: int = 2) -> int:
    """The number of labels that a config.json means (of transformers 2: _num_labels); `usual` where it says none."""
    return len(values["id2label"] or {}) or values["num_labels"] or values["_num_labels"] or usual


def attributes(config: Any) -> dict[str, Any]:
    """The names of labels in config.json, and what they are; nothing for models without."""
    head = config.head
    if not isinstance(head, ClassificationHead) or head.task not in ("sequence", "tokens"):
        return {}
    names = head.labels or _unnamed(head.num_labels)
    problem = {} if head.problem_type is None else {"problem_type": head.problem_type}
    return {**problem, **_named(names)}


def _named(names: Sequence[str]) -> dict[str, Any]:
    return {
        "id2label": {str(token): name for token, name in enumerate(names)},
        "label2id": {name: token for token, name in enumerate(names)},
    }


def unnamed_attributes(number: int) -> dict[str, Any]:
    """What says in config.json how many labels there are, which have no names."""
    return _named(_unnamed(number))


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
    ending = {**usual, "next": "", **(endings or {})}.get(head.task, "")
    if not ending:
        raise config_map.InexpressibleError(f"no class of transformers has its head for the task {head.task!r}")
    return prefix + ending


@dataclasses.dataclass(frozen=True)
class HeadFields:
    """Rates of dropout in config.json that are those of heads of labels alone.

    Attributes:
        fields: by task: attribute -> field of `ClassificationHead`.

    Example:
        >>> HeadFields({"tokens": {"classifier_dropout": "dropout"}}).names
        frozenset({'classifier_dropout'})
    """

    fields: Mapping[Task, Mapping[str, str]]

    @property
    def names(self) -> frozenset[str]:
        """All of the attributes."""
        return frozenset(name for named in self.fields.values() for name in named)

    def read(self, config: Any, values: Mapping[str, Any]) -> Any:
        """The model whose head is as the attributes say; null, or nothing, leaves a field as the family has it."""
        given = {field: values.get(name) for name, field in self._of(config).items()}
        given = {field: float(value) for field, value in given.items() if value is not None}
        if isinstance(config.head, MaskedLanguageModelHead) and "tie_word_embeddings" in values:
            given["tied"] = values["tie_word_embeddings"]
        return dataclasses.replace(config, head=dataclasses.replace(config.head, **given)) if given else config

    def written(self, config: Any) -> dict[str, Any]:
        """The attributes that say how the head of a model is."""
        return {name: float(getattr(config.head, field)) for name, field in self._of(config).items()}

    def unused(self, config: Any) -> frozenset[str]:
        """The attributes that say nothing of a model with this head."""
        return self.names.difference(self._of(config))

    def _of(self, config: Any) -> Mapping[str, str]:
        return self.fields.get(config.head.task, {}) if isinstance(config.head, ClassificationHead) else {}


BEAM_PARTS = ("start_logits.dense", "end_logits.dense_0", "end_logits.LayerNorm", "end_logits.dense_1",
              "answer_class.dense_0", "answer_class.dense_1")  # fmt: skip
"""The layers of the heads that look for the end of an answer given its start, as XLM and XLNet name them."""


def unread(*layers: str) -> tuple[Entry, ...]:
    """The tensors of layers of heads that no model here has: left out where a model is opened with another head."""
    return tuple(
        Entry(f"head/unread/{layer}/{part}", f"{layer}.{part}", VECTOR)
        for layer in layers
        for part in ("weight", "bias")
    )


CAUSAL = (
    "it reads causally, and t2t's model of this family in both directions. If config.json has is_decoder false, it is "
    "one of masked words: open it with head=heads.MaskedLM() (t2t import --head masked)"
)
"""Why the classes that use an encoder as a decoder are not read."""

NO_OUTPUT = (
    "it has no output of a language model, which t2t's model of this family has, and not from its embedding. Open it "
    "with head=heads.PRETRAINING (t2t import --head pretraining), whose output begins fresh, or with a head of labels"
)
"""Why the classes without a head are not read where the output is no embedding."""

BEAM = (
    "its head looks for the end of an answer given the start, by beams, which t2t does not. Open the model with another"
    " head, such as head=heads.QuestionAnswering(), whose parameters begin fresh, or without one: head=heads.BARE (t2t "
    "import --head none)"
)
"""Why the classes with such a head are not read."""

_CHOICE_DROPOUT = 0.1
"""Before choices are scored: `summary_first_dropout` of transformers."""

DECODER_FIELDS = HeadFields({"tokens": {"classifier_dropout": "dropout"}})
"""The attributes of such heads, of decoders whose class for tokens has a dropout."""

DECODER_ENTRIES = (
    Entry("head/classifier/kernel", "score.weight", LINEAR, task="sequence"),
    *linear_entries("head/classifier", "classifier", task="tokens"),
    *linear_entries("head/classifier", "multiple_choice_head.summary", task="choice"),
    *linear_entries("head/span", "qa_outputs"),
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

    A text is scored at its last token by a layer without bias, choices there by one with a bias, tokens and the ends of
    answers each where they are.

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
        "choice": {"pooling": "last", "dropout": _CHOICE_DROPOUT},
    }
    forms = {task: {**form, "initializer_std": initializer_std} for task, form in forms.items() if task in tasks}
    if not isinstance(head, heads.Labels):
        raise ValueError(
            f"{family} has no head {head}; possible are None and PRETRAINING, both its language model head, and heads "
            "of labels"
        )
    return dataclasses.replace(config, head=make(head, family=family, **forms))


def decoder_architecture(
    config: DecoderConfig, *, prefix: str, language_model: str, endings: Mapping[str, str] | None = None
) -> str:
    """The name of transformers' class of a decoder: that of the language model, or of a head of labels."""
    if isinstance(config.head, ClassificationHead):
        return architecture(config.head, prefix=prefix, endings={"choice": "", **(endings or {})})
    return language_model


def _unnamed(number: int) -> tuple[str, ...]:
    return tuple(f"LABEL_{token}" for token in range(number))
