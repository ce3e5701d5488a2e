"""The mathematics of masked language modelling: which tokens are chosen and what becomes of them.

Pure NumPy on one text [T] or a batch of equal lengths [B, T]. Uniforms in [0, 1) say what is random, as in
`t2t.data.corruption`. Three questions are answered apart from each other:

    how many        `budget`: exactly, on average, or each token by itself
    which           `choose_tokens` here; words, n-grams and spans in `t2t.data.word_masking`
    what becomes    `replace_chosen`: the mask, a random token, or what it was
"""

from collections.abc import Iterable
from typing import Literal

import numpy as np
from jaxtyping import Float, Int, Num

from t2t.data.corruption import Mask, Tokens

Count = Literal["independent", "exact", "rounded", "ceiling"]
"""How many of n are chosen at a rate. "independent": each with probability rate. "exact" (BERT): max(1, round(rate n)),
halves to even. "rounded" (RoBERTa): rate n rounded up or down at random, so that its mean is rate n. "ceiling" (XLM,
SpanBERT): rate n rounded up."""

_BLOCK = 2**24  # tokens that are counted at a time: bincount makes int64 of its argument


def budget(
    size: int | Int[np.ndarray, "*B"], u: Float[np.ndarray, "*B"], *, rate: float, count: Count
) -> Int[np.ndarray, "*B"]:
    """How many of `size` tokens or words are chosen, for each of the uniforms; not for "independent" counts.

    Several sizes can be "rounded" alone.

    Example:
        >>> u = np.array([0.2, 0.6])
        >>> [budget(30, u, rate=0.15, count=count).tolist() for count in ("exact", "rounded", "ceiling")]
        [[4, 4], [4, 5], [5, 5]]
    """
    if count == "rounded":
        return np.asarray(rate * size + u).astype(np.int64)
    if count == "exact":
        number = max(1, round(rate * size))
    elif count == "ceiling":
        number = int(np.ceil(rate * size - 1e-9))  # 0.07 * 100 is a little more than 7
    else:
        raise ValueError(f"count={count!r} has no fixed number; possible are 'exact', 'rounded' and 'ceiling'")
    return np.full(u.shape, number)


def choose_tokens(
    candidates: Mask,
    u: Float[np.ndarray, "*B T+1"],
    *,
    rate: float = 0.15,
    count: Count = "independent",
    max_predictions: int | None = None,
    weights: Float[np.ndarray, "*B T"] | None = None,
) -> Mask:
    """True where a token is chosen, each by itself.

    Args:
        candidates: where a token may be chosen.
        u: uniforms of the tokens, and one more for a random number of tokens.
        rate: fraction of the T tokens to choose.
        count: how many that makes.
        max_predictions: at most so many are chosen.
        weights: positive; tokens are then drawn one after the other, without replacement, each time with probabilities
            in proportion to the weights of those that are left. None = all alike.

    Raises:
        ValueError: weights with independent choices.

    Reference: "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", arXiv:1810.04805
    (create_pretraining_data.py); "RoBERTa", arXiv:1907.11692 (fairseq's mask_tokens_dataset.py); for weights,
    "Cross-lingual Language Model Pretraining", arXiv:1901.07291, section 3.2.
    """
    length = candidates.shape[-1]
    keys = u[..., :length]
    if weights is not None:
        if count == "independent":
            raise ValueError("weights need a number of tokens: take count='exact', 'rounded' or 'ceiling'")
        # Of exponential variables with these rates the smallest are the first draws.
        keys = -np.log1p(-keys) / weights
    if count == "independent":
        candidates = candidates & (keys < rate)
        if max_predictions is None:
            return candidates
        limit = np.full(u.shape[:-1], max_predictions)
    else:
        limit = budget(length, u[..., length, None], rate=rate, count=count)[..., 0]
        limit = limit if max_predictions is None else np.minimum(limit, max_predictions)
    return candidates & _smallest(np.where(candidates, keys, np.inf), limit[..., None])


def _smallest(keys: Float[np.ndarray, "*B T"], number: Int[np.ndarray, "*B 1"]) -> Mask:
    """True at so many of the smallest keys of each row."""
    length = keys.shape[-1]
    if not length:
        return np.zeros(keys.shape, bool)
    number = np.clip(number, 0, length)
    edge = np.take_along_axis(np.sort(keys, axis=-1), np.maximum(number - 1, 0), axis=-1)
    chosen = (keys <= edge) & (number > 0)
    if (np.count_nonzero(chosen, axis=-1, keepdims=True) == number).all():
        return chosen
    # Equal keys at the edge: those that are no candidates, where there are fewer candidates than wanted.
    return np.argsort(np.argsort(keys, axis=-1, kind="stable"), axis=-1, kind="stable") < number


def replace_chosen(
    tokens: Tokens,
    chosen: Mask,
    *,
    treatment: Float[np.ndarray, "*B T"],
    replacement: Float[np.ndarray, "*B T"],
    mask_id: int,
    replacements: Int[np.ndarray, " N"],
    mask: float = 0.8,
    random: float = 0.1,
) -> Tokens:
    """Of the chosen tokens a fraction becomes the mask, another a random token, the rest stays.

    Args:
        tokens: the text.
        chosen: where a token was chosen.
        treatment: uniforms that decide among the three; equal ones over a span treat its tokens alike.
        replacement: uniforms that decide which random token it is.
        mask_id: id of the mask.
        replacements: ids that random tokens are drawn from, uniformly.
        mask: fraction of the chosen ones that become the mask.
        random: fraction of the chosen ones that become a random token.

    Reference: "BERT", arXiv:1810.04805, section 3.1.

    Differs: BERT and RoBERTa draw random tokens from the whole vocabulary; `replacements` says from which.
    """
    drawn = replacements[(replacement * len(replacements)).astype(np.int64)].astype(tokens.dtype)
    corrupted = np.where(
        treatment < mask, tokens.dtype.type(mask_id), np.where(treatment < mask + random, drawn, tokens)
    )
    return np.where(chosen, corrupted, tokens)


def token_counts(parts: Iterable[Int[np.ndarray, " _"]], size: int) -> Int[np.ndarray, " V"]:
    """How often each of `size` ids occurs in all parts of a text.

    Example:
        >>> token_counts([np.array([2, 0]), np.array([2, 2])], 4).tolist()
        [1, 0, 3, 0]
    """
    counts = np.zeros(size, np.int64)
    for tokens in parts:
        for start in range(0, len(tokens), _BLOCK):
            counts += np.bincount(tokens[start : start + _BLOCK], minlength=size)
    return counts


def smoothed_weights(counts: Num[np.ndarray, " V"], *, smoothing: float) -> Float[np.ndarray, " V"]:
    """max(count, 1) ** -smoothing of each token: frequent tokens are chosen less often.

    Example:
        >>> smoothed_weights(np.array([0, 1, 4, 100]), smoothing=0.5).tolist()
        [1.0, 1.0, 0.5, 0.1]

    Reference: smoothing 0.5 of "Cross-lingual Language Model Pretraining", arXiv:1901.07291; 0.7 of "DistilBERT",
    arXiv:1910.01108 (its training scripts).
    """
    return np.maximum(counts, 1).astype(np.float64) ** -smoothing
