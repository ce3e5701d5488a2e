"""Faults that users of Hugging Face reported, looked for in every family that could have them."""

import json
from typing import Any

import pytest

from t2t import families
from t2t.hf import export, files, load
from tests.families.test_families import shrink
from tests.hf import tiny


def read_again(config: Any, attributes: dict[str, Any]) -> Any:
    """The config of the same tensors under another config.json."""
    family, _ = families.expressing(config)
    names = {n.removeprefix(family.table.base) for b in families.bindings(family, config) for n in b.written}
    return family.from_hf(family.attributes.values(attributes), frozenset(names))


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
