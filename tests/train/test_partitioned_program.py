"""What a device holds in the compiled step: its part of vocabulary, rows and positions, and never more."""

import re

import jax
import numpy as np
import pytest

from t2t import heads, sharding
from t2t.config import Mesh
from t2t.families import gpt2
from t2t.models.base import Network
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.optimizer import AdamW, Constant
from t2t.train.state import init_params, init_state, state_shardings
from t2t.train.step import make_train_step

pytestmark = [pytest.mark.multi_device, pytest.mark.slow]

ROWS, LENGTH, D_MODEL, HEADS = 16, 24, 40, 4


def shapes(sizes: Mesh, *, vocab_size: int) -> set[tuple[int, ...]]:
    """The shapes of all arrays of floats in the program of a device, axes of length 1 left out."""
    bare = gpt2.gpt2(num_layers=2, d_model=D_MODEL, num_heads=HEADS, vocab_size=vocab_size, max_positions=LENGTH)
    models = {"model": Network(gpt2.with_head(bare, heads.PRETRAINING))}
    axes, mesh = {"model": models["model"].logical_axes()}, sharding.make_mesh(sizes)
    optimizer = AdamW(learning_rate=Constant(peak=0.01)).make(models["model"].shapes(), axes)
    state = jax.eval_shape(lambda key: init_state(init_params(models, key), optimizer), jax.random.key(0))
    where = state_shardings(state, axes, mesh)
    state = jax.tree.map(lambda leaf, at: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=at), state, where)
    names = ("decoder_input_tokens", "decoder_target_tokens", "decoder_segment_ids", "decoder_positions")
    batch = {name: np.zeros((ROWS, LENGTH), np.int32) for name in names}
    batch["decoder_loss_weights"] = np.zeros((ROWS, LENGTH), np.float32)
    step = make_train_step(LanguageModeling(), models, optimizer, seed=0, state_shardings=where)
    with sharding.use_mesh(mesh):
        text = step.lower(state, sharding.batch_shapes(batch, mesh)).compile().as_text()
    found = [tuple(map(int, shape.split(","))) for shape in re.findall(r"\bf32\[([\d,]+)\]", text)]
    return {tuple(size for size in shape if size != 1) for shape in found}


def test_no_device_holds_the_whole_vocabulary_or_the_rows_of_others():
    found = shapes(Mesh(data=2, fsdp=2, tensor=2), vocab_size=202)
    assert not any(202 in shape for shape in found)
    assert any({ROWS // 4, LENGTH, 101} <= set(shape) for shape in found)  # logits of the device's rows
    assert not any({ROWS, LENGTH} <= set(shape) or ROWS * LENGTH in shape for shape in found)


def test_logits_are_split_where_the_vocabulary_does_not_divide():
    """Unevenly: 101 and 100 of 201; the table stays whole."""
    found = shapes(Mesh(data=4, tensor=2), vocab_size=201)
    assert not any(201 in shape and np.prod(shape) > 201 * D_MODEL for shape in found)


def test_positions_are_split_and_keys_alone_gathered():
    found = shapes(Mesh(data=1, fsdp=2, sequence=4), vocab_size=202)
    rows, positions = ROWS // 2, LENGTH // 4
    assert (rows, HEADS, positions, LENGTH) in found  # scores
    assert (rows, HEADS, LENGTH, D_MODEL // HEADS) in found  # keys and values of all positions
    assert not any(shape.count(LENGTH) > 1 for shape in found)
    for width in (202, D_MODEL, 4 * D_MODEL):  # logits, states between layers, feed-forward layers
        assert not any({rows, LENGTH, width} <= set(shape) for shape in found), width
