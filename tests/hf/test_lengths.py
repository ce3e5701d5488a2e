"""The length that a model with rotary positions was trained with comes back, though no number here depends on it."""

import json

import jax
import numpy as np
import pytest

import t2t
from t2t import cli
from t2t.families import gpt_neox, gptj, modernbert
from t2t.hf import export
from tests.hf import tiny

SIZES = {"num_layers": 1, "d_model": 12, "num_heads": 3, "d_ff": 8, "vocab_size": 11}
MODELS = {
    "gptj": (gptj.gptj, {"rotary_dim": 2}, "n_positions", 2048),
    "gpt_neox": (gpt_neox.gpt_neox, {"rotary_dim": 2}, "max_position_embeddings", 2048),
    "modernbert": (modernbert.modernbert, {}, "max_position_embeddings", 8192),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_length_comes_back(name, tmp_path):
    make, sizes, attribute, usual = MODELS[name]
    for length in (None, 4096):
        config = make(**SIZES, **sizes, trained_positions=length)
        export.export(tmp_path / f"{length}", config=config, params=tiny.params(config))
        written = json.loads((tmp_path / f"{length}" / "config.json").read_text())
        assert written[attribute] == (length or usual)
        assert cli.main(["import", str(tmp_path / f"{length}"), str(tmp_path / f"ours{length}")]) == 0
        for directory in (tmp_path / f"{length}", tmp_path / f"ours{length}"):
            assert t2t.load(directory).config.stack.blocks[0] == config.stack.blocks[0]
            assert t2t.load(directory).config.stack.position == config.stack.position


@pytest.mark.hf
@pytest.mark.slow
def test_a_gpt_j_reads_beyond_2048_tokens_in_transformers(tmp_path):
    """Whose class makes sines for as many positions as config.json says."""
    import torch
    import transformers

    config = gptj.gptj(**SIZES, rotary_dim=2, trained_positions=4096)
    params = tiny.params(config)
    export.export(tmp_path, config=config, params=params)
    theirs = transformers.GPTJForCausalLM.from_pretrained(tmp_path, attn_implementation="eager").eval()
    tokens = np.random.default_rng(0).integers(0, 11, (1, 2200)).astype(np.int32)
    model = t2t.load(tmp_path)
    ours = np.asarray(model.apply({"decoder_input_tokens": tokens}).logits)
    with torch.no_grad():
        expected = theirs(torch.tensor(tokens).long()).logits.numpy()
    np.testing.assert_allclose(ours[:, -200:], expected[:, -200:], atol=1e-3, rtol=1e-3)
    jax.tree.map(np.testing.assert_array_equal, model.params, params)
