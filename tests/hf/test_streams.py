"""XLNet's query stream and memory are those of transformers, state by state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.hf import load
from t2t.models import base
from t2t.nn.memory import Memory
from tests.cases import Case
from tests.hf import oracle

pytestmark = [pytest.mark.hf, pytest.mark.slow]

ROWS, LENGTH, TARGETS = 2, 9, 4
SIZES = {"vocab_size": 53, "d_model": 24, "n_layer": 3, "n_head": 4, "d_inner": 28}


def _models(directory, **changes):
    case = Case(name="streams", architecture="XLNetLMHeadModel", config={**SIZES, **changes})
    model = oracle.build(case)
    opened = load.open_directory(oracle.save(model, directory))
    network, params = base.Network(opened.config), jax.tree.map(jnp.asarray, opened.params())
    return model, jax.jit(lambda batch, memory=None: network.apply(params, batch, memory=memory, hidden_states=True))


def _arrays(seed):
    rng = np.random.default_rng(seed)
    orders = np.stack([rng.permutation(LENGTH) for _ in range(ROWS)])
    forbidden = orders[:, None, :] >= orders[:, :, None]
    forbidden[:, :, 3:5] = False  # a context that all may read, so that no query has nothing to read
    segments = np.ones((ROWS, LENGTH), np.int32)
    segments[1, :2] = 0  # padded on the left
    return {
        "encoder_input_tokens": rng.integers(6, 53, (ROWS, LENGTH)).astype(np.int32),
        "encoder_segment_ids": segments,
        "encoder_token_types": rng.integers(0, 3, (ROWS, LENGTH)).astype(np.int32),
        "permutation_mask": forbidden.astype(np.int32),
        "encoder_predict_positions": np.array([[8, 0, 5, 2], [7, 2, 3, 8]], np.int32),
    }


def _theirs(model, arrays, **more):
    import torch

    given = {name: torch.tensor(array, dtype=torch.long) for name, array in arrays.items()}
    inputs = {
        "input_ids": given["encoder_input_tokens"],
        "attention_mask": given["encoder_segment_ids"].float(),
        "token_type_ids": given["encoder_token_types"],
    }
    if "permutation_mask" in given:
        inputs["perm_mask"] = given["permutation_mask"].float()
    if "encoder_predict_positions" in given:
        positions = given["encoder_predict_positions"]
        inputs["target_mapping"] = torch.nn.functional.one_hot(positions, LENGTH).float()
    with torch.no_grad():
        return model(**inputs, output_hidden_states=True, **more)


def test_queries_and_tokens(tmp_path):
    model, ours = _models(tmp_path, mem_len=None)
    arrays = _arrays(0)
    theirs, found = _theirs(model, arrays), ours(arrays)
    np.testing.assert_allclose(found.logits, theirs.logits.numpy(), atol=1e-4, rtol=1e-4)
    real = arrays["encoder_segment_ids"] != 0
    tokens, queries = theirs.hidden_states[0::2], theirs.hidden_states[1::2]
    assert len(tokens) == len(queries) == SIZES["n_layer"] + 1
    for mine, other in zip(found.hidden_states, tokens, strict=True):
        np.testing.assert_allclose(np.asarray(mine)[real], other.numpy()[real], atol=1e-4, rtol=1e-4)
    for mine, other in zip(found.query_hidden_states, queries, strict=True):
        np.testing.assert_allclose(mine, other.numpy(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("reuse", [None, 5])
def test_memory(tmp_path, reuse):
    model, ours = _models(tmp_path, mem_len=12, reuse_len=reuse)
    first, second = _arrays(1), _arrays(2)
    del first["permutation_mask"], first["encoder_predict_positions"]
    for arrays in (first, second):
        arrays["encoder_segment_ids"] = np.ones((ROWS, LENGTH), np.int32)
    before = _theirs(model, first)
    left = ours(first).memory
    assert left.states.shape == (SIZES["n_layer"], ROWS, 12, SIZES["d_model"])
    theirs = np.stack([states.numpy() for states in before.mems]).transpose(0, 2, 1, 3)
    filled = theirs.shape[2]
    np.testing.assert_array_equal(left.is_real, np.arange(12)[None].repeat(ROWS, axis=0) >= 12 - filled)
    np.testing.assert_allclose(left.states[:, :, 12 - filled :], theirs, atol=1e-4, rtol=1e-4)
    after = _theirs(model, second, mems=before.mems)
    found = ours(second, left)
    np.testing.assert_allclose(found.logits, after.logits.numpy(), atol=1e-4, rtol=1e-4)
    theirs = np.stack([states.numpy() for states in after.mems]).transpose(0, 2, 1, 3)
    kept = theirs.shape[2]
    np.testing.assert_allclose(found.memory.states[:, :, 12 - kept :], theirs, atol=1e-4, rtol=1e-4)


def test_a_memory_of_constants(tmp_path):
    """What a memory holds need not come from a model."""
    model, ours = _models(tmp_path, mem_len=7)
    arrays = _arrays(3)
    states = np.random.default_rng(4).normal(size=(SIZES["n_layer"], ROWS, 7, SIZES["d_model"])).astype(np.float32)
    found = ours(arrays, Memory(jnp.asarray(states), jnp.ones((ROWS, 7), bool)))
    import torch

    mems = [torch.tensor(layer.transpose(1, 0, 2)) for layer in states]
    theirs = _theirs(model, arrays, mems=mems)
    np.testing.assert_allclose(found.logits, theirs.logits.numpy(), atol=1e-4, rtol=1e-4)
