"""Decoding with a cache gives the hidden states of one full pass."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.models import tiny

from t2t.models.base import Network


def _decoded(network, params, batch, *, prompt_length, length):
    """Hidden states of a prompt read at once and the rest read token by token, from the batch's tokens."""
    unstacked = jax.jit(network.unstack)(params)
    tokens = batch["decoder_input_tokens"]
    prompt = {name: x if name.startswith("encoder") else x[:, :prompt_length] for name, x in batch.items()}
    prefill = jax.jit(functools.partial(network.prefill, length=length))
    extend = jax.jit(network.extend)
    hidden, cache = prefill(unstacked, prompt)
    parts = [hidden]
    for t in range(prompt_length, tokens.shape[1]):
        hidden, cache = extend(unstacked, tokens[:, t : t + 1], cache)
        parts.append(hidden)
    return jnp.concatenate(parts, axis=1), cache


def _case(config, key):
    network = Network(config)
    params = tiny.randomize(jax.jit(network.init)(key))
    return network, params, tiny.batch(config)


@pytest.mark.parametrize("name", ["t5_1_0", "gpt2", "gpt", "prefix_lm"])
def test_cached_decoding_equals_one_pass(name, key):
    network, params, batch = _case(tiny.CONFIGS[name], key)
    full = jax.jit(network.hidden)(params, batch).last_hidden
    # The prefix-LM batch marks four positions: all of them belong to the prompt.
    decoded, cache = _decoded(network, params, batch, prompt_length=4, length=10)
    np.testing.assert_allclose(decoded, full, atol=1e-5)
    assert int(cache.index) == 7
    assert cache.length == 10


def test_left_padded_prompts_decode_as_alone(key):
    for name in ("gpt2", "prefix_lm"):
        network, params, batch = _case(tiny.CONFIGS[name], key)
        full = jax.jit(network.hidden)(params, batch).last_hidden
        # Row 1 loses its first two tokens to padding: prompts of 4 and 2 real tokens.
        alone = {key: x[1:, 2:] for key, x in batch.items()}
        full_short = jax.jit(network.hidden)(params, alone).last_hidden
        segments = np.ones_like(batch["decoder_input_tokens"])
        segments[1, :2] = 0
        decoded, _ = _decoded(network, params, batch | {"decoder_segment_ids": segments}, prompt_length=4, length=7)
        np.testing.assert_allclose(decoded[0], full[0], atol=1e-5)
        np.testing.assert_allclose(decoded[1, 2:], full_short[0], atol=1e-5)
        assert bool(jnp.isfinite(decoded).all())
