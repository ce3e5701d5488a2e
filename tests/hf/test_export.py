"""Exported directories, file by file, without transformers."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy
from flax import traverse_util

from t2t import heads
from t2t import vocabulary as vocabularies
from t2t.families import bert, gpt2, modernbert, roberta, t5
from t2t.hf import config_map, export, files
from tests.hf import tiny
from tests.shared_data import shared_data


def exported(directory, config, **options):
    export.export(directory, config=config, params=tiny.params(config), **options)
    return json.loads((directory / "config.json").read_text())


def names(directory):
    return set(safetensors.numpy.load_file(directory / files.SINGLE))


ARCHITECTURES = {
    "bert": "BertModel", "masked": "BertForMaskedLM", "pretraining": "BertForPreTraining", "gpt2": "GPT2LMHeadModel",
    "gpt": "OpenAIGPTLMHeadModel", "t5": "T5ForConditionalGeneration", "t5_1_1": "T5ForConditionalGeneration",
}  # fmt: skip


@pytest.mark.parametrize("name", tiny.ALL)
def test_config_json_has_the_types_that_transformers_insists_on(tmp_path, name):
    config = exported(tmp_path, tiny.ALL[name])
    assert config["architectures"] == [ARCHITECTURES[name]]
    assert config["dtype"] == config["torch_dtype"] == "float32"
    for attribute, value in config.items():
        if attribute.endswith(("_eps", "_epsilon", "pdrop", "_prob", "_rate", "_range", "_factor")):
            assert type(value) is float, attribute
        elif attribute.startswith(("num_", "n_")) and value is not None:
            assert type(value) is int, attribute
        elif attribute.startswith(("is_", "tie_", "use_", "scale_")):
            assert type(value) is bool, attribute


SIZES = {"num_layers": 1, "d_model": 12, "num_heads": 3}
ALWAYS = {"README.md", "config.json", "model.safetensors"}
TOKENIZER = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
GENERATION = {"generation_config.json"}
DIRECTORIES = {
    "t5": (t5.t5(d_ff=7, vocab_size=32128, **SIZES), "t5/spiece.model", GENERATION | {"spiece.model"}),
    "t5 1.1": (
        t5.t5(d_ff=7, gated=True, activation="gelu_tanh", tied=False, vocab_size=32128, **SIZES),
        "t5/spiece.model",
        GENERATION | {"spiece.model"},
    ),
    "bert": (
        bert.with_head(bert.bert(d_ff=7, vocab_size=30522, **SIZES), heads.MaskedLM()),
        "bert-base-uncased/vocab.txt",
        {"vocab.txt"},
    ),
    "gpt2": (
        gpt2.gpt2(max_positions=9, vocab_size=50257, **SIZES),
        "gpt2",
        GENERATION | {"vocab.json", "merges.txt"},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DIRECTORIES)
def test_the_files_of_a_family(tmp_path, name):
    config, vocabulary, own = DIRECTORIES[name]
    opened = vocabularies.Vocabulary.load(shared_data("tokenizers", vocabulary))
    for directory, given, expected in (
        (tmp_path / "with", opened, ALWAYS | TOKENIZER | own),
        (tmp_path / "without", None, ALWAYS | own & GENERATION),
    ):
        written = export.export(directory, config=config, params=tiny.params(config), vocabulary=given)
        assert written == sorted(path.name for path in directory.iterdir()) == sorted(expected)


def test_shared_tensors_are_written_once_under_the_name_of_the_embedding(tmp_path):
    for name, embedding in {"t5": "shared", "gpt2": "transformer.wte", "gpt": "transformer.tokens_embed",
                            "masked": "bert.embeddings.word_embeddings"}.items():  # fmt: skip
        exported(tmp_path, tiny.ALL[name])
        found = {
            key for key in names(tmp_path) if key.endswith(("embed_tokens.weight", "lm_head.weight", "decoder.weight"))
        }
        assert found == set()
        assert f"{embedding}.weight" in names(tmp_path)


def test_a_t5_1_1_says_in_every_way_that_its_output_is_its_own(tmp_path):
    config = exported(tmp_path, tiny.T5_1_1)
    assert config["tie_word_embeddings"] is config["scale_decoder_outputs"] is False
    assert {"shared.weight", "lm_head.weight"} <= names(tmp_path)
    assert (config["feed_forward_proj"], config["dense_act_fn"], config["is_gated_act"]) == (
        "gated-gelu",
        "gelu_new",
        True,
    )


def test_an_untied_bert_has_its_bias_under_both_names(tmp_path):
    head = dataclasses.replace(tiny.MASKED.head, tied=False)
    exported(tmp_path, dataclasses.replace(tiny.MASKED, head=head))
    tensors = safetensors.numpy.load_file(tmp_path / files.SINGLE)
    np.testing.assert_array_equal(tensors["cls.predictions.bias"], tensors["cls.predictions.decoder.bias"])
    assert "cls.predictions.decoder.weight" in tensors


def test_a_modernbert_says_its_rotations_and_windows_as_both_versions_read_them(tmp_path):
    """transformers 4 reads no `rope_parameters` and `layer_types`, and its own values for what it does not find."""
    bases = {"global_theta": 777.0, "local_theta": 55.0}
    kinds = ["full_attention", "sliding_attention"] * 2
    config = modernbert.modernbert(**SIZES | {"num_layers": 4}, d_ff=8, vocab_size=11, layer_types=kinds, **bases)
    written = exported(tmp_path, config)
    assert (written["global_rope_theta"], written["local_rope_theta"]) == (777.0, 55.0)
    assert {kind: rope["rope_theta"] for kind, rope in written["rope_parameters"].items()} == {
        "full_attention": 777.0, "sliding_attention": 55.0,
    }  # fmt: skip
    assert (written["global_attn_every_n_layers"], written["layer_types"]) == (2, kinds)


def test_the_bias_of_t5_stands_in_the_first_block_of_each_stack_alone(tmp_path):
    exported(tmp_path, tiny.T5)
    assert {key for key in names(tmp_path) if "relative_attention_bias" in key} == {
        f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight" for side in ("encoder", "decoder")
    }


def test_conv1d_kernels_are_not_transposed_and_linear_ones_are(tmp_path):
    exported(tmp_path, tiny.GPT2)
    up = tiny.params(tiny.GPT2)["decoder"]["layers_0"]["feed_forward"]["up"]["kernel"]
    written = safetensors.numpy.load_file(tmp_path / files.SINGLE)
    np.testing.assert_array_equal(written["transformer.h.1.mlp.c_fc.weight"], up[1])
    exported(tmp_path, tiny.BERT)
    up = tiny.params(tiny.BERT)["encoder"]["layers_0"]["feed_forward"]["up"]["kernel"]
    np.testing.assert_array_equal(
        safetensors.numpy.load_file(tmp_path / files.SINGLE)["encoder.layer.1.intermediate.dense.weight"], up[1].T
    )


def test_generation_config(tmp_path):
    exported(tmp_path, tiny.T5, generation={"max_new_tokens": 17, "num_beams": 4, "early_stopping": True})
    written = json.loads((tmp_path / "generation_config.json").read_text())
    del written["transformers_version"]
    assert written == {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0, "max_new_tokens": 17,
                       "num_beams": 4, "early_stopping": True}  # fmt: skip


def test_models_that_do_not_generate_have_none(tmp_path):
    exported(tmp_path, tiny.MASKED)
    assert not (tmp_path / "generation_config.json").exists()
    with pytest.raises(ValueError, match="does not generate"):
        exported(tmp_path, tiny.MASKED, generation={"num_beams": 2})


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"early_stopping": True}, "early_stopping without num_beams"),
        ({"length_penalty": 2.0, "early_stopping": "never"}, "early_stopping, length_penalty without num_beams"),
        ({"num_beams": 2, "early_stopping": 1}, "early_stopping is 1; it must be true, false or"),
        ({"num_return_sequences": 2}, "num_return_sequences=2 with num_beams=1"),
        ({"num_return_sequences": 3, "num_beams": 2, "do_sample": True}, "num_return_sequences=3 with num_beams=2"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0; it must be an integer, 1 or more"),
        ({"temperature": 0.7}, "without do_sample"),
        ({"beams": 4}, "generation has beams; possible are"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(tmp_path, settings, reason):
    with pytest.raises(ValueError, match=reason):
        exported(tmp_path, tiny.T5, generation=settings)


def test_a_larger_vocabulary_than_the_embedding_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has 360 ids but the embedding only 11 rows"):
        exported(tmp_path, tiny.T5, vocabulary=vocabularies.ByteVocabulary())


def test_padding_that_is_not_the_one_positions_count_from_is_refused(tmp_path):
    sizes = {"num_layers": 1, "d_model": 12, "num_heads": 3, "d_ff": 7, "vocab_size": 360}
    with pytest.raises(ValueError, match=r"has pad_id 0, but .* not 1. Train with LearnedPositions.offset=pad_id . 1"):
        exported(tmp_path, roberta.roberta(**sizes, max_positions=512), vocabulary=vocabularies.ByteVocabulary())
    config = roberta.roberta(**sizes, max_positions=512, position_offset=1)
    written = exported(tmp_path, config, vocabulary=vocabularies.ByteVocabulary())
    assert (written["pad_token_id"], written["max_position_embeddings"]) == (0, 513)
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["model_max_length"] == 512


def test_a_model_for_512_positions_has_514_rows(tmp_path):
    written = exported(tmp_path, roberta.roberta(num_layers=1, d_model=12, num_heads=3, d_ff=7, vocab_size=11))
    assert (written["pad_token_id"], written["max_position_embeddings"]) == (1, 514)


def test_padded_rows_stay(tmp_path):
    config = t5.t5(num_layers=1, d_model=12, num_heads=3, d_ff=7, vocab_size=384)
    written = exported(tmp_path, config, vocabulary=vocabularies.ByteVocabulary())
    assert written["vocab_size"] == 384
    assert safetensors.numpy.load_file(tmp_path / files.SINGLE)["shared.weight"].shape == (384, 12)
    assert "384 rows for 360 ids" in (tmp_path / "README.md").read_text()


def test_parameters_of_another_model_are_refused(tmp_path):
    params = tiny.params(tiny.BERT)
    del params["pooler"]
    with pytest.raises(ValueError, match=r"missing \['pooler/bias', 'pooler/kernel'\]"):
        export.export(tmp_path, config=tiny.BERT, params=params)


def test_nothing_is_written_of_a_model_that_cannot_be_exported(tmp_path):
    with pytest.raises(config_map.InexpressibleError, match="prefix-LM"):
        exported(tmp_path / "out", dataclasses.replace(tiny.GPT2, prefix_attention=True))
    assert not (tmp_path / "out").exists()


def test_an_unknown_dtype_is_refused(tmp_path):
    with pytest.raises(ValueError, match="possible are float32, float16, bfloat16"):
        exported(tmp_path, tiny.T5, dtype="int8")


def test_a_decoder_deeper_than_the_encoder_is_noted(tmp_path, caplog):
    config = t5.t5(num_layers=1, num_decoder_layers=2, d_model=12, num_heads=3, d_ff=7, vocab_size=11)
    exported(tmp_path, config)
    assert "use_cache=False" in (tmp_path / "README.md").read_text()
    assert "in transformers: The decoder has more layers than the encoder" in caplog.text


def test_parameters_are_read_one_at_a_time(tmp_path):
    """Leaves that are memory maps or views become arrays only when their turn comes, and are let go after it."""
    held, most = set(), 0

    class Leaf:
        def __init__(self, path, array):
            self.path, self.array, self.shape = path, array, array.shape

        def __array__(self, dtype=None, copy=None):
            nonlocal most
            held.add(self.path)
            most = max(most, len(held))
            array = self.array.copy().view(Held)
            array.path = self.path
            return array

    class Held(np.ndarray):
        path = None

        def __del__(self):
            held.discard(self.path)

    arrays = traverse_util.flatten_dict(tiny.params(tiny.BERT), sep="/")
    leaves = {path: Leaf(path, array) for path, array in arrays.items()}
    export.export(tmp_path, config=tiny.BERT, params=traverse_util.unflatten_dict(leaves, sep="/"))
    assert most <= 2


def test_export_needs_neither_torch_nor_transformers(tmp_path):
    code = (
        "import sys\n"
        "from tests.hf import tiny\n"
        "from t2t.hf import export, load\n"
        "from t2t import vocabulary\n"
        "from t2t.families import t5\n"
        "config = t5.t5(num_layers=1, d_model=12, num_heads=3, d_ff=7, vocab_size=384)\n"
        f"out, bytes_ = {str(tmp_path)!r}, vocabulary.ByteVocabulary()\n"
        "export.export(out, config=config, params=tiny.params(config), vocabulary=bytes_)\n"
        "load.open_directory(out).params()\n"
        "print([m for m in ('torch', 'transformers', 'tensorflow') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_run_is_not_written_over(tmp_path):
    (tmp_path / "config.json").write_text('{"t2t": "0.1.0", "experiment": {}}')
    with pytest.raises(ValueError, match="something else than an export"):
        export.export(tmp_path, config=tiny.GPT2, params=tiny.params(tiny.GPT2))
    assert "experiment" in (tmp_path / "config.json").read_text()


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_an_export_leaves_nothing_of_the_last_one_that_would_be_read_with_it(tmp_path):
    exported(tmp_path, tiny.GPT2, max_shard_bytes=1000)
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    for name in ("notes.txt", "tokenizer.json", "modules.json"):
        (tmp_path / name).write_text("{}")
    exported(tmp_path, tiny.BERT)
    assert set(contents(tmp_path)) == ALWAYS | {"notes.txt", "tokenizer.json"}


def test_tokenizers_of_before_stay_with_a_warning_or_go(tmp_path, caplog):
    (tmp_path / "vocab.txt").write_text("a\n")
    exported(tmp_path, tiny.BERT)
    assert f"{tmp_path} keeps vocab.txt: see that they are of this model's vocabulary" in caplog.text
    exported(tmp_path, dataclasses.replace(tiny.T5, embed=dataclasses.replace(tiny.T5.embed, vocab_size=384)),
             vocabulary=vocabularies.ByteVocabulary())  # fmt: skip
    assert not (tmp_path / "vocab.txt").exists()


@pytest.mark.parametrize("where", ["in a tensor", "in the tokenizer"])
def test_an_export_that_fails_leaves_the_last_one_as_it_was(tmp_path, monkeypatch, where):
    exported(tmp_path / "out", tiny.BERT)
    before = contents(tmp_path / "out")
    params = tiny.params(tiny.T5)
    if where == "in a tensor":
        params["decoder"]["final_norm"]["scale"] = np.full_like(params["decoder"]["final_norm"]["scale"], 1e38)
    else:
        monkeypatch.setattr(export, "_write_tokenizer", lambda *_, **__: 1 / 0)
        monkeypatch.setattr(export, "_check", lambda *_: None)
    for directory in (tmp_path / "out", tmp_path / "new"):
        with pytest.raises((ValueError, ZeroDivisionError)):
            export.export(
                directory, config=tiny.T5, params=params, vocabulary=vocabularies.ByteVocabulary(), dtype="float16"
            )
    assert contents(tmp_path / "out") == before and not (tmp_path / "new").exists()
