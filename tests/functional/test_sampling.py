"""Truncation by hand-made rows, frequencies by a chi-square test, and every refusal."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import sampling

PROBABILITIES = np.array([0.5, 0.25, 0.15, 0.07, 0.03], np.float32)


def test_top_k_keeps_the_k_largest_and_ties():
    logits = jnp.array([[1.0, 4.0, 3.0, 2.0], [2.0, 2.0, 1.0, 0.0]])
    assert sampling.keep_top_k(logits, k=2).tolist() == [[False, True, True, False], [True, True, False, False]]
    assert sampling.keep_top_k(jnp.array([[1.0, 3.0, 1.0]]), k=2).tolist() == [[True, True, True]]
    assert sampling.keep_top_k(logits, k=9).all()


def test_top_p_keeps_the_smallest_set_that_reaches_p_in_any_order():
    order = np.array([3, 0, 4, 2, 1])
    logits = jnp.log(jnp.asarray(PROBABILITIES[order]))[None]
    kept = np.asarray(sampling.keep_top_p(logits, p=0.8))[0]
    assert set(order[kept]) == {0, 1, 2}  # .5 + .25 = .75 < .8, so the third is needed
    assert set(order[np.asarray(sampling.keep_top_p(logits, p=0.01))[0]]) == {0}
    assert sampling.keep_top_p(logits, p=1.0).all()


def test_greedy_needs_no_key():
    assert sampling.sample(jnp.array([[0.0, 2.0, 1.0], [5.0, 2.0, 1.0]])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("settings", "law"),
    [
        ({"temperature": 1.0}, PROBABILITIES),
        ({"temperature": 0.5}, PROBABILITIES**2),
        ({"temperature": 1.0, "top_k": 2}, PROBABILITIES * [1, 1, 0, 0, 0]),
        ({"temperature": 1.0, "top_p": 0.8}, PROBABILITIES * [1, 1, 1, 0, 0]),
        ({"temperature": 0.5, "top_k": 3, "top_p": 0.9}, PROBABILITIES**2 * [1, 1, 0, 0, 0]),
    ],
)
def test_frequencies_follow_the_truncated_law(settings, law):
    draws = 20_000
    logits = jnp.tile(jnp.log(jnp.asarray(PROBABILITIES))[None], (draws, 1))
    tokens = np.asarray(sampling.sample(logits, key=jax.random.key(3), **settings))
    expected = draws * law / law.sum()
    counts = np.bincount(tokens, minlength=5)
    assert counts[expected == 0].sum() == 0
    inside = expected > 0
    chi_square = ((counts - expected)[inside] ** 2 / expected[inside]).sum()
    assert chi_square < 20  # 4 degrees of freedom: exceeded with probability 0.0005


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1.0}, "temperature=-1.0"),
        ({"temperature": 1.0}, "give a key"),
        ({"temperature": 1.0, "top_k": 0, "key": jax.random.key(0)}, "top_k=0"),
        ({"temperature": 1.0, "top_p": 0.0, "key": jax.random.key(0)}, "top_p=0.0"),
    ],
)
def test_refuses_what_cannot_be_sampled(settings, message):
    with pytest.raises(ValueError, match=message):
        sampling.sample(jnp.zeros((1, 3)), **settings)
