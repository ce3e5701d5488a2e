"""Pairs of segments, as BERT, ALBERT, ELECTRA and RoBERTa's SENTENCE-PAIR draw them from documents of sentences.

    next_sentence_pairs    BERT: the second segment follows the first, or comes from another document
    sentence_pairs         RoBERTa's SENTENCE-PAIR: the same of two single sentences
    sentence_order_pairs   ALBERT: two segments that follow each other, in order or swapped
    electra_pairs          ELECTRA: two segments that follow each other, now and then one alone

Each function takes one document and a generator that depends on the seed, the copy of the corpus and the number of the
document alone: whoever computes a document, in whatever order, gets the same pairs. They return ranges of the tokens of
all documents, of which `finish_pairs` makes sequences:

    [CLS] A A A [SEP] B B [SEP]        token types  0 0 0 0 0 1 1 1
"""

import bisect
import enum
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Int

from t2t.data.documents import Documents, FormatStatistics, SequenceFrame, Sequences, ranges

TRIES = 10
"""Draws after which a random document may be the document itself, as in BERT's code."""


class Kind(enum.IntEnum):
    """How a pair came about."""

    FOLLOWS = 0
    """The second segment follows the first in its document: label 0."""
    RANDOM = 1
    """The second segment is from another document, as drawn: label 1, and so all that come below but SINGLE."""
    FORCED_RANDOM = 2
    """It is from another document because no sentence was left to follow."""
    SWAPPED = 3
    """The second segment stands before the first in its document."""
    SINGLE = 4
    """There is no second segment."""
    OWN_DOCUMENT = 5
    """It should be from another document and is from the same: there are hardly any others."""
    SKIPPED = 6
    """No example is made, because no sentence was left for the second segment."""


class Pair(NamedTuple):
    """Two ranges of the tokens of all documents, and how many tokens were cut off to fit."""

    a_start: int
    a_stop: int
    b_start: int
    b_stop: int
    kind: Kind
    cut: int


Plan = Int[np.ndarray, "P 6"]
"""Pairs as the rows of an array."""


def next_sentence_pairs(
    documents: Documents, index: int, rng: np.random.Generator, *, room: int, short_rate: float = 0.1
) -> list[Pair]:
    """BERT's pairs of a document, for next-sentence prediction.

    Sentences are gathered until they have `room` tokens or, for a share `short_rate` of the documents, U{2, ..., room}.
    The first U{1, ..., n - 1} of the n gathered are the first segment. With probability a half, and where n is 1, the
    second comes from another document: from a random sentence on, as many as make up the number; the sentences that it
    takes the place of are gathered again. Else it is the rest. Of a pair that is too long the longer segment loses
    tokens at random ends.

    Args:
        documents: the corpus.
        index: the document.
        rng: its generator.
        room: text tokens of a pair.
        short_rate: probability of a shorter target.

    Reference: Devlin et al., "BERT", arXiv:1810.04805, appendix A.2, and create_instances_from_document of
    google-research/bert (create_pretraining_data.py).
    """
    i, last = documents.sentences(index)
    target = _target(rng, room, short_rate)
    pairs: list[Pair] = []
    while i < last:
        stop = _gather(documents, i, last, target)
        middle = i + 1 + (_below(rng, stop - i - 1) if stop - i > 1 else 0)
        pairs.append(_following_or_random(documents, index, rng, (i, middle, stop), target=target, room=room))
        i = stop if pairs[-1].kind == Kind.FOLLOWS else middle
    return pairs


def sentence_pairs(documents: Documents, index: int, rng: np.random.Generator, *, room: int) -> list[Pair]:
    """RoBERTa's SENTENCE-PAIR: a sentence and the next one or, with probability a half, one of another document.

    Reference: Liu et al., "RoBERTa", arXiv:1907.11692, section 4.2. The paper does not say where the next pair begins:
    here at the first sentence of the document that was not used, as in BERT.
    """
    i, last = documents.sentences(index)
    pairs: list[Pair] = []
    while i < last:
        middle, stop = i + 1, min(i + 2, last)
        pairs.append(_following_or_random(documents, index, rng, (i, middle, stop), target=0, room=room))
        i = stop if pairs[-1].kind == Kind.FOLLOWS else middle
    return pairs


def sentence_order_pairs(
    documents: Documents,
    index: int,
    rng: np.random.Generator,
    *,
    room: int,
    short_rate: float = 0.1,
    single: Literal["random", "skip"] = "random",
) -> list[Pair]:
    """ALBERT's pairs of a document: gathered as BERT's, the two segments swapped with probability a half.

    Args:
        documents: the corpus.
        index: the document.
        rng: its generator.
        room: text tokens of a pair.
        short_rate: probability of a shorter target.
        single: what becomes of a sentence without another: its second segment is a random one, labelled 1, as in
            ALBERT's code (though that tells topics apart, not orders), or no example is made of it.

    Reference: Lan et al., "ALBERT", arXiv:1909.11942, section 3.1, and google-research/albert
    (create_pretraining_data.py without random_next_sentence).
    """
    i, last = documents.sentences(index)
    target = _target(rng, room, short_rate)
    bounds, pairs = documents.bounds, []
    while i < last:
        stop = _gather(documents, i, last, target)
        if stop - i == 1 and single == "skip":
            pairs.append(Pair(0, 0, 0, 0, Kind.SKIPPED, 0))
        elif stop - i == 1:
            pairs.append(_following_or_random(documents, index, rng, (i, stop, stop), target=target, room=room))
        else:
            middle = int(bounds[i + 1 + _below(rng, stop - i - 1)])
            first, second = (int(bounds[i]), middle), (middle, int(bounds[stop]))
            if rng.random() < 0.5:
                pairs.append(_truncate(second, first, Kind.SWAPPED, room=room, rng=rng))
            else:
                pairs.append(_truncate(first, second, Kind.FOLLOWS, room=room, rng=rng))
        i = stop
    return pairs


def electra_pairs(documents: Documents, index: int, rng: np.random.Generator, *, frame: SequenceFrame) -> list[Pair]:
    """ELECTRA's examples of a document: one or two segments that follow each other, without a label.

    Sentences are gathered until they have `length` tokens or, in 5 % of the examples, U{5, ..., length}. In 10 % of the
    examples all go to the first segment. Else it takes sentences while it stays below half of what two segments may
    have; the one with which it would not goes there too with probability a half. What is too long is cut at its end.

    Reference: Clark et al., "ELECTRA", arXiv:2003.10555, and ExampleBuilder of google-research/electra
    (build_pretraining_dataset.py).

    Differs: that code puts short sentences into the first segment again after the second has begun, and a text is read
    out of its order; here the second segment takes all that follows.
    """
    i, last = documents.sentences(index)
    bounds, pairs = documents.bounds, []
    while i < last:
        target = 5 + _below(rng, frame.length - 4) if rng.random() < 0.05 else frame.length
        stop = _gather(documents, i, last, target)
        start, end = int(bounds[i]), int(bounds[stop])
        middle = end
        if rng.random() >= 0.1:
            middle = _electra_middle(documents, i, stop, rng, half=(target - frame.num_specials) // 2)
        a_stop = min(middle, start + frame.room + 1)
        b_stop = max(min(end, middle + frame.room - (a_stop - start)), middle)
        kind = Kind.SINGLE if b_stop == middle else Kind.FOLLOWS
        pairs.append(Pair(start, a_stop, middle, b_stop, kind, (middle - a_stop) + (end - b_stop)))
        i = stop
    return pairs


def finish_pairs(tokens: Int[np.ndarray, " N"], plan: Plan, *, frame: SequenceFrame) -> Sequences:
    """The sequences of a plan: bos A eos B eos, or bos A eos; none for pairs that are skipped.

    Example:
        >>> plan = np.array([[0, 2, 4, 5, Kind.RANDOM, 0], [3, 5, 5, 5, Kind.SINGLE, 0]])
        >>> made = finish_pairs(np.arange(10, 15), plan, frame=SequenceFrame(length=8, bos_id=1, eos_id=2))
        >>> made.tokens.tolist(), made.lengths.tolist()
        ([1, 10, 11, 2, 14, 2, 1, 13, 14, 2], [6, 4])
        >>> made.token_types.tolist(), labels(made.kinds).tolist()
        ([0, 0, 0, 0, 1, 1, 0, 0, 0, 0], [1, 0])
    """
    plan = plan[plan[:, 4] != Kind.SKIPPED]
    a_starts, a_stops, b_starts, b_stops, kinds, _ = plan.T
    a, b = a_stops - a_starts, b_stops - b_starts
    seconds_and_ends = np.where(b > 0, b + 1, 0)
    lengths = frame.has_bos + a + 1 + seconds_and_ends
    out, starts = frame.blank(lengths)
    seconds = starts + frame.has_bos + a + 1
    out[ranges(starts + frame.has_bos, a)] = tokens[ranges(a_starts, a)]
    out[ranges(seconds, b)] = tokens[ranges(b_starts, b)]
    types = np.zeros(len(out), np.int32)
    types[ranges(seconds, seconds_and_ends)] = 1
    return Sequences(tokens=out, lengths=lengths, token_types=types, kinds=kinds.astype(np.int32))


def labels(kinds: Int[np.ndarray, " P"]) -> Int[np.ndarray, " P"]:
    """0 where the second segment follows the first, 1 where it does not: BERT's labels, and transformers'."""
    return np.isin(kinds, (Kind.FOLLOWS, Kind.SINGLE), invert=True).astype(np.int32)


def statistics(pairs: Sequence[Pair] | Plan, *, frame: SequenceFrame) -> FormatStatistics:
    """What the examples of these pairs are, in number."""
    plan = as_plan(pairs)
    made = plan[plan[:, 4] != Kind.SKIPPED]
    sizes = made[:, 1] - made[:, 0], made[:, 3] - made[:, 2]
    num_ends = 1 + (sizes[1] > 0)
    counts = {kind.name.lower(): int(np.count_nonzero(plan[:, 4] == kind)) for kind in Kind}
    return FormatStatistics(
        length=frame.length,
        examples=len(made),
        tokens=int((sizes[0] + sizes[1] + num_ends + frame.has_bos).sum()),
        cut=int(made[:, 5].sum()),
        kinds={kind: count for kind, count in counts.items() if count},
    )


def as_plan(pairs: Sequence[Pair] | Plan) -> Plan:
    """Pairs as the rows of an array."""
    return np.array(pairs, np.int64).reshape(-1, 6)


def _target(rng: np.random.Generator, room: int, short_rate: float) -> int:
    return 2 + _below(rng, room - 1) if rng.random() < short_rate else room


def _below(rng: np.random.Generator, number: int) -> int:
    """Uniform over 0, ..., number - 1, of one uniform."""
    return int(rng.random() * number)


def _gather(documents: Documents, i: int, last: int, target: int) -> int:
    """The first sentence behind those from i on that have `target` tokens together, else the end of the document."""
    return bisect.bisect_left(documents.bounds, int(documents.bounds[i]) + target, i + 1, last)


def _following_or_random(
    documents: Documents, index: int, rng: np.random.Generator, chunk: tuple[int, int, int], *, target: int, room: int
) -> Pair:
    """The pair of a chunk: its first sentence, the one behind the first segment, the one behind all."""
    a_start, a_stop, stop = (int(documents.bounds[sentence]) for sentence in chunk)
    if a_stop < stop and rng.random() >= 0.5:
        return _truncate((a_start, a_stop), (a_stop, stop), Kind.FOLLOWS, room=room, rng=rng)
    for _ in range(TRIES):
        other = _below(rng, len(documents))
        if other != index:
            break
    first, last = documents.sentences(other)
    begin = first + _below(rng, last - first)
    end = _gather(documents, begin, last, target - (a_stop - a_start))
    second = int(documents.bounds[begin]), int(documents.bounds[end])
    kind = Kind.RANDOM if a_stop < stop else Kind.FORCED_RANDOM
    kind = Kind.OWN_DOCUMENT if other == index else kind
    return _truncate((a_start, a_stop), second, kind, room=room, rng=rng)


def _truncate(a: tuple[int, int], b: tuple[int, int], kind: Kind, *, room: int, rng: np.random.Generator) -> Pair:
    """The pair within its room: the longer segment, else the second, loses its first or its last token, at random."""
    sizes = a[1] - a[0], b[1] - b[0]
    excess = sum(sizes) - room
    if excess <= 0:
        return Pair(*a, *b, kind, 0)
    is_front = rng.random(excess) < 0.5
    # The longer one loses alone until they are equal; then both do by turns.
    lead = min(abs(sizes[0] - sizes[1]), excess)
    fronts = [is_front[lead + 1 :: 2], is_front[lead::2]]
    longer = 0 if sizes[0] > sizes[1] else 1
    fronts[longer] = np.concatenate([is_front[:lead], fronts[longer]])

    def shorten(segment: tuple[int, int], is_front: np.ndarray) -> tuple[int, int]:
        front = int(np.count_nonzero(is_front))
        return segment[0] + front, segment[1] - (len(is_front) - front)

    return Pair(*shorten(a, fronts[0]), *shorten(b, fronts[1]), kind, excess)


def _electra_middle(documents: Documents, i: int, stop: int, rng: np.random.Generator, *, half: int) -> int:
    """Where the first segment stops: behind the sentences that keep it below `half`, or behind one more."""
    bounds, start = documents.bounds, int(documents.bounds[i])
    middle = max(bisect.bisect_left(bounds, start + half, i + 1, stop + 1) - 1, i + 1)
    if middle < stop and int(bounds[middle]) - start < half and rng.random() < 0.5:
        middle += 1
    return int(bounds[middle])
