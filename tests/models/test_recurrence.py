"""Memories and permuted orders: two segments are one long one, and nothing leaks into a prediction."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t import heads
from t2t.families import transfo_xl, xlnet
from t2t.models.base import Network
from t2t.nn import memory as memories
from t2t.nn.heads import LanguageModelHead
from tests.models import tiny
from tests.reference import relative

XLNET = dataclasses.replace(
    xlnet.xlnet(num_layers=2, d_model=12, num_heads=3, d_ff=14, vocab_size=37, memory_length=6, dropout=0.0),
    head=LanguageModelHead(use_bias=True),
)
TXL = transfo_xl.with_head(
    transfo_xl.transfo_xl(num_layers=2, d_model=12, num_heads=3, head_dim=5, d_ff=14, vocab_size=37, cutoffs=(8, 20),
                          divisor=2, memory_length=6, max_distance=5, dropout=0.0),
    heads.PRETRAINING,
)  # fmt: skip
LENGTH = 6


def _tokens(rows: int, length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 37, (rows, length)).astype(np.int32)


@functools.cache
def _apply(config):
    network = Network(config)
    return jax.jit(lambda params, batch, memory=None: network.apply(params, batch, memory=memory, hidden_states=True))


def _permutation(seed: int, rows: int = 2) -> np.ndarray:
    """Masks of random orders: position t may read s where s comes before it."""
    orders = np.stack([np.random.default_rng(seed + row).permutation(LENGTH) for row in range(rows)])
    return (orders[:, None, :] >= orders[:, :, None]).astype(np.int32)


def test_two_segments_with_a_memory_are_one_long_segment():
    params, tokens = tiny.params(TXL), _tokens(2, 2 * LENGTH)
    apply = _apply(dataclasses.replace(TXL, memory_length=2 * LENGTH))
    whole = apply(params, {"decoder_input_tokens": tokens})
    first = apply(params, {"decoder_input_tokens": tokens[:, :LENGTH]})
    second = apply(params, {"decoder_input_tokens": tokens[:, LENGTH:]}, first.memory)
    np.testing.assert_allclose(first.logits, whole.logits[:, :LENGTH], atol=1e-5)
    np.testing.assert_allclose(second.logits, whole.logits[:, LENGTH:], atol=1e-5)
    np.testing.assert_allclose(second.memory.states, whole.memory.states, atol=1e-5)
    np.testing.assert_array_equal(second.memory.is_real, True)


def test_segments_of_one_token_are_one_long_segment():
    params, tokens = tiny.params(TXL), _tokens(2, LENGTH)
    apply = _apply(TXL)
    whole = apply(params, {"decoder_input_tokens": tokens})
    memory = memories.empty(num_layers=2, batch_size=2, length=6, d_model=12)
    for t in range(LENGTH):
        output = apply(params, {"decoder_input_tokens": tokens[:, t : t + 1]}, memory)
        np.testing.assert_allclose(output.logits[:, 0], whole.logits[:, t], atol=1e-5)
        memory = output.memory


def test_an_order_of_two_halves_is_a_segment_and_the_next():
    """The first half may not read the second: what the second reads is then a memory."""
    params, tokens = tiny.params(XLNET), _tokens(2, LENGTH)
    half = np.arange(LENGTH) >= 3
    forbidden = np.broadcast_to((~half[:, None] & half[None, :]).astype(np.int32), (2, LENGTH, LENGTH))
    types = np.zeros((2, LENGTH), np.int32)
    batch = {"encoder_input_tokens": tokens, "encoder_token_types": types, "permutation_mask": forbidden}
    whole = _apply(XLNET)(params, batch)
    first, second = ({"encoder_input_tokens": tokens[:, p], "encoder_token_types": types[:, p]}
                     for p in (slice(3), slice(3, None)))  # fmt: skip
    before = _apply(XLNET)(params, first)
    after = _apply(XLNET)(params, second, before.memory)
    np.testing.assert_allclose(before.logits, whole.logits[:, :3], atol=1e-5)
    np.testing.assert_allclose(after.logits, whole.logits[:, 3:], atol=1e-5)


def test_padding_in_a_memory_is_not_read():
    params, tokens = tiny.params(TXL), _tokens(2, 2 * LENGTH)
    segments = np.ones((2, LENGTH), np.int32)
    segments[1, 4:] = 0
    first = {"decoder_input_tokens": tokens[:, :LENGTH], "decoder_segment_ids": segments}
    second = {"decoder_input_tokens": tokens[:, LENGTH:]}
    memory = _apply(TXL)(params, first).memory
    np.testing.assert_array_equal(memory.is_real, segments == 1)
    other = dataclasses.replace(memory, states=jnp.where(memory.is_real[None, ..., None], memory.states, 7.0))
    found, expected = (_apply(TXL)(params, second, given).logits for given in (memory, other))
    np.testing.assert_array_equal(found, expected)


def test_a_memory_passes_no_gradient():
    params, tokens = tiny.params(TXL), _tokens(1, LENGTH)
    network = Network(TXL)

    def total(params):
        memory = network.apply(params, {"decoder_input_tokens": tokens}).memory
        return jnp.sum(memory.states)

    gradients = jax.jit(jax.grad(total))(params)
    assert all(np.abs(leaf).max() == 0 for leaf in jax.tree.leaves(gradients))


@pytest.mark.parametrize("same_length", [False, True])
def test_against_the_equations_one_pair_at_a_time(same_length):
    config = TXL
    if same_length:  # as many positions for each: the memory's 6, itself included
        block = TXL.stack.pattern[0]
        block = dataclasses.replace(block, attention=dataclasses.replace(block.attention, window=5))
        config = dataclasses.replace(TXL, stack=dataclasses.replace(TXL.stack, pattern=(block,)))
    params, tokens = tiny.params(config), _tokens(2, LENGTH)
    rng = np.random.default_rng(5)
    past, is_real = rng.normal(size=(2, 2, 6, 12)).astype(np.float32), rng.random((2, 6)) < 0.6
    output = _apply(config)(
        params, {"decoder_input_tokens": tokens}, memories.Memory(jnp.asarray(past), jnp.asarray(is_real))
    )
    wide = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
    layers = [jax.tree.map(lambda leaf, i=i: leaf[i], wide["decoder"]["layers_0"]) for i in range(2)]
    clusters = {"cutoffs": (8, 20), "divisor": 2}
    embedded = relative.adaptive_embedding(tokens, wide["embed"], scale=12**0.5, **clusters)
    states = relative.decoder(embedded, layers, scale=5**-0.5, eps=1e-5, past=past.astype(np.float64), is_real=is_real,
                              max_distance=5, window=5 if same_length else None)  # fmt: skip
    for found, expected in zip(output.hidden_states, states, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-4, rtol=1e-4)
    for word in (0, 7, 8, 19, 20, 36):
        scores = wide["embed"], wide["head"]
        expected = relative.adaptive_log_probability(states[-1][1, 2], word, *scores, vocab_size=37, **clusters)
        np.testing.assert_allclose(output.logits[1, 2, word], expected, atol=1e-4, rtol=1e-4)


def _batch(forbidden: np.ndarray, positions: np.ndarray, tokens: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "encoder_input_tokens": tokens,
        "encoder_token_types": np.arange(LENGTH)[None].repeat(len(tokens), axis=0).astype(np.int32) // 4,
        "permutation_mask": forbidden,
        "encoder_predict_positions": positions,
    }


def test_a_query_depends_on_what_it_may_read_and_on_nothing_else():
    """Through both layers: by whom a token is read is what its order says, itself never."""
    params, forbidden = tiny.params(XLNET), _permutation(0, rows=1)
    tokens = np.arange(10, 10 + LENGTH, dtype=np.int32)[None]
    batch = _batch(forbidden, np.arange(LENGTH, dtype=np.int32)[None], tokens)
    network = Network(XLNET)
    direction = jnp.asarray(np.random.default_rng(1).normal(size=12), jnp.float32)

    def state(embedding, position):
        hidden = network.hidden(params | {"embed": {"embedding": embedding}}, batch).last_hidden
        return jnp.vdot(hidden[0, position], direction)

    gradient = jax.jit(jax.grad(state))
    table = params["embed"]["embedding"]
    influence = np.stack([np.abs(gradient(table, t)[tokens[0]]).max(axis=-1) > 0 for t in range(LENGTH)])
    np.testing.assert_array_equal(influence, forbidden[0] == 0)
    assert not influence.diagonal().any()


def test_the_tokens_do_not_see_the_queries():
    params, forbidden, tokens = tiny.params(XLNET), _permutation(1), _tokens(2, LENGTH)
    positions = np.array([[5, 2], [0, 3]], np.int32)
    batch = _batch(forbidden, positions, tokens)
    both = _apply(XLNET)(params, batch)
    alone = _apply(XLNET)(params, {name: v for name, v in batch.items() if name != "encoder_predict_positions"})
    assert both.last_hidden.shape == (2, 2, 12)
    assert both.logits.shape == (2, 2, 37)
    for found, expected in zip(both.hidden_states, alone.hidden_states, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-6), both.memory, alone.memory)


def test_each_query_is_alone():
    params, forbidden, tokens = tiny.params(XLNET), _permutation(2), _tokens(2, LENGTH)
    positions = np.array([[5, 2], [0, 3]], np.int32)
    both = _apply(XLNET)(params, _batch(forbidden, positions, tokens))
    for k in range(2):
        one = _apply(XLNET)(params, _batch(forbidden, positions[:, k : k + 1], tokens))
        np.testing.assert_allclose(both.last_hidden[:, k], one.last_hidden[:, 0], atol=1e-6)


def test_a_query_that_begins_as_a_token_and_reads_all_ends_as_that_token():
    params, tokens = tiny.params(XLNET), np.full((2, LENGTH), 9, np.int32)
    params = params | {"query_state": params["embed"]["embedding"][9][None, None]}
    positions = np.array([[5, 2, 0], [1, 3, 4]], np.int32)
    found = _apply(XLNET)(params, _batch(np.zeros((2, LENGTH, LENGTH), np.int32), positions, tokens))
    expected = np.take_along_axis(np.asarray(found.hidden_states[-1]), positions[..., None], axis=1)
    np.testing.assert_allclose(found.last_hidden, expected, atol=1e-5)


def test_the_order_of_the_text_is_causal():
    params, tokens = tiny.params(XLNET), _tokens(2, LENGTH)
    forbidden = np.broadcast_to(np.triu(np.ones((LENGTH, LENGTH), np.int32), 1), (2, LENGTH, LENGTH))
    batch = {"encoder_input_tokens": tokens, "permutation_mask": forbidden}
    whole = _apply(XLNET)(params, batch).logits
    start = {"encoder_input_tokens": tokens[:, :4], "permutation_mask": forbidden[:, :4, :4]}
    np.testing.assert_allclose(_apply(XLNET)(params, start).logits, whole[:, :4], atol=1e-5)


def test_packed_orders_are_those_of_each_example():
    params, tokens = tiny.params(XLNET), _tokens(1, LENGTH)
    forbidden, segments = _permutation(4, rows=1), np.array([[1, 1, 1, 1, 2, 2]], np.int32)
    positions = np.array([[3, 5]], np.int32)
    types = np.zeros((1, LENGTH), np.int32)
    batch = _batch(forbidden, positions, tokens) | {"encoder_segment_ids": segments, "encoder_token_types": types}
    packed = _apply(XLNET)(params, batch).last_hidden
    for part, position, k in ((slice(4), 3, 0), (slice(4, None), 1, 1)):
        single = {
            "encoder_input_tokens": tokens[:, part],
            "encoder_token_types": types[:, part],
            "permutation_mask": forbidden[:, part, part],
            "encoder_predict_positions": np.array([[position]], np.int32),
        }
        np.testing.assert_allclose(packed[:, k], _apply(XLNET)(params, single).last_hidden[:, 0], atol=1e-5)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="relative attention"):
        dataclasses.replace(XLNET, stack=tiny.bert().stack)
    with pytest.raises(ValueError, match="same clusters"):
        head = dataclasses.replace(TXL.head, dim=7)
        dataclasses.replace(TXL, head=head)
    with pytest.raises(ValueError, match="does not generate from a cache"):
        Network(TXL).prefill({}, {"decoder_input_tokens": _tokens(1, 3)}, length=5)
