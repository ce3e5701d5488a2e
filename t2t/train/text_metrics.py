"""Metrics of generated text, in per cent, as seqio's `metric_fns`: functions (targets, predictions) -> {name: value}.

A target is a string, or a sequence of equally good ones where a benchmark gives several. The libraries that define BLEU
and ROUGE are imported when called.
"""

import collections
import importlib
import re
import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Target = str | Sequence[str]
Metrics = dict[str, float]

SAMPLES = 1000
"""Samples of a bootstrap."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")


def accuracy(targets: Sequence[str], predictions: Sequence[str]) -> Metrics:
    """How often the predicted label is the target's, apart from spaces at the ends.

    Example:
        >>> accuracy(["module", "class"], [" module", "module"])
        {'accuracy': 50.0}
    """
    return {"accuracy": _mean(targets, predictions, lambda target, prediction: target.strip() == prediction.strip())}


def exact_match(targets: Sequence[Target], predictions: Sequence[str]) -> Metrics:
    """How often the prediction is one of the targets, letter for letter apart from runs of spaces.

    Example:
        >>> exact_match([["the sea", "sea"], "land"], ["the  sea", "Land"])
        {'exact_match': 50.0}
    """

    def matches(target: Target, prediction: str) -> bool:
        return " ".join(prediction.split()) in [" ".join(option.split()) for option in options_of(target)]

    return {"exact_match": _mean(targets, predictions, matches)}


def squad(targets: Sequence[Target], predictions: Sequence[str]) -> Metrics:
    """Exact match and token F1 of answers without case, punctuation and articles; the best of several targets counts.

    Example:
        >>> squad([["The Baltic Sea", "Baltic"]], ["the Baltic sea!"])
        {'exact_match': 100.0, 'f1': 100.0}

    Reference: Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", arXiv:1606.05250,
        section 6, and its `evaluate-v1.1.py`.
    """

    def same(target: Target, prediction: str) -> float:
        return max(normalise_answer(option) == normalise_answer(prediction) for option in options_of(target))

    def best_f1(target: Target, prediction: str) -> float:
        return max(token_f1(option, prediction) for option in options_of(target))

    return {
        "exact_match": _mean(targets, predictions, same),
        "f1": _mean(targets, predictions, best_f1),
    }


def normalise_answer(text: str) -> str:
    """An answer as SQuAD compares it: lower case, without punctuation, articles and repeated spaces.

    Example:
        >>> normalise_answer("The  U.S. Senate")
        'us senate'
    """
    text = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(_ARTICLES.sub(" ", text).split())


def token_f1(target: str, prediction: str) -> float:
    """Harmonic mean of precision and recall of the words of a prediction, in [0, 1]; 0 where either has none.

    Example:
        >>> token_f1("two red apples", "red apples and pears")
        0.5714285714285714
    """
    target_words, words = normalise_answer(target).split(), normalise_answer(prediction).split()
    common = sum((collections.Counter(target_words) & collections.Counter(words)).values())
    return 2 * common / (len(target_words) + len(words)) if common else 0.0


def bleu(targets: Sequence[Target], predictions: Sequence[str]) -> Metrics:
    """Corpus BLEU by sacrebleu, as the T5 experiments report it: international tokenisation, exponential smoothing.

    Raises:
        ImportError: without `pip install 't2t[metrics]'`.
        ValueError: where targets have different numbers of references.

    Reference: Post, "A Call for Clarity in Reporting BLEU Scores", arXiv:1804.08771.
    """
    check_lengths(targets, predictions)
    references = [options_of(target) for target in targets]
    if len({len(options) for options in references}) > 1:
        raise ValueError("every target must have the same number of references for BLEU")
    library = import_library("sacrebleu")
    streams = [list(stream) for stream in zip(*references, strict=True)]
    score = library.corpus_bleu(
        list(predictions), streams, smooth_method="exp", force=True, lowercase=False, tokenize="intl"
    )
    return {"bleu": float(score.score)}


def rouge(targets: Sequence[Target], predictions: Sequence[str]) -> Metrics:
    """Mean F1 of ROUGE-1, ROUGE-2 and ROUGE-Lsum by rouge-score; the best of several targets counts.

    Raises:
        ImportError: without `pip install 't2t[metrics]'`.

    Reference: Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004, https://aclanthology.org/W04-1013.

    Differs: T5 reports the middle of 1,000 bootstrap samples (`rouge_bootstrap`); here the mean, which that estimates.
    """
    scores = _rouge_scores(targets, predictions)
    return {name: 100.0 * float(values.mean()) for name, values in scores.items()}


def rouge_bootstrap(targets: Sequence[Target], predictions: Sequence[str]) -> Metrics:
    """ROUGE as T5 reports it: the median of the means of 1,000 samples with replacement, and their 95 % interval.

    Samples are drawn from a fixed seed, so that two evaluations of the same texts are equal.

    Raises:
        ImportError: without `pip install 't2t[metrics]'`.

    Reference: Koehn, "Statistical Significance Tests for Machine Translation Evaluation", 2004,
        https://aclanthology.org/W04-3250; `BootstrapAggregator` of rouge-score, which draws from NumPy's global state.
    """
    scores = _rouge_scores(targets, predictions)
    generator, result = np.random.Generator(np.random.Philox(0)), {}
    for name, values in scores.items():
        means = np.array([values[generator.integers(len(values), size=len(values))].mean() for _ in range(SAMPLES)])
        low, middle, high = 100.0 * np.percentile(means, [2.5, 50.0, 97.5])
        result |= {name: float(middle), f"{name}_low": float(low), f"{name}_high": float(high)}
    return result


def _rouge_scores(targets: Sequence[Target], predictions: Sequence[str]) -> dict[str, np.ndarray]:
    """F1 of every example, by kind of ROUGE."""
    check_lengths(targets, predictions)
    names = ("rouge1", "rouge2", "rougeLsum")
    scorer = import_library("rouge_score.rouge_scorer").RougeScorer(names)
    scores = [
        scorer.score_multi(
            [_sentence_per_line(option) for option in options_of(target)], _sentence_per_line(prediction)
        )
        for target, prediction in zip(targets, predictions, strict=True)
    ]
    return {name: np.array([score[name].fmeasure for score in scores]) for name in names}


def _sentence_per_line(text: str) -> str:
    """ROUGE-Lsum reads a line as a sentence; summaries of news separate sentences by " . "."""
    return text.replace(" . ", " .\n")


def options_of(target: Target) -> list[str]:
    """All texts that a target may be."""
    return [target] if isinstance(target, str) else list(target)


def _mean(targets: Sequence[Any], predictions: Sequence[str], score: Callable[[Any, str], float]) -> float:
    check_lengths(targets, predictions)
    return 100.0 * sum(map(score, targets, predictions)) / len(targets)


def check_lengths(targets: Sequence[Any], predictions: Sequence[Any]) -> None:
    """Refuses what cannot be compared.

    Raises:
        ValueError: unequal numbers, or nothing.
    """
    if len(targets) != len(predictions) or not targets:
        raise ValueError(f"{len(targets)} targets and {len(predictions)} predictions: equal numbers, not 0, are needed")


bleu.library = "sacrebleu"
rouge.library = rouge_bootstrap.library = "rouge_score.rouge_scorer"


def check_installed(metrics: Sequence[Callable[..., Any]]) -> None:
    """Imports the libraries of these metrics, their attribute `library`, before anything is generated for them.

    Raises:
        ImportError: one is not installed.
    """
    for metric in metrics:
        if hasattr(metric, "library"):
            import_library(metric.library)


def import_library(name: str) -> Any:
    """The module of a library that metrics need.

    Raises:
        ImportError: it is not installed; says how it is.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = {"sklearn": "scikit-learn"}.get(top := name.partition(".")[0], top.replace("_", "-"))
        raise ImportError(f"{package} is not installed: pip install 't2t[metrics]'") from error
