"""Permutation language modelling on tiny XLNets: what is scored, what no query sees, and that it can be learned."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from t2t.data import corruption, permutation
from t2t.families import xlnet
from t2t.models.base import Network
from t2t.nn.heads import LanguageModelHead
from t2t.objectives.permutation import PermutationLanguageModeling
from tests.models import tiny

LENGTH, K, VOCAB = 9, 3, 37
XLNET = dataclasses.replace(
    xlnet.xlnet(num_layers=2, d_model=12, num_heads=3, d_ff=14, vocab_size=VOCAB, dropout=0.0),
    head=LanguageModelHead(use_bias=True),
)
OBJECTIVE = PermutationLanguageModeling()


def _batch(tokens: np.ndarray, *, seed: int = 0, reuse: int | None = None) -> dict[str, np.ndarray]:
    """A batch of texts whose last two tokens are special, with orders and targets drawn from a seed."""
    rows, length = tokens.shape
    u = corruption.uniforms(seed, 0, range(rows), length + permutation.num_target_uniforms(length))
    starts, candidates = np.ones(tokens.shape, bool), np.broadcast_to(np.arange(length) < length - 2, tokens.shape)
    targets = permutation.choose_targets(u[:, length:], starts=starts, candidates=candidates, count=K)
    ranks = permutation.draw_ranks(u[:, :length], reuse=reuse)
    order = permutation.reading_order(ranks, is_ordered=targets | ~candidates, reuse=reuse)
    positions = np.nonzero(targets)[1].reshape(rows, K).astype(np.int32)
    return {
        "encoder_input_tokens": tokens,
        "encoder_token_types": np.broadcast_to(2 * (np.arange(length) == length - 1), tokens.shape).astype(np.int32),
        "encoder_segment_ids": np.ones(tokens.shape, np.int32),
        "permutation_mask": permutation.permutation_mask(order, is_target=targets),
        "encoder_predict_positions": positions,
        "encoder_predict_targets": np.take_along_axis(tokens, positions, axis=1),
        "encoder_predict_weights": np.ones(positions.shape, np.float32),
    }


def _tokens(rows: int, length: int = LENGTH, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, VOCAB, (rows, length)).astype(np.int32)


def _loss(config, params, batch, carry=()):
    network = Network(config)
    return OBJECTIVE.loss({"model": network}, {"model": params}, batch, key=None, carry=carry)


def test_the_loss_is_that_of_the_queries():
    params, batch = tiny.params(XLNET), _batch(_tokens(2))
    batch["encoder_predict_weights"][1, 2] = 0.0
    terms, metrics, carry = jax.jit(lambda p: _loss(XLNET, p, batch))(params)
    logits = np.asarray(jax.jit(Network(XLNET).apply)(params, batch).logits, np.float64)
    assert logits.shape == (2, K, VOCAB)
    losses = np.log(np.exp(logits).sum(-1))
    losses -= np.take_along_axis(logits, batch["encoder_predict_targets"][..., None], -1)[..., 0]
    weights = batch["encoder_predict_weights"]
    np.testing.assert_allclose(terms["cross_entropy"].sum, (losses * weights).sum(), rtol=1e-5)
    assert float(terms["cross_entropy"].weight) == float(OBJECTIVE.weights(batch)["cross_entropy"]) == 5.0
    right = logits.argmax(-1) == batch["encoder_predict_targets"]
    np.testing.assert_allclose(metrics["accuracy"][0], (right * weights).sum())
    assert carry == ()


def test_no_query_sees_its_token_or_a_later_one():
    """Gradients to the input embeddings: of each query zero at itself and at the targets after it, and only there."""
    params = tiny.params(XLNET)
    tokens = np.arange(10, 10 + LENGTH, dtype=np.int32)[None]  # each its own row of the table
    batch = _batch(tokens)
    network = Network(XLNET)
    direction = jnp.asarray(np.random.default_rng(1).normal(size=12), jnp.float32)

    def state(embedding, k):
        hidden = network.hidden(params | {"embed": {"embedding": embedding}}, batch).last_hidden
        return jnp.vdot(hidden[0, k], direction)

    gradient = jax.jit(jax.grad(state))
    positions, forbidden = batch["encoder_predict_positions"][0], batch["permutation_mask"][0]
    assert forbidden[positions, positions].all()
    for k, position in enumerate(positions):
        influence = np.abs(gradient(params["embed"]["embedding"], k)[tokens[0]]).max(axis=-1) > 0
        # Nothing that it may not read reaches it through others either.
        np.testing.assert_array_equal(influence, forbidden[position] == 0)


def test_the_tokens_see_themselves():
    """The stream of tokens: a target's own state depends on it."""
    params, tokens = tiny.params(XLNET), np.arange(10, 10 + LENGTH, dtype=np.int32)[None]
    batch = _batch(tokens)
    network = Network(XLNET)

    def state(embedding, place):
        output = network.hidden(params | {"embed": {"embedding": embedding}}, batch, hidden_states=True)
        return jnp.sum(output.hidden_states[-2][0, place])

    gradient = jax.jit(jax.grad(state))
    for place in batch["encoder_predict_positions"][0]:
        assert np.abs(gradient(params["embed"]["embedding"], int(place))[tokens[0, place]]).max() > 0


def test_a_memory_goes_on_in_every_row_and_brings_nothing_of_what_is_predicted():
    """Windows overlap: the part that is remembered has not seen the part that the next window predicts."""
    config = dataclasses.replace(XLNET, memory_length=4, memory_reuse=4)
    params, text = tiny.params(config), _tokens(2, 13)
    first, second = _batch(text[:, :9], reuse=4), _batch(text[:, 4:], seed=1, reuse=4)
    models = {"model": Network(config)}
    start = OBJECTIVE.initial_carry(models, rows=2, micro_batches=1)
    run = jax.jit(lambda p, batch, carry: _loss(config, p, batch, carry))
    _, _, carry = run(params, first, start)
    output = jax.jit(lambda p, memory: models["model"].hidden(p, first, memory=memory))(
        params, models["model"].empty_memory(2)
    )
    np.testing.assert_allclose(carry["memory"].states[0], output.memory.states, atol=1e-6)
    alone, _, _ = run(params, second, start)
    after, _, left = run(params, second, carry)
    assert abs(float(alone["cross_entropy"].sum) - float(after["cross_entropy"].sum)) > 1e-3
    assert jax.tree.structure(left) == jax.tree.structure(start)
    # Other tokens behind the first four change nothing of what is remembered.
    other = first | {"encoder_input_tokens": np.where(np.arange(9) < 4, first["encoder_input_tokens"], 5)}
    _, _, same = run(params, {name: np.asarray(value) for name, value in other.items()}, start)
    np.testing.assert_array_equal(same["memory"].states, carry["memory"].states)


def test_a_batch_without_an_order_is_refused():
    batch = _batch(_tokens(1))
    del batch["permutation_mask"]
    with pytest.raises(ValueError, match=r"reads \['permutation_mask'\].*data.lengths\['predictions'\]"):
        _loss(XLNET, tiny.params(XLNET), batch)


@pytest.mark.slow
def test_it_learns():
    """Texts that count upwards: what is hidden follows from its neighbours."""
    network = Network(XLNET)
    params, optimizer = network.init(jax.random.key(0)), optax.adam(3e-3)
    rng = np.random.default_rng(0)

    @jax.jit
    def step(params, state, batch):
        def mean(params):
            term = _loss(XLNET, params, batch)[0]["cross_entropy"]
            return term.sum / term.weight

        loss, gradients = jax.value_and_grad(mean)(params)
        with jax.numpy_dtype_promotion("standard"):
            updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(params, updates), state, loss

    state, losses = optimizer.init(params), []
    for index in range(150):
        tokens = (rng.integers(0, VOCAB, (16, 1)) + np.arange(LENGTH)) % (VOCAB - 1) + 1
        params, state, loss = step(params, state, _batch(tokens.astype(np.int32), seed=index))
        losses.append(float(loss))
    assert losses[0] == pytest.approx(np.log(VOCAB), abs=0.5)
    assert np.mean(losses[-10:]) < 0.75 * losses[0]
