import collections
import itertools
import math

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from t2t.data import segment_pairs
from t2t.data.corruption import example_rng
from t2t.data.documents import Documents, SequenceFrame
from t2t.data.segment_pairs import Kind
from tests.data.test_sentence_blocks import corpora, numbered
from tests.reference import segment_pairs as reference

FRAME = SequenceFrame(length=15, bos_id=1, eos_id=2)
CHANGED = (Kind.RANDOM, Kind.FORCED_RANDOM, Kind.OWN_DOCUMENT, Kind.SWAPPED)


def within(count, number, probability):
    """Whether a count is within 4 standard deviations of what its law says."""
    return abs(count - number * probability) <= 4 * math.sqrt(number * probability * (1 - probability))


def all_pairs(draw, documents, *, seed=0, **options):
    """The pairs of every document, with the number of the document."""
    return [
        (index, pair)
        for index in range(len(documents))
        for pair in draw(documents, index, example_rng(seed, 0, index), **options)
    ]


def corpus(*sizes):
    return Documents.of_lists(numbered(sizes))


def lists(documents, pairs):
    tokens = documents.tokens.tolist()
    forced = {Kind.FORCED_RANDOM}
    return [
        (tokens[p.a_start : p.a_stop], tokens[p.b_start : p.b_stop], int(p.kind in CHANGED), p.kind in forced)
        for p in pairs
        if p.kind != Kind.SKIPPED
    ]


# Each draws the same numbers as its reference, so that their results are equal, not alike.


def same(documents, made, expected):
    """Whether pairs are those of the reference, which does not know whether a random document is another."""
    ours = lists(documents, made)
    assert [pair[:3] for pair in ours] == [pair[:3] for pair in expected]
    for pair, own, want in zip(made, ours, expected, strict=True):
        assert pair.kind == Kind.OWN_DOCUMENT or own[3] == want[3]


@hypothesis.settings(max_examples=20)
@hypothesis.given(corpora, st.integers(2, 25), st.integers(0, 5), st.sampled_from([0.0, 0.1, 1.0]))
def test_next_sentence_pairs_are_the_reference(sizes, room, seed, short_rate):
    documents, plain = corpus(*sizes), numbered(sizes)
    for index in range(len(documents)):
        options = {"room": room, "short_rate": short_rate}
        made = segment_pairs.next_sentence_pairs(documents, index, example_rng(seed, 0, index), **options)
        same(documents, made, reference.next_sentence(plain, index, example_rng(seed, 0, index), **options))


@hypothesis.settings(max_examples=20)
@hypothesis.given(corpora, st.integers(2, 25), st.integers(0, 5), st.sampled_from(["random", "skip"]))
def test_sentence_order_pairs_are_the_reference(sizes, room, seed, single):
    documents, plain = corpus(*sizes), numbered(sizes)
    for index in range(len(documents)):
        rngs = [example_rng(seed, 0, index) for _ in range(2)]
        made = segment_pairs.sentence_order_pairs(documents, index, rngs[0], room=room, single=single)
        expected = reference.next_sentence(plain, index, rngs[1], room=room, random_next=False, single=single)
        same(documents, [pair for pair in made if pair.kind != Kind.SKIPPED], expected)


@hypothesis.settings(max_examples=20)
@hypothesis.given(corpora, st.integers(2, 25), st.integers(0, 5))
def test_sentence_pairs_are_the_reference(sizes, room, seed):
    documents, plain = corpus(*sizes), numbered(sizes)
    for index in range(len(documents)):
        made = segment_pairs.sentence_pairs(documents, index, example_rng(seed, 0, index), room=room)
        same(documents, made, reference.sentence_pair(plain, index, example_rng(seed, 0, index), room=room))


@hypothesis.settings(max_examples=20)
@hypothesis.given(corpora, st.integers(5, 25), st.integers(0, 5), st.sampled_from([None, 1]))
def test_electra_pairs_are_the_reference(sizes, length, seed, bos):
    documents, plain = corpus(*sizes), numbered(sizes)
    frame = SequenceFrame(length=length, bos_id=bos, eos_id=2)
    for index in range(len(documents)):
        made = segment_pairs.electra_pairs(documents, index, example_rng(seed, 0, index), frame=frame)
        expected = reference.electra(
            plain[index], example_rng(seed, 0, index), length=length, specials=frame.num_specials
        )
        assert [pair[:2] for pair in lists(documents, made)] == [pair[:2] for pair in expected]
        text = [token for a, b, *_ in lists(documents, made) for token in (*a, *b)]
        assert text == sorted(set(text))  # in order, none twice
        assert len(text) + sum(pair.cut for pair in made) == sum(sizes[index])


# What holds of all of them.


DRAWS = {
    "next": (segment_pairs.next_sentence_pairs, {"room": FRAME.room}),
    "order": (segment_pairs.sentence_order_pairs, {"room": FRAME.room}),
    "sentences": (segment_pairs.sentence_pairs, {"room": FRAME.room}),
    "electra": (segment_pairs.electra_pairs, {"frame": FRAME}),
}


@pytest.mark.parametrize("name", DRAWS)
@hypothesis.settings(max_examples=12)
@hypothesis.given(sizes=corpora)
def test_pairs_fit_and_split_no_sentence_unless_they_are_cut(name, sizes):
    draw, options = DRAWS[name]
    documents = corpus(*sizes)
    bounds = set(documents.bounds.tolist())
    pairs = [pair for _, pair in all_pairs(draw, documents, **options)]
    made = segment_pairs.finish_pairs(documents.tokens, segment_pairs.as_plan(pairs), frame=FRAME)
    assert len(made.lengths) == len(pairs)
    assert made.lengths.max() <= FRAME.length
    for pair in pairs:
        assert pair.a_stop > pair.a_start
        assert pair.kind == Kind.SINGLE or pair.b_stop > pair.b_start
        assert pair.cut or set(pair[:4]) <= bounds
    counted = segment_pairs.statistics(pairs, frame=FRAME)
    assert counted.examples == len(pairs) == sum(counted.kinds.values())
    assert counted.tokens == int(made.lengths.sum()) == len(made.tokens)
    assert counted.cut == sum(pair.cut for pair in pairs)


@pytest.mark.parametrize("name", ["next", "order", "sentences"])
@hypothesis.settings(max_examples=12)
@hypothesis.given(sizes=corpora)
def test_no_text_of_a_document_is_lost_or_read_twice(name, sizes):
    """But what is cut off, and what a random segment shows of other documents."""
    draw, options = DRAWS[name]
    documents = corpus(*sizes)
    spans = collections.defaultdict(list)
    cut = collections.Counter()
    for index, pair in all_pairs(draw, documents, **options):
        own = [pair[:2]] if pair.kind in CHANGED[:3] else sorted([pair[:2], pair[2:4]])
        spans[index] += own
        cut[index] += pair.cut
    for index, found in spans.items():
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(found))
        read = sum(stop - start for start, stop in found)
        assert sum(sizes[index]) - cut[index] <= read <= sum(sizes[index])


def test_a_document_gives_the_same_pairs_whoever_asks_in_whatever_order():
    documents = corpus(*[[3, 4, 2, 5, 1]] * 6)
    alone = [segment_pairs.next_sentence_pairs(documents, i, example_rng(7, 2, i), room=9) for i in range(6)]
    backwards = [
        segment_pairs.next_sentence_pairs(documents, i, example_rng(7, 2, i), room=9) for i in range(5, -1, -1)
    ]
    assert alone == backwards[::-1]
    other = [segment_pairs.next_sentence_pairs(documents, i, example_rng(7, 3, i), room=9) for i in range(6)]
    assert alone != other


# The laws, by frequency.


def test_half_of_the_pairs_that_could_follow_are_random():
    documents = corpus(*[[1] * 40] * 150)
    pairs = [pair for _, pair in all_pairs(segment_pairs.next_sentence_pairs, documents, room=8)]
    kinds = collections.Counter(pair.kind for pair in pairs)
    assert set(kinds) <= {Kind.FOLLOWS, Kind.RANDOM, Kind.FORCED_RANDOM}
    drawn = kinds[Kind.FOLLOWS] + kinds[Kind.RANDOM]
    assert drawn > 1000
    assert within(kinds[Kind.RANDOM], drawn, 0.5)


def test_the_first_segment_ends_anywhere_and_random_documents_are_any_other():
    documents = corpus(*[[1] * 30] * 200)
    options = {"room": 6, "short_rate": 0.0}
    pairs = all_pairs(segment_pairs.next_sentence_pairs, documents, **options)
    firsts = collections.Counter(
        pair.a_stop - pair.a_start for index, pair in pairs if pair.kind == Kind.FOLLOWS and pair.b_stop % 30
    )
    number = sum(firsts.values())
    # A chunk of 6 sentences: its first segment has 1 to 5, each as often.
    assert set(firsts) == {1, 2, 3, 4, 5}
    assert all(within(count, number, 1 / 5) for count in firsts.values())
    sources = [(index, pair.b_start // 30) for index, pair in pairs if pair.kind == Kind.RANDOM]
    assert all(index != source for index, source in sources)
    low = sum(source < 50 for index, source in sources if index >= 100)
    assert within(low, sum(index >= 100 for index, _ in sources), 50 / 199)
    begins = [pair.b_start % 30 for _, pair in pairs if pair.kind == Kind.RANDOM]
    assert within(sum(begin < 10 for begin in begins), len(begins), 1 / 3)
    long = [pair for _, pair in pairs if pair.kind == Kind.RANDOM and pair.b_stop % 30]
    assert {pair.a_stop - pair.a_start + pair.b_stop - pair.b_start for pair in long} == {6}


def test_a_tenth_of_the_documents_has_shorter_pairs():
    documents = corpus(*[[1] * 40] * 1000)
    totals = []
    for index in range(len(documents)):
        pairs = segment_pairs.next_sentence_pairs(documents, index, example_rng(1, 0, index), room=11)
        full = [pair for pair in pairs if pair.kind == Kind.FOLLOWS and pair.b_stop % 40]
        totals += [pair.b_stop - pair.a_start for pair in full[:1]]
    short = [total for total in totals if total < 11]
    assert within(len(short), len(totals), 0.1 * 9 / 10)  # U{2, ..., 11} is 11 once in ten times
    assert set(short) == set(range(2, 11))


def test_forced_pairs_and_those_of_the_same_document_are_counted_apart():
    documents = corpus([3], [2], [4])
    pairs = [pair for _, pair in all_pairs(segment_pairs.next_sentence_pairs, documents, room=20)]
    assert {pair.kind for pair in pairs} == {Kind.FORCED_RANDOM}
    assert segment_pairs.statistics(pairs, frame=FRAME).kinds == {"forced_random": 3}
    alone = [pair for _, pair in all_pairs(segment_pairs.next_sentence_pairs, corpus([3]), room=20)]
    assert [pair.kind for pair in alone] == [Kind.OWN_DOCUMENT]


def test_half_of_the_orders_are_swapped_and_both_hold_the_same_document():
    documents = corpus(*[[1, 2] * 10] * 150)
    pairs = all_pairs(segment_pairs.sentence_order_pairs, documents, room=9)
    kinds = collections.Counter(pair.kind for _, pair in pairs)
    drawn = kinds[Kind.FOLLOWS] + kinds[Kind.SWAPPED]
    assert within(kinds[Kind.SWAPPED], drawn, 0.5)
    for index, pair in pairs:
        if pair.kind in (Kind.FOLLOWS, Kind.SWAPPED):
            assert {pair.a_start // 30, (pair.b_stop - 1) // 30} == {index}
            assert (pair.b_start >= pair.a_stop) == (pair.kind == Kind.FOLLOWS)


def test_a_sentence_without_another_is_skipped_if_asked():
    documents = corpus([30], [2, 2], [3])
    options = {"room": 6, "short_rate": 0.0}
    pairs = [pair for _, pair in all_pairs(segment_pairs.sentence_order_pairs, documents, **options, single="skip")]
    assert [pair.kind == Kind.SKIPPED for pair in pairs] == [True, False, True]
    counted = segment_pairs.statistics(pairs, frame=FRAME)
    assert (counted.examples, counted.kinds["skipped"], sum(counted.kinds.values())) == (1, 2, 3)
    made = segment_pairs.finish_pairs(documents.tokens, segment_pairs.as_plan(pairs), frame=FRAME)
    assert len(made.lengths) == 1
    pairs = [pair for _, pair in all_pairs(segment_pairs.sentence_order_pairs, documents, **options)]
    assert [pair.kind == Kind.FORCED_RANDOM for pair in pairs] == [True, False, True]


def test_a_tenth_of_electra_is_single_and_the_sentence_at_the_boundary_goes_either_way():
    frame = SequenceFrame(length=64, bos_id=1, eos_id=2)
    documents = corpus(*[[7] * 200] * 40)
    found = all_pairs(segment_pairs.electra_pairs, documents, frame=frame)
    pairs = [pair for (index, pair), (after, _) in itertools.pairwise(found) if index == after]  # not the last ones
    # Ten sentences reach 64; the first segment has 4 of them (28 < 30), or 5, or all that fits.
    full = [p for p in pairs if p.a_stop - p.a_start + p.b_stop - p.b_start + p.cut == 70]
    sizes = collections.Counter(pair.a_stop - pair.a_start for pair in full)
    assert set(sizes) == {28, 35, 62}
    assert within(sizes[62], len(full), 0.1)
    assert within(sizes[28], sizes[28] + sizes[35], 0.5)
    assert {pair.b_stop - pair.b_start for pair in full} == {61 - 28, 61 - 35, 0}
    assert {pair.kind for pair in full if pair.b_stop == pair.b_start} == {Kind.SINGLE}
    assert within(len(pairs) - len(full), len(pairs), 0.05 * 59 / 60)  # U{5, ..., 64} is 64 once in 60 times


def test_truncation_takes_from_the_longer_side_and_from_both_ends():
    documents = corpus(*[[10, 30]] * 300)
    options = {"room": 12, "short_rate": 0.0}
    found = all_pairs(segment_pairs.sentence_order_pairs, documents, **options)
    pairs = [(40 * index, pair) for index, pair in found if pair.kind == Kind.FOLLOWS]
    assert len(pairs) > 100
    assert {(p.a_stop - p.a_start, p.b_stop - p.b_start, p.cut) for _, p in pairs} == {(6, 6, 28)}
    fronts = [pair.b_start - (start + 10) for start, pair in pairs]  # of the 24 tokens that the second one loses
    assert within(sum(fronts), 24 * len(fronts), 0.5)


def test_labels_are_those_of_bert():
    kinds = np.array(list(Kind)[:6])
    assert segment_pairs.labels(kinds).tolist() == [0, 1, 1, 1, 0, 1]
