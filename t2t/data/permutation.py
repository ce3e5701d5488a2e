"""XLNet's permuted orders in pure NumPy, one example [T] or a batch [B, T]: what is predicted, and who may read whom.

The text stays as it is; an order is drawn besides, in which some of its tokens, the targets, are predicted. What is no
target is read by all. A target is predicted from that and from the targets before it in the order; special tokens have
a place in the order too, and no loss:

    text       the  cat  sat  on  the  mat  <sep>  <cls>
    target      0    1    0    0   0    1     0      0
    rank        3    6    0    7   2    1     5      4       a random permutation
    order      -1    6   -1   -1  -1    1     5      4       the number in the permutation, -1 = read by all

"mat" is predicted from "the sat on the", "cat" from all the others. A row of the batch holds the order and no mask:
whether t may read s is a comparison of two numbers (`permutation_mask`).

Randomness enters as uniforms in [0, 1), as in `t2t.data.corruption`.

Reference: Yang et al., XLNet, arXiv:1906.08237, sections 2.2 and 2.3 and appendix A; zihangdai/xlnet, data_utils.py.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

Mask = Bool[np.ndarray, "*B T"]


def span_sizes(u: Float[np.ndarray, "*axes"], *, longest: int = 5) -> Int[np.ndarray, "*axes"]:
    """Sizes n = 1, ..., longest of spans, each with a probability proportional to 1 / n.

    Example:
        >>> span_sizes(np.array([0.0, 0.43, 0.44, 0.99]))
        array([1, 1, 2, 5])
    """
    sums = np.cumsum(1.0 / np.arange(1, longest + 1))
    return np.searchsorted(sums[:-1] / sums[-1], u, side="right") + 1


def most_spans(length: int, *, context: float = 6.0) -> int:
    """The most spans that `choose_targets` can place in so many tokens: those of size 1, side by side."""
    return -(-length // (1 + int(context)))


def num_target_uniforms(length: int, *, context: float = 6.0) -> int:
    """How many uniforms `choose_targets` takes: two for each span, one for each token."""
    return 2 * most_spans(length, context=context) + length


def choose_targets(
    u: Float[np.ndarray, "*B N"],
    *,
    starts: Mask,
    candidates: Mask,
    count: int,
    longest: int = 5,
    context: float = 6.0,
    words: bool = False,
) -> Mask:
    """Exactly `count` targets (or all candidates, if there are fewer): spans, each alone in its context, then singles.

    From left to right: a size n is drawn, and how the floor(n context) tokens of its context are divided into left and
    right. The span begins at the first word start behind the left part; the next context begins behind the right part.
    Where the walk ends before `count` tokens are chosen, the rest are candidates drawn at random.

    Args:
        u: uniforms, `num_target_uniforms(T)` of each row.
        starts: True where a word begins.
        candidates: which tokens may be chosen.
        count: how many are chosen.
        longest: the largest n.
        context: tokens around a span for each of its n (the paper's K, alpha / beta of the code), at least 1.
        words: whether a span is n words, the last of which may be cut by `count`, or n tokens.

    Reference: `_sample_mask` of the released code.

    Differs: a span may end with the text. The code means n words, as its comments say, and makes n tokens, as the paper
    does (it looks at the first piece of the span for every word).
    """
    length, count = starts.shape[-1], min(count, starts.shape[-1])
    if count < 1:
        return np.zeros(starts.shape, bool)
    spans = most_spans(length, context=context)
    rows_starts, rows_candidates, rows_u = (x.reshape(-1, x.shape[-1]) for x in (starts, candidates, u))
    draws = rows_u[:, : 2 * spans].reshape(-1, 2, spans)
    in_span = _walk(draws, rows_starts, longest=longest, context=context, words=words) & rows_candidates
    in_span &= np.cumsum(in_span, axis=-1) <= count
    keys = np.where(in_span, -1.0, np.where(rows_candidates, rows_u[:, 2 * spans :], 2.0))
    places = np.argpartition(keys, count - 1, axis=-1)[:, :count]
    chosen = np.zeros(keys.shape, bool)
    np.put_along_axis(chosen, places, True, axis=-1)
    return (chosen & rows_candidates).reshape(starts.shape)


def _walk(
    u: Float[np.ndarray, "B 2 S"], starts: Bool[np.ndarray, "B T"], *, longest: int, context: float, words: bool
) -> Bool[np.ndarray, "B T"]:
    """True inside the spans; all rows take their next step together."""
    batch, length = starts.shape
    sizes = span_sizes(u[:, 0], longest=longest)
    around = (sizes * context).astype(np.int64)
    left = (u[:, 1] * around).astype(np.int64)
    before = np.zeros((batch, length + 1), np.int64)  # word starts before each position
    np.cumsum(starts, axis=-1, out=before[:, 1:])
    places = np.full((batch, int(before[:, -1].max()) + longest + 1), length)  # of each start; then the end
    row, place = np.nonzero(starts)
    places[row, before[row, place]] = place
    edges = np.zeros((batch, length + 1), np.int64)
    every, cursor = np.arange(batch), np.zeros(batch, np.int64)
    for k in range(sizes.shape[1]):
        first = before[every, np.minimum(cursor + left[:, k], length)]
        begin = places[every, first]
        end = places[every, first + sizes[:, k]] if words else np.minimum(begin + sizes[:, k], length)
        edges[every, begin] += 1
        edges[every, end] -= 1
        cursor = end + around[:, k] - left[:, k]
        if cursor.min() >= length:
            break
    return np.cumsum(edges[:, :-1], axis=-1) > 0


def draw_ranks(
    u: Float[np.ndarray, "*B T"], *, block: int | None = None, reuse: int | None = None
) -> Int[np.ndarray, "*B T"]:
    """A random permutation of 0, ..., T - 1: block after block, at random within each.

    Args:
        u: uniforms, one for each token.
        block: tokens of a block (perm_size of the code); None = all that are together.
        reuse: a new block begins behind so many tokens; None = no such place.

    Example:
        >>> draw_ranks(np.array([0.9, 0.2, 0.5, 0.1, 0.3]), block=3)
        array([2, 0, 1, 3, 4], dtype=int32)

    Differs: every block has a permutation of its own; the code draws one for all blocks.
    """
    length = u.shape[-1]
    places = np.arange(length)
    part = _part(length, reuse)
    within = places - part * (reuse or 0)
    blocks = part * length + within // (block or max(length, 1))
    by_rank = np.argsort(blocks + u, axis=-1, kind="stable")
    ranks = np.empty(u.shape, np.int32)
    np.put_along_axis(ranks, by_rank, np.broadcast_to(places.astype(np.int32), u.shape), axis=-1)
    return ranks


def reading_order(
    ranks: Int[np.ndarray, "*B T"], *, is_ordered: Mask, reuse: int | None = None
) -> Int[np.ndarray, "*B T"]:
    """The number of each token that `permutation_mask` compares: its rank, or -1 where it is read by all.

    With `reuse` the first so many tokens read none of the others, which read them all: what they see is then all that
    the next example may have, whose memory they are. The numbers behind that place begin one later, at `reuse` for what
    all of them read.

    Args:
        ranks: of `draw_ranks`.
        is_ordered: targets and special tokens.
        reuse: as of `draw_ranks`.

    Example:
        >>> ranks, is_ordered = np.array([1, 0, 3, 2]), np.array([1, 0, 0, 1], bool)
        >>> reading_order(ranks, is_ordered=is_ordered), reading_order(ranks, is_ordered=is_ordered, reuse=2)
        (array([ 1, -1, -1,  2], dtype=int32), array([ 1, -1,  2,  3], dtype=int32))
    """
    part = _part(ranks.shape[-1], reuse)
    return np.where(is_ordered, ranks + part, part * ((reuse or 0) + 1) - 1).astype(np.int32)


def permutation_mask(order: Int[np.ndarray, "*B T"], *, is_target: Mask) -> Int[np.ndarray, "*B T T"]:
    """1 where position t may not read position s: where s is a target or special, and not before t in the order.

    Targets do not read themselves, all other tokens do. (The stream of tokens reads itself in any case, see
    `t2t.functional.masks.permutation_mask`; the stream of queries does as it is said here.)

    Example:
        >>> permutation_mask(np.array([-1, 2, 0, 1]), is_target=np.array([0, 1, 1, 0], bool)).tolist()
        [[0, 1, 1, 1], [0, 1, 0, 0], [0, 1, 1, 1], [0, 1, 0, 0]]

    Reference: `_local_perm` of the released code.
    """
    readers = order + ~is_target
    return (readers[..., :, None] <= order[..., None, :]).astype(np.int8)


def _part(length: int, reuse: int | None) -> Int[np.ndarray, " T"]:
    """0 in the part that is used again, 1 behind it."""
    return np.zeros(length, np.int64) if reuse is None else (np.arange(length) >= reuse).astype(np.int64)
