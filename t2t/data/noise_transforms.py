"""Noise masks and what they do to texts beyond span corruption: the other rows of T5's table of objectives.

Pure NumPy, one text [T] or a batch of equal lengths [B, T], as in `t2t.data.corruption`, where the masks of T5's spans
and of independent tokens are, and the transforms that put sentinels in place of noise or drop it.

Reference: "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", arXiv:1910.10683,
section 3.3 and table 3 (t5.data.preprocessors).
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from t2t.data.corruption import Ids, Mask, Tokens, span_starts


def regular_noise_mask(
    u: Float[np.ndarray, "*B 2"], *, length: int, noise_density: float, shortest: int = 1, longest: int = 5
) -> Mask:
    """Masks of equal spans at equal distances; their length, uniform in [shortest, longest], and offset are drawn.

    Noise is a fraction `noise_density` up to rounding; the text may begin and end inside a span.

    >>> regular_noise_mask(np.array([0.5, 0.0]), length=10, noise_density=0.25, shortest=2, longest=2).astype(int)
    array([1, 1, 0, 0, 0, 0, 0, 0, 1, 1])
    """
    span = shortest + np.floor(u[..., :1] * (longest - shortest + 1)).astype(np.int64)
    period = np.rint(span.astype(np.float32) / np.float32(noise_density)).astype(np.int64)
    offset = np.floor(u[..., 1:] * period).astype(np.int64)
    return (np.arange(length) + offset) % period < span


def replace_noise(
    tokens: Tokens, mask: Mask, u: Float[np.ndarray, "*B 2 T"], *, mark: int, random: float, ids: Int[np.ndarray, " N"]
) -> Tokens:
    """Each noise token becomes a random one of `ids` with probability `random`, else the mark (BERT-style in T5)."""
    drawn = ids[(u[..., 1, :] * len(ids)).astype(np.int64)]
    replaced = np.where(u[..., 0, :] < random, drawn, mark).astype(tokens.dtype)
    return np.where(mask, replaced, tokens)


def gather_noise(tokens: Tokens, mask: Mask, u: Float[np.ndarray, "*B T"]) -> Tokens:
    """Each noise token becomes a random token of the text."""
    places = (u * tokens.shape[-1]).astype(np.int64)
    return np.where(mask, np.take_along_axis(tokens, places, axis=-1), tokens)


def permute_noise(tokens: Tokens, mask: Mask, u: Float[np.ndarray, "*B T"]) -> Tokens:
    """The noise tokens change places with each other at random (deshuffling, where all of them are noise).

    >>> permute_noise(np.arange(5), np.array([1, 0, 1, 1, 0], bool), np.array([0.9, 0.0, 0.1, 0.5, 0.0]))
    array([2, 1, 3, 0, 4])
    """
    places = np.argsort(~mask, axis=-1, kind="stable")  # the noise from left to right, then the rest
    origins = np.argsort(np.where(mask, u, 2.0), axis=-1, kind="stable")
    out = np.empty_like(tokens)
    np.put_along_axis(out, places, np.take_along_axis(tokens, origins, axis=-1), axis=-1)
    return out


def replace_spans(tokens: Tokens, mask: Mask, marks: Ids) -> np.ndarray:
    """Each span of noise becomes a mark, the k-th of a row the k-th of `marks`.

    Returns:
        The text [N], or the texts [B, N]; where rows differ in length, an array of B arrays.

    Example:
        >>> mask = np.array([[0, 1, 1, 0, 0], [1, 0, 1, 0, 1]], bool)
        >>> list(replace_spans(np.arange(10).reshape(2, 5), mask, [99, 98, 97]))
        [array([ 0, 99,  3,  4]), array([99,  6, 98,  8, 97])]

    Raises:
        ValueError: a row has more spans than there are marks.
    """
    starts = span_starts(mask)
    ranks = np.cumsum(starts, axis=-1)[starts] - 1
    number = int(ranks.max(initial=-1)) + 1
    if number > len(marks):
        raise ValueError(f"the noise has {number} spans but there are {len(marks)} marks")
    out = tokens.copy()
    out[starts] = np.asarray(marks, tokens.dtype)[ranks]
    return keep_tokens(out, ~mask | starts)


def keep_tokens(tokens: Tokens, keep: Mask) -> np.ndarray:
    """The kept tokens of each row, as `replace_spans` returns them."""
    if tokens.ndim == 1:
        return tokens[keep]
    kept, counts = tokens[keep], np.count_nonzero(keep, axis=-1)
    if not counts.size or (counts == counts[0]).all():
        return kept.reshape(*tokens.shape[:-1], -1 if counts.any() else 0)
    stops = np.cumsum(counts)
    return rows_of([kept[stop - count : stop] for stop, count in zip(stops, counts, strict=True)])


def rows_of(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays of unequal lengths as an array of them."""
    rows = np.empty(len(arrays), object)
    for number, array in enumerate(arrays):
        rows[number] = array
    return rows


def fit_noise(mask: Mask, *, longest: int, marks: bool) -> Mask:
    """The mask itself if its targets fit; else its noise up to a place after which the text is left clean.

    Args:
        mask: True where a token is noise.
        longest: tokens of the targets, at least 1.
        marks: whether targets hold a mark for each span of clean tokens, besides the noise.

    Example:
        >>> mask = np.array([0, 1, 0, 1, 1, 0, 1], bool)  # targets * 1 * 3 4 * 6
        >>> fit_noise(mask, longest=6, marks=True).astype(int)  # * 1 * 3 4 *
        array([0, 1, 0, 1, 1, 0, 0])
    """
    rows = np.atleast_2d(mask)
    size = rows.shape[1]
    parts = rows + span_starts(~rows).astype(np.int8) if marks else rows.astype(np.int8)
    if (parts.sum(-1) <= longest).all():
        return mask
    # Column c is the length if the text is clean from token c on, where one clean span more begins after noise.
    lengths = np.zeros((len(rows), size + 1), np.int64)
    np.cumsum(parts, axis=-1, out=lengths[:, 1:])
    if marks:
        lengths[:, 1:size] += rows[:, : size - 1]
    fits = lengths <= longest
    end = size - np.argmax(fits[:, ::-1], axis=-1, keepdims=True)
    return (rows & (np.arange(size) < end)).reshape(mask.shape)
