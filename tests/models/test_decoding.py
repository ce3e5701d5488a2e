"""Decoding with a cache gives the hidden states of one full pass."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.models.base import Network
from tests.models import tiny

PROMPT_LENGTH = 4  # The prefix-LM batch marks four positions: all of them belong to the prompt.


@functools.cache
def _functions(name, length):
    network = Network(tiny.CONFIGS[name])
    params = tiny.params(tiny.CONFIGS[name])
    prefill = jax.jit(functools.partial(network.prefill, length=length))
    return jax.jit(network.hidden), prefill, jax.jit(network.extend), params, jax.jit(network.unstack)(params)


def _decode(name, batch, *, length=9):
    """Hidden states of a prompt read at once and of the rest read token by token; the cache at the end."""
    _, prefill, extend, _, unstacked = _functions(name, length)
    tokens = batch["decoder_input_tokens"]
    hidden, cache = prefill(
        unstacked, {k: x if k.startswith("encoder") else x[:, :PROMPT_LENGTH] for k, x in batch.items()}
    )
    parts = [hidden]
    for t in range(PROMPT_LENGTH, tokens.shape[1]):
        hidden, cache = extend(unstacked, jnp.asarray(tokens[:, t : t + 1]), cache)
        parts.append(hidden)
    return jnp.concatenate(parts, axis=1), cache


def _hidden(name, batch, *, length=9):
    hidden, _, _, params, _ = _functions(name, length)
    return hidden(params, batch).last_hidden


@pytest.mark.parametrize("name", ["t5_1_0", "gpt2", "gpt", "prefix_lm", "parallel", "windowed"])
def test_cached_decoding_equals_one_pass(name):
    batch = tiny.batch(tiny.CONFIGS[name])
    decoded, cache = _decode(name, batch)
    np.testing.assert_allclose(decoded, _hidden(name, batch), atol=1e-5)
    assert int(cache.index) == 7
    assert cache.length == 9


@pytest.mark.parametrize("name", ["gpt2", "prefix_lm", "t5_1_0", "parallel", "windowed"])
def test_left_padded_prompts_decode_as_alone(name):
    batch = tiny.batch(tiny.CONFIGS[name])
    # Row 1 loses its first two tokens to padding: prompts of 4 and of 2 real tokens.
    segments = np.ones_like(batch["decoder_input_tokens"])
    segments[1, :2] = 0
    alone = {key: x[1:] if key.startswith("encoder") else x[1:, 2:] for key, x in batch.items()}
    decoded, _ = _decode(name, batch | {"decoder_segment_ids": segments})
    np.testing.assert_allclose(decoded[0], _hidden(name, batch)[0], atol=1e-5)
    np.testing.assert_allclose(decoded[1, 2:], _hidden(name, alone)[0], atol=1e-5)
    assert bool(jnp.isfinite(decoded).all())


def test_encoder_padding_is_not_read_while_decoding():
    batch = tiny.batch(tiny.CONFIGS["t5_1_0"])
    segments = np.ones_like(batch["encoder_input_tokens"])
    segments[0, 5:] = 0
    batch["encoder_segment_ids"] = segments
    decoded, _ = _decode("t5_1_0", batch)
    np.testing.assert_allclose(decoded, _hidden("t5_1_0", batch), atol=1e-5)
    batch["encoder_input_tokens"] = np.where(segments == 0, 3, batch["encoder_input_tokens"]).astype(np.int32)
    np.testing.assert_allclose(_decode("t5_1_0", batch)[0], decoded, atol=1e-5)


def test_gathered_cache_goes_on_as_the_rows_it_came_from():
    batch = tiny.batch(tiny.CONFIGS["t5_1_0"])
    _, _, extend, _, unstacked = _functions("t5_1_0", 9)
    _, cache = _decode("t5_1_0", batch)
    tokens = jnp.array([[5], [6]], jnp.int32)
    expected, _ = extend(unstacked, tokens, cache)
    swapped, _ = extend(unstacked, tokens[::-1], cache.gather(jnp.array([1, 0])))
    np.testing.assert_allclose(swapped[::-1], expected, atol=1e-6)


def test_several_tokens_at_once_equal_one_by_one():
    batch = tiny.batch(tiny.CONFIGS["gpt2"])
    one_by_one, _ = _decode("gpt2", batch)
    _, prefill, extend, _, unstacked = _functions("gpt2", 9)
    _, cache = prefill(unstacked, {"decoder_input_tokens": batch["decoder_input_tokens"][:, :PROMPT_LENGTH]})
    together, _ = extend(unstacked, jnp.asarray(batch["decoder_input_tokens"][:, PROMPT_LENGTH:]), cache)
    np.testing.assert_allclose(together, one_by_one[:, PROMPT_LENGTH:], atol=1e-5)


def test_too_little_room_is_refused():
    network, params = Network(tiny.gpt2()), tiny.params(tiny.gpt2())
    unstacked = network.unstack(params)
    batch = tiny.batch(tiny.gpt2())
    with pytest.raises(ValueError, match="length = 6 must be at least the prompt's length 7"):
        network.prefill(unstacked, batch, length=6)
    with pytest.raises(ValueError, match="length 17 is more than LearnedPositions.max_positions = 16"):
        network.prefill(unstacked, batch, length=17)
