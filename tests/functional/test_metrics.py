import doctest

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t.functional import metrics

LOGITS = jnp.array([[[3.0, 1.0, 2.0], [0.0, 5.0, 1.0]], [[2.0, 2.0, 1.0], [9.0, 8.0, 7.0]]])  # [B=2, T=2, V=3]
TARGETS = jnp.array([[0, 2], [1, 2]])


def numbers(pair):
    return tuple(float(value) for value in pair)


def test_accuracy_counts_the_first_of_equals():
    assert numbers(metrics.accuracy(LOGITS, targets=TARGETS)) == (1.0, 4.0)
    assert numbers(metrics.accuracy(LOGITS, targets=jnp.array([[0, 1], [0, 0]]))) == (4.0, 4.0)


def test_weights_scale_hits_and_total():
    weights = jnp.array([[0.5, 1.0], [0.0, 0.25]])
    assert numbers(metrics.accuracy(LOGITS, targets=TARGETS, weights=weights)) == (0.5, 1.75)
    assert numbers(metrics.accuracy(LOGITS, targets=TARGETS, weights=jnp.zeros((2, 2), jnp.int32))) == (0.0, 0.0)


def test_top_k_counts_ties_with_the_kth():
    hits = [numbers(metrics.top_k_accuracy(LOGITS, targets=TARGETS, k=k))[0] for k in (1, 2, 3)]
    assert hits == [2.0, 3.0, 4.0]
    with pytest.raises(ValueError, match="k=0"):
        metrics.top_k_accuracy(LOGITS, targets=TARGETS, k=0)


def test_sequences_are_right_as_a_whole():
    predictions = jnp.array([[4, 5, 6], [4, 5, 6], [4, 5, 6], [1, 1, 1]])
    targets = jnp.array([[4, 5, 6], [4, 0, 6], [4, 5, 9], [2, 2, 2]])
    weights = jnp.array([[1, 1, 1], [1, 1, 1], [1, 1, 0], [0, 0, 0]])
    assert numbers(metrics.sequence_accuracy(predictions, targets=targets, weights=weights)) == (2.0, 3.0)


def test_binary_counts_under_weights():
    counts = metrics.binary_counts(
        jnp.array([1, 1, 0, 1]), targets=jnp.array([1, 0, 1, 1]), weights=jnp.array([1.0, 1.0, 1.0, 0.0])
    )
    assert {name: float(value) for name, value in counts.items()} == {
        "true_positives": 1.0,
        "false_positives": 1.0,
        "false_negatives": 1.0,
    }


def test_perplexity_of_a_uniform_choice_is_the_number_of_choices():
    assert_allclose(metrics.perplexity(7 * jnp.log(50.0), jnp.array(7.0)), 50.0, rtol=1e-5)
    assert float(metrics.perplexity(jnp.array(0.0), jnp.array(0.0))) == 1.0


def test_no_weight_gives_no_nan_and_a_finite_gradient():
    value, gradient = jax.value_and_grad(lambda total: metrics.mean(total, jnp.array(0.0)))(jnp.array(0.0))
    assert (float(value), float(gradient)) == (0.0, 0.0)


def test_pairs_add_over_batches_and_under_jit():
    rng = np.random.default_rng(0)
    logits = jnp.asarray(rng.normal(size=(6, 5, 4)), jnp.float32)
    targets, weights = jnp.asarray(rng.integers(4, size=(6, 5))), jnp.asarray(rng.integers(2, size=(6, 5)))
    whole = jax.jit(metrics.accuracy)(logits, targets=targets, weights=weights)
    halves = [metrics.accuracy(logits[s], targets=targets[s], weights=weights[s]) for s in (slice(4), slice(4, 6))]
    assert_allclose(np.array(whole), np.array(halves).sum(0))
    assert all(value.dtype == jnp.float32 for value in whole)


def test_doctest_examples_hold():
    assert doctest.testmod(metrics).failed == 0
