"""Tiny models with T5X's weights: the losses of both, every gradient of the T5 and its parameters after three steps."""

import jax
import numpy as np
import pytest

from t2t.models.base import Network
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train import step as steps
from t2t.train.optimizer import Adafactor, Constant
from t2t.train.state import init_state
from tests.models import t5x_names, t5x_tiny

OBJECTIVE = LanguageModeling(z_loss=1e-4)


@pytest.fixture(scope="module")
def recorded():
    return t5x_tiny.recorded("tiny_t5_1_0.npz")


def tree(recorded, group):
    return {"model": t5x_names.encoder_decoder_params(t5x_names.arrays_under(recorded, group))}


def assert_close(got, want, *, relative):
    """Each array within a share of its greatest number."""
    for (path, a), b in zip(jax.tree_util.tree_flatten_with_path(got)[0], jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, atol=relative * np.abs(b).max(), err_msg=jax.tree_util.keystr(path))


def test_loss_and_gradients(recorded):
    """T5X minimises the sum over tokens, the step their mean: equal but for the number of target tokens."""
    network, batch = Network(t5x_tiny.t5()), t5x_tiny.batch(recorded, "batch")

    @jax.jit
    def run(params, batch):
        return steps.accumulate_gradients(
            OBJECTIVE, {"model": network}, params, batch, frozen={}, key=None, carry=(), micro_batches=1
        )

    with jax.default_matmul_precision("highest"):
        gradients, loss, _, _ = run(tree(recorded, "param"), batch)
    tokens = batch["decoder_loss_weights"].sum()
    np.testing.assert_allclose(loss * tokens, recorded["loss"], rtol=1e-5)
    assert_close(jax.tree.map(lambda g: g * tokens, gradients), tree(recorded, "grad"), relative=1e-4)


def test_three_steps_of_adafactor(recorded):
    """Adafactor does not see the scale of gradients, so T5X's sum and our mean make the same steps."""
    network, batch = Network(t5x_tiny.t5()), t5x_tiny.batch(recorded, "batch")
    params, axes = jax.tree.map(jax.numpy.asarray, tree(recorded, "param")), {"model": network.logical_axes()}
    optimizer = Adafactor(learning_rate=Constant(peak=0.01)).make(params, axes)
    step = steps.make_train_step(OBJECTIVE, {"model": network}, optimizer, seed=0)
    state = init_state(params, optimizer)
    with jax.default_matmul_precision("highest"):
        for index in range(3):
            state, metrics = step(state, batch)
            total = metrics["loss"][0] * batch["decoder_loss_weights"].sum()
            np.testing.assert_allclose(total, recorded[f"loss_step{index}"], rtol=1e-4)
    assert_close(state.params, tree(recorded, "after3"), relative=1e-4)


def test_loss_of_the_decoder():
    recorded = t5x_tiny.recorded("tiny_decoder_causal.npz")
    network, batch = Network(t5x_tiny.decoder()), t5x_tiny.batch(recorded, "batch")
    params = {"model": t5x_names.decoder_params(t5x_names.arrays_under(recorded, "param"))}

    @jax.jit
    def run(params, batch):
        terms, _, _ = OBJECTIVE.loss({"model": network}, params, batch, key=None, carry=())
        return sum(term.coefficient * term.sum for term in terms.values())

    with jax.default_matmul_precision("highest"):
        np.testing.assert_allclose(run(params, batch), recorded["loss"], rtol=1e-5)
