"""Reversed texts: `bidirectional` of `t2t.models.two_stream`. Streams and memories are in test_recurrence.py."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from t2t import sharding
from t2t.families import xlnet
from t2t.models.base import Network
from t2t.nn.heads import LanguageModelHead
from tests.models import tiny

LENGTH = 6
CONFIG = dataclasses.replace(
    xlnet.xlnet(num_layers=2, d_model=12, num_heads=3, d_ff=14, vocab_size=37, memory_length=4, max_distance=5,
                dropout=0.0),
    head=LanguageModelHead(use_bias=True),
    bidirectional=True,
)  # fmt: skip


@functools.cache
def _apply(config):
    network = Network(config)
    return jax.jit(lambda params, batch, memory=None: network.apply(params, batch, memory=memory, hidden_states=True))


def _batch(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    orders = np.stack([rng.permutation(LENGTH) for _ in range(3)])
    return {
        "encoder_input_tokens": rng.integers(1, 37, (3, LENGTH)).astype(np.int32),
        "encoder_token_types": rng.integers(0, 2, (3, LENGTH)).astype(np.int32),
        "encoder_segment_ids": np.ones((3, LENGTH), np.int32),
        "permutation_mask": (orders[:, None, :] >= orders[:, :, None]).astype(np.int8),
        "encoder_predict_positions": np.array([[5, 2], [0, 3], [1, 4]], np.int32),
    }


def _turned(batch: dict[str, np.ndarray], rows: list[int]) -> dict[str, np.ndarray]:
    """The batch with some rows reversed, and saying so."""
    turned = {name: value.copy() for name, value in batch.items()}
    for row in rows:
        for name in ("encoder_input_tokens", "encoder_token_types", "encoder_segment_ids"):
            turned[name][row] = batch[name][row, ::-1]
        turned["permutation_mask"][row] = batch["permutation_mask"][row, ::-1, ::-1]
        turned["encoder_predict_positions"][row] = LENGTH - 1 - batch["encoder_predict_positions"][row]
    return turned | {"encoder_reversed": np.isin(np.arange(3), rows).astype(np.int32)}


@pytest.mark.parametrize("rows", [[], [1], [0, 2]])
def test_a_reversed_row_is_its_text(rows):
    params, batch = tiny.params(CONFIG), _batch()
    plain = _apply(dataclasses.replace(CONFIG, bidirectional=False))(params, batch)
    found = _apply(CONFIG)(params, _turned(batch, rows))
    np.testing.assert_allclose(found.logits, plain.logits, atol=1e-5)
    for mine, other in zip(found.hidden_states, plain.hidden_states, strict=True):
        expected = np.array(other)
        expected[rows] = expected[rows][:, ::-1]
        np.testing.assert_allclose(mine, expected, atol=1e-5)
    if rows:  # the sign matters
        without = _apply(CONFIG)(params, _turned(batch, rows) | {"encoder_reversed": np.zeros(3, np.int32)})
        assert np.abs(np.asarray(without.logits) - np.asarray(plain.logits))[rows].max() > 1e-3


def test_a_memory_of_a_reversed_text_is_what_follows_in_it():
    """The second half of a text, reversed, then the first: as one row whose second half may not read the first."""
    config = dataclasses.replace(CONFIG, max_distance=None, memory_length=LENGTH)
    params, batch = tiny.params(config), _batch(1)
    tokens = np.concatenate([batch["encoder_input_tokens"], _batch(2)["encoder_input_tokens"]], axis=1)
    types = np.zeros((3, 2 * LENGTH), np.int32)
    second_half = np.arange(2 * LENGTH) >= LENGTH
    forbidden = np.broadcast_to(second_half[:, None] & ~second_half[None], (3, 2 * LENGTH, 2 * LENGTH)).astype(np.int8)
    whole = {"encoder_input_tokens": tokens, "encoder_token_types": types, "permutation_mask": forbidden}
    expected = _apply(config)(params, whole).logits
    ones, memory = np.ones(3, np.int32), None
    for part in (slice(LENGTH, None), slice(0, LENGTH)):
        segment = {
            "encoder_input_tokens": tokens[:, part][:, ::-1].copy(),
            "encoder_token_types": types[:, part],
            "encoder_reversed": ones,
        }
        output = _apply(config)(params, segment, memory)
        np.testing.assert_allclose(output.logits[:, ::-1], expected[:, part], atol=1e-5)
        memory = output.memory


def test_every_axis_of_a_parameter_has_a_rule_by_which_it_is_split():
    axes = jax.tree.leaves(Network(CONFIG).logical_axes(), is_leaf=lambda x: isinstance(x, tuple))
    assert {name for names in axes for name in names} <= set(dict(sharding.RULES))


def test_a_model_that_does_not_read_it_refuses_it():
    config = dataclasses.replace(CONFIG, bidirectional=False)
    with pytest.raises(ValueError, match=r"TwoStreamEncoderConfig\.bidirectional=True"):
        Network(config).hidden(tiny.params(config), _turned(_batch(), [1]))
