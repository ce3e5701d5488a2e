"""BERT's corruption: `t2t.data.corruption.mask_tokens`."""

import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from t2t.data import corruption
from tests.reference import corruption as oracle

MASK, SIZE = 4, 50
TEXT_IDS = np.arange(5, SIZE, dtype=np.int32)


def corrupt(tokens, u, **options):
    tokens = np.asarray(tokens, np.int32)
    options = {"candidates": tokens >= 5, "mask_id": MASK, "replacements": TEXT_IDS, **options}
    return corruption.mask_tokens(tokens, u, **options)


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
