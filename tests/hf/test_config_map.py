"""Config maps are strict: what is unknown or impossible is named, all of it at once."""

import dataclasses
import json
import pathlib
import re

import pytest

from t2t import families, heads
from t2t.families import bert, gpt2, t5
from t2t.hf import config_map
from t2t.nn.block import BlockConfig
from t2t.nn.norm import RMSNorm
from tests.hf import version4

ATTRIBUTES = config_map.Attributes(read={"width": 8, "act": "relu"}, fixed={"is_decoder": (False,)})


def read(model_type, names=(), **attributes):
    family = families.by_model_type(model_type)
    values = family.attributes.values({"model_type": model_type, **attributes})
    return family.from_hf(values, frozenset(names))


def test_defaults_are_those_of_transformers():
    assert ATTRIBUTES.values({"model_type": "x", "width": 5, "use_cache": True}) == {"width": 5, "act": "relu"}


def test_everything_unknown_and_impossible_is_named():
    with pytest.raises(ValueError) as error:
        ATTRIBUTES.values({"model_type": "x", "alpha": 1, "beta": "b", "is_decoder": True, "pruned_heads": {"0": [1]}})
    for part in ("alpha=1", "beta='b'", "is_decoder=True", "pruned_heads={'0': [1]}"):
        assert part in str(error.value)
    assert "delete them in config.json, or name them: t2t.load(..., ignore_attributes=[NAME])" in str(error.value)


@pytest.mark.parametrize("model_type", families.all_families())
def test_types_of_attributes(model_type):
    family = families.by_model_type(model_type)
    for preset in family.presets.values():
        assert family.attributes.misfits(family.to_hf(preset())) == []
    for name, default in family.attributes.read.items():
        assert family.attributes.misfits({name: default}) == []
        wrong = [
            value for value in ("12", [12], {"12": 12}, 1.5, True, None) if family.attributes.misfits({name: value})
        ]
        assert len(wrong) >= 3, f"{name} may be anything but {wrong}"


def test_a_misfit_says_what_is_expected():
    attributes = config_map.Attributes(read={"width": 8, "rate": 0.1, "tied": True, "act": "relu", "labels": None})
    assert attributes.misfits({"width": 5, "rate": 1, "tied": 0, "act": "gelu", "labels": None, "other": []}) == []
    wrong = {"width": 5.0, "rate": "0.1", "tied": "false", "act": None, "labels": "2"}
    assert attributes.misfits(wrong) == [
        "width is 5.0; it must be an integer",
        'rate is "0.1"; it must be a number',
        'tied is "false"; it must be true or false',
        "act is null; it must be a string",
        'labels is "2"; it must be an integer or null',
    ]


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan"), 10**15, 10**400])
def test_numbers_that_no_model_has_are_misfits(number):
    attributes = config_map.Attributes(read={"eps": 0.1, "rope_parameters": None})
    for given in ({"eps": number}, {"rope_parameters": {"theta": [number]}}):
        (found,) = attributes.misfits(given)
        assert re.fullmatch(r"(eps|rope_parameters) is .*; it must be (finite|at most 1000000000)", found)


def test_layers_are_few():
    attributes = config_map.Attributes(read={"n_layer": 12, "vocab_size": 11})
    assert attributes.misfits({"n_layer": 10_000, "vocab_size": 10**9}) == []
    assert attributes.misfits({"n_layer": 10_001}) == ["n_layer is 10001; it must be at most 10000"]


def test_the_caller_may_name_what_is_without_effect():
    assert ATTRIBUTES.values({"alpha": 1, "is_decoder": True}, ignore=["alpha", "is_decoder"])["width"] == 8


@pytest.mark.parametrize(
    ("model_type", "attribute", "value"),
    [
        ("bert", "position_embedding_type", "relative_key"),
        ("bert", "position_embedding_type", "relative_key_query"),
        ("bert", "is_decoder", True),
        ("bert", "add_cross_attention", True),
        ("bert", "hidden_act", "mish"),
        ("roberta", "position_embedding_type", "relative_key"),
        ("roberta", "pad_token_id", None),
        ("xlm-roberta", "is_decoder", True),
        ("electra", "position_embedding_type", "relative_key"),
        ("electra", "summary_type", "last"),
        ("electra", "summary_activation", "tanh"),
        ("albert", "inner_group_num", 2),
        ("albert", "num_hidden_groups", 5),
        ("albert", "position_embedding_type", "relative_key"),
        ("mpnet", "relative_attention_num_buckets", 16),
        ("gpt2", "scale_attn_by_inverse_layer_idx", True),
        ("gpt2", "reorder_and_upcast_attn", True),
        ("gpt2", "scale_attn_weights", False),
        ("gpt2", "add_cross_attention", True),
        ("gpt2", "rope_theta", 10000.0),
        ("openai-gpt", "afn", "tanh"),
        ("t5", "feed_forward_proj", "gated-mish"),
        ("t5", "quantization_config", {"bits": 4}),
    ],
)
def test_attributes_that_change_numbers_are_refused(model_type, attribute, value):
    named = {"hidden_act": "activation", "num_hidden_groups": "StackConfig.sharing"}
    with pytest.raises(ValueError, match=named.get(attribute, attribute)):
        read(model_type, **{attribute: value})


def test_an_unknown_model_type_lists_the_known_ones():
    with pytest.raises(ValueError, match="'llama'; t2t knows albert, bart, bert, .*, xlnet"):
        families.by_model_type("llama")


@pytest.mark.parametrize(
    ("flags", "names", "tied", "scaled"),
    [
        # T5 1.0 of any version; 1.1 of version 4; 1.1 of version 5, which says "tied" but holds two tensors; a 1.1 that
        # version 5 has tied in silence.
        ({}, ["shared.weight"], True, True),
        ({"tie_word_embeddings": True, "scale_decoder_outputs": True}, ["shared.weight"], True, True),
        ({"tie_word_embeddings": True}, ["shared.weight", "lm_head.weight"], True, True),
        ({"tie_word_embeddings": False}, ["shared.weight", "lm_head.weight"], False, False),
        ({"tie_word_embeddings": True, "scale_decoder_outputs": False}, ["lm_head.weight"], False, False),
        ({"tie_word_embeddings": True, "scale_decoder_outputs": False}, ["shared.weight"], True, False),
    ],
)
def test_which_output_a_t5_has(flags, names, tied, scaled):
    head = read("t5", names, **flags).head
    assert (head.tied, head.scale_by_width) == (tied, scaled)


def test_a_t5_that_versions_read_differently_is_refused():
    with pytest.raises(ValueError, match="scale_decoder_outputs"):
        read("t5", tie_word_embeddings=False, scale_decoder_outputs=True)


def test_t5s_dense_act_fn_must_agree():
    assert read("t5", feed_forward_proj="gated-gelu", dense_act_fn="gelu_new", is_gated_act=True)
    with pytest.raises(ValueError, match="dense_act_fn"):
        read("t5", feed_forward_proj="gated-gelu", dense_act_fn="gelu")


def test_gated_gelu_is_the_approximate_one():
    config = read("t5", feed_forward_proj="gated-gelu")
    assert config.encoder.pattern[0].feed_forward.activation == "gelu_tanh"
    assert read("openai-gpt", afn="gelu").stack.pattern[0].feed_forward.activation == "gelu_tanh"
    assert read("bert", hidden_act="gelu").stack.pattern[0].feed_forward.activation == "gelu"


def test_published_config_json_are_the_presets():
    published = {
        "t5-small": ("t5", {"d_model": 512, "num_layers": 6, "num_heads": 8, "d_ff": 2048, "n_positions": 512,
                            "task_specific_params": {"summarization": {"num_beams": 4}}}),
        "gpt2": ("gpt2", {"n_ctx": 1024, "n_embd": 768, "activation_function": "gelu_new", "summary_type": "mean"}),
        "bert-base-uncased": ("bert", {"architectures": ["BertForMaskedLM"], "gradient_checkpointing": False}),
        "bert-base-multilingual-cased": ("bert", {"vocab_size": 119547, "pooler_type": "first_token_transform",
                                                  "directionality": "bidi"}),
        "openai-gpt": ("openai-gpt", {"n_special": 0, "predict_special_tokens": True}),
        "tinybert-4": ("bert", {"num_hidden_layers": 4, "hidden_size": 312, "intermediate_size": 1200, "cell": {},
                                "emb_size": 312, "pre_trained": "", "structure": [], "training": ""}),
        "roberta-base": ("roberta", {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1,
                                     "layer_norm_eps": 1e-5, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}),
        "xlm-roberta-base": ("xlm-roberta", {"vocab_size": 250002, "max_position_embeddings": 514, "output_past": True,
                                             "type_vocab_size": 1, "layer_norm_eps": 1e-5}),
        "distilbert-base-uncased": ("distilbert", {"architectures": ["DistilBertForMaskedLM"], "tie_weights_": True,
                                                   "sinusoidal_pos_embds": False}),
        "electra-small": ("electra", {"architectures": ["ElectraForPreTraining"], "summary_use_proj": True}),
        "albert-base-v2": ("albert", {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072,
                                      "attention_probs_dropout_prob": 0, "hidden_dropout_prob": 0, "gap_size": 0,
                                      "down_scale_factor": 1, "net_structure_type": 0, "num_memory_blocks": 0}),
        "mpnet-base": ("mpnet", {"max_position_embeddings": 514, "layer_norm_eps": 1e-5, "vocab_size": 30527}),
    }  # fmt: skip
    poolers = {"distilbert": [], "electra": [], "albert": ["pooler.weight"]}
    for name, (model_type, attributes) in published.items():
        names = [] if families.preset(name).head else poolers.get(model_type, ["pooler.dense.weight"])
        assert read(model_type, names, **attributes) == families.preset(name), name


PUBLISHED = json.loads((pathlib.Path(__file__).parent / "published.json").read_text(encoding="utf-8"))
"""Whole config.json of released models, with the preset that they mean and names that their tensors have."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_whole_published_config_json_are_read(name):
    attributes, names = PUBLISHED[name]["config"], PUBLISHED[name]["tensors"]
    model_type = attributes["model_type"]
    family = families.by_model_type(model_type)
    assert family.attributes.misfits(attributes) == []
    config = read(**attributes, names=names)
    if (preset := PUBLISHED[name]["preset"]) is not None:
        ours = dataclasses.replace(families.preset(preset), head=config.head)
        assert config_map.differences(ours, config) == []
    # What is read is written again as it was.
    written, kept = family.to_hf(config), family.kept(config)
    for attribute in (family.attributes.read.keys() & attributes.keys() & written.keys()) - kept - EQUIVALENT:
        assert attributes[attribute] in (written[attribute], None), attribute


EQUIVALENT = {"attention_types", "pos_att_type", "hidden_act", "max_relative_positions"}
"""Attributes with several ways to say the same."""


def test_labels_of_transformers_2_are_counted():
    attributes = PUBLISHED["dbmdz/bert-large-cased-finetuned-conll03-english"]["config"]
    assert read(**attributes).head.num_labels == 9
    del attributes["id2label"]
    assert read(**attributes).head.num_labels == 9
    assert read(**{**attributes, "_num_labels": 5, "num_labels": 4}).head.num_labels == 4


def test_every_family_has_a_published_config_json():
    assert {entry["config"]["model_type"] for entry in PUBLISHED.values()} == set(families.all_families())


ATTRIBUTES_OF_VERSION_4 = """
answer = {kind: transformers.CONFIG_MAPPING[kind]().to_dict() for kind in given["kinds"]}
"""


@pytest.mark.hf
def test_all_attributes_that_transformers_writes_are_known():
    import transformers

    for model_type in set(families.all_families()) & set(transformers.CONFIG_MAPPING):
        attributes = transformers.CONFIG_MAPPING[model_type]().to_dict()
        assert families.by_model_type(model_type).attributes.values(json.loads(json.dumps(attributes)))


@pytest.mark.hf
@pytest.mark.hf4
@pytest.mark.slow
def test_all_attributes_that_transformers_4_writes_are_known():
    found = version4.run(ATTRIBUTES_OF_VERSION_4, kinds=list(families.all_families()))
    for model_type, attributes in found.items():
        assert families.by_model_type(model_type).attributes.values(attributes)


def tiny(**sizes):
    return bert.bert(**{"num_layers": 2, "d_model": 12, "num_heads": 3, "d_ff": 7, "vocab_size": 11, **sizes})


def expect_refusal(config, reason: str) -> None:
    with pytest.raises(config_map.InexpressibleError, match=reason):
        families.expressing(config)


def test_a_prefix_lm_is_refused_with_the_reason():
    config = gpt2.gpt2(num_layers=2, d_model=12, num_heads=3, vocab_size=11)
    expect_refusal(dataclasses.replace(config, prefix_attention=True), "prefix-LM: no class of transformers")


def test_parts_no_class_has_are_refused():
    masked = bert.with_head(tiny(), heads.MaskedLM())
    expect_refusal(dataclasses.replace(masked, pooler=True), "no class of transformers has exactly its parts")


def test_any_field_that_transformers_cannot_carry_is_refused():
    config = tiny()
    changes = {
        "head_dim": lambda b: dataclasses.replace(b, attention=dataclasses.replace(b.attention, head_dim=5)),
        "scale": lambda b: dataclasses.replace(b, attention=dataclasses.replace(b.attention, scale=1.0)),
        "num_kv_heads": lambda b: dataclasses.replace(b, attention=dataclasses.replace(b.attention, num_kv_heads=1)),
        "gate": lambda b: dataclasses.replace(b, feed_forward=dataclasses.replace(b.feed_forward, gated=True)),
        "norm_position": lambda b: dataclasses.replace(b, norm_position="pre"),
        "norm": lambda b: dataclasses.replace(b, norm=RMSNorm()),
    }
    for field, change in changes.items():
        assert isinstance(config.stack.pattern[0], BlockConfig)
        pattern = (change(config.stack.pattern[0]),)
        stack = dataclasses.replace(config.stack, pattern=pattern)
        expect_refusal(dataclasses.replace(config, stack=stack), field)


def test_a_stack_with_one_odd_block_is_refused():
    config = tiny(num_layers=3)
    block = config.stack.pattern[0]
    odd = dataclasses.replace(block, feed_forward=dataclasses.replace(block.feed_forward, d_ff=9))
    expect_refusal(dataclasses.replace(config, stack=dataclasses.replace(config.stack, suffix=(odd,))), r"blocks\[2\]")


def test_equal_blocks_may_be_divided_in_any_way():
    config = tiny(num_layers=4)
    block = config.stack.pattern[0]
    stack = dataclasses.replace(config.stack, prefix=(block,), pattern=(block,), suffix=(block,))
    assert families.expressing(dataclasses.replace(config, stack=stack))[0].model_type == "bert"


def test_a_tied_t5_without_scaling_is_refused():
    config = t5.t5(num_layers=1, d_model=12, num_heads=3, d_ff=7, vocab_size=11)
    head = dataclasses.replace(config.head, scale_by_width=False)
    expect_refusal(dataclasses.replace(config, head=head), "transformers 4 and 5 read differently")
