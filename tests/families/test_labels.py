"""Heads of labels are as config.json says, also where a model is opened with another head than its own."""

import dataclasses

import pytest

from t2t import families, heads
from t2t.families import labels

SEQUENCE, TOKENS, CHOICE = heads.SequenceClassification(), heads.TokenClassification(), heads.MultipleChoice()
ANSWERS = heads.QuestionAnswering()

CASES = [
    ("bert", {"classifier_dropout": 0.3}, SEQUENCE, {"dropout": 0.3}),
    ("bert", {"classifier_dropout": 0.3}, CHOICE, {"dropout": 0.3}),
    ("bert", {"classifier_dropout": None, "hidden_dropout_prob": 0.2}, TOKENS, {"dropout": 0.2}),
    ("bert", {"classifier_dropout": 0.3}, ANSWERS, {"dropout": 0.0}),
    ("roberta", {"classifier_dropout": 0.3}, SEQUENCE, {"dropout": 0.3}),
    ("xlm-roberta", {"classifier_dropout": 0.3}, TOKENS, {"dropout": 0.3}),
    ("roberta", {"classifier_dropout": 0.3}, CHOICE, {"dropout": 0.1}),
    ("mpnet", {"classifier_dropout": 0.3}, SEQUENCE, {"dropout": 0.1}),
    ("electra", {"classifier_dropout": 0.3}, SEQUENCE, {"dropout": 0.3}),
    ("electra", {"classifier_dropout": 0.3, "summary_last_dropout": 0.4}, CHOICE, {"dropout": 0.4}),
    ("albert", {"classifier_dropout_prob": 0.3}, SEQUENCE, {"dropout": 0.3}),
    ("albert", {"classifier_dropout_prob": None, "hidden_dropout_prob": 0.2}, TOKENS, {"dropout": 0.2}),
    ("albert", {"classifier_dropout_prob": 0.3}, heads.PRETRAINING, {"dropout": 0.3}),
    ("albert", {"classifier_dropout_prob": 0.3}, ANSWERS, {"dropout": 0.0}),
    ("distilbert", {"seq_classif_dropout": 0.3}, SEQUENCE, {"dropout": 0.3}),
    ("distilbert", {"qa_dropout": 0.3}, ANSWERS, {"dropout": 0.3}),
    ("distilbert", {"seq_classif_dropout": 0.3, "dropout": 0.2}, TOKENS, {"dropout": 0.2}),
    ("deberta", {"cls_dropout": 0.3, "pooler_hidden_act": "relu"}, SEQUENCE, {"dropout": 0.3, "activation": "relu"}),
    ("deberta-v2", {"pooler_hidden_act": "tanh"}, CHOICE, {"activation": "tanh", "drops_input": False}),
    ("deberta-v2", {"pooler_dropout": 0.1}, SEQUENCE, {"dropout": 0.1, "drops_input": True}),
    ("xlm", {"summary_first_dropout": 0.3}, SEQUENCE, {"dropout": 0.3}),
    ("xlm", {"summary_first_dropout": 0.3, "num_labels": 4}, CHOICE, {"dropout": 0.3, "dense_dim": 4}),
    ("xlnet", {"summary_last_dropout": 0.3}, SEQUENCE, {"dropout": 0.3}),
    ("bart", {"classifier_dropout": 0.3}, SEQUENCE, {"dropout": 0.3}),
    ("mbart", {"classifier_dropout": 0.3}, SEQUENCE, {"dropout": 0.3}),
    ("t5", {"classifier_dropout": 0.3}, TOKENS, {"dropout": 0.3}),
    ("umt5", {"classifier_dropout": 0.3}, SEQUENCE, {"dropout": 0.3}),
    ("gpt2", {"classifier_dropout": 0.3}, TOKENS, {"dropout": 0.3}),
    ("gpt2", {"summary_first_dropout": 0.3}, CHOICE, {"dropout": 0.3}),
    ("gpt_neo", {"classifier_dropout": 0.3}, TOKENS, {"dropout": 0.3}),
    ("gpt_neox", {"classifier_dropout": 0.3}, TOKENS, {"dropout": 0.3}),
    ("bloom", {"classifier_dropout": 0.3}, TOKENS, {"dropout": 0.3}),
    ("bloom", {"hidden_dropout": 0.2}, TOKENS, {"dropout": 0.2}),
    ("modernbert", {"classifier_pooling": "mean", "classifier_dropout": 0.3}, SEQUENCE,
     {"pooling": "mean", "dropout": 0.3}),
    ("modernbert", {"classifier_bias": True, "classifier_activation": "relu"}, TOKENS,
     {"dense_bias": True, "activation": "relu", "pooling": "first"}),
    ("modernbert", {"classifier_bias": True, "classifier_activation": "relu"}, heads.MaskedLM(),
     {"transform_bias": True, "activation": "relu"}),
]  # fmt: skip


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
