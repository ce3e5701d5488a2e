"""A trained BERT-tiny, whose files have the old names gamma and beta, gives the outputs that transformers recorded."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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
