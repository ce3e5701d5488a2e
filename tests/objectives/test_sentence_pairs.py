"""Masked words and pairs of segments from one pass: two terms, each with its own denominator."""

import functools
import math

import jax
import numpy as np
import optax
import pytest

from t2t.models.base import Network
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.objectives.sentence_pairs import SentencePairModeling
from t2t.train.step import accumulate_gradients
from tests.models import tiny

B, T = 5, 7
LABELS = np.array([0, 1, -1, 1, 0], np.int32)


def make_batch(labels=LABELS):
    batch = tiny.batch(tiny.bert(), rows=B, length=T)
    rng = np.random.default_rng(1)
    return batch | {
        "encoder_target_tokens": rng.integers(1, tiny.VOCAB_SIZE, (B, T)).astype(np.int32),
        "encoder_loss_weights": (rng.random((B, T)) < 0.4).astype(np.float32),
        "next_sentence_labels": labels,
    }


OBJECTIVE = SentencePairModeling(z_loss=0.1, next_sentence=0.5)


@pytest.fixture(scope="module")
def network():
    return Network(tiny.bert())


@pytest.fixture(scope="module")
def params(network):
    return tiny.params(network.config)


@functools.partial(jax.jit, static_argnums=(0, 1))
def compute(objective, network, params, batch):
    return objective.loss({"model": network}, {"model": params}, batch, key=None, carry=())[:2]


def test_the_loss_of_pairs_is_that_of_their_labels(network, params):
    batch = make_batch()
    terms, metrics = compute(OBJECTIVE, network, params, batch)
    hidden = jax.jit(lambda params: network.hidden(params, batch).next_sentence_logits)
    logits = np.asarray(hidden(params), np.float64)
    log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    rows = [0, 1, 3, 4]
    expected = -sum(log_probabilities[row, LABELS[row]] for row in rows)
    assert float(terms["next_sentence"].sum) == pytest.approx(expected, rel=1e-5)
    assert float(terms["next_sentence"].weight) == 4
    assert terms["next_sentence"].coefficient == 0.5
    right = sum(logits[row].argmax() == LABELS[row] for row in rows)
    assert [float(value) for value in metrics["next_sentence_accuracy"]] == [right, 4]


def test_masked_words_are_learned_as_without_pairs(network, params):
    batch = make_batch()
    terms, metrics = compute(OBJECTIVE, network, params, batch)
    alone, of_alone = compute(MaskedLanguageModeling(z_loss=0.1), network, params, batch)
    for name in ("cross_entropy", "z_loss"):
        assert float(terms[name].sum) == pytest.approx(float(alone[name].sum))
    assert float(metrics["accuracy"][0]) == float(of_alone["accuracy"][0])


def test_weights_are_those_of_the_terms(network, params):
    batch = make_batch()
    terms, _ = compute(OBJECTIVE, network, params, batch)
    weights = OBJECTIVE.weights(batch)
    assert {name: float(weight) for name, weight in weights.items()} == {
        name: float(term.weight) for name, term in terms.items()
    }
    assert float(weights["next_sentence"]) == 4


def test_rows_without_a_label_teach_nothing_of_pairs(network, params):
    @jax.jit
    def gradient(batch):
        return jax.grad(lambda params: compute(OBJECTIVE, network, params, batch)[0]["next_sentence"].sum)(params)

    first, second = make_batch(), make_batch()
    second["encoder_input_tokens"] = first["encoder_input_tokens"].copy()
    second["encoder_input_tokens"][2] = 1  # the row without a label
    for got, want in zip(jax.tree.leaves(gradient(first)), jax.tree.leaves(gradient(second)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
    none = gradient(make_batch(np.full(B, -1, np.int32)))
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(none))


def test_micro_batches_do_not_change_the_gradient(network, params):
    batch = {name: np.concatenate([value, value[:1]]) for name, value in make_batch().items()}

    @functools.partial(jax.jit, static_argnums=0)
    def gradient(micro_batches):
        return accumulate_gradients(
            OBJECTIVE,
            {"model": network},
            {"model": params},
            batch,
            frozen={},
            key=None,
            carry=(),
            micro_batches=micro_batches,
        )[0]

    for got, want in zip(jax.tree.leaves(gradient(3)), jax.tree.leaves(gradient(1)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-6)


def test_it_learns_pairs_and_words(network):
    """Ten pairs by heart: whether the second segment repeats the first, and the masked tokens."""
    rng = np.random.default_rng(0)
    first = rng.integers(5, tiny.VOCAB_SIZE, (10, 3))
    labels = np.arange(10) % 2
    second = np.where(labels[:, None], rng.integers(5, tiny.VOCAB_SIZE, (10, 3)), first)
    tokens = np.concatenate([np.full((10, 1), 1), first, np.full((10, 1), 2), second], axis=1).astype(np.int32)
    weights = np.zeros(tokens.shape, np.float32)
    weights[:, [2, 6]] = 1
    batch = {
        "encoder_input_tokens": np.where(weights > 0, 3, tokens).astype(np.int32),
        "encoder_token_types": np.repeat([[0, 0, 0, 0, 0, 1, 1, 1]], 10, axis=0).astype(np.int32),
        "encoder_target_tokens": tokens,
        "encoder_loss_weights": weights,
        "next_sentence_labels": labels.astype(np.int32),
    }
    optimizer = optax.adam(1e-2)
    objective = SentencePairModeling()

    @jax.jit
    def step(params, state):
        def loss(params):
            terms, metrics = compute(objective, network, params, batch)
            return sum(term.sum / term.weight for term in terms.values()), (terms, metrics)

        (_, (terms, metrics)), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        with jax.numpy_dtype_promotion("standard"):
            updates, state = optimizer.update(gradient, state)
        means = {name: term.sum / term.weight for name, term in terms.items()}
        accuracy = metrics["next_sentence_accuracy"][0] / metrics["next_sentence_accuracy"][1]
        return optax.apply_updates(params, updates), state, means | {"accuracy": accuracy}

    params = jax.jit(network.init)(jax.random.key(3))
    state = optimizer.init(params)
    history = []
    for _ in range(60):
        params, state, means = step(params, state)
        history.append({name: float(value) for name, value in means.items()})
    assert history[0]["next_sentence"] == pytest.approx(math.log(2), abs=0.1)
    assert history[0]["cross_entropy"] == pytest.approx(math.log(tiny.VOCAB_SIZE), abs=0.3)
    assert history[-1]["next_sentence"] < 0.1 and history[-1]["accuracy"] == 1
    assert history[-1]["cross_entropy"] < 1


def test_refuses(params):
    with pytest.raises(ValueError, match="next_sentence=0.* must be positive"):
        SentencePairModeling(next_sentence=0.0)
    with pytest.raises(ValueError, match="z_loss=-1"):
        SentencePairModeling(z_loss=-1)
    without = Network(tiny.bert(next_sentence=False))
    with pytest.raises(ValueError, match=r"head=heads\.PRETRAINING"):
        jax.eval_shape(lambda p: compute(SentencePairModeling(), without, p, make_batch())[0], without.shapes())
