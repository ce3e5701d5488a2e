import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from t2t.data import corruption, word_masking
from tests.reference import masking as oracle

ONES = (0, 1, 1, 0, 1, 1, 1, 1, 0, 1)  # candidates
BEGIN = (1, 1, 0, 1, 1, 1, 0, 0, 1, 0)  # starts: words at 1-2, 4, 5-7, 9


def bits(*values):
    return np.array(values, bool)


def within(count, trials, rate):
    return abs(count - trials * rate) < 4 * math.sqrt(trials * rate * (1 - rate))


def single_words(rows, length, number=2):
    """Candidates, uniforms and starts of texts of words of one token."""
    u = corruption.uniforms(0, 0, range(rows), number * (length + 1)).reshape(rows, number, -1)
    everywhere = np.ones((rows, length), bool)
    return everywhere, u, everywhere


# By hand.


def test_words_by_hand():
    u = np.array([0.0, 0.9, 0.0, 0.0, 0.3, 0.1, 0.0, 0.0, 0.0, 0.5, 0.0])
    # In the order 5-7, 4, 9, 1-2: three tokens are the first word, two are 4 and 9, and 1-2 is too long for six.
    for rate, expected in (
        (0.3, [0, 0, 0, 0, 0, 1, 1, 1, 0, 0]),
        (0.2, [0, 0, 0, 0, 1, 0, 0, 0, 0, 2]),
        (0.6, [0, 0, 0, 0, 2, 1, 1, 1, 0, 3]),
    ):
        labels = word_masking.choose_words(bits(*ONES), u, starts=bits(*BEGIN), rate=rate)
        assert labels.tolist() == expected


def test_ngrams_by_hand():
    u = np.zeros((2, 11))
    u[0, [1, 4, 5, 9]] = 0.2, 0.4, 0.1, 0.3
    u[1, [1, 4, 5, 9]] = 0.99, 0.99, 0.0, 0.99
    choose = {"starts": bits(*BEGIN), "rate": 0.99}  # ten tokens
    # 5-7 alone; then 1-2, which no word follows in its run; then 9; 4 with 5-7 meets what is chosen.
    assert word_masking.choose_ngrams(bits(*ONES), u, **choose).tolist() == [0, 2, 2, 0, 0, 1, 1, 1, 0, 3]
    u[0, 4] = 0.0
    # 4 and 5-7 together, if the number of tokens allows it, else 4 alone.
    assert word_masking.choose_ngrams(bits(*ONES), u, **choose).tolist() == [0, 2, 2, 0, 1, 1, 1, 1, 0, 3]
    choose["rate"] = 0.3
    assert word_masking.choose_ngrams(bits(*ONES), u, **choose).tolist() == [0, 2, 2, 0, 1, 0, 0, 0, 0, 0]


def test_spans_by_hand():
    u = np.zeros((2, 11))
    u[0, [1, 4, 5, 9]] = 0.2, 0.4, 0.1, 0.3
    u[1, [1, 4, 5, 9]] = 0.99, 0.99, 0.0, 0.99
    choose = {"starts": bits(*BEGIN), "rate": 0.99}
    # As the n-grams, but the span from 4 on ends before 5-7.
    assert word_masking.choose_spans(bits(*ONES), u, **choose).tolist() == [0, 2, 2, 0, 4, 1, 1, 1, 0, 3]


def test_rounded_counts_are_of_words():
    # Four words: two of them, or, rounded up, three; single tokens would be five.
    for u_last, number in ((0.0, 2), (0.7, 3)):
        u = np.array([0.0, 0.9, 0.0, 0.0, 0.3, 0.1, 0.0, 0.0, 0.0, 0.5, u_last])
        labels = word_masking.choose_words(bits(*ONES), u, starts=bits(*BEGIN), rate=0.6, count="rounded")
        assert labels.max() == number


def test_laws_by_hand():
    np.testing.assert_allclose(word_masking.ngram_law(), [6 / 11, 3 / 11, 2 / 11])
    np.testing.assert_allclose(word_masking.ngram_law(favor_longer=True), [2 / 11, 3 / 11, 6 / 11])
    law = word_masking.span_law()
    np.testing.assert_allclose(law[1:] / law[:-1], 0.8)
    assert law.sum() == pytest.approx(1)
    assert law @ np.arange(1, 11) == pytest.approx(3.797, abs=1e-3)


# Against the oracle.


@st.composite
def texts(draw):
    length = draw(st.integers(1, 24))
    candidates = draw(st.lists(st.sampled_from([True, True, True, False]), min_size=length, max_size=length))
    starts = draw(st.lists(st.booleans(), min_size=length, max_size=length))
    u = np.random.default_rng(draw(st.integers(0, 2**32))).random((2, length + 1))
    return np.array(candidates), np.array(starts), u


@hypothesis.given(texts(), st.integers(0, 12), st.sampled_from(["words", "ngrams", "spans"]))
def test_equals_the_oracle(text, limit, kind):
    candidates, starts, u = text
    found = oracle.words(candidates.tolist(), starts.tolist())
    choose = {"starts": starts, "rate": 0.999999, "count": "ceiling", "max_predictions": limit}
    if kind == "words":
        made = word_masking.choose_words(candidates, u[0], **choose)
        expected = oracle.choose_words(found, u[0].tolist(), limit=limit)
    elif kind == "ngrams":
        made = word_masking.choose_ngrams(candidates, u, longest=4, **choose)
        law = [1, 1 / 2, 1 / 3, 1 / 4]
        expected = oracle.choose_ngrams(found, u[0].tolist(), u[1].tolist(), law=law, limit=limit)
    else:
        made = word_masking.choose_spans(candidates, u, longest=5, stop=0.3, **choose)
        law = [0.7**n for n in range(5)]
        expected = oracle.choose_spans(found, u[0].tolist(), u[1].tolist(), law=law, limit=limit)
    assert made.tolist() == oracle.labels(len(candidates), expected)


@hypothesis.given(texts(), st.sampled_from(["words", "ngrams", "spans"]), st.sampled_from([0.15, 0.5, 0.9]))
def test_no_word_is_split_and_only_candidates_are_chosen(text, kind, rate):
    candidates, starts, u = text
    if kind == "words":
        labels = word_masking.choose_words(candidates, u[0], starts=starts, rate=rate)
    else:
        labels = getattr(word_masking, f"choose_{kind}")(candidates, u, starts=starts, rate=rate)
    assert not labels[~candidates].any()
    for word in oracle.words(candidates.tolist(), starts.tolist()):
        assert len(set(labels[word].tolist())) == 1
    for k in range(1, labels.max() + 1):
        places = np.flatnonzero(labels == k)
        assert (np.diff(places) == 1).all()


# Laws.


@pytest.mark.parametrize("favor_longer", [False, True])
def test_lengths_of_ngrams(favor_longer):
    rows, length = 4_000, 40
    candidates, u, starts = single_words(rows, length)
    labels = word_masking.choose_ngrams(candidates, u, starts=starts, favor_longer=favor_longer)
    # The first of each text, where it was not near the end: later ones may be skipped where they meet others.
    firsts = labels == 1
    begin = firsts.argmax(-1)
    sizes = firsts.sum(-1)[begin <= length - 3]
    for size, rate in zip((1, 2, 3), (2, 3, 6) if favor_longer else (6, 3, 2), strict=True):
        assert within((sizes == size).sum(), len(sizes), rate / 11)
    # Near the end the law is that of what fits.
    last_but_one = firsts.sum(-1)[begin == length - 2]
    assert within((last_but_one == 1).sum(), len(last_but_one), 2 / 5 if favor_longer else 2 / 3)


def test_lengths_of_spans():
    rows, length = 3_000, 120
    candidates, u, starts = single_words(rows, length)
    firsts = word_masking.choose_spans(candidates, u, starts=starts) == 1
    begin = firsts.argmax(-1)
    sizes = firsts.sum(-1)[begin <= length - 10]
    total = sum(0.2 * 0.8**n for n in range(10))
    for size in range(1, 11):
        assert within((sizes == size).sum(), len(sizes), 0.2 * 0.8 ** (size - 1) / total)
    assert sizes.max() == 10
    assert abs(sizes.mean() - 3.797) < 4 * sizes.std() / math.sqrt(len(sizes))
    # Any word is as likely to be the first of all.
    assert within((begin < length // 3).sum(), rows, 1 / 3)


def test_exactly_so_many_words_of_one_token():
    candidates, u, starts = single_words(200, 30)
    for choose in (word_masking.choose_ngrams, word_masking.choose_spans):
        assert ((choose(candidates, u, starts=starts, count="exact") > 0).sum(-1) == 4).all()  # round(4.5)
        assert ((choose(candidates, u, starts=starts, count="ceiling") > 0).sum(-1) == 5).all()
        assert ((choose(candidates, u, starts=starts, count="ceiling", max_predictions=3) > 0).sum(-1) == 3).all()
    labels = word_masking.choose_words(candidates, u[:, 0], starts=starts)
    assert (labels.max(-1) == 4).all()


def test_independent_words():
    rows, length = 400, 60
    candidates, u, _ = single_words(rows, length, number=1)
    starts = np.arange(length) % 3 == 0
    labels = word_masking.choose_words(candidates, u[:, 0], starts=np.tile(starts, (rows, 1)), count="independent")
    words = (labels > 0).reshape(rows, -1, 3)
    assert (words.all(-1) == words.any(-1)).all()
    assert within(words.any(-1).sum(), rows * length // 3, 0.15)
    limited = word_masking.choose_words(
        candidates, u[:, 0], starts=np.tile(starts, (rows, 1)), count="independent", max_predictions=8
    )
    assert (limited > 0).sum(-1).max() == 6  # two words of three tokens


def test_words_longer_than_the_budget_are_left_alone():
    starts = bits(1, *[0] * 9, 1, 1)
    u = np.array([0.0] * 10 + [0.5, 0.6, 0.0])
    labels = word_masking.choose_words(np.ones(12, bool), u, starts=starts, rate=0.2)
    assert labels.tolist() == [0] * 10 + [1, 2]


# Shapes.


def test_batches_equal_their_rows():
    rng = np.random.default_rng(0)
    candidates, starts = rng.random((2, 5, 3, 17)) < 0.7
    u = rng.random((5, 3, 2, 18))
    for choose in (word_masking.choose_ngrams, word_masking.choose_spans):
        made = choose(candidates, u, starts=starts, rate=0.4)
        assert made.shape == (5, 3, 17)
        assert made.dtype == np.int32
        np.testing.assert_array_equal(made[2, 1], choose(candidates[2, 1], u[2, 1], starts=starts[2, 1], rate=0.4))
    made = word_masking.choose_words(candidates, u[..., 0, :], starts=starts, rate=0.4)
    alone = word_masking.choose_words(candidates[4, 2], u[4, 2, 0], starts=starts[4, 2], rate=0.4)
    np.testing.assert_array_equal(made[4, 2], alone)


def test_texts_without_candidates_and_without_tokens():
    for length in (0, 3):
        nothing = np.zeros(length, bool)
        u = np.zeros((2, length + 1))
        assert word_masking.choose_words(nothing, u[0], starts=~nothing).tolist() == [0] * length
        assert word_masking.choose_ngrams(nothing, u, starts=~nothing).tolist() == [0] * length
        assert word_masking.choose_spans(nothing, u, starts=~nothing).tolist() == [0] * length
        assert word_masking.first_of_each(u[0, :length], np.zeros(length, np.int32)).tolist() == [0.0] * length


def test_one_decision_for_each_unit():
    values = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]])
    labels = np.array([[0, 0, 1, 1], [2, 2, 1, 0]])
    expected = [[0.1, 0.2, 0.3, 0.3], [0.5, 0.5, 0.7, 0.8]]
    assert word_masking.first_of_each(values, labels).tolist() == expected
