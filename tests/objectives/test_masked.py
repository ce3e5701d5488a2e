"""Masked language modelling: predicting at K positions is predicting everywhere with weights at those positions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.models.base import Network
from t2t.objectives import masked
from t2t.objectives.masked import MaskedLanguageModeling
from tests.models import tiny

B, T = 2, 7
POSITIONS = np.array([[1, 4, 5], [6, 2, 0]], np.int32)
PREDICT_WEIGHTS = np.array([[1, 1, 1], [1, 0.5, 0]], np.float32)  # the last one only fills the row


def make_batches():
    """The same predictions in both forms."""
    batch = tiny.batch(tiny.bert(), rows=B, length=T)
    targets = np.random.default_rng(1).integers(1, tiny.VOCAB_SIZE, (B, T)).astype(np.int32)
    weights = np.zeros((B, T), np.float32)
    np.put_along_axis(weights, POSITIONS, PREDICT_WEIGHTS, axis=1)
    everywhere = batch | {"encoder_target_tokens": targets, "encoder_loss_weights": weights}
    at_positions = batch | {
        "encoder_predict_positions": POSITIONS,
        "encoder_predict_targets": np.take_along_axis(targets, POSITIONS, axis=1),
        "encoder_predict_weights": PREDICT_WEIGHTS,
    }
    return everywhere, at_positions


@pytest.fixture(scope="module")
def network():
    return Network(tiny.bert())


@pytest.fixture(scope="module")
def params(network):
    return tiny.params(network.config)


def test_both_forms_have_the_same_loss_and_gradient(network, params):
    objective = MaskedLanguageModeling(z_loss=0.1, label_smoothing=0.1)

    @jax.jit
    def gradient(params, batch):
        def loss(params):
            terms, metrics, _ = objective.loss({"model": network}, {"model": params}, batch, key=None, carry=())
            return sum(term.coefficient * term.sum for term in terms.values()), (terms, metrics)

        return jax.value_and_grad(loss, has_aux=True)(params)

    everywhere, at_positions = (gradient(params, batch) for batch in make_batches())
    for got, want in zip(jax.tree.leaves(at_positions), jax.tree.leaves(everywhere), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_weights():
    for batch in make_batches():
        weights = MaskedLanguageModeling(z_loss=0.1).weights(batch)
        assert {name: float(weight) for name, weight in weights.items()} == {"cross_entropy": 4.5, "z_loss": 4.5}


def test_only_the_chosen_positions_reach_the_vocabulary(network):
    """No array of [B, T, V] in the program."""
    _, batch = make_batches()
    program = jax.make_jaxpr(
        lambda p: MaskedLanguageModeling().loss({"model": network}, {"model": p}, batch, key=None, carry=())[0]
    )(network.shapes())
    text = str(program)
    assert f"[{B},{POSITIONS.shape[1]},{tiny.VOCAB_SIZE}]" in text
    assert f"[{B},{T},{tiny.VOCAB_SIZE}]" not in text


def test_gathering_by_hand():
    hidden = jnp.arange(12.0).reshape(2, 3, 2)
    got = masked.gather_positions(hidden, positions=jnp.array([[2, 0], [1, 1]]))
    assert got.tolist() == [[[4.0, 5.0], [0.0, 1.0]], [[8.0, 9.0], [8.0, 9.0]]]


def test_refuses():
    with pytest.raises(ValueError, match="z_loss=-1"):
        MaskedLanguageModeling(z_loss=-1)
