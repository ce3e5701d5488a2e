import itertools
import math
from collections import Counter

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats

from t2t.data import corruption, text_noise
from tests.reference import denoising as oracle

MASK = 99


def uniform(number, index=0):
    return corruption.example_rng(5, 0, index).random(number)


def is_likely(counts, expected) -> bool:
    """Whether counts are as likely as what 4 sigma let pass."""
    return stats.chisquare(counts, expected).pvalue > 6e-5


# Spans of Poisson's law.


@pytest.mark.parametrize(("mean", "empty"), [(3.0, 0.0498), (3.5, 0.0302)])
def test_lengths_follow_poisson(mean, empty):
    lengths = text_noise.poisson_lengths(uniform(60_000), mean=mean, words=150_000)[:-1]
    number = len(lengths)
    assert number > 40_000
    assert math.exp(-mean) == pytest.approx(empty, abs=5e-5)
    assert abs((lengths == 0).sum() - number * empty) < 4 * math.sqrt(number * empty * (1 - empty))
    expected = stats.poisson.pmf(np.arange(10), mean) * number
    counts = np.bincount(lengths, minlength=11)
    assert is_likely([*counts[:10], counts[10:].sum()], [*expected, number - expected.sum()])


@hypothesis.given(st.integers(0, 200), st.sampled_from([0.5, 1.0, 3.0, 3.5, 20.0]), st.integers(0, 30))
def test_lengths_make_up_the_budget_exactly(words, mean, index):
    u = uniform(text_noise.num_poisson_draws(words, mean=mean), index)
    lengths = text_noise.poisson_lengths(u, mean=mean, words=words)
    assert lengths.sum() == words
    assert not len(lengths) or lengths[-1] > 0
    assert lengths.tolist() == oracle.poisson_lengths(stats.poisson.ppf(u, mean).astype(int).tolist(), words)


def test_too_few_draws_leave_the_rest_to_the_last_span():
    assert text_noise.poisson_lengths(np.array([0.5, 0.01]), mean=3.0, words=9).tolist() == [3, 6]


def test_budgets_round_up_but_not_by_rounding_errors():
    assert [text_noise.budget(0.3, number) for number in (0, 1, 7, 10, 20, 511)] == [0, 1, 3, 3, 6, 154]
    assert 0.07 * 100 > 7
    assert text_noise.budget(0.07, 100) == 7


# Infilling.


@st.composite
def texts(draw):
    """Tokens, where words start, which tokens are text, lengths of spans and uniforms."""
    size = draw(st.integers(1, 30))
    is_text = np.array(draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))) > 1
    starts = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    starts[0] = True
    starts[1:] |= ~is_text[:-1]
    starts &= is_text
    number = draw(st.integers(0, int(starts.sum())))
    lengths = np.array(draw(st.lists(st.integers(1, 5), min_size=number, max_size=number)), np.int64)
    return np.arange(100, 100 + size), starts, is_text, lengths, uniform(size, draw(st.integers(0, 99)))


@hypothesis.settings(max_examples=30)
@hypothesis.given(texts(), st.sampled_from([-1, 0, 1]))
def test_infilling_is_the_walk_of_the_oracle(text, replace_length):
    tokens, starts, is_text, lengths, u = text
    law = {"starts": starts, "is_text": is_text, "lengths": lengths, "replace_length": replace_length}
    made = text_noise.infill(tokens, u, masks=MASK, **law)
    order = np.argsort(u[: starts.sum()]).tolist()
    assert made.tolist() == oracle.infill(tokens.tolist(), order, mask=MASK, **law)
    assert made.dtype == tokens.dtype
    np.testing.assert_array_equal(made[np.isin(made, tokens[~is_text])], tokens[~is_text])


def test_spans_that_meet_merge_and_neighbours_do_not():
    here = {"starts": np.ones(6, bool), "is_text": np.ones(6, bool), "masks": MASK}
    u = np.array([0.9, 0.1, 0.2, 0.8, 0.8, 0.8])  # spans begin at places 1 and 2
    tokens = np.arange(6)
    assert text_noise.infill(tokens, u, lengths=np.array([2, 2]), **here).tolist() == [0, MASK, 4, 5]
    assert text_noise.infill(tokens, u, lengths=np.array([1, 2]), **here).tolist() == [0, MASK, MASK, 4, 5]
    assert text_noise.infill(tokens, u, lengths=np.array([9, 1]), **here).tolist() == [0, MASK]


def test_one_word_of_several_tokens_is_one_mask():
    here = {"starts": np.array([1, 0, 0, 1, 0], bool), "is_text": np.ones(5, bool), "lengths": np.array([1])}
    tokens, u = np.arange(5), np.array([0.1, 0.9, 0.9, 0.9, 0.9])
    made = {r: text_noise.infill(tokens, u, masks=MASK, replace_length=r, **here).tolist() for r in (-1, 0, 1)}
    assert made == {-1: [MASK, MASK, MASK, 3, 4], 0: [3, 4], 1: [MASK, 3, 4]}


def test_every_word_is_chosen_alike():
    trials, size, number = 1500, 10, 3
    here = {"starts": np.ones(size, bool), "is_text": np.ones(size, bool), "lengths": np.ones(number, np.int64)}
    rows = [
        text_noise.infill(np.arange(size), u, masks=MASK, replace_length=-1, **here) == MASK
        for u in corruption.uniforms(0, 0, range(trials), size)
    ]
    chosen = np.array(rows)
    assert (chosen.sum(-1) == number).all()
    rate = number / size
    assert np.abs(chosen.mean(0) - rate).max() < 4 * math.sqrt(rate * (1 - rate) / trials)


# Sentences.


def test_sentences_keep_their_tokens_and_their_documents():
    """A third of the tokens end a sentence, a tenth parts documents; 300 texts, since few of them have all there is."""
    rng = np.random.default_rng(0)
    for index in range(300):
        kinds, rate = rng.integers(0, 10, rng.integers(0, 40)), (0.0, 0.3, 0.5, 1.0)[index % 4]
        tokens, ends, fixed = np.arange(100, 100 + len(kinds)), kinds < 3, kinds == 9
        u = uniform(2 * len(kinds), index).reshape(2, -1)
        made = text_noise.permute_sentences(tokens, u, ends=ends, fixed=fixed, rate=rate).tolist()
        documents, moved, number = oracle.sentences(tokens.tolist(), ends.tolist(), fixed.tolist()), 0, 0
        for document in documents:
            part, found = [made.pop(0) for _ in range(sum(map(len, document)))], []
            while part:
                sentence = next(s for s in document if s[0] == part[0])
                assert part[: len(sentence)] == sentence
                found.append(sentence)
                part = part[len(sentence) :]
            assert sorted(found) == sorted(document)
            moved += sum(a != b for a, b in zip(found, document, strict=True))
            number += len(document) * (not fixed[document[0][0] - 100])
        assert moved <= oracle.num_permuted(number, rate)


def test_orders_of_sentences_are_uniform():
    trials, tokens = 1500, np.array([1, 2, 9, 3, 9, 4, 5, 6])
    ends, fixed = tokens == 9, np.zeros(8, bool)
    rows = corruption.uniforms(1, 0, range(trials), 16).reshape(-1, 2, 8)
    orders = Counter(tuple(text_noise.permute_sentences(tokens, u, ends=ends, fixed=fixed)) for u in rows)
    parts = ([1, 2, 9], [3, 9], [4, 5, 6])
    assert set(orders) == {tuple(sum(order, [])) for order in itertools.permutations(parts)}
    assert is_likely(list(orders.values()), [trials / 6] * 6)


def test_a_fraction_of_the_sentences_is_drawn():
    trials, tokens = 1500, np.arange(4)
    everywhere, fixed = np.ones(4, bool), np.zeros(4, bool)
    rows = corruption.uniforms(2, 0, range(trials), 8).reshape(-1, 2, 4)
    law = {"ends": everywhere, "fixed": fixed, "rate": 0.3}  # 1.2 of 4, rounded up
    made = np.array([text_noise.permute_sentences(tokens, u, **law) for u in rows])
    moved = made != tokens
    assert set(moved.sum(-1).tolist()) == {0, 2}  # of two chosen sentences, half the time in their old order
    rate = 0.25
    assert np.abs(moved.mean(0) - rate).max() < 4 * math.sqrt(rate * (1 - rate) / trials)


# Insertion and rotation.


def test_insertions_are_uniform_among_places():
    trials, tokens = 1500, np.array([1, 2, 3])
    rows = corruption.uniforms(3, 0, range(trials), 5)
    made = Counter(tuple(text_noise.insert(tokens, u, values=np.array([MASK, MASK]))) for u in rows)
    assert all([token for token in row if token != MASK] == [1, 2, 3] for row in made)
    assert len(made) == 10
    assert is_likely(list(made.values()), [trials / 10] * 10)


def test_rotations_are_uniform():
    trials, tokens = 1500, np.arange(7)
    made = Counter(tuple(text_noise.rotate(tokens, u)) for u in uniform(trials))
    assert set(made) == {tuple(np.roll(tokens, -offset)) for offset in range(1, 7)}
    assert is_likely(list(made.values()), [trials / 6] * 6)


@pytest.mark.parametrize("size", [0, 1])
def test_nothing_to_rotate_or_to_permute(size):
    tokens, no = np.arange(size), np.zeros(size, bool)
    assert text_noise.rotate(tokens, 0.5).tolist() == tokens.tolist()
    assert text_noise.permute_sentences(tokens, np.zeros((2, size)), ends=no, fixed=no).tolist() == tokens.tolist()
