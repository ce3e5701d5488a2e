"""Whole words, n-grams and spans of words as what masked language modelling chooses: pure NumPy.

`starts` is True at the first token of each word (`t2t.vocabulary.words`). A word ends before the next one and before
every token that is no candidate, and so does a run of words: nothing that is chosen reaches over a special token or
into another document, and no word is chosen in part.

Each function walks over the words of a text in random order and takes what still fits the number of tokens; more than
that is never chosen, less where every word that is left is too long. What is chosen comes as labels: k at all tokens of
the k-th word, n-gram or span that was taken from a text, 0 elsewhere.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from t2t.data import masking
from t2t.data.corruption import Mask

Labels = Int[np.ndarray, "*B T"]

_TOGETHER = 64  # words of a text that are looked at in one go


def ngram_law(longest: int = 3, *, favor_longer: bool = False) -> Float[np.ndarray, " N"]:
    """Probabilities of 1, ..., longest words: in proportion to 1/n, or those numbers in the reverse order.

    Example:
        >>> (ngram_law() * 11).round(9).tolist()
        [6.0, 3.0, 2.0]

    Reference: "ALBERT", arXiv:1909.11942, section 4.1 (it favors shorter ones).
    """
    law = 1 / np.arange(1, longest + 1)
    return (law[::-1] if favor_longer else law) / law.sum()


def span_law(longest: int = 10, *, stop: float = 0.2) -> Float[np.ndarray, " N"]:
    """Probabilities of 1, ..., longest words: geometric, longer ones left out.

    Example:
        >>> round(float(span_law() @ np.arange(1, 11)), 2)
        3.8

    Reference: "SpanBERT", arXiv:1907.10529, section 3.1.
    """
    law = stop * (1 - stop) ** np.arange(longest)
    return law / law.sum()


def choose_words(
    candidates: Mask,
    u: Float[np.ndarray, "*B T+1"],
    *,
    starts: Mask,
    rate: float = 0.15,
    count: masking.Count = "exact",
    max_predictions: int | None = None,
) -> Labels:
    """Whole words.

    Args:
        candidates: where a token may be chosen.
        u: uniforms; those at the first tokens of words order or choose them, the last one rounds.
        starts: where words begin.
        rate: fraction to choose: of the T tokens ("exact", "ceiling"), or of the words ("independent", "rounded").
        count: how many that makes.
        max_predictions: at most so many tokens are chosen.

    Reference: BERT's walk, arXiv:1810.04805 (create_pretraining_data.py, do_whole_word_mask); for "rounded" that of
    RoBERTa's code (fairseq's mask_tokens_dataset.py).
    """
    words = _Words.of(candidates, starts)
    order, last = words.order(u), u.reshape(-1, u.shape[-1])[:, -1]
    lengths = np.ones(len(order), np.int64)
    limits = np.full(len(last), candidates.shape[-1])
    if count == "independent":
        lengths = (words.at(u) < rate).astype(np.int64)
    elif count == "rounded":
        bounds = words.bounds(order)
        wanted = masking.budget(np.diff(bounds), last, rate=rate, count=count)
        lengths[order] = np.arange(len(order)) - bounds[words.row] < wanted[words.row]
    else:
        limits = masking.budget(candidates.shape[-1], last, rate=rate, count=count)
    return _take(words, order, lengths, limits=_at_most(limits, max_predictions))


def choose_ngrams(
    candidates: Mask,
    u: Float[np.ndarray, "*B 2 T+1"],
    *,
    starts: Mask,
    rate: float = 0.15,
    count: masking.Count = "exact",
    max_predictions: int | None = None,
    longest: int = 3,
    favor_longer: bool = False,
) -> Labels:
    """Whole words, some of them together: `ngram_law` says how many.

    Where an n-gram would exceed the number of tokens, shorter ones from the same word are tried; one that meets words
    which are chosen already is skipped. Near the end of a run of words the law is that of the n-grams which fit.

    Args:
        candidates: where a token may be chosen.
        u: uniforms that order the words by their first tokens (the last one rounds), and those that decide on n.
        starts: where words begin.
        rate: fraction of the T tokens to choose.
        count: how many that makes; not "independent".
        max_predictions: at most so many tokens are chosen.
        longest: words of an n-gram, at most.
        favor_longer: longer n-grams are the likelier ones.

    Reference: "ALBERT", arXiv:1909.11942, section 4.1 (create_pretraining_data.py).

    Differs: ALBERT's n-grams may reach over [SEP]; its test that skips words which are chosen has no effect, so that it
    draws again for them, to no avail.
    """
    words = _Words.of(candidates, starts)
    limits = masking.budget(candidates.shape[-1], u.reshape(-1, *u.shape[-2:])[:, 0, -1], rate=rate, count=count)
    cumulative = np.cumsum(ngram_law(longest, favor_longer=favor_longer))
    most = np.minimum(words.left, longest)
    lengths = 1 + np.searchsorted(cumulative, words.at(u[..., 1, :]) * cumulative[most - 1], side="right")
    order = words.order(u[..., 0, :])
    return _take(words, order, np.minimum(lengths, most), limits=_at_most(limits, max_predictions))


def choose_spans(
    candidates: Mask,
    u: Float[np.ndarray, "*B 2 T+1"],
    *,
    starts: Mask,
    rate: float = 0.15,
    count: masking.Count = "ceiling",
    max_predictions: int | None = None,
    longest: int = 10,
    stop: float = 0.2,
) -> Labels:
    """Spans of whole words: each begins at a random word, `span_law` says how many words it has.

    A span ends early at the end of a run of words, at a word that is chosen already, and where the next word would
    exceed the number of tokens.

    Args:
        candidates: where a token may be chosen.
        u: uniforms that order the words by their first tokens (the last one rounds), and those that decide on lengths.
        starts: where words begin.
        rate: fraction of the T tokens to choose.
        count: how many that makes; not "independent".
        max_predictions: at most so many tokens are chosen.
        longest: words of a span, at most.
        stop: parameter of the geometric law: the probability that a span ends after each of its words.

    Reference: "SpanBERT: Improving Pre-training by Representing and Predicting Spans", arXiv:1907.10529, section 3.1.

    Differs: SpanBERT's code begins at the word of a random token, so mostly at long words, goes on over words that are
    chosen already, and cuts its last word where the number of tokens is reached.
    """
    words = _Words.of(candidates, starts)
    limits = masking.budget(candidates.shape[-1], u.reshape(-1, *u.shape[-2:])[:, 0, -1], rate=rate, count=count)
    cumulative = np.cumsum(span_law(longest, stop=stop))
    lengths = 1 + np.searchsorted(cumulative[:-1], words.at(u[..., 1, :]), side="right")
    order = words.order(u[..., 0, :])
    limits = _at_most(limits, max_predictions)
    return _take(words, order, np.minimum(lengths, words.left), limits=limits, shorten=True)


def first_of_each(values: Float[np.ndarray, "*B T"], labels: Labels) -> Float[np.ndarray, "*B T"]:
    """The values with that of its first token at all tokens of each unit, so that one decision holds for all of it.

    Example:
        >>> first_of_each(np.array([0.1, 0.2, 0.3, 0.4, 0.5]), np.array([0, 2, 2, 1, 1])).tolist()
        [0.1, 0.2, 0.2, 0.4, 0.4]
    """
    begins = np.ones(labels.shape, bool)
    begins[..., 1:] = (labels[..., 1:] != labels[..., :-1]) | (labels[..., 1:] == 0)
    places = np.maximum.accumulate(np.where(begins, np.arange(labels.shape[-1]), 0), axis=-1)
    return np.take_along_axis(values, places, axis=-1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Words:
    """The words of all texts of a batch, one after the other; places are those of the flat batch."""

    begins: Bool[np.ndarray, "*B T"]
    """True at the first tokens of words."""
    row: Int[np.ndarray, " W"]
    """Which text."""
    first: Int[np.ndarray, " W"]
    """Place of the first token."""
    end: Int[np.ndarray, " W"]
    """Place behind the last token."""
    left: Int[np.ndarray, " W"]
    """Words from this one on to the end of its run."""

    @classmethod
    def of(cls, candidates: Mask, starts: Mask) -> "_Words":
        begins = candidates & starts
        begins[..., :1] = candidates[..., :1]
        begins[..., 1:] |= candidates[..., 1:] & ~candidates[..., :-1]
        first = np.flatnonzero(begins)
        row = first // max(candidates.shape[-1], 1)
        # Between two first tokens all candidates belong to the first word.
        end = first + np.add.reduceat(candidates.reshape(-1).astype(np.int64), first)
        is_last = np.append((end[:-1] != first[1:]) | (row[:-1] != row[1:]), True)  # of its run
        number = np.arange(len(first))
        left = np.flatnonzero(is_last)[np.cumsum(is_last) - is_last][: len(first)] - number + 1
        return cls(begins=begins, row=row, first=first, end=end, left=left)

    @property
    def num_rows(self) -> int:
        return math.prod(self.begins.shape[:-1])

    def at(self, values: Float[np.ndarray, "..."]) -> Float[np.ndarray, " W"]:
        """The values at their first tokens, of rows with one value more than tokens."""
        return values[..., :-1].reshape(-1)[self.first]

    def order(self, values: Float[np.ndarray, "..."]) -> Int[np.ndarray, " W"]:
        """Their numbers, row by row from the smallest value at a first token to the largest."""
        begins = self.begins.reshape(self.num_rows, -1) if self.begins.size else np.zeros((self.num_rows, 0), bool)
        keys = np.where(begins, values[..., :-1].reshape(begins.shape), np.inf)
        number = (np.cumsum(begins) - 1).reshape(begins.shape)
        ordered = np.take_along_axis(number, np.argsort(keys, axis=-1), axis=-1)
        return ordered[np.arange(begins.shape[-1]) < np.count_nonzero(begins, axis=-1, keepdims=True)]

    def bounds(self, numbers: Int[np.ndarray, " K"]) -> Int[np.ndarray, " R"]:
        """Where each row begins among these numbers of words, which are in the order of the rows, and where it ends."""
        return np.searchsorted(self.row[numbers], np.arange(self.num_rows + 1))


def _take(
    words: _Words,
    order: Int[np.ndarray, " K"],
    lengths: Int[np.ndarray, " W"],
    *,
    limits: Int[np.ndarray, " R"],
    shorten: bool = False,
) -> Labels:
    """Labels of what is taken, word by word in this order, so many words each, within a number of tokens a row.

    What meets a word that is taken is skipped, or, with `shorten`, ends before it.
    """
    free = [True] * len(words.first)
    taken: list[int] = []  # first places and ends
    counts: list[int] = []  # how many of them in each row
    order = order[lengths[order] > 0]
    columns = (order, words.first[order], words.end[order + lengths[order] - 1], lengths[order])
    bounds = words.bounds(order).tolist()
    for (begin, stop), left in zip(itertools.pairwise(bounds), limits.tolist(), strict=True):
        before = len(taken)
        for word, start, end, number in _by_chunks(columns, begin, stop):
            if left <= 0:
                break
            if not free[word]:
                continue
            while number and end - start > left:
                number -= 1
                end = int(words.end[word + number - 1])
            if number > 1 and not all(free[word : word + number]):
                number = free.index(False, word) - word if shorten else 0
                end = int(words.end[word + number - 1])
            if number:
                free[word : word + number] = [False] * number
                taken += (start, end)
                left -= end - start
        counts.append((len(taken) - before) // 2)
    return _label(words.begins.shape, np.array(taken, np.int64).reshape(-1, 2), np.array(counts, np.int64))


def _by_chunks(columns: Sequence[Int[np.ndarray, " K"]], begin: int, stop: int) -> Iterator[tuple[int, ...]]:
    """The rows of a table from one to another, made as they are asked for: mostly a few do."""
    for start in range(begin, stop, _TOGETHER):
        chunk = slice(start, min(start + _TOGETHER, stop))
        yield from zip(*(column[chunk].tolist() for column in columns), strict=True)


def _label(shape: tuple[int, ...], taken: Int[np.ndarray, "K 2"], counts: Int[np.ndarray, " R"]) -> Labels:
    """1, 2, ... in each row at all places from the first to the end of what is taken."""
    labels = np.zeros(math.prod(shape), np.int32)
    sizes = taken[:, 1] - taken[:, 0]
    places = np.arange(sizes.sum()) + np.repeat(taken[:, 0] - (np.cumsum(sizes) - sizes), sizes)
    number = 1 + np.arange(len(taken)) - np.repeat(np.cumsum(counts) - counts, counts)
    labels[places] = np.repeat(number, sizes)
    return labels.reshape(shape)


def _at_most(limits: Int[np.ndarray, " R"], max_predictions: int | None) -> Int[np.ndarray, " R"]:
    return limits if max_predictions is None else np.minimum(limits, max_predictions)
