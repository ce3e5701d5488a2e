"""Metrics of answers and translations besides those of `t2t.train.text_metrics`: SQuAD 2.0, TriviaQA, chrF."""

import collections
import re
import string
from collections.abc import Sequence

from t2t.train.text_metrics import (
    Metrics,
    Target,
    bleu,
    check_lengths,
    import_library,
    normalise_answer,
    options_of,
    token_f1,
)

UNANSWERABLE = "unanswerable"
"""What a prediction says of a question without an answer."""

_TRIVIA_SIGNS = str.maketrans({sign: " " for sign in string.punctuation + "‘’´`_"})


def squad_v2(targets: Sequence[Sequence[str]], predictions: Sequence[str]) -> Metrics:
    """Exact match and F1 of SQuAD 2.0, of all questions, of those with an answer and of those without.

    A question without an answer has no target; it is answered rightly by `UNANSWERABLE`, or nothing.

    Example:
        >>> squad_v2([["in Rome"], []], ["Rome", "unanswerable"])["f1"]
        83.33333333333333

    Reference: Rajpurkar et al., "Know What You Don't Know", arXiv:1806.03822, and its `evaluate-v2.0.py`.
    """
    check_lengths(targets, predictions)
    scores = collections.defaultdict(list)
    for target, prediction in zip(targets, predictions, strict=True):
        answer = "" if normalise_answer(prediction) == UNANSWERABLE else prediction
        right = [one for one in options_of(target) if normalise_answer(one)] or [""]
        same = max(normalise_answer(one) == normalise_answer(answer) for one in right)
        kind = "has_answer" if right != [""] else "no_answer"
        for name in ("", f"{kind}_"):
            scores[f"{name}exact_match"].append(same)
            scores[f"{name}f1"].append(max(_f1(one, answer) for one in right))
    return {name: 100.0 * sum(values) / len(values) for name, values in scores.items()}


def _f1(target: str, prediction: str) -> float:
    """F1 of words; where one has none, whether both have none."""
    right, ours = normalise_answer(target), normalise_answer(prediction)
    return token_f1(target, prediction) if right and ours else float(right == ours)


def trivia_qa(targets: Sequence[Sequence[str]], predictions: Sequence[str]) -> Metrics:
    """Exact match and F1 of TriviaQA, whose signs become spaces; the best of all answers counts.

    Example:
        >>> trivia_qa([["big moose", "hippo"], ["correct1"]], ["‘a big  Moose!‘", "wrong"])
        {'exact_match': 50.0, 'f1': 50.0}

    Reference: Joshi et al., "TriviaQA", arXiv:1705.03551, and its evaluation script.
    """
    check_lengths(targets, predictions)
    exact, f1 = [], []
    for target, prediction in zip(targets, predictions, strict=True):
        ours = _bare(prediction)
        right = [_bare(one) for one in options_of(target)] or [""]
        exact.append(ours in right)
        f1.append(max(_words_f1(one.split(), ours.split()) for one in right))
    return {"exact_match": 100.0 * sum(exact) / len(exact), "f1": 100.0 * sum(f1) / len(f1)}


def _bare(text: str) -> str:
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text.lower().translate(_TRIVIA_SIGNS)).split())


def _words_f1(target: Sequence[str], prediction: Sequence[str]) -> float:
    common = sum((collections.Counter(target) & collections.Counter(prediction)).values())
    return 2 * common / (len(target) + len(prediction)) if common else 0.0


def chrf(targets: Sequence[Target], predictions: Sequence[str]) -> Metrics:
    """Corpus chrF by sacrebleu: F2 of character n-grams up to 6.

    Raises:
        ImportError: without `pip install 't2t[metrics]'`.
        ValueError: where targets have different numbers of references.

    Reference: Popović, "chrF: character n-gram F-score for automatic MT evaluation", 2015,
        https://aclanthology.org/W15-3049.
    """
    check_lengths(targets, predictions)
    references = [options_of(target) for target in targets]
    if len({len(options) for options in references}) > 1:
        raise ValueError("every target must have the same number of references for chrF")
    streams = [list(stream) for stream in zip(*references, strict=True)]
    return {"chrf": float(import_library("sacrebleu").corpus_chrf(list(predictions), streams).score)}


def translation(targets: Sequence[Target], predictions: Sequence[str]) -> Metrics:
    """BLEU and chrF of translations."""
    return {**bleu(targets, predictions), **chrf(targets, predictions)}


chrf.library = translation.library = "sacrebleu"
