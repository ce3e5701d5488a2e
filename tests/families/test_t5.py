"""What T5 and the families of its shape read, refuse and leave out."""

import dataclasses
import json

import numpy as np
import pytest
import safetensors.numpy

from t2t import families, heads
from t2t.families import mt5, t5, umt5
from t2t.hf import config_map, export, files, load
from t2t.models.encoder import EncoderConfig
from t2t.nn.heads import LanguageModelHead
from tests.hf import tiny

SIZES = {"num_layers": 2, **tiny.SIZES}
GATED = {"gated": True, "activation": "gelu_tanh", "tied": False, **SIZES}


def changed(directory, **attributes):
    """The same directory with other attributes in config.json."""
    config = json.loads((directory / "config.json").read_text()) | attributes
    (directory / "config.json").write_text(json.dumps(config))


def test_an_mt5_and_a_t5_are_told_apart_by_name():
    assert families.expressing(t5.t5(**GATED))[0].model_type == "t5"
    assert families.expressing(mt5.mt5(**GATED))[0].model_type == "mt5"
    tokens = mt5.with_head(mt5.mt5(**GATED), heads.TokenClassification())
    assert families.expressing(tokens)[1]["architectures"] == ["MT5ForTokenClassification"]


def test_a_tied_mt5_is_never_exported_as_one_and_refused_on_import(tmp_path):
    tied = mt5.mt5(**{**GATED, "tied": True})
    assert families.expressing(tied)[0].model_type == "t5"
    export.export(tmp_path, config=tied, params=tiny.params(tied))
    changed(tmp_path, model_type="mt5", architectures=["MT5ForConditionalGeneration"])
    with pytest.raises(ValueError, match="an mT5 without lm_head.weight"):
        load.open_directory(tmp_path)


def test_an_mt5_saved_by_transformers_5_has_its_own_output(tmp_path):
    config = mt5.mt5(**GATED)
    export.export(tmp_path, config=config, params=tiny.params(config))
    changed(tmp_path, tie_word_embeddings=True)
    assert load.open_directory(tmp_path).config == config


def test_every_block_of_a_umt5_has_its_own_bias(tmp_path):
    config = umt5.umt5(**GATED)
    export.export(tmp_path, config=config, params=tiny.params(config))
    names = {n for n in safetensors.numpy.load_file(tmp_path / files.SINGLE) if "relative_attention_bias" in n}
    assert names == {
        f"{side}.block.{i}.layer.0.SelfAttention.relative_attention_bias.weight"
        for side in ("encoder", "decoder")
        for i in range(2)
    }


def test_scores_of_tokens_need_no_decoder(tmp_path):
    config = t5.t5(**SIZES)
    params = tiny.params(config)
    export.export(tmp_path, config=config, params=params)
    opened = load.open_directory(tmp_path, head=heads.TokenClassification(num_labels=3))
    assert isinstance(opened.config, EncoderConfig)
    assert opened.fresh == ("head/classifier/bias", "head/classifier/kernel")
    assert all(name.startswith("decoder.") for name in opened.dropped)
    np.testing.assert_array_equal(opened.params()["encoder"]["final_norm"]["scale"],
                                  params["encoder"]["final_norm"]["scale"])  # fmt: skip
    changed(tmp_path, architectures=["T5EncoderModel"])
    with pytest.raises(ValueError, match="tensors without a place"):
        load.open_directory(tmp_path)


def test_the_output_comes_back_as_the_version_of_the_model_has_it():
    for config, tied in ((t5.t5(**SIZES), True), (t5.t5(**GATED), False)):
        labelled = t5.with_head(config, heads.SequenceClassification())
        assert t5.with_head(labelled, heads.PRETRAINING) == config
        assert config.head == LanguageModelHead(tied=tied, scale_by_width=tied)


@pytest.mark.parametrize("head", [heads.MaskedLM(), heads.MultipleChoice()])
def test_heads_that_there_are_not(head):
    with pytest.raises(ValueError, match="UMT5 has no head"):
        umt5.with_head(umt5.umt5(**SIZES), head)
    with pytest.raises(ValueError, match="has no head"):
        t5.with_head(t5.with_head(t5.t5(**SIZES), heads.TokenClassification()), heads.SequenceClassification())


def test_an_encoder_with_a_head_of_masked_words_is_no_t5():
    config = t5.with_head(t5.t5(**SIZES), heads.TokenClassification())
    with pytest.raises(config_map.InexpressibleError, match="masked words"):
        families.expressing(dataclasses.replace(config, head=tiny.MASKED.head))
