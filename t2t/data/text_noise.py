"""The mathematics of noising a text as BART does: pure NumPy, one text of tokens [T] at a time.

Texts stand here without bos and eos, which no noise touches. Randomness enters as uniforms in [0, 1). BART composes in
this order: `permute_sentences`, `infill`, `insert`, `rotate`. Of a text A B C . D E . with _ for the mask:

    token masking         A _ C . _ E .      infill, one token a span, replace_length 1
    token deletion        A C . E .          infill, one token a span, replace_length 0
    text infilling        A _ . D _ E .      infill, the span B C; a span of no words between D and E, which is inserted
    sentence permutation  D E . A B C .
    document rotation     C . D E . A B

Reference: "BART: Denoising Sequence-to-Sequence Pre-training for Natural Language Generation, Translation, and
Comprehension", arXiv:1910.13461, section 2.2; fairseq's denoising_dataset.py.
"""

import functools
import math
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

Tokens = Int[np.ndarray, " T"]
Mask = Bool[np.ndarray, " T"]

POISSON_MEANS = (0.01, 500)
"""Means that a table holds: below, a text would need millions of spans without words; above, e**-mean is next to 0."""

_TAIL = 1e-12  # of a Poisson law, where its table ends


def budget(rate: float, number: int) -> int:
    """How many of a number of things a fraction is, rounded up; products that are whole up to rounding are whole.

    >>> budget(0.3, 10), budget(0.3, 11), 0.7 * 10, budget(0.7, 10)
    (3, 4, 7.0, 7)
    """
    return math.ceil(round(rate * number, 9))


@functools.lru_cache(maxsize=32)
def _poisson_table(mean: float) -> np.ndarray:
    """P(length <= k) for k = 0, 1, ... until what is left is under 1e-12; the last is 1."""
    chances = [math.exp(-mean)]
    while 1 - math.fsum(chances) > _TAIL and len(chances) < 10 * (mean + 10):
        chances.append(chances[-1] * mean / len(chances))
    table = np.cumsum(chances)
    table[-1] = 1.0
    return table


def num_poisson_draws(most: int, *, mean: float) -> int:
    """Uniforms that `poisson_lengths` takes for a budget of at most so many words: too few once in 10**15 texts."""
    return math.ceil((2 * most + 40) / mean) if most else 0


def poisson_lengths(u: Float[np.ndarray, " N"], *, mean: float, words: int) -> Int[np.ndarray, " K"]:
    """Lengths of spans, Poisson distributed, that make up exactly a number of words; the last is trimmed to it.

    Lengths of 0 are among them: such a span covers nothing and gets a mask all the same. With mean 3 one in twenty
    (e**-3 = 0.0498), with mean 3.5 one in 33.

    Example:
        >>> poisson_lengths(np.array([0.5, 0.01, 0.9, 0.5]), mean=3.0, words=7)  # 3, 0, 5 trimmed to 4
        array([3, 0, 4])

    Reference: arXiv:1910.13461, section 2.2 (mean 3); the released models were trained with 3.5.

    Differs: should the uniforms run out before the budget, the last span takes the rest; fairseq draws on.
    """
    if not words:
        return np.zeros(0, np.int64)
    lengths = np.searchsorted(_poisson_table(mean), u, side="right")
    totals = np.cumsum(lengths)
    last = min(int(np.searchsorted(totals, words)), len(u) - 1)
    lengths = lengths[: last + 1]
    lengths[last] += words - totals[last]
    return lengths


def permute_sentences(
    tokens: Tokens, u: Float[np.ndarray, "2 T"], *, ends: Mask, fixed: Mask, rate: float = 1.0
) -> Tokens:
    """Of n sentences ceil(rate n), chosen at random, change places with each other at random.

    Args:
        tokens: the text.
        u: uniforms for the choice of each sentence, and for its new place.
        ends: True at the last token of each sentence; the text's last sentence needs none.
        fixed: True at tokens that stay where they are (ends of documents); sentences change places between two such
            tokens only, and none reaches across one.
        rate: fraction of the sentences.

    Example:
        >>> text = np.array([1, 2, 9, 3, 9, 4])  # 1 2 9 | 3 9 | 4
        >>> u = np.array([[0.0] * 6, [0.7, 0.1, 0.4, 0, 0, 0]])
        >>> permute_sentences(text, u, ends=text == 9, fixed=np.zeros(6, bool))
        array([3, 9, 4, 1, 2, 9])

    Differs: fairseq knows no documents, and its sentence ends at the first of two full stops in a row.
    """
    if len(tokens) < 2:
        return tokens
    is_start = np.ones(len(tokens), bool)
    is_start[1:] = ends[:-1] | fixed[:-1] | fixed[1:]
    starts = np.flatnonzero(is_start)
    lengths = np.diff(starts, append=len(tokens))
    document = np.cumsum(fixed[starts])
    sentences = np.flatnonzero(~fixed[starts])
    number = budget(rate, len(sentences))
    chosen = np.sort(sentences[np.argsort(u[0, : len(sentences)], kind="stable")[:number]])
    order = np.arange(len(starts))
    order[chosen] = chosen[np.lexsort((u[1, :number], document[chosen]))]
    moved = lengths[order]
    return tokens[np.arange(len(tokens)) + np.repeat(starts[order] - (np.cumsum(moved) - moved), moved)]


def infill(
    tokens: Tokens,
    u: Float[np.ndarray, " T"],
    *,
    starts: Mask,
    is_text: Mask,
    lengths: Int[np.ndarray, " K"],
    masks: int | Tokens,
    replace_length: Literal[-1, 0, 1] = 1,
) -> Int[np.ndarray, " N"]:
    """Spans of whole words, begun at random words, become one mask each.

    A span ends early before a token that is no text and at the end of the text; one that runs into the next merges with
    it, so that fewer words than the budget may be covered.

    Args:
        tokens: the text.
        u: uniforms that choose the first words: those of the smallest, in this order.
        starts: True at the first token of each word, one at least after each token that is no text.
        is_text: False for special tokens, which are kept.
        lengths: words of each span, positive; at most as many spans as words.
        masks: the mask, or what stands for it at each token.
        replace_length: 1 puts one mask in place of a span, -1 one in place of each of its tokens, 0 none.

    Example:
        >>> text, u = np.arange(1, 8), np.array([0.9, 0.1, 0.5, 0.8, 0.7, 0.2, 0.6])
        >>> here = {"starts": np.ones(7, bool), "is_text": np.ones(7, bool), "lengths": np.array([2, 1]), "masks": 99}
        >>> infill(text, u, **here), infill(text, u, replace_length=0, **here)
        (array([ 1, 99,  4,  5, 99,  7]), array([1, 4, 5, 7]))
    """
    words = np.flatnonzero(starts)
    if not len(lengths):
        return tokens
    first = np.argsort(u[: len(words)], kind="stable")[: len(lengths)]
    stop = np.minimum(first + lengths, _next_break(words, is_text)[first])
    # How many spans go on over each word: one more after each first word, one less where each stops.
    size = len(words) + 1
    goes_on = np.cumsum(np.bincount(first + 1, minlength=size) - np.bincount(stop, minlength=size))[:-1] > 0
    is_first = np.zeros(len(words), bool)
    is_first[first] = True
    word = np.cumsum(starts) - 1
    covered = (is_first | goes_on)[word] & is_text
    if replace_length == 0:
        return tokens[~covered]
    if replace_length == -1:
        return np.where(covered, masks, tokens).astype(tokens.dtype)
    masked = starts & (is_first & ~goes_on)[word]
    return np.where(masked, masks, tokens).astype(tokens.dtype)[~covered | masked]


def _next_break(words: Int[np.ndarray, " W"], is_text: Mask) -> Int[np.ndarray, " W"]:
    """For each word the next one after a special token; the number of words if there is none."""
    if is_text.all():
        return np.full(len(words), len(words))
    run = np.cumsum(~is_text)[words]
    return np.searchsorted(run, run, side="right")


def insert(tokens: Tokens, u: Float[np.ndarray, " N"], *, values: Int[np.ndarray, " K"]) -> Int[np.ndarray, " T+K"]:
    """Values put between the tokens, at places uniform among all; their order is that of the smallest uniforms.

    Args:
        tokens: the text.
        u: uniforms, one at least for each place of the result.
        values: what is put in.

    >>> insert(np.array([1, 2, 3]), np.array([0.9, 0.2, 0.7, 0.1, 0.8]), values=np.array([98, 99]))
    array([ 1, 99,  2, 98,  3])
    """
    size = len(tokens) + len(values)
    places = np.argsort(u[:size], kind="stable")[: len(values)]
    out, free = np.empty(size, tokens.dtype), np.ones(size, bool)
    out[places], free[places] = values, False
    out[free] = tokens
    return out


def rotate(tokens: Tokens, u: float) -> Tokens:
    """The text begun at its token number U{1, ..., T - 1}, what stood before following at the end.

    >>> rotate(np.array([1, 2, 3, 4]), 0.5)
    array([3, 4, 1, 2])

    Differs: fairseq draws from U{1, ..., T + 1}, and leaves the text as it is in 2 of T + 1 cases.
    """
    return np.roll(tokens, -1 - int(u * (len(tokens) - 1))) if len(tokens) > 1 else tokens
