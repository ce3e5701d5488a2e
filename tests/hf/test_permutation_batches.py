"""Batches of permutation language modelling mean to XLNet what transformers' perm_mask and target_mapping mean."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.data.permutation_features import PermutationFeatures
from t2t.data.permutation_lm import PermutationLM
from t2t.hf import load
from t2t.models import base
from t2t.objectives.permutation import PermutationLanguageModeling
from tests.cases import Case
from tests.data import toy
from tests.hf import oracle

pytestmark = [pytest.mark.hf, pytest.mark.slow]

LENGTH, K = 24, 4
SIZES = {"vocab_size": 53, "d_model": 24, "n_layer": 3, "n_head": 4, "d_inner": 28, "mem_len": None}


def _batch(lm: PermutationLM) -> dict[str, np.ndarray]:
    vocabulary = toy.word_vocabulary("[PAD]", "[UNK]", "[CLS]", "[SEP]", *toy.words(49))
    lengths = {"inputs": LENGTH, "targets": LENGTH}
    bound = lm.bind(lengths, toy.features(vocabulary, "inputs", "targets"))
    tokens = np.random.default_rng(0).integers(4, 53, (3, bound.raw_length)).astype(np.int32)
    made = bound.batch(tokens, seed=0, epoch=0, indices=np.arange(3))
    rows = [[{name: value[row] for name, value in made.items()}] for row in range(3)]
    reuse = lm.step(bound.sides)
    return dict(PermutationFeatures(lengths=lengths, predictions=K, reuse=reuse, one_a_row=True).convert(rows))


@pytest.mark.parametrize("lm", [PermutationLM(), PermutationLM(reuse=0.5)])
def test_the_loss_is_that_of_transformers(tmp_path, lm):
    import torch

    case = Case(name="permuted", architecture="XLNetLMHeadModel", config=SIZES)
    model = oracle.build(case)
    opened = load.open_directory(oracle.save(model, tmp_path))
    network, params = base.Network(opened.config), jax.tree.map(jnp.asarray, opened.params())
    batch = _batch(lm)
    given = {name: torch.tensor(array, dtype=torch.long) for name, array in batch.items()}
    with torch.no_grad():
        theirs = model(
            input_ids=given["encoder_input_tokens"],
            attention_mask=given["encoder_segment_ids"].float(),
            token_type_ids=given["encoder_token_types"],
            perm_mask=given["permutation_mask"].float(),
            target_mapping=torch.nn.functional.one_hot(given["encoder_predict_positions"], LENGTH).float(),
        ).logits
    expected = torch.nn.functional.cross_entropy(
        theirs.reshape(-1, 53), given["encoder_predict_targets"].reshape(-1), reduction="sum"
    )
    terms, _, _ = jax.jit(
        lambda p: PermutationLanguageModeling().loss({"model": network}, {"model": p}, batch, key=None, carry=())
    )(params)
    np.testing.assert_allclose(terms["cross_entropy"].sum, expected.item(), rtol=1e-4)
    assert float(terms["cross_entropy"].weight) == 3 * K


def test_reversed_rows_are_the_second_half_of_bidirectional_data(tmp_path):
    """With bi_data transformers takes the second half of a batch for reversed."""
    import torch

    case = Case(name="reversed", architecture="XLNetLMHeadModel", config=SIZES | {"clamp_len": 9})
    model = oracle.build(case)
    opened = load.open_directory(oracle.save(model, tmp_path))
    network = base.Network(dataclasses.replace(opened.config, bidirectional=True))
    params = jax.tree.map(jnp.asarray, opened.params())
    tokens = np.random.default_rng(1).integers(4, 53, (4, 9)).astype(np.int32)
    batch = {"encoder_input_tokens": tokens, "encoder_reversed": np.array([0, 0, 1, 1], np.int32)}
    model.transformer.bi_data = True
    with torch.no_grad():
        theirs = model(input_ids=torch.tensor(tokens, dtype=torch.long)).logits.numpy()
    ours = jax.jit(network.apply)(params, batch).logits
    np.testing.assert_allclose(ours, theirs, atol=1e-4, rtol=1e-4)
    forward = jax.jit(network.apply)(params, batch | {"encoder_reversed": np.zeros(4, np.int32)}).logits
    assert np.abs(np.asarray(forward) - theirs)[2:].max() > 1e-2
