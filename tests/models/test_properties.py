"""Who influences whom, by gradients; padding and packing change nothing."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.models.base import Network
from t2t.models.encoder import EncoderConfig
from t2t.models.encoder_decoder import EncoderDecoderConfig
from tests.models import tiny

LENGTH = 6
PREFIX = [1, 1, 1, 0, 0, 0]
CAUSAL = np.tril(np.ones((LENGTH, LENGTH), int))
PREFIX_VISIBLE = [
    [1, 1, 1, 0, 0, 0],
    [1, 1, 1, 0, 0, 0],
    [1, 1, 1, 0, 0, 0],
    [1, 1, 1, 1, 0, 0],
    [1, 1, 1, 1, 1, 0],
    [1, 1, 1, 1, 1, 1],
]
# Two layers with windows of one: two positions away.
NEAR = [
    [1, 1, 1, 0, 0, 0],
    [1, 1, 1, 1, 0, 0],
    [1, 1, 1, 1, 1, 0],
    [0, 1, 1, 1, 1, 1],
    [0, 0, 1, 1, 1, 1],
    [0, 0, 0, 1, 1, 1],
]
EXPECTED = {"t5_1_0": CAUSAL, "prefix_lm": PREFIX_VISIBLE, "windowed": CAUSAL * NEAR, "local_encoder": NEAR}
"""Of one model of each kind; every kind is in test_mask_laws.py, by values."""


def _influence(config, batch, *, read):
    """0/1 matrix: does the hidden state at position t change with the embedding of token `read[s]`?

    Every token occurs once, so a row of the embedding's gradient belongs to one position.
    """
    network, params = Network(config), tiny.params(config)
    direction = jnp.asarray(np.random.default_rng(1).normal(size=tiny.D_MODEL), jnp.float32)

    def state(embedding, position):
        hidden = network.hidden(params | {"embed": params["embed"] | {"embedding": embedding}}, batch).last_hidden
        return jnp.vdot(hidden[0, position], direction)

    gradient = jax.jit(jax.grad(state))
    rows = [gradient(params["embed"]["embedding"], position)[read] for position in range(LENGTH)]
    return (np.abs(np.stack(rows)).max(axis=-1) > 0).astype(int)


@pytest.mark.parametrize("name", EXPECTED)
def test_influence_follows_the_mask(name):
    config = tiny.CONFIGS[name]
    tokens = np.arange(10, 10 + LENGTH, dtype=np.int32)[None]
    side = "encoder" if isinstance(config, EncoderConfig) else "decoder"
    batch = {f"{side}_input_tokens": tokens}
    if name == "prefix_lm":
        batch["decoder_causal_attention"] = np.array([PREFIX], np.int32)
    if isinstance(config, EncoderDecoderConfig):
        batch["encoder_input_tokens"] = tokens + 12
        # Every decoder position reads the whole encoder.
        np.testing.assert_array_equal(_influence(config, batch, read=np.arange(22, 22 + LENGTH)), 1)
    np.testing.assert_array_equal(_influence(config, batch, read=tokens[0]), EXPECTED[name])


def _sides(batch):
    return sorted({name.partition("_")[0] for name in batch})


def _padded(batch, *, to, seed, before=0):
    """The batch with `before` columns of random padding on the left and the rest, up to length `to`, on the right."""
    rng = np.random.default_rng(seed)
    out = {}
    for name, x in batch.items():
        after = to - before - x.shape[1]
        pad = rng.integers(1, tiny.VOCAB_SIZE, (x.shape[0], to)).astype(x.dtype)
        if not name.endswith("input_tokens"):
            pad[:] = 0
        pad[:, before : to - after] = x
        out[name] = pad
    for side in _sides(batch):
        columns = np.arange(to)[None]
        real = (columns >= before) & (columns < before + batch[f"{side}_input_tokens"].shape[1])
        out[f"{side}_segment_ids"] = (real * np.ones((len(out[f"{side}_input_tokens"]), 1))).astype(np.int32)
    return out


@functools.cache
def _apply(name):
    network = Network(tiny.CONFIGS[name])
    return jax.jit(functools.partial(network.apply, hidden_states=True)), tiny.params(tiny.CONFIGS[name])


@pytest.mark.parametrize("name", tiny.CONFIGS)
def test_padding_changes_nothing(name):
    apply, params = _apply(name)
    batch = tiny.batch(tiny.CONFIGS[name], length=6, encoder_length=5)
    plain = apply(params, batch)
    for padded, columns in (
        (_padded(batch, to=9, seed=1), slice(0, 6)),
        (_padded(batch, to=9, seed=2, before=2), slice(2, 8)),
    ):
        output = apply(params, padded)
        assert bool(jnp.isfinite(output.logits).all())
        np.testing.assert_allclose(output.logits[:, columns], plain.logits, atol=2e-5)
        for state, expected in zip(output.hidden_states, plain.hidden_states, strict=True):
            np.testing.assert_allclose(state[:, columns], expected, atol=2e-5)
        if plain.pooled is not None and columns.start == 0:
            np.testing.assert_allclose(output.next_sentence_logits, plain.next_sentence_logits, atol=2e-5)


@pytest.mark.parametrize("name", tiny.CONFIGS)
def test_two_packed_examples_equal_two_single_ones(name):
    apply, params = _apply(name)
    config = tiny.CONFIGS[name]
    first = tiny.batch(config, rows=1, length=3, encoder_length=5, seed=1)
    second = tiny.batch(config, rows=1, length=5, encoder_length=2, seed=2)
    packed = {key: np.concatenate([first[key], second[key], np.zeros_like(first[key][:, :1])], axis=1) for key in first}
    for side in _sides(first):
        one, other = (example[f"{side}_input_tokens"].shape[1] for example in (first, second))
        packed[f"{side}_segment_ids"] = np.array([[1] * one + [2] * other + [0]], np.int32)
    logits = apply(params, packed).logits
    np.testing.assert_allclose(logits[:, :3], apply(params, first).logits, atol=2e-5)
    np.testing.assert_allclose(logits[:, 3:8], apply(params, second).logits, atol=2e-5)
    # Positions given as they would be counted change nothing.
    given = {
        f"{side}_positions": np.array(
            [[*range(first[f"{side}_input_tokens"].shape[1]), *range(second[f"{side}_input_tokens"].shape[1]), 0]],
            np.int32,
        )
        for side in _sides(first)
    }
    np.testing.assert_array_equal(apply(params, packed | given).logits[:, :8], logits[:, :8])


@pytest.mark.parametrize("name", ["t5_1_0", "bert", "prefix_lm"])
def test_gradients_are_finite_with_padding(name):
    network, params = Network(tiny.CONFIGS[name]), tiny.params(tiny.CONFIGS[name])
    batch = _padded(tiny.batch(tiny.CONFIGS[name], length=6, encoder_length=5), to=8, seed=1)

    def loss(params):
        return jnp.sum(jnp.square(network.apply(params, batch).logits[:, :6]))

    for leaf in jax.tree.leaves(jax.jit(jax.grad(loss))(params)):
        assert bool(jnp.isfinite(leaf).all())
