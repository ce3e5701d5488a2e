"""Faults that users of Hugging Face reported, looked for in every family that could have them."""

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
    tensors = {name: tensor for shard in directory.glob("*.safetensors") for name, tensor in load_file(shard).items()}
    if not any(name.startswith(prefix) for name in tensors) and config.head is not None:
        pytest.skip("its names have no prefix")
    changed = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    if set(changed) == set(tensors):
        changed = {prefix + name: tensor for name, tensor in tensors.items()}
    (tmp_path / "config.json").write_text((directory / "config.json").read_text())
    safetensors.numpy.save_file(changed, tmp_path / files.SINGLE, metadata={"format": "pt"})
    opened = load.open_directory(tmp_path)
    assert config_map.differences(opened.config, config) == []
    jax.tree.map(np.testing.assert_array_equal, opened.params(), params)


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
    assert said == longest + (position.offset if family.model_type in COUNTS_ROWS else 0)
    assert read_again(config, {**attributes, "model_type": family.model_type}).embed.position.max_positions == longest


COUNTS_ROWS = {"roberta", "xlm-roberta", "mpnet"}
"""Families whose max_position_embeddings is the number of rows, those before the first position among them."""


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
