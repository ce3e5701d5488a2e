"""Detection: the loss and its counts by hand, and AUC against comparing every pair."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import detection


def test_loss_and_counts_by_hand():
    logits = jnp.array([2.0, -1.0, 0.5, -3.0, 9.0])
    labels = jnp.array([True, True, False, False, True])
    sums = detection.detection_loss(logits, labels=labels, weights=jnp.array([1.0, 1.0, 1.0, 1.0, 0.0]))
    want = np.log1p(np.exp(-2.0)) + np.log1p(np.exp(1.0)) + np.log1p(np.exp(0.5)) + np.log1p(np.exp(-3.0))
    assert float(sums.loss) == pytest.approx(want, rel=1e-6)
    counts = (sums.weight, sums.correct, sums.true_positives, sums.false_positives, sums.false_negatives)
    assert [float(count) for count in counts] == [4, 2, 1, 1, 1]


def test_large_logits_stay_finite():
    logits, labels = jnp.array([1e4, -1e4]), jnp.array([False, True])

    def loss(logits):
        return detection.detection_loss(logits, labels=labels, weights=jnp.ones(2)).loss

    assert float(loss(logits)) == 2e4
    assert jax.grad(loss)(logits).tolist() == [1.0, -1.0]


def test_pairs_are_those_of_comparing_each():
    draw = np.random.default_rng(0)
    labels = draw.random((4, 30)) < 0.3
    logits = (draw.standard_normal((4, 30)) + labels).astype(np.float32)
    weights = (draw.random((4, 30)) < 0.8).astype(np.float32)
    right, pairs = detection.ranked_pairs(jnp.array(logits), labels=jnp.array(labels), weights=jnp.array(weights))
    positives, negatives = logits[labels & (weights > 0)], logits[~labels & (weights > 0)]
    in_order = (positives[:, None] > negatives).sum() + (positives[:, None] == negatives).sum() / 2
    assert float(pairs) == positives.size * negatives.size
    assert float(right / pairs) == pytest.approx(in_order / float(pairs), abs=0.01)  # bins of 1/200


def test_without_positives_there_is_no_pair():
    right, pairs = detection.ranked_pairs(jnp.zeros(3), labels=jnp.zeros(3, bool), weights=jnp.ones(3))
    assert (float(right), float(pairs)) == (0, 0)
