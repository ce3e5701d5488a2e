"""Metrics of labels and numbers, in per cent: GLUE's and SuperGLUE's, by scikit-learn and scipy.

Functions (targets, predictions) -> {name: value} of what `t2t.data.labelled_texts` makes of texts: ids of labels, of
which -1 is no label. A prediction that is no label is wrong, as T5 counts it, and `invalid_labels` says how many there
are. Targets that are -1, as in test sets, are left out; where all are, a metric gives nothing.
"""

import collections
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from t2t.train.text_metrics import Metrics, check_lengths, import_library, squad

NO_LABEL = -1

Known = tuple[np.ndarray, np.ndarray]


def _known(targets: Sequence[float], predictions: Sequence[float]) -> Known:
    """Those whose target is known."""
    check_lengths(targets, predictions)
    right, ours = np.asarray(targets), np.asarray(predictions)
    return right[right != NO_LABEL], ours[right != NO_LABEL]


def label_accuracy(targets: Sequence[int], predictions: Sequence[int]) -> Metrics:
    """How often the label is the right one.

    Example:
        >>> label_accuracy([0, 1, 1, 0, -1], [0, 1, -1, 0, 1])
        {'accuracy': 75.0}
    """
    right, ours = _known(targets, predictions)
    return {"accuracy": 100.0 * float(np.mean(right == ours))} if len(right) else {}


def invalid_labels(targets: Sequence[float], predictions: Sequence[float]) -> Metrics:
    """How many predictions are no label at all."""
    check_lengths(targets, predictions)
    return {"invalid_predictions": float(np.sum(np.asarray(predictions) == NO_LABEL))}


def binary_f1(targets: Sequence[int], predictions: Sequence[int]) -> Metrics:
    """F1 of label 1 among two; what is no label counts as the wrong one of both.

    Example:
        >>> binary_f1([0, 1, 1, 0], [0, 1, -1, -1])
        {'f1': 50.0}
    """
    right, ours = _known(targets, predictions)
    if not len(right):
        return {}
    ours = np.where((ours == 0) | (ours == 1), ours, 1 - right)
    return {"f1": 100.0 * float(import_library("sklearn.metrics").f1_score(right, ours, zero_division=0.0))}


def macro_f1(num_labels: int) -> Callable[..., Metrics]:
    """The mean of the F1 of each of so many labels, as a metric; SuperGLUE's for CB.

    Example:
        >>> macro_f1(3)([0, 1, 1, 2], [0, 0, 2, 2])
        {'f1': 44.44444444444444}
    """

    def mean_f1(targets: Sequence[int], predictions: Sequence[int]) -> Metrics:
        right, ours = _known(targets, predictions)
        if not len(right):
            return {}
        score = import_library("sklearn.metrics").f1_score(
            right, ours, labels=range(num_labels), average="macro", zero_division=0.0
        )
        return {"f1": 100.0 * float(score)}

    mean_f1.library = "sklearn.metrics"
    return mean_f1


def matthews(targets: Sequence[int], predictions: Sequence[int]) -> Metrics:
    """Matthews' correlation of two labels; 0 where one of both is never, or always, predicted.

    Example:
        >>> matthews([1, 1, 0, 0], [1, 0, 0, 0])["matthews"] == 100 * 2 / 12**0.5
        True
    """
    right, ours = _known(targets, predictions)
    if not len(right):
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a confusion matrix with one cell, whose correlation is 0
        return {"matthews": 100.0 * float(import_library("sklearn.metrics").matthews_corrcoef(right, ours))}


def correlations(targets: Sequence[float], predictions: Sequence[float]) -> Metrics:
    """Pearson's and Spearman's correlation of numbers, which are 0 where all predictions are equal.

    Differs: scipy, and T5 with it, says NaN there.
    """
    right, ours = _known(targets, predictions)
    if not len(right):
        return {}
    if len(right) < 2 or np.ptp(right) == 0 or np.ptp(ours) == 0:
        return {"pearson": 0.0, "spearman": 0.0}
    stats = import_library("scipy.stats")
    return {
        "pearson": 100.0 * float(stats.pearsonr(right, ours)[0]),
        "spearman": 100.0 * float(stats.spearmanr(right, ours)[0]),
    }


Grouped = Mapping[str, Any]
"""A value and, for targets, the group it belongs to: {"value": ..., "group": ...}."""


def multirc(targets: Sequence[Grouped], predictions: Sequence[Grouped]) -> Metrics:
    """MultiRC: F1 over all answers, and the share of questions all of whose answers are judged rightly.

    Reference: Wang et al., "SuperGLUE", arXiv:1905.00537, section 3 (F1a and EM).
    """
    check_lengths(targets, predictions)
    right, ours = [one["value"] for one in targets], [one["value"] for one in predictions]
    whole: dict[Any, bool] = {}
    for target, prediction in zip(targets, predictions, strict=True):
        if target["value"] != NO_LABEL:
            same = target["value"] == prediction["value"]
            whole[target["group"]] = whole.get(target["group"], True) and same
    exact = {"exact_match": 100.0 * sum(whole.values()) / len(whole)} if whole else {}
    return {**binary_f1(right, ours), **exact, **invalid_labels(right, ours)}


def record(targets: Sequence[Grouped], predictions: Sequence[Grouped]) -> Metrics:
    """ReCoRD: exact match and F1 of SQuAD, the best right answer counting, each query once."""
    check_lengths(targets, predictions)
    unique: dict[Any, tuple[Any, Any]] = {}
    for target, prediction in zip(targets, predictions, strict=True):
        if target["value"]:
            unique.setdefault(target["group"], (target["value"], prediction["value"]))
    return squad(*zip(*unique.values(), strict=True)) if unique else {}


def gender_parity(targets: Sequence[Grouped], predictions: Sequence[Grouped]) -> Metrics:
    """Winogender: accuracy, and the share of pairs, which differ in a pronoun's gender, with equal predictions.

    Pairs are rows 2k and 2k + 1 of the data; they need no right answers.

    Reference: Rudinger et al., "Gender Bias in Coreference Resolution", arXiv:1804.09301; SuperGLUE, section 3.
    """
    check_lengths(targets, predictions)
    pairs = collections.defaultdict(list)
    for target, prediction in zip(targets, predictions, strict=True):
        pairs[target["group"]].append(prediction["value"])
    whole = [pair for pair in pairs.values() if len(pair) == 2]
    parity = {"gender_parity": 100.0 * sum(a == b for a, b in whole) / len(whole)} if whole else {}
    right, ours = [one["value"] for one in targets], [one["value"] for one in predictions]
    return {**label_accuracy(right, ours), **parity, **invalid_labels(right, ours)}


binary_f1.library = matthews.library = multirc.library = "sklearn.metrics"
correlations.library = "scipy.stats"
