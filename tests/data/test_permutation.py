"""Targets, orders and masks of XLNet: `t2t.data.permutation`."""

import itertools
import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from t2t.data import corruption, permutation
from tests.reference import permutation as oracle

few = hypothesis.settings(max_examples=25)


def uniforms(rows: int, length: int, *, seed: int = 0, context: float = 6.0) -> np.ndarray:
    number = permutation.num_target_uniforms(length, context=context)
    return corruption.uniforms(seed, 0, range(rows), number)


def choose(u, length, *, starts=None, candidates=None, **options):
    shape = (*u.shape[:-1], length)
    starts = np.ones(shape, bool) if starts is None else np.broadcast_to(starts, shape)
    candidates = np.ones(shape, bool) if candidates is None else np.broadcast_to(candidates, shape)
    return permutation.choose_targets(u, starts=starts, candidates=candidates, **options)


def test_the_example_of_the_module():
    """the cat sat on the mat <sep> <cls>: "mat" before <cls>, <sep> and "cat"."""
    order = np.array([-1, 6, -1, -1, -1, 1, 5, 4], np.int32)
    is_target = np.array([0, 1, 0, 0, 0, 1, 0, 0], bool)
    expected = [
        [0, 1, 0, 0, 0, 1, 1, 1],
        [0, 1, 0, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 1, 1, 1],
        [0, 1, 0, 0, 0, 1, 1, 1],
        [0, 1, 0, 0, 0, 1, 1, 1],
        [0, 1, 0, 0, 0, 1, 1, 1],
        [0, 1, 0, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0, 1, 0],
    ]
    mask = permutation.permutation_mask(order, is_target=is_target)
    np.testing.assert_array_equal(mask, expected)
    assert mask.dtype == np.int8
    ranks = np.array([3, 6, 0, 7, 2, 1, 5, 4], np.int32)
    is_ordered = np.array([0, 1, 0, 0, 0, 1, 1, 1], bool)
    np.testing.assert_array_equal(permutation.reading_order(ranks, is_ordered=is_ordered), order)


@few
@hypothesis.given(st.data())
def test_the_mask_is_that_of_the_rules(data):
    length = data.draw(st.integers(1, 9))
    reuse = data.draw(st.none() | st.integers(1, length))
    block = data.draw(st.none() | st.integers(1, length))
    flags = st.lists(st.booleans(), min_size=length, max_size=length)
    functional = data.draw(flags)
    targets = [t and not f for t, f in zip(data.draw(flags), functional, strict=True)]
    u = np.random.default_rng(data.draw(st.integers(0, 99))).random(length)
    ranks = permutation.draw_ranks(u, block=block, reuse=reuse)
    is_target, is_ordered = np.array(targets), np.array(targets) | np.array(functional)
    order = permutation.reading_order(ranks, is_ordered=is_ordered, reuse=reuse)
    found = permutation.permutation_mask(order, is_target=is_target)
    # Within each part the numbers begin at 0.
    numbers = [int(rank) - (reuse if reuse is not None and place >= reuse else 0) for place, rank in enumerate(ranks)]
    assert found.tolist() == oracle.permutation_mask(numbers, targets, functional, reuse)


def test_no_target_reads_itself_and_all_else_does():
    rng = np.random.default_rng(1)
    is_target, special = rng.random((40, 23)) < 0.3, rng.random((40, 23)) < 0.1
    is_target &= ~special
    ranks = permutation.draw_ranks(rng.random((40, 23)), block=7, reuse=11)
    order = permutation.reading_order(ranks, is_ordered=is_target | special, reuse=11)
    mask = permutation.permutation_mask(order, is_target=is_target)
    np.testing.assert_array_equal(np.diagonal(mask, axis1=1, axis2=2), is_target)
    # Of two that are ordered in one part, one reads the other; nothing passes from one to another and back.
    ordered = is_target | special
    part = np.arange(23) >= 11
    both = ordered[:, :, None] & ordered[:, None] & (part[:, None] == part) & ~np.eye(23, dtype=bool)
    assert ((mask + mask.transpose(0, 2, 1))[both] == 1).all()


@few
@hypothesis.given(st.data())
def test_targets_equal_the_oracle(data):
    length = data.draw(st.integers(1, 40))
    flags = st.lists(st.booleans(), min_size=length, max_size=length)
    starts, candidates = data.draw(flags), data.draw(flags)
    law = {
        "count": data.draw(st.integers(1, length)),
        "longest": data.draw(st.integers(1, 5)),
        "context": data.draw(st.sampled_from([1.0, 2.5, 6.0])),
        "words": data.draw(st.booleans()),
    }
    spans = permutation.most_spans(length, context=law["context"])
    u = uniforms(3, length, seed=data.draw(st.integers(0, 99)), context=law["context"])
    shape = {"starts": np.array(starts), "candidates": np.array(candidates)}
    together = choose(u, length, **shape, **law)
    for row, found in zip(u, together, strict=True):
        np.testing.assert_array_equal(choose(row, length, **shape, **law), found)
        expected = oracle.choose_targets(
            row[:spans], row[spans : 2 * spans], row[2 * spans :], starts=starts, candidates=candidates, **law
        )
        assert found.tolist() == expected


def test_a_walk_by_hand():
    """n = 2 and n = 1: contexts of 12 and 6 tokens, 3 and 0 of them on the left."""
    length, spans = 24, permutation.most_spans(24)
    u = np.full(permutation.num_target_uniforms(length), 0.99)
    u[:2], u[spans : spans + 2] = [0.5, 0.0], [0.3, 0.0]
    starts = np.ones(length, bool)
    starts[[3, 4]] = False
    expected = np.zeros(length, int)
    expected[[5, 6]] = 1  # the first word start behind 3 tokens
    expected[7 + 9] = 1  # 9 tokens are on the right
    np.testing.assert_array_equal(choose(u, length, starts=starts, count=3), expected)
    np.testing.assert_array_equal(choose(u, length, starts=starts, count=1), expected * (np.arange(length) == 5))


def test_there_is_room_for_every_span():
    """Sizes of 1 side by side, all on the left: a walk of most_spans, none left over."""
    for length in (1, 6, 7, 8, 13, 14, 15, 100):
        spans = permutation.most_spans(length)
        u = np.zeros(permutation.num_target_uniforms(length))
        assert int(choose(u, length, count=spans).sum()) == spans
        assert np.flatnonzero(choose(u, length, count=spans)).tolist() == list(range(0, length, 7))


@pytest.mark.parametrize("words", [False, True])
def test_exactly_as_many_as_asked_for(words):
    rng = np.random.default_rng(3)
    starts, candidates = rng.random((200, 64)) < 0.7, rng.random((200, 64)) < 0.8
    for count in (1, 10, 30, 64):
        found = choose(uniforms(200, 64), 64, starts=starts, candidates=candidates, count=count, words=words)
        np.testing.assert_array_equal(found.sum(-1), np.minimum(count, candidates.sum(-1)))
        assert not (found & ~candidates).any()
    assert not choose(uniforms(2, 5), 5, count=0).any()


def test_sizes_of_spans_have_the_law_of_one_over_n():
    u = np.random.default_rng(0).random(100_000)
    counts = np.bincount(permutation.span_sizes(u), minlength=6)
    harmonic = sum(1 / n for n in range(1, 6))
    for n in range(1, 6):
        share = 1 / n / harmonic
        assert abs(counts[n] - len(u) * share) < 4 * math.sqrt(len(u) * share * (1 - share))
    assert counts.sum() == counts[1:].sum()


def test_spans_begin_at_word_starts_and_cover_a_seventh():
    """A span of n tokens has a context of 6 n: of 7 n tokens n, before singles are added."""
    rows, length = 400, 700
    starts = np.random.default_rng(5).random((rows, length)) < 0.7
    every = choose(uniforms(rows, length), length, starts=starts, count=length)
    assert every.all()
    draws = uniforms(rows, length)[:, : 2 * permutation.most_spans(length)].reshape(rows, 2, -1)
    spans = permutation._walk(draws, starts, longest=5, context=6.0, words=False)
    begins = spans & ~np.pad(spans[:, :-1], [(0, 0), (1, 0)])
    assert starts[begins].all()
    # A word start is found 3 / 7 of a token further on the average.
    assert 0.12 < spans.mean() < 1 / 7


def test_words_are_whole_where_words_are_asked_for():
    length = 60
    starts = np.arange(length) % 3 == 0
    u = uniforms(50, length)
    draws = u[:, : 2 * permutation.most_spans(length)].reshape(50, 2, -1)
    spans = permutation._walk(draws, np.broadcast_to(starts, (50, length)), longest=5, context=6.0, words=True)
    words = spans.reshape(50, -1, 3)
    assert (words.all(-1) == words.any(-1)).all()


def test_ranks_are_permutations_block_after_block():
    u = np.random.default_rng(0).random((50, 10))
    np.testing.assert_array_equal(np.sort(permutation.draw_ranks(u), axis=-1), np.arange(10) * np.ones((50, 1)))
    ranks = permutation.draw_ranks(u, block=2, reuse=5)  # blocks 2 2 1 | 2 2 1
    for first, last in ((0, 2), (2, 4), (4, 5), (5, 7), (7, 9), (9, 10)):
        np.testing.assert_array_equal(np.sort(ranks[:, first:last], axis=-1), np.arange(first, last) * np.ones((50, 1)))
    assert permutation.draw_ranks(np.zeros((2, 0))).shape == (2, 0)


def test_every_permutation_is_as_likely():
    rows = 24_000
    ranks = permutation.draw_ranks(corruption.uniforms(0, 0, range(rows), 4))
    names = ranks @ (10 ** np.arange(4))
    for order in itertools.permutations(range(4)):
        number = np.count_nonzero(names == sum(rank * 10**place for place, rank in enumerate(order)))
        assert abs(number - rows / 24) < 4 * math.sqrt(rows / 24 * 23 / 24)
