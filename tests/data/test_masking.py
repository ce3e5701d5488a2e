import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from t2t.data import corruption, masking
from tests.reference import corruption as oracle
from tests.reference import masking as choices

MASK, SIZE = 4, 50
TEXT_IDS = np.arange(5, SIZE, dtype=np.int32)


def corrupt(tokens, u, *, mask=0.8, random=0.1, **choice):
    tokens = np.asarray(tokens, np.int32)
    chosen = masking.choose_tokens(tokens >= 5, u[..., 0, :], **choice)
    treatment, replacement = (u[..., row, : tokens.shape[-1]] for row in (1, 2))
    law = {"mask_id": MASK, "replacements": TEXT_IDS, "mask": mask, "random": random}
    return masking.replace_chosen(tokens, chosen, treatment=treatment, replacement=replacement, **law), chosen


def within(count: int, trials: int, rate: float) -> bool:
    return abs(count - trials * rate) < 4 * math.sqrt(trials * rate * (1 - rate))


def test_frequencies_of_a_million_tokens():
    rows, length = 10_000, 100
    tokens = np.full((rows, length), 7)
    u = corruption.uniforms(0, 0, range(rows), 3 * (length + 1)).reshape(rows, 3, -1)
    inputs, chosen = corrupt(tokens, u)
    number = int(chosen.sum())
    assert within(number, rows * length, 0.15)
    assert within(int((inputs[chosen] == MASK).sum()), number, 0.8)
    drawn = (inputs[chosen] != MASK) & (inputs[chosen] != 7)
    # One random token in 45 is the token itself.
    assert within(int(drawn.sum()), number, 0.1 * 44 / 45)
    assert within(int((inputs[chosen] == 7).sum()), number, 0.1 + 0.1 / 45)
    counts = np.bincount(inputs[chosen][drawn], minlength=SIZE)
    assert (counts[:5] == 0).all()
    expected = drawn.sum() / 44
    assert sum((c - expected) ** 2 / expected for i, c in enumerate(counts) if i >= 5 and i != 7) < 43 + 4 * math.sqrt(
        86
    )
    np.testing.assert_array_equal(inputs[~chosen], 7)


def test_exact_counts_as_bert():
    tokens = np.full((200, 30), 9)
    tokens[:, 0], tokens[:, -1] = 2, 3
    u = corruption.uniforms(0, 0, range(200), 3 * 31).reshape(200, 3, -1)
    _, chosen = corrupt(tokens, u, count="exact")
    assert (chosen.sum(-1) == 4).all()  # round(4.5), halves to even
    assert not chosen[:, [0, -1]].any()
    _, chosen = corrupt(tokens[:, :3], u[..., :4], count="exact")
    assert (chosen.sum(-1) == 1).all()  # at least one


def test_rounded_counts_as_roberta():
    rows, length = 4_000, 30
    u = corruption.uniforms(0, 0, range(rows), 3 * (length + 1)).reshape(rows, 3, -1)
    _, chosen = corrupt(np.full((rows, length), 9), u, count="rounded")
    counts = chosen.sum(-1)
    assert set(counts.tolist()) == {4, 5}
    assert within(int((counts == 5).sum()), rows, 0.5)


@pytest.mark.parametrize("count", ["independent", "exact", "rounded"])
def test_at_most_max_predictions(count):
    rows, length = 500, 40
    u = corruption.uniforms(0, 0, range(rows), 3 * (length + 1)).reshape(rows, 3, -1)
    _, chosen = corrupt(np.full((rows, length), 9), u, count=count, rate=0.5, max_predictions=7)
    assert chosen.sum(-1).max() == 7
    # The ones that are kept are a uniform choice, not the first.
    assert within(int(chosen[:, :20].sum()), int(chosen.sum()), 0.5)


def test_no_candidates_no_choice():
    for count in ("independent", "exact", "rounded"):
        inputs, chosen = corrupt([2, 3], np.zeros((3, 3)), count=count)
        assert not chosen.any()
        np.testing.assert_array_equal(inputs, [2, 3])


def test_by_hand():
    u = [[0.1, 0.9, 0.1, 0.1, 0.0], [0.79, 0.0, 0.85, 0.95, 0.0], [0.5, 0.5, 0.999, 0.5, 0.0]]
    inputs, chosen = corrupt([10, 11, 12, 13], np.array(u))
    np.testing.assert_array_equal(inputs, [MASK, 11, 49, 13])
    np.testing.assert_array_equal(chosen, [True, False, True, True])


@hypothesis.given(
    st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=20),
    st.integers(0, 2**32),
    st.sampled_from([None, 1, 3]),
)
def test_equals_the_oracle(tokens, seed, limit):
    u = np.random.default_rng(seed).random((3, len(tokens) + 1))
    candidates = [token >= 5 for token in tokens]
    law = {"rate": 0.4, "mask": 0.5, "random": 0.3}
    expected = oracle.mask_tokens(
        tokens, u.tolist(), candidates=candidates, mask_id=MASK, replacements=TEXT_IDS.tolist(), limit=limit, **law
    )
    # A rate of almost 1 chooses every candidate, of which the limit leaves those of the smallest uniforms.
    options = law if limit is None else {**law, "rate": 0.999999, "max_predictions": limit}
    inputs, chosen = corrupt(tokens, u, **options)
    assert (inputs.tolist(), chosen.tolist()) == expected


# How many.


@pytest.mark.parametrize(
    ("size", "rate", "exact", "ceiling", "rounded"),
    [(30, 0.15, 4, 5, [4, 5]), (3, 0.15, 1, 1, [0, 1]), (100, 0.07, 7, 7, [7, 7]), (20, 0.15, 3, 3, [3, 3])],
)
def test_budgets_by_hand(size, rate, exact, ceiling, rounded):
    u = np.array([0.0, 0.999])
    assert masking.budget(size, u, rate=rate, count="exact").tolist() == [exact] * 2
    assert masking.budget(size, u, rate=rate, count="ceiling").tolist() == [ceiling] * 2
    assert masking.budget(size, u, rate=rate, count="rounded").tolist() == rounded


def test_independent_choices_have_no_budget():
    with pytest.raises(ValueError, match="possible are 'exact', 'rounded' and 'ceiling'"):
        masking.budget(10, np.zeros(1), rate=0.15, count="independent")


@hypothesis.given(st.lists(st.booleans(), max_size=12), st.integers(0, 14), st.integers(0, 99))
def test_exactly_so_many_or_all_there_are(candidates, limit, seed):
    candidates = np.array(candidates, bool)
    u = np.random.default_rng(seed).random(len(candidates) + 1)
    rate = 0.999999
    chosen = masking.choose_tokens(candidates, u, rate=rate, count="ceiling", max_predictions=limit)
    assert chosen.sum() == min(limit, candidates.sum())
    assert not chosen[~candidates].any()
    left = candidates & ~chosen
    assert not left.any() or not chosen.any() or u[:-1][chosen].max() < u[:-1][left].min()


def test_equal_uniforms_make_no_more_than_wanted():
    chosen = masking.choose_tokens(np.ones(6, bool), np.full(7, 0.5), rate=0.5, count="exact")
    assert chosen.tolist() == [True, True, True, False, False, False]


# Weights.


def test_weighted_choices_have_the_probabilities_of_draws_without_replacement():
    weights = np.array([1.0, 2.0, 0.5, 4.0, 1.0, 3.0])
    rows = 20_000
    u = np.random.default_rng(0).random((rows, 7))
    candidates = np.ones((rows, 6), bool)
    candidates[:, 4] = False
    chosen = masking.choose_tokens(candidates, u, rate=0.5, count="exact", weights=np.tile(weights, (rows, 1)))
    assert (chosen.sum(-1) == 3).all()
    expected = iter(choices.inclusion([1.0, 2.0, 0.5, 4.0, 3.0], 3))
    for place, times in enumerate(chosen.sum(0).tolist()):
        assert times == 0 if place == 4 else within(times, rows, next(expected))


def test_the_oracle_of_weighted_draws_by_hand():
    # The first draw takes the heavy one with 2/4, a light one with 1/4 each; the second the heavy one with 2/3.
    assert choices.inclusion([1.0, 2.0, 1.0], 2) == pytest.approx([7 / 12, 5 / 6, 7 / 12])


def test_weights_by_hand():
    u = np.array([0.1, 0.2, 0.5, 0.3, 0.0])
    weights = np.array([1.0, 4.0, 10.0, 1.0])
    # -log(1 - u) / weight: 0.105, 0.056, 0.069, 0.357
    chosen = masking.choose_tokens(np.ones(4, bool), u, rate=0.5, count="exact", weights=weights)
    assert chosen.tolist() == [False, True, True, False]
    with pytest.raises(ValueError, match="weights need a number of tokens"):
        masking.choose_tokens(np.ones(4, bool), u, weights=weights)


def test_smoothing_evens_out_frequencies():
    counts = np.array([0, 1, 16, 10_000])
    assert masking.smoothed_weights(counts, smoothing=0.5).tolist() == [1.0, 1.0, 0.25, 0.01]
    np.testing.assert_allclose(masking.smoothed_weights(counts, smoothing=0.75), [1, 1, 1 / 8, 1e-3])


def test_counts_of_many_tokens_are_added_up(monkeypatch):
    monkeypatch.setattr(masking, "_BLOCK", 3)
    tokens = np.array([1, 1, 0, 4, 1, 4, 4], np.int32)
    assert masking.token_counts([tokens, tokens[:2]], 6).tolist() == [1, 5, 0, 0, 3, 0]
    assert masking.token_counts([tokens[:0]], 2).tolist() == [0, 0]
