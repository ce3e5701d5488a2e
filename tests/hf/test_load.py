"""Reading Hugging Face directories: every tensor accounted for, old and partial files included."""

import json

import jax
import numpy as np
import pytest
import safetensors.numpy
from flax import traverse_util

import t2t
from t2t import cli, families, heads
from t2t.errors import UsageError
from t2t.families import gpt2, xlm, xlnet
from t2t.hf import export, files, load
from tests.hf import tiny


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A directory for each tiny model."""
    directories = {}
    for name, config in tiny.ALL.items():
        directories[name] = tmp_path_factory.mktemp(name)
        export.export(directories[name], config=config, params=tiny.params(config))
    return directories


def rewrite(source, target, change):
    """Copies a directory with its tensors changed by a function of the dictionary."""
    (target / "config.json").write_text((source / "config.json").read_text())
    tensors = safetensors.numpy.load_file(source / files.SINGLE)
    safetensors.numpy.save_file(change(tensors), target / files.SINGLE, metadata={"format": "pt"})
    return target


def rename(function):
    return lambda tensors: {function(name): tensor for name, tensor in tensors.items()}


def add(**tensors):
    return lambda held: held | {name: np.asarray(value, np.float32) for name, value in tensors.items()}


@pytest.mark.parametrize("name", tiny.ALL)
def test_round_trip(exported, name):
    opened = load.open_directory(exported[name])
    assert opened.dropped == opened.fresh == ()
    tiny.assert_trees_equal(opened.params(), tiny.params(tiny.ALL[name]))


@pytest.mark.parametrize("name", ["masked", "pretraining", "gpt2", "gpt"])
def test_names_without_the_base_prefix(exported, tmp_path, name):
    base = {"gpt2": "transformer.", "gpt": "transformer."}.get(name, "bert.")
    rewrite(exported[name], tmp_path, rename(lambda key: key.removeprefix(base)))
    tiny.assert_trees_equal(load.open_directory(tmp_path).params(), tiny.params(tiny.ALL[name]))


def test_the_base_prefix_on_a_bare_model(exported, tmp_path):
    rewrite(exported["bert"], tmp_path, rename(lambda key: f"bert.{key}"))
    tiny.assert_trees_equal(load.open_directory(tmp_path).params(), tiny.params(tiny.BERT))


def test_gamma_and_beta(exported, tmp_path):
    def old(key):
        return key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")

    rewrite(exported["pretraining"], tmp_path, rename(old))
    tiny.assert_trees_equal(load.open_directory(tmp_path).params(), tiny.params(tiny.PRETRAINING))


def test_both_gamma_and_weight_are_one_too_many(exported, tmp_path):
    rewrite(exported["bert"], tmp_path, add(**{"embeddings.LayerNorm.gamma": np.ones(12)}))
    with pytest.raises(ValueError, match="the same under an old and a new name"):
        load.open_directory(tmp_path)


@pytest.mark.parametrize(
    ("name", "buffer"),
    [
        ("masked", "bert.embeddings.position_ids"),
        ("gpt2", "transformer.h.0.attn.bias"),
        ("gpt2", "transformer.h.1.attn.masked_bias"),
        ("gpt", "transformer.position_ids"),
        ("t5", "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"),
    ],
)
def test_buffers_and_a_bias_that_t5_never_had_are_ignored(exported, tmp_path, name, buffer):
    rewrite(exported[name], tmp_path, add(**{buffer: np.ones((3, 3))}))
    tiny.assert_trees_equal(load.open_directory(tmp_path).params(), tiny.params(tiny.ALL[name]))


@pytest.mark.parametrize(
    ("name", "copies"),
    [
        ("t5", ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"]),
        ("masked", ["cls.predictions.decoder.weight"]),
        ("gpt2", ["lm_head.weight"]),
        ("gpt", ["lm_head.weight"]),
    ],
)
def test_copies_of_the_embedding_may_stand_there(exported, tmp_path, name, copies):
    table_of = tiny.params(tiny.ALL[name])["embed"]["embedding"]
    rewrite(exported[name], tmp_path, add(**dict.fromkeys(copies, table_of)))
    tiny.assert_trees_equal(load.open_directory(tmp_path).params(), tiny.params(tiny.ALL[name]))


def test_a_copy_that_differs_is_an_error(exported, tmp_path):
    rewrite(exported["gpt2"], tmp_path, add(**{"lm_head.weight": np.zeros((11, 12))}))
    with pytest.raises(ValueError, match="lm_head.weight differs from transformer.wte.weight"):
        load.open_directory(tmp_path)


def test_a_copy_may_stand_alone(exported, tmp_path):
    change = rename(lambda key: "encoder.embed_tokens.weight" if key == "shared.weight" else key)
    rewrite(exported["t5"], tmp_path, change)
    tiny.assert_trees_equal(load.open_directory(tmp_path).params(), tiny.params(tiny.T5))


def test_everything_that_does_not_match_is_listed(exported, tmp_path):
    def change(tensors):
        tensors = dict(tensors)
        del tensors["h.0.mlp.c_fc.bias" if "h.0.mlp.c_fc.bias" in tensors else "transformer.h.0.mlp.c_fc.bias"]
        tensors["transformer.wte.weight"] = tensors["transformer.wte.weight"][:7]
        return tensors | {"score.weight": np.zeros((2, 12), np.float32), "extra": np.zeros(1, np.float32)}

    rewrite(exported["gpt2"], tmp_path, change)
    with pytest.raises(ValueError) as error:
        load.open_directory(tmp_path)
    for part in (
        "without a place in the model: extra, score.weight",
        "decoder/layers_0/feed_forward/up/bias (transformer.h.0.mlp.c_fc.bias)",
        "transformer.wte.weight has shape (7, 12), config.json means (11, 12)",
    ):
        assert part in str(error.value)


def test_what_the_caller_names_is_left_out_or_initialised(exported, tmp_path):
    def change(tensors):
        kept = {name: tensor for name, tensor in tensors.items() if not name.endswith("ln_f.bias")}
        return kept | {"score.weight": np.zeros((2, 12), np.float32)}

    rewrite(exported["gpt2"], tmp_path, change)
    opened = load.open_directory(tmp_path, drop=["score.*"], fresh=["decoder/final_norm/*"])
    assert (opened.dropped, opened.fresh) == (("score.weight",), ("decoder/final_norm/bias",))
    leaves = traverse_util.flatten_dict(opened.params(), sep="/")
    np.testing.assert_array_equal(leaves["decoder/final_norm/bias"], np.zeros(12))
    expected = traverse_util.flatten_dict(tiny.params(tiny.GPT2), sep="/")
    np.testing.assert_array_equal(leaves["decoder/final_norm/scale"], expected["decoder/final_norm/scale"])


def test_the_error_says_what_makes_a_directory_that_opens(exported, tmp_path):
    """The call in its text, with the names in its text, and an export of what that gives."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()

    def change(tensors):
        return {name: tensor for name, tensor in tensors.items() if "ln_f.bias" not in name} | {"extra": np.zeros(1)}

    rewrite(exported["gpt2"], theirs, change)
    with pytest.raises(ValueError) as error:
        t2t.load(theirs)
    assert "t2t import --drop TENSORS --fresh PARAMETERS" in str(error.value)
    names = ["--drop", "extra", "--fresh", "decoder/final_norm/bias"]
    assert cli.main(["import", str(theirs), str(ours), *names]) == 0
    assert t2t.load(ours).config == tiny.GPT2


SIZES = {"num_layers": 2, "d_model": 12, "num_heads": 3, "vocab_size": 11}
REFUSED = [(family.model_type, name) for family in families.all_families().values() for name in family.refused]


@pytest.mark.parametrize(("model_type", "name"), REFUSED)
def test_classes_with_a_head_that_t2t_lacks_are_refused_by_their_name(tmp_path, model_type, name):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type, "architectures": [name]}))
    with pytest.raises(UsageError, match=f"t2t does not read {name}: .*(Open|open)"):
        load.open_directory(tmp_path)


@pytest.mark.parametrize("name", ["XLNetForQuestionAnswering", "XLMForQuestionAnswering"])
def test_another_head_than_the_one_that_t2t_lacks_can_be_asked_for(tmp_path, name):
    config, prefix = {
        "XLNetForQuestionAnswering": (xlnet.xlnet(**SIZES, d_ff=7), ""),
        "XLMForQuestionAnswering": (xlm.xlm(**SIZES), "qa_outputs."),
    }[name]
    export.export(tmp_path, config=config, params=tiny.params(config))
    unread = {f"{prefix}start_logits.dense.weight", f"{prefix}answer_class.dense_1.weight"}
    rewrite(tmp_path, tmp_path, lambda tensors: tensors | {key: np.ones((1, 12), np.float32) for key in unread})
    attributes = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(attributes | {"architectures": [name]}))
    opened = load.open_directory(tmp_path, head=heads.BARE)
    assert (opened.config, set(opened.dropped)) == (config, unread)
    tiny.assert_trees_equal(opened.params(), tiny.params(config))
    assert load.open_directory(tmp_path, head=heads.QuestionAnswering()).config.head.task == "span"


def test_of_two_heads_that_of_words_is_opened_where_it_is_asked_for(exported, tmp_path):
    config = gpt2.with_head(tiny.GPT2, heads.MultipleChoice())
    export.export(tmp_path, config=config, params=tiny.params(config))
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == ["GPT2DoubleHeadsModel"]
    assert load.open_directory(tmp_path).config == config
    opened = load.open_directory(tmp_path, head=heads.PRETRAINING)
    assert opened.config == tiny.GPT2
    assert set(opened.dropped) == {f"multiple_choice_head.summary.{part}" for part in ("weight", "bias")}
    attributes = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(attributes | {"summary_activation": "tanh"}))
    with pytest.raises(UsageError, match="summary_activation='tanh', not None"):
        load.open_directory(tmp_path)


def test_no_head_can_be_asked_for(exported):
    opened = load.open_directory(exported["masked"], head=heads.BARE)
    assert opened.config == tiny.BERT
    assert set(opened.fresh) == {"pooler/kernel", "pooler/bias"}
    assert load.open_directory(exported["gpt2"], head=heads.BARE).config == tiny.GPT2
    assert families.preset("bert-tiny", head=heads.BARE) == families.preset("bert-tiny")


def test_another_head(exported):
    bare = load.open_directory(exported["pretraining"], head=heads.MaskedLM())
    assert set(bare.dropped) == {
        "bert.pooler.dense.bias", "bert.pooler.dense.weight",
        "cls.seq_relationship.bias", "cls.seq_relationship.weight",
    }  # fmt: skip
    assert bare.config == tiny.MASKED
    more = load.open_directory(exported["bert"], head=heads.PRETRAINING)
    assert more.config == tiny.PRETRAINING
    assert "head/next_sentence/kernel" in more.fresh and "pooler/kernel" not in more.fresh
    params = more.params()
    assert jax.tree.structure(params) == jax.tree.structure(tiny.params(tiny.PRETRAINING))
    np.testing.assert_array_equal(params["pooler"]["bias"], tiny.params(tiny.BERT)["pooler"]["bias"])


def test_another_head_does_not_excuse_a_missing_layer(exported, tmp_path):
    rewrite(exported["bert"], tmp_path, lambda t: {k: v for k, v in t.items() if "layer.1.output.dense" not in k})
    with pytest.raises(ValueError, match="encoder/layers_0/feed_forward/down/kernel"):
        load.open_directory(tmp_path, head=heads.MaskedLM())


def test_another_head_does_not_excuse_a_layer_too_many(exported, tmp_path):
    rewrite(exported["bert"], tmp_path, add(**{"encoder.layer.2.output.dense.bias": np.zeros(12)}))
    with pytest.raises(ValueError, match=r"without a place in the model: encoder.layer.2.output.dense.bias"):
        load.open_directory(tmp_path, head=heads.MaskedLM())


def test_shards(tmp_path):
    params = tiny.params(tiny.T5)
    export.export(tmp_path, config=tiny.T5, params=params, max_shard_bytes=2000)
    assert (tmp_path / files.INDEX).exists()
    tiny.assert_trees_equal(load.open_directory(tmp_path).params(), params)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_files_are_read_as_float32(tmp_path, dtype):
    params = tiny.params(tiny.GPT2)
    export.export(tmp_path, config=tiny.GPT2, params=params, dtype=dtype)
    rounded = jax.tree.map(lambda leaf: leaf.astype(files.DTYPES[dtype]).astype(np.float32), params)
    tiny.assert_trees_equal(load.open_directory(tmp_path).params(), rounded)


def test_leaves_come_one_at_a_time(exported):
    opened = load.open_directory(exported["t5"])
    assert opened.leaf("embed/embedding").shape == opened.shapes["embed/embedding"] == (11, 12)


def test_a_head_or_class_that_t2t_lacks_names_its_tensors(exported, tmp_path):
    rewrite(exported["bert"], tmp_path, add(**{"classifier.weight": np.zeros((2, 12)), "classifier.bias": np.zeros(2)}))
    with pytest.raises(ValueError, match=r"classifier.bias, classifier.weight.*drop"):
        load.open_directory(tmp_path)


def test_no_config_json(tmp_path):
    with pytest.raises(UsageError, match="has no config.json"):
        load.open_directory(tmp_path)


def test_the_vocabulary_is_found(exported, tmp_path):
    assert load.open_directory(exported["t5"]).vocabulary is None
    rewrite(exported["t5"], tmp_path, lambda tensors: tensors)
    (tmp_path / "vocab.json").touch()  # without its merges no vocabulary
    assert load.open_directory(tmp_path).vocabulary is None
    assert t2t.load(tmp_path).vocabulary is None
    (tmp_path / "spm.model").touch()
    assert load.open_directory(tmp_path).vocabulary == tmp_path


def test_config_json_may_omit_defaults(exported, tmp_path):
    rewrite(exported["t5"], tmp_path, lambda tensors: tensors)
    config = json.loads((tmp_path / "config.json").read_text())
    for name in ("feed_forward_proj", "relative_attention_num_buckets", "tie_word_embeddings", "scale_decoder_outputs"):
        del config[name]
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert load.open_directory(tmp_path).config == tiny.T5


def test_quantised_weights_are_refused(exported, tmp_path):
    """Integers without their scales would be read as parameters of some hundred."""

    def change(tensors):
        return {name: (tensor * 100).astype(np.int8) if "ln_f" in name else tensor for name, tensor in tensors.items()}

    rewrite(exported["gpt2"], tmp_path, change)
    with pytest.raises(ValueError, match=r"ln_f.bias is stored as I8; parameters are read from BF16, F16, F32, F64"):
        load.open_directory(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "config.json is not JSON"),
        (b'{"model_type": "caf\xe9"}', "config.json is not UTF-8"),
        (b"[]", "config.json holds a list"),
        (b'{"model_type": ["t5"]}', r'config.json: model_type is \["t5"\]; it must be a string'),
        (b'{"model_type": "llama"}', "config.json: config.json has model_type 'llama'; t2t knows albert"),
    ],
)
def test_a_damaged_config_is_named(tmp_path, content, message):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(UsageError, match=message):
        load.open_directory(tmp_path)


LAYERS = {"bert": "num_hidden_layers", "gpt2": "n_layer", "gpt": "n_layer", "t5": "num_layers"}


@pytest.mark.parametrize("value", ["12", None, [12], {}, 1.5, True])
@pytest.mark.parametrize("name", LAYERS)
def test_values_of_another_type_are_named(exported, tmp_path, name, value):
    rewrite(exported[name], tmp_path, lambda tensors: tensors)
    changed = {**json.loads((tmp_path / "config.json").read_text()), LAYERS[name]: value}
    (tmp_path / "config.json").write_text(json.dumps(changed))
    with pytest.raises(UsageError) as error:
        load.open_directory(tmp_path)
    said = f"{tmp_path / 'config.json'}: {LAYERS[name]} is {json.dumps(value)}; it must be an integer"
    assert str(error.value) == said


def test_what_only_the_family_can_know_to_be_wrong_is_said_of_the_file(exported, tmp_path):
    rewrite(exported["gpt2"], tmp_path, lambda tensors: tensors)
    whole = json.loads((tmp_path / "config.json").read_text())
    for wrong in ({"architectures": [5]}, {"n_head": 0}):
        (tmp_path / "config.json").write_text(json.dumps({**whole, **wrong}))
        with pytest.raises(UsageError, match=r"config.json describes no gpt2 model \(.*compare its attributes"):
            load.open_directory(tmp_path)


def test_the_start_of_a_decoder_is_a_number(exported, tmp_path):
    rewrite(exported["t5"], tmp_path, lambda tensors: tensors)
    (tmp_path / "generation_config.json").write_text('{"decoder_start_token_id": "0"}')
    with pytest.raises(UsageError, match='generation_config.json: decoder_start_token_id is "0"; it must be an int'):
        t2t.load(tmp_path)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"drop": ["scroe.*"]}, "drop 'scroe.*' matches no tensor without a place in the model; the closest are score"),
        ({"drop": ["head/*"]}, "drop 'head/*' matches no tensor without a place in the model; there are score.weight"),
        ({"fresh": ["decoder/final_nrm/bias"]}, "lack; the closest are decoder/final_norm/bias"),
        ({"ignore_attributes": ["n_layers"]}, "has no attribute 'n_layers' to ignore; the closest are n_layer"),
    ],
)
def test_what_the_caller_names_must_be_there(exported, tmp_path, asked, message):
    def change(tensors):
        kept = {name: tensor for name, tensor in tensors.items() if not name.endswith("ln_f.bias")}
        return kept | {"score.weight": np.zeros((2, 12), np.float32)}

    rewrite(exported["gpt2"], tmp_path, change)
    with pytest.raises(UsageError) as error:
        load.open_directory(tmp_path, **{"drop": ["score.*"], "fresh": ["decoder/final_norm/*"], **asked})
    assert message in str(error.value)
