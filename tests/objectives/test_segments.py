"""What passes from one segment to the next: `t2t.objectives.segments`, and Transformer-XL's loss on it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t import heads
from t2t.families import transfo_xl
from t2t.models.base import Network
from t2t.objectives import base, segments
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.step import accumulate_gradients
from tests.models import tiny

LENGTH, ROWS, LAYERS, D = 5, 4, 2, 12
TXL = transfo_xl.with_head(
    transfo_xl.transfo_xl(num_layers=LAYERS, d_model=D, num_heads=3, head_dim=5, d_ff=14, vocab_size=37,
                          cutoffs=(8, 20), divisor=2, memory_length=2 * LENGTH, dropout=0.0),
    heads.PRETRAINING,
)  # fmt: skip
MODELS, OBJECTIVE = {"model": Network(TXL)}, LanguageModeling()


def _batch(tokens: np.ndarray) -> dict[str, np.ndarray]:
    """The batch of rows that each begin a text, with start token 0."""
    return {
        "decoder_input_tokens": np.pad(tokens[:, :-1], [(0, 0), (1, 0)]),
        "decoder_target_tokens": tokens,
        "decoder_loss_weights": np.ones(tokens.shape, np.float32),
        "decoder_segment_ids": np.ones(tokens.shape, np.int32),
    }


def _tokens(length: int, rows: int = ROWS) -> np.ndarray:
    return np.random.default_rng(0).integers(1, 37, (rows, length)).astype(np.int32)


@jax.jit
def _loss(params, batch, carry):
    terms, _, carry = OBJECTIVE.loss(MODELS, {"model": params}, batch, key=None, carry=carry)
    return terms["cross_entropy"].sum, carry


def test_an_empty_carry_is_there_for_every_row_of_models_that_remember():
    carry = OBJECTIVE.initial_carry(MODELS, rows=8, micro_batches=2)
    assert carry["memory"].states.shape == (2, LAYERS, 4, 2 * LENGTH, D)
    assert not carry["memory"].is_real.any()
    assert carry["token"].tolist() == [[segments.UNREAD] * 4] * 2
    named = jax.tree.leaves(OBJECTIVE.carry_axes(carry), is_leaf=lambda x: isinstance(x, tuple))
    for leaf, axes in zip(jax.tree.leaves(carry), named, strict=True):
        assert leaf.shape[axes.index("batch")] == 4
        assert len(axes) == leaf.ndim
    forgetful = {"model": Network(dataclasses.replace(TXL, memory_length=0))}
    assert OBJECTIVE.initial_carry(forgetful, rows=8, micro_batches=2) == ()
    assert OBJECTIVE.carry_axes(()) == ()
    assert isinstance(OBJECTIVE, base.Recurrent)


def test_segments_cost_what_the_whole_text_costs():
    params, tokens = tiny.params(TXL), _tokens(3 * LENGTH)
    whole, _ = _loss(params, _batch(tokens), ())
    carry = OBJECTIVE.initial_carry(MODELS, rows=ROWS, micro_batches=1)
    parts = []
    for start in range(0, 3 * LENGTH, LENGTH):
        part, carry = _loss(params, _batch(tokens[:, start : start + LENGTH]), carry)
        parts.append(float(part))
    assert sum(parts) == pytest.approx(float(whole), rel=1e-5)
    empty = OBJECTIVE.initial_carry(MODELS, rows=ROWS, micro_batches=1)
    apart, _ = _loss(params, _batch(tokens[:, LENGTH : 2 * LENGTH]), empty)
    assert abs(parts[1] - float(apart)) > 1e-2


@pytest.mark.slow
def test_micro_batches_go_on_in_their_own_rows():
    params, tokens = tiny.params(TXL), _tokens(2 * LENGTH)
    losses = {}
    for number in (1, 2, 4):
        carry = OBJECTIVE.initial_carry(MODELS, rows=ROWS, micro_batches=number)
        step = jax.jit(
            lambda batch, carry, number=number: accumulate_gradients(
                OBJECTIVE, MODELS, {"model": params}, batch, frozen={}, key=None, carry=carry, micro_batches=number
            )
        )
        for start in (0, LENGTH):
            gradients, loss, _, carry = step(_batch(tokens[:, start : start + LENGTH]), carry)
        losses[number] = float(loss)
        order = np.arange(ROWS).reshape(-1, number).T  # rows of each micro-batch
        np.testing.assert_array_equal(carry["token"], tokens[order, -1])
        del gradients
    assert losses[1] == pytest.approx(losses[2], rel=1e-5)
    assert losses[1] == pytest.approx(losses[4], rel=1e-5)


def test_padding_at_the_end_is_no_last_token():
    ids = jnp.array([[1, 1, 1], [1, 1, 0], [0, 0, 0]])
    targets = jnp.array([[5, 6, 7], [8, 9, 0], [0, 0, 0]])
    found = segments.last_tokens(targets, token=jnp.array([1, 2, 3]), segment_ids=ids)
    assert found.tolist() == [7, 9, 3]
    inputs = segments.continue_inputs(jnp.zeros((3, 3), jnp.int32), token=found, segment_ids=ids)
    assert inputs[:, 0].tolist() == [7, 9, 0]


def test_a_carry_takes_turns():
    carry = {"memory": jnp.array([[1.0], [2.0], [3.0]])}
    assert segments.now(carry)["memory"].tolist() == [1.0]
    assert segments.then(carry, memory=jnp.array([9.0]))["memory"].tolist() == [[2.0], [3.0], [9.0]]
    assert segments.now(()) == {}
    assert segments.then(()) == ()
