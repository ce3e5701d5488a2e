"""The objective on a real tiny T5: T5X's recorded loss, gradient and three Adafactor steps; terms, weights, chunks."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.models.base import Network
from t2t.objectives.language_modeling import LanguageModeling
from tests.models import tiny


def make_batch(seed=0):
    config = tiny.t5()
    batch = tiny.batch(config, rows=3, length=7)
    rng = np.random.default_rng(seed)
    batch["decoder_target_tokens"] = rng.integers(1, tiny.VOCAB_SIZE, (3, 7)).astype(np.int32)
    batch["decoder_loss_weights"] = rng.uniform(0, 2, (3, 7)).astype(np.float32)
    return batch


@pytest.fixture(scope="module")
def network():
    return Network(tiny.t5(dropout=0.1))


@pytest.fixture(scope="module")
def params(network):
    return tiny.params(network.config)


@functools.partial(jax.jit, static_argnums=(0, 1))
def run(objective, network, params, batch, key=None):
    return objective.loss({"model": network}, {"model": params}, batch, key=key, carry=())


def test_terms_and_metrics_equal_the_logits_worked_out(network, params):
    batch = make_batch()
    terms, metrics, carry = run(LanguageModeling(z_loss=0.5), network, params, batch)
    logits = np.asarray(jax.jit(network.apply)(params, batch).logits, np.float64)
    log_z = np.log(np.exp(logits).sum(-1))
    targets, weights = batch["decoder_target_tokens"], batch["decoder_loss_weights"]
    cross_entropy = log_z - np.take_along_axis(logits, targets[..., None], -1)[..., 0]
    np.testing.assert_allclose(terms["cross_entropy"].sum, (weights * cross_entropy).sum(), rtol=1e-5)
    np.testing.assert_allclose(terms["z_loss"].sum, (weights * log_z**2).sum(), rtol=1e-5)
    np.testing.assert_allclose(metrics["accuracy"][0], (weights * (logits.argmax(-1) == targets)).sum(), rtol=1e-5)
    assert (terms["cross_entropy"].coefficient, terms["z_loss"].coefficient, carry) == (1.0, 0.5, ())
    for weight in (terms["cross_entropy"].weight, terms["z_loss"].weight, metrics["accuracy"][1]):
        np.testing.assert_allclose(weight, weights.sum(), rtol=1e-6)


@pytest.mark.parametrize("z_loss", [0.0, 0.5])
def test_weights_are_those_of_the_terms(network, params, z_loss):
    objective, batch = LanguageModeling(z_loss=z_loss), make_batch()
    terms, _, _ = run(objective, network, params, batch)
    weights = objective.weights(batch)
    assert {name: float(weight) for name, weight in weights.items()} == {
        name: float(term.weight) for name, term in terms.items()
    }


def test_integer_weights_as_seqio_makes_them(network, params):
    batch = make_batch()
    batch["decoder_loss_weights"] = (batch["decoder_loss_weights"] > 1).astype(np.int32)
    # Jitted for the weight alone, so that nothing of the model is compiled.
    weight = jax.jit(lambda batch: run(LanguageModeling(), network, params, batch)[0]["cross_entropy"].weight)
    assert float(weight(batch)) == batch["decoder_loss_weights"].sum()


def test_chunks_change_nothing(network, params):
    batch = make_batch()
    whole = run(LanguageModeling(z_loss=0.1, label_smoothing=0.1), network, params, batch)
    parts = run(LanguageModeling(z_loss=0.1, label_smoothing=0.1, logits_chunk=3), network, params, batch)
    for got, want in zip(jax.tree.leaves(parts), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_dropout_only_with_a_key(network, params):
    batch = make_batch()

    def loss(key):
        return float(run(LanguageModeling(), network, params, batch, key)[0]["cross_entropy"].sum)

    assert loss(None) == loss(None)
    assert loss(None) != loss(jax.random.key(1)) != loss(jax.random.key(2))


def test_bfloat16_compute_gives_a_float32_loss(network, params):
    terms, _, _ = run(LanguageModeling(), Network(network.config, dtype=jnp.bfloat16), params, make_batch())
    exact, _, _ = run(LanguageModeling(), network, params, make_batch())
    assert terms["cross_entropy"].sum.dtype == jnp.float32
    np.testing.assert_allclose(terms["cross_entropy"].sum, exact["cross_entropy"].sum, rtol=0.02)


@pytest.mark.parametrize("field", [{"z_loss": -1.0}, {"label_smoothing": 1.0}, {"logits_chunk": 0}])
def test_refuses(field):
    with pytest.raises(ValueError, match=next(iter(field))):
        dataclasses.replace(LanguageModeling(), **field)
