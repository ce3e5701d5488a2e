"""Heads of labels are as config.json says, also where a model is opened with another head than its own."""

import dataclasses

import pytest

from t2t import families, heads
from t2t.families import labels
from tests import cases

SEQUENCE = heads.SequenceClassification()
CASES = [(model_type, *row) for model_type, rows in cases.said("LABELS", ()).items() for row in rows]


@pytest.mark.parametrize(("model_type", "attributes", "request_", "fields"), CASES)
def test_a_head_asked_for_is_as_config_json_says(model_type, attributes, request_, fields):
    family = families.by_model_type(model_type)
    own = {"tie_word_embeddings": True, "architectures": [f"{model_type.title()}ForConditionalGeneration"]}
    values = family.attributes.values({"model_type": model_type, **own, **attributes})
    bare = family.from_hf(values, frozenset({"lm_head.weight"} if "t5" in model_type else ()))
    config = family.head_from_hf(family.with_head(bare, request_), values)
    assert {name: getattr(config.head, name) for name in fields} == fields
    # And so it comes back: as the model's own, or among what an export keeps of the files.
    written = family.to_hf(config)
    for name, value in attributes.items():
        if name in family.kept(bare):
            assert name in family.kept(config) or written[name] == (value if value is not None else written[name])
    if isinstance(request_, heads.Labels):
        completed = family.attributes.values({**own, **written, "architectures": [family.architecture(config)]})
        names = {"pooler.dense.weight", "pooler.weight"} if getattr(config, "pooler", False) else set()
        assert family.from_hf(completed, frozenset(names)).head == config.head


def test_attributes_of_other_heads_are_kept():
    fields = labels.HeadFields({"sequence": {"a": "dropout"}, "tokens": {"b": "dropout"}})
    config = families.preset("bert-base-uncased", head=SEQUENCE)
    assert (fields.unused(config), fields.written(config)) == ({"b"}, {"a": 0.1})
    assert fields.read(config, {"a": 0, "b": 0.5}).head == dataclasses.replace(config.head, dropout=0.0)
    bare = families.preset("bert-base-uncased")
    assert (fields.unused(bare), fields.written(bare), fields.read(bare, {"a": 0.5})) == ({"a", "b"}, {}, bare)


def test_masked_words_are_scored_by_a_table_of_their_own_where_config_json_says_so():
    family = families.by_model_type("bert")
    values = family.attributes.values({"model_type": "bert", "tie_word_embeddings": False})
    config = family.with_head(family.from_hf(values, frozenset()), heads.MaskedLM())
    assert not family.head_from_hf(config, values).head.tied
