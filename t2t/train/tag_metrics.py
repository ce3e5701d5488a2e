"""Metrics of tokens with a label each: entities by seqeval, tags by accuracy.

Functions (targets, predictions) -> {name: value} of lists of labels. Where fewer or more are predicted than there are
tokens, or what is no label, `t2t.data.tagging.aligned` says what counts; how often that is, is reported.
"""

from collections.abc import Callable, Sequence

from t2t.data import tagging
from t2t.train.text_metrics import Metrics, check_lengths, import_library

Tags = Sequence[Sequence[str]]


def entities(labels: Sequence[str]) -> Callable[[Tags, Tags], Metrics]:
    """Precision, recall and F1 of entities as CoNLL's script counts them, and accuracy of labels, as a metric.

    Example:
        >>> entities(("O", "B-PER", "I-PER"))([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]])["f1"]
        0.0

    Reference: Tjong Kim Sang and De Meulder, "Introduction to the CoNLL-2003 Shared Task", arXiv:cs/0306050.
    """

    def entity_f1(targets: Tags, predictions: Tags) -> Metrics:
        check_lengths(targets, predictions)
        ours, counts = tagging.aligned(targets, predictions, labels=labels, missing="O")
        library = import_library("seqeval.metrics")
        right = [list(tags) for tags in targets]
        scores = {
            name: 100.0 * float(getattr(library, f"{name}_score")(right, ours, zero_division=0))
            for name in ("precision", "recall", "f1")
        }
        return {**scores, **_accuracy(right, ours), **{name: float(count) for name, count in counts.items()}}

    entity_f1.library = "seqeval.metrics"
    return entity_f1


def tags(labels: Sequence[str]) -> Callable[[Tags, Tags], Metrics]:
    """How many tokens have the right one of these labels, as a metric; a missing one is wrong.

    Example:
        >>> tags(("NOUN", "VERB"))([["NOUN", "VERB"]], [["NOUN"]])["accuracy"]
        50.0
    """

    def tag_accuracy(targets: Tags, predictions: Tags) -> Metrics:
        check_lengths(targets, predictions)
        ours, counts = tagging.aligned(targets, predictions, labels=labels, missing="")
        return {**_accuracy(targets, ours), **{name: float(count) for name, count in counts.items()}}

    return tag_accuracy


def _accuracy(targets: Tags, predictions: Tags) -> Metrics:
    pairs = [pair for two in zip(targets, predictions, strict=True) for pair in zip(*two, strict=True)]
    return {"accuracy": 100.0 * sum(right == ours for right, ours in pairs) / len(pairs)} if pairs else {}
