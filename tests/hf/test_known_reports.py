"""Faults that users of Hugging Face reported, looked for in every family that could have them."""

import dataclasses
import json
from typing import Any

import jax
import numpy as np
import pytest
import safetensors.numpy
from safetensors.numpy import load_file

from t2t import families, heads
from t2t.hf import config_map, export, files, load
from tests.families.test_families import models, shrink
from tests.hf import tiny
from tests.hf.test_config_map import PUBLISHED

pytestmark = pytest.mark.slow

NAMED = ("yes", "maybe", "no")
HEADS = (
    heads.SequenceClassification(num_labels=3, labels=NAMED),
    heads.PRETRAINING,
    heads.MaskedLM(),
    heads.TokenClassification(num_labels=3, labels=NAMED),
    None,
)


@pytest.fixture(scope="module", params=models(HEADS))
def exported(request, tmp_path_factory):
    """A config, its parameters and the directory they are exported to, in several shards."""
    params, directory = tiny.params(request.param), tmp_path_factory.mktemp("exported")
    export.export(directory, config=request.param, params=params, max_shard_bytes=20_000)
    return request.param, params, directory


def attributes_of(directory) -> dict[str, Any]:
    return json.loads((directory / "config.json").read_text())


def tensors_of(directory) -> dict[str, np.ndarray]:
    return {name: tensor for shard in directory.glob("*.safetensors") for name, tensor in load_file(shard).items()}


def assert_same_model(directory, tensors, opened_of, target) -> None:
    """The model of a directory is that of its config.json with these tensors."""
    config, params = opened_of
    (target / "config.json").write_text((directory / "config.json").read_text())
    safetensors.numpy.save_file(tensors, target / files.SINGLE, metadata={"format": "pt"})
    opened = load.open_directory(target)
    assert config_map.differences(opened.config, config) == []
    jax.tree.map(np.testing.assert_array_equal, opened.params(), params)


def read_again(config: Any, attributes: dict[str, Any]) -> Any:
    """The config of the same tensors under another config.json."""
    family, _ = families.expressing(config)
    names = {n.removeprefix(family.table.base) for b in families.bindings(family, config) for n in b.written}
    return family.from_hf(family.attributes.values(attributes), frozenset(names))


def test_the_index_lists_what_the_shards_hold(exported):
    """No alias of a tied tensor that is in no file (pytorch/torchtitan#3764)."""
    config, params, directory = exported
    index = json.loads((directory / files.INDEX).read_text())["weight_map"]
    held = {name: shard.name for shard in directory.glob("*.safetensors") for name in load_file(shard)}
    assert index == held
    opened = load.open_directory(directory)
    assert config_map.differences(opened.config, config) == []
    jax.tree.map(np.testing.assert_array_equal, opened.params(), params)


def test_the_base_prefix_may_be_missing_or_too_much(exported, tmp_path):
    """A file of the bare class opens as one with a head, and the other way round."""
    config, params, directory = exported
    prefix = families.expressing(config)[0].table.base
    tensors = tensors_of(directory)
    if not any(name.startswith(prefix) for name in tensors) and config.head is not None:
        pytest.skip("its names have no prefix")
    changed = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    if set(changed) == set(tensors):
        changed = {prefix + name: tensor for name, tensor in tensors.items()}
    assert_same_model(directory, changed, (config, params), tmp_path)


EMBEDDED = ("embeddings.position_ids", "embeddings.token_type_ids")
VERSIONS = ("encoder.version", "decoder.version")
CROSS_BIAS = ("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",)
BUFFERS = {
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "albert", "electra"), EMBEDDED),
    **dict.fromkeys(("distilbert", "mpnet", "deberta", "deberta-v2"), EMBEDDED[:1]),
    **dict.fromkeys(("bart", "mbart"), VERSIONS),
    **dict.fromkeys(("t5", "mt5", "umt5"), CROSS_BIAS),
    **dict.fromkeys(("gpt2", "gptj", "openai-gpt"), ("h.0.attn.bias", "h.1.attn.masked_bias")),
    "gpt_neo": ("h.0.attn.attention.bias", "h.1.attn.attention.masked_bias"),
    "gpt_neox": ("layers.0.attention.bias", "layers.1.attention.masked_bias", "layers.0.attention.rotary_emb.inv_freq"),
    "opt": VERSIONS[1:],
    "xlm": ("position_ids",),
}
"""What files of earlier versions of transformers hold besides parameters, by family."""


def test_old_names_of_norms_and_buffers_of_old_files_are_read(exported, tmp_path):
    """transformers renames gamma and beta in files of every family."""
    config, params, directory = exported
    family, tensors = families.expressing(config)[0], tensors_of(directory)
    norms = {name.removesuffix(".weight") for name in tensors if name.endswith(".weight") and tensors[name].ndim == 1}
    old = {f"{norm}.{new}": f"{norm}.{name}" for norm in norms for new, name in (("weight", "gamma"), ("bias", "beta"))}
    prefix = family.table.base if any(name.startswith(family.table.base) for name in tensors) else ""
    buffers = {f"{prefix}{name}": np.ones((1, 3), np.float32) for name in BUFFERS.get(family.model_type, ())}
    renamed = {old.get(name, name): tensor for name, tensor in tensors.items()}
    assert not buffers.keys() & renamed.keys()
    assert_same_model(directory, renamed | buffers, (config, params), tmp_path)


BIASES = {
    **dict.fromkeys(("bert", "deberta", "deberta-v2"), {"cls.predictions.bias", "cls.predictions.decoder.bias"}),
    **dict.fromkeys(("roberta", "xlm-roberta", "mpnet"), {"lm_head.bias", "lm_head.decoder.bias"}),
    "albert": {"predictions.bias", "predictions.decoder.bias"},
    "distilbert": {"vocab_projector.bias"},
    "electra": {"generator_lm_head.bias"},
    "modernbert": {"decoder.bias"},
    "xlm": {"pred_layer.proj.bias"},
    "xlnet": {"lm_loss.bias"},
}
"""Where a head of masked words that is not tied keeps its bias: versions 4 and 5 read different ones of two."""


@pytest.mark.parametrize("model_type", BIASES)
def test_the_bias_of_an_own_output_stands_wherever_it_is_read(model_type):
    family = families.by_model_type(model_type)
    tied = family.with_head(shrink(next(iter(family.presets.values()))()), heads.MaskedLM())
    own = dataclasses.replace(tied, head=dataclasses.replace(tied.head, tied=False))
    paths = ("head/bias", "head/kernel", "embed/embedding")

    def written(config):
        held = [(binding.slots[0].path, binding.written) for binding in families.bindings(family, config)]
        return [{name for where, names in held for name in names if where == path} for path in paths]

    bias, kernel, embedding = written(own)
    assert bias == BIASES[model_type]
    assert len(kernel) == len(embedding) == 1
    assert written(tied) == [{min(bias, key=len)}, set(), embedding]


def test_labels_keep_their_names_and_order(exported):
    """MNLI's labels are numbered otherwise in models than in data sets (huggingface/transformers#12822)."""
    config, _, directory = exported
    if not getattr(config.head, "labels", ()):
        pytest.skip("has no labels with names")
    attributes = attributes_of(directory)
    assert attributes["id2label"] == {"0": "yes", "1": "maybe", "2": "no"}
    assert attributes["label2id"] == {"yes": 0, "maybe": 1, "no": 2}
    attributes["id2label"] = dict(reversed(attributes["id2label"].items()))
    assert read_again(config, attributes).head.labels == NAMED


def test_labels_are_found_by_their_names_in_any_order(exported):
    """The model of MNLI scores a label by its name, however the data set numbers it (optimum PR#197)."""
    config, params, directory = exported
    if not getattr(config.head, "labels", ()):
        pytest.skip("has no labels with names")
    kinds = {"sequence": heads.SequenceClassification, "tokens": heads.TokenClassification}
    ask = kinds[config.head.task]
    asked = ("no", "yes", "maybe")
    opened = load.open_directory(directory, head=ask(num_labels=3, labels=asked))
    assert opened.config.head.labels == asked and opened.fresh == opened.dropped == ()
    theirs, ours = params["head"]["classifier"], opened.params()["head"]["classifier"]
    for label in NAMED:
        for part, tensor in theirs.items():
            np.testing.assert_array_equal(ours[part][..., asked.index(label)], tensor[..., NAMED.index(label)])
    assert load.open_directory(directory, head=ask(num_labels=3)).config.head.labels == NAMED
    with pytest.raises(ValueError, match="files score the labels yes, maybe, no, not yes, no, other. Ask for those"):
        load.open_directory(directory, head=ask(num_labels=3, labels=("yes", "no", "other")))


def test_numbers_have_the_type_that_transformers_5_insists_on(exported):
    """Whatever type they were read with: a config.json by another program has 1 for 1.0 and 10000 for 10000.0."""
    config, _, directory = exported
    attributes = attributes_of(directory)

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: whole(item) for name, item in value.items()}
        return int(value) if isinstance(value, float) and value.is_integer() else value

    _, again = families.expressing(read_again(config, whole(attributes)))
    compared = [name for name in again if "init" not in name]  # which some families derive from their width
    assert typed({name: again[name] for name in compared}) == typed({name: attributes[name] for name in compared})


def typed(value: Any) -> Any:
    """A value with the types of all numbers in it."""
    if isinstance(value, dict):
        return {name: typed(item) for name, item in value.items()}
    return [typed(item) for item in value] if isinstance(value, list | tuple) else (type(value).__name__, value)


def test_positions_of_another_kind_are_refused(exported):
    """transformers 5 drops the tables of BERT's relative positions in silence."""
    config, _, directory = exported
    with pytest.raises(ValueError, match="position_embedding_type='relative_key'"):
        read_again(config, attributes_of(directory) | {"position_embedding_type": "relative_key"})


@pytest.mark.parametrize("family", families.all_families().values(), ids=lambda family: family.model_type)
def test_the_longest_text_is_the_same_in_the_model_and_its_config(family):
    """RoBERTa's 514 rows are for 512 tokens (huggingface/transformers#1363), as are those of all with an offset."""
    config = shrink(next(iter(family.presets.values()))())
    position = config.embed.position
    if not hasattr(position, "offset"):
        pytest.skip("has no table of positions")
    longest = position.max_positions
    attributes = families.expressing(config)[1]
    said = next(attributes[n] for n in ("max_position_embeddings", "n_positions") if n in attributes)
    assert said == longest + _rows_before(family)
    assert read_again(config, {**attributes, "model_type": family.model_type}).embed.position.max_positions == longest


def _rows_before(family: config_map.Family) -> int:
    """By how many a published max_position_embeddings is more than the positions of the model."""
    for entry in PUBLISHED.values():
        if entry["preset"] in family.presets:
            position = families.preset(entry["preset"]).embed.position
            said = next(entry["config"][n] for n in ("max_position_embeddings", "n_positions") if n in entry["config"])
            return said - position.max_positions
    pytest.fail(f"published.json holds no preset of {family.model_type}")


@pytest.mark.parametrize(("model_type", "start"), [("bart", 2), ("t5", 0), ("umt5", 0), ("mbart", None)])
def test_where_config_json_names_no_start_it_is_that_of_the_family(model_type, start, tmp_path):
    """BART's decoder starts with the end token, not with that of T5 (huggingface/transformers#14328)."""
    config = shrink(next(iter(families.by_model_type(model_type).presets.values()))())
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    assert load.start_id(tmp_path, config) == start
    (tmp_path / "generation_config.json").write_text(json.dumps({"decoder_start_token_id": 7}))
    assert load.start_id(tmp_path, config) == 7


def test_numbers_beyond_half_precision_are_refused(tmp_path):
    """T5's weights overflow float16, and the infinities were found in training (huggingface/transformers#9295)."""
    params = tiny.params(tiny.T5)
    params["encoder"]["final_norm"]["scale"][3] = -70_000
    with pytest.raises(ValueError, match=r"encoder.final_layer_norm.weight .* float16 .* bfloat16"):
        export.export(tmp_path, config=tiny.T5, params=params, dtype="float16")
    assert not (tmp_path / files.SINGLE).exists()
    export.export(tmp_path, config=tiny.T5, params=params, dtype="bfloat16")
