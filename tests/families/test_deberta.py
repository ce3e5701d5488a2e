"""What DeBERTa's files hold beside what transformers reads: the head of replaced tokens, heads under two names."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import numpy as safetensors

import t2t
from t2t import families, heads
from t2t.families import deberta, deberta_v2
from t2t.hf import export, load
from t2t.models import base
from tests.hf import tiny

SIZES = {"num_layers": 2, "d_model": 12, "num_heads": 3, "d_ff": 7, "vocab_size": 11, "max_distance": 9}
FIRST = deberta.deberta(**SIZES)
THIRD = deberta.deberta(**SIZES, num_buckets=4, norms_distances=True, shares_projections=True, key_bias=True)
SECOND = deberta_v2.convolved(THIRD)
REPLACED = deberta_v2.with_head(THIRD, heads.PRETRAINING)
MASKED = deberta_v2.with_head(THIRD, heads.MaskedLM())
ENHANCED = heads.EnhancedMaskedLM()


def _written(directory, config):
    params = tiny.params(config)
    export.export(directory, config=config, params=params)
    return params, safetensors.load_file(directory / "model.safetensors")


def _rewrite(directory, tensors, **attributes):
    safetensors.save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((directory / "config.json").read_text())
    config = {name: value for name, value in {**config, **attributes}.items() if value is not None}
    (directory / "config.json").write_text(json.dumps(config))


def test_pretraining_is_replaced_tokens_for_the_third_version_alone():
    assert deberta_v2.with_head(SECOND, heads.PRETRAINING) == deberta_v2.with_head(SECOND, heads.MaskedLM())
    assert deberta.with_head(FIRST, heads.PRETRAINING) == deberta.with_head(FIRST, heads.MaskedLM())
    assert REPLACED.head.task == "replaced"


def test_replaced_tokens_are_scored_as_in_the_released_code():
    """LMMaskPredictionHead: a dense layer with activation over the norm of each state plus the first one."""
    params = tiny.params(REPLACED)
    tokens = np.random.default_rng(0).integers(1, 11, (2, 6)).astype(np.int32)
    segments = np.array([[1, 1, 1, 1, 2, 2], [1, 1, 1, 1, 0, 0]], np.int32)
    batch = {"encoder_input_tokens": tokens, "encoder_segment_ids": segments}
    output = base.Network(REPLACED).apply(jax.tree.map(jnp.asarray, params), batch)
    states, head = np.asarray(output.last_hidden), params["head"]
    firsts = states[[[0] * 6, [1] * 6], [[0, 0, 0, 0, 4, 4], [0] * 6]]
    total = states + firsts
    centred = total - total.mean(-1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-7)
    normed = normed * head["first_norm"]["scale"] + head["first_norm"]["bias"]
    inner = normed @ head["dense"]["kernel"] + head["dense"]["bias"]
    inner = np.asarray(jax.nn.gelu(inner, approximate=False))
    expected = (inner @ head["classifier"]["kernel"] + head["classifier"]["bias"])[..., 0]
    real = segments != 0
    np.testing.assert_allclose(np.asarray(output.logits)[real], expected[real], atol=1e-4, rtol=1e-4)


def test_the_head_of_replaced_tokens_has_the_names_of_published_files(tmp_path):
    _, tensors = _written(tmp_path, REPLACED)
    found = {name: tensor.shape for name, tensor in tensors.items() if not name.startswith("deberta.")}
    assert found == {
        "mask_predictions.LayerNorm.weight": (12,),
        "mask_predictions.LayerNorm.bias": (12,),
        "mask_predictions.dense.weight": (12, 12),
        "mask_predictions.dense.bias": (12,),
        "mask_predictions.classifier.weight": (1, 12),
        "mask_predictions.classifier.bias": (1,),
    }


@pytest.mark.parametrize("head", [None, heads.PRETRAINING, heads.MaskedLM(), heads.SequenceClassification()])
def test_published_files_hold_two_heads_and_open_with_any(head, tmp_path):
    params, tensors = _written(tmp_path, REPLACED)
    (tmp_path / "masked").mkdir()
    masked, others = _written(tmp_path / "masked", MASKED)
    renamed = {
        f"lm_predictions.lm_head.{name.removeprefix('cls.predictions.').removeprefix('transform.')}": tensor
        for name, tensor in others.items()
        if name.startswith("cls.")
    }
    positions = {"deberta.embeddings.position_embeddings.weight": np.ones((9, 12), np.float32)}
    _rewrite(tmp_path, {**tensors, **renamed, **positions}, architectures=None, legacy=None)
    opened = load.open_directory(tmp_path, head=head)
    if head in (None, heads.PRETRAINING):
        assert opened.config == REPLACED
        tiny.assert_trees_equal(opened.params(), params)
    else:
        assert opened.config == deberta_v2.with_head(THIRD, head)
    if head == heads.MaskedLM():
        tiny.assert_trees_equal(opened.params()["head"], masked["head"])


@pytest.mark.parametrize("config", [FIRST, THIRD], ids=["deberta", "deberta-v2"])
def test_the_head_of_masked_words_is_read_under_either_name(config, tmp_path):
    config = families.by_model_type("deberta").with_head(config, heads.MaskedLM())
    params, tensors = _written(tmp_path, config)
    assert json.loads((tmp_path / "config.json").read_text())["legacy"] is True
    old = {
        name.replace("cls.predictions.transform.", "lm_predictions.lm_head.").replace(
            "cls.predictions.", "lm_predictions.lm_head."
        ): tensor
        for name, tensor in tensors.items()
    }
    assert len([name for name in old if name.startswith("lm_predictions.lm_head.")]) == 5
    _rewrite(tmp_path, old, legacy=False)
    opened = load.open_directory(tmp_path)
    assert opened.config == config
    tiny.assert_trees_equal(opened.params(), params)


@pytest.mark.parametrize(
    ("family", "config"),
    [(deberta, FIRST), (deberta_v2, SECOND), (deberta_v2, THIRD)],
    ids=["first", "second", "third"],
)
def test_the_mask_decoder_is_written_with_its_table_and_comes_back(family, config, tmp_path):
    config = family.with_head(config, ENHANCED)
    params, tensors = _written(tmp_path, config)
    table = params["head"]["mask_decoder"]["positions"]
    np.testing.assert_array_equal(tensors["deberta.embeddings.position_embeddings.weight"], table)
    attributes = json.loads((tmp_path / "config.json").read_text())
    assert (attributes["architectures"], attributes["enhanced_mask_decoder"]) == ([f"{_prefix(family)}Model"], True)
    assert attributes["max_position_embeddings"] == 9
    assert "which no class" not in (tmp_path / "README.md").read_text()
    assert "No class of transformers reads `cls.predictions.*`" in (tmp_path / "README.md").read_text()
    opened = load.open_directory(tmp_path)
    assert opened.config == config
    tiny.assert_trees_equal(opened.params(), params)
    without = load.open_directory(tmp_path, head=heads.MaskedLM())
    assert without.config == family.with_head(config, heads.MaskedLM())
    del params["head"]["mask_decoder"]
    tiny.assert_trees_equal(without.params(), params)


def _prefix(family):
    return "Deberta" if family is deberta else "DebertaV2"


def test_published_files_give_the_mask_decoder_where_it_is_asked_for(tmp_path):
    """Their config.json does not tell: transformers reads the plain head, and so does t2t unless told otherwise."""
    config = deberta.with_head(FIRST, ENHANCED)
    params, tensors = _written(tmp_path, config)
    published = {
        name.replace("cls.predictions.transform.", "lm_predictions.lm_head.").replace(
            "cls.predictions.", "lm_predictions.lm_head."
        ): tensor
        for name, tensor in tensors.items()
    }
    _rewrite(tmp_path, published, enhanced_mask_decoder=None, architectures=None, legacy=None)
    assert load.open_directory(tmp_path).config == deberta.with_head(FIRST, heads.MaskedLM())
    opened = load.open_directory(tmp_path, head=ENHANCED)
    assert (opened.config, opened.fresh, opened.dropped) == (config, (), ())
    tiny.assert_trees_equal(opened.params(), params)


def test_the_mask_decoder_of_published_sizes():
    plain = t2t.count_parameters(t2t.preset("deberta-base", head=heads.MaskedLM()))
    assert t2t.count_parameters(t2t.preset("deberta-base", head=ENHANCED)) == plain + 512 * 768


def test_absolute_positions_at_the_start_leave_no_place_for_a_mask_decoder():
    absolute = deberta.deberta(**SIZES, max_positions=9)
    with pytest.raises(ValueError, match="has no mask decoder"):
        deberta.with_head(absolute, ENHANCED)


@pytest.mark.parametrize("family", families.all_families().values(), ids=lambda family: family.model_type)
def test_other_families_have_no_mask_decoder(family):
    config = next(iter(family.presets.values()))()
    if family.model_type.startswith("deberta"):
        assert family.with_head(config, ENHANCED).has_mask_decoder
        return
    with pytest.raises(ValueError, match=r"has no head EnhancedMaskedLM\(\)"):
        family.with_head(config, ENHANCED)


@pytest.mark.parametrize(
    "attributes",
    [
        {"relative_attention": False},
        {"pos_att_type": ["c2p", "p2p"]},
        {"pos_att_type": []},
        {"talking_head": True},
        {"pooler_hidden_size": 5},
        {"hidden_act": "tanh"},
    ],
    ids=str,
)
def test_attributes_that_change_numbers_are_refused(attributes, tmp_path):
    _, tensors = _written(tmp_path, FIRST)
    _rewrite(tmp_path, tensors, **attributes)
    with pytest.raises(ValueError, match=next(iter(attributes)) if "hidden_act" not in attributes else "activation"):
        load.open_directory(tmp_path)


@pytest.mark.parametrize(
    "attributes", [{"norm_rel_ebd": "batch_norm"}, {"attention_head_size": 5}, {"conv_groups": 2}], ids=str
)
def test_attributes_of_later_versions_that_change_numbers_are_refused(attributes, tmp_path):
    _, tensors = _written(tmp_path, SECOND)
    _rewrite(tmp_path, tensors, **attributes)
    with pytest.raises(ValueError, match=next(iter(attributes))):
        load.open_directory(tmp_path)


def test_the_first_version_has_no_multiple_choice():
    with pytest.raises(ValueError, match="has no head MultipleChoice"):
        deberta.with_head(FIRST, heads.MultipleChoice())


def test_queries_keys_and_values_alternate_in_files_of_the_first_version(tmp_path):
    params, tensors = _written(tmp_path, FIRST)
    fused = tensors["encoder.layer.1.attention.self.in_proj.weight"].reshape(3, 3, 4, 12)  # heads, q k v, head_dim
    for index, name in enumerate(("query", "key", "value")):
        kernel = params["encoder"]["layers_0"]["attention"][name]["kernel"][1]
        np.testing.assert_array_equal(fused[:, index], kernel.transpose(1, 2, 0))


def test_no_other_family_claims_it():
    for config, family in ((FIRST, "deberta"), (SECOND, "deberta-v2"), (THIRD, "deberta-v2"), (REPLACED, "deberta-v2")):
        assert families.expressing(config)[0].model_type == family
    without = deberta.deberta(**SIZES, terms=(), max_positions=9)
    assert families.expressing(without)[0].model_type == "deberta"
    assert families.expressing(dataclasses.replace(without, head=None))[0].model_type == "deberta"
