"""Trained models give the outputs that transformers recorded: a BERT-tiny with old names, and an ALBERT."""

import functools
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from t2t import families, heads
from t2t.hf import export, load
from t2t.models import base
from tests.hf import tiny
from tests.shared_data import shared_data


@pytest.fixture(scope="module")
def opened():
    return load.open_directory(shared_data("weights", "bert_tiny_splade", "model"))


def test_it_is_the_preset_with_the_head_of_masked_words(opened):
    assert opened.config == families.preset("bert-tiny", head=heads.MaskedLM())
    assert opened.dropped == opened.fresh == ()


def test_logits_and_hidden_states(opened):
    recorded = np.load(shared_data("weights", "_reference_hf_outputs", "splade_bert_tiny_mlm.npz"))
    batch = {
        "encoder_input_tokens": recorded["input_ids"].astype(np.int32),
        "encoder_segment_ids": recorded["attention_mask"].astype(np.int32),
    }
    params = jax.tree.map(jnp.asarray, opened.params())
    output = jax.jit(base.Network(opened.config).apply)(params, batch)
    real = recorded["attention_mask"] != 0
    for found, name in ((output.logits, "logits"), (output.last_hidden, "last_hidden_state")):
        np.testing.assert_allclose(np.asarray(found)[real], recorded[name][real], atol=1e-4, rtol=1e-4)


def test_export_and_import_keep_every_value(opened, tmp_path):
    params = opened.params()
    export.export(tmp_path, config=opened.config, params=params)
    tiny.assert_trees_equal(load.open_directory(tmp_path).params(), params)


@pytest.mark.hf
@pytest.mark.slow
def test_the_export_opens_in_transformers(opened, tmp_path):
    import torch
    import transformers

    export.export(tmp_path, config=opened.config, params=opened.params())
    model, info = transformers.BertForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert {name: found for name, found in info.items() if found} == {}
    recorded = np.load(shared_data("weights", "_reference_hf_outputs", "splade_bert_tiny_mlm.npz"))
    inputs = {name: torch.tensor(recorded[name]) for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        logits = model.eval()(**inputs).logits.numpy()
    real = recorded["attention_mask"] != 0
    np.testing.assert_allclose(logits[real], recorded["logits"][real], atol=1e-4, rtol=1e-4)


@pytest.fixture(scope="module")
def albert(tmp_path_factory):
    """An ALBERT of 12 layers that share their parameters, which reads chemical formulas; its file is a pickle."""
    import torch

    source = shared_data("weights", "rxnmapper", "albert_heads_8_uspto_all_1310k")
    directory = tmp_path_factory.mktemp("albert")
    shutil.copy(source / "config.json", directory)
    state = torch.load(source / "pytorch_model.bin", map_location="cpu", weights_only=True)
    safetensors.numpy.save_file({name: value.numpy() for name, value in state.items()}, directory / "model.safetensors")
    return load.open_directory(directory)


@pytest.mark.hf
def test_an_albert(albert):
    recorded = np.load(shared_data("weights", "_reference_hf_outputs", "rxnmapper_albert.npz"))
    batch = {
        "encoder_input_tokens": recorded["input_ids"].astype(np.int32),
        "encoder_segment_ids": recorded["attention_mask"].astype(np.int32),
    }
    params = jax.tree.map(jnp.asarray, albert.params())
    output = jax.jit(functools.partial(base.Network(albert.config).apply, attentions=True))(params, batch)
    real = recorded["attention_mask"] != 0
    for found, name in ((output.logits, "mlm_logits"), (output.last_hidden, "last_hidden_state")):
        np.testing.assert_allclose(np.asarray(found)[real], recorded[name][real], atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(output.pooled, recorded["pooler"], atol=1e-4, rtol=1e-4)
    weights = np.asarray(output.attentions[10]).swapaxes(1, 2)[real]
    np.testing.assert_allclose(weights, recorded["attn_layer10"].swapaxes(1, 2)[real], atol=1e-5, rtol=1e-4)


@pytest.mark.hf
def test_export_and_import_keep_every_value_of_an_albert(albert, tmp_path):
    params = albert.params()
    export.export(tmp_path, config=albert.config, params=params)
    again = load.open_directory(tmp_path)
    assert again.config == albert.config
    tiny.assert_trees_equal(again.params(), params)
