"""A model opened with another head than its own scores as transformers' class for it, which reads config.json."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t2t
from t2t import cli, heads
from tests.cases import Case
from tests.hf import oracle

pytestmark = [pytest.mark.hf, pytest.mark.slow]

MODERNBERT = {
    "vocab_size": 53, "hidden_size": 24, "intermediate_size": 28, "num_hidden_layers": 4, "num_attention_heads": 3,
    "local_attention": 10, "pad_token_id": 0, "classifier_pooling": "mean", "classifier_bias": True,
    "classifier_activation": "relu", "classifier_dropout": 0.25, "max_position_embeddings": 64,
}  # fmt: skip
DEBERTA = {
    "vocab_size": 53, "hidden_size": 24, "intermediate_size": 28, "num_hidden_layers": 2, "num_attention_heads": 3,
    "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False, "type_vocab_size": 0,
    "pooler_hidden_act": "relu", "pooler_dropout": 0.1, "cls_dropout": 0.1, "max_position_embeddings": 64,
}  # fmt: skip
CASES = {
    "modernbert": (Case(name="modernbert", architecture="ModernBertForMaskedLM", config=MODERNBERT),
                   "ModernBertForSequenceClassification"),
    "deberta-v2": (Case(name="deberta-v2", architecture="DebertaV2ForMaskedLM", config=DEBERTA),
                   "DebertaV2ForSequenceClassification"),
}  # fmt: skip


@pytest.fixture(params=CASES)
def masked(request, tmp_path):
    """A model of masked words whose config.json says how a classifier of texts is, and transformers' classifier."""
    import transformers

    case, architecture = CASES[request.param]
    directory = oracle.save(oracle.build(case), tmp_path / "theirs")
    classifier = getattr(transformers, architecture).from_pretrained(
        directory, num_labels=3, attn_implementation="eager"
    )
    return case, directory, classifier.eval()


def test_logits(masked, tmp_path):
    case, directory, theirs = masked
    model = t2t.load(directory, head=heads.SequenceClassification(num_labels=3))
    # What no file holds is drawn by each; here both have that of transformers.
    theirs.save_pretrained(tmp_path / "whole")
    whole = t2t.load(tmp_path / "whole")
    assert whole.config == model.config
    assert jax.tree.map(np.shape, whole.params) == jax.tree.map(np.shape, model.params)
    params = model.params | {"head": whole.params["head"]}
    arrays = oracle.batch(case, padded=True)
    ours = jax.jit(model.network.apply)(jax.tree.map(jnp.asarray, params), arrays)
    np.testing.assert_allclose(ours.logits, _logits(theirs, arrays), atol=1e-4, rtol=1e-4)


def _logits(model, arrays):
    import torch

    names = {"input_ids": "encoder_input_tokens", "attention_mask": "encoder_segment_ids"}
    with torch.no_grad():
        return model(**{theirs: torch.tensor(arrays[ours]).long() for theirs, ours in names.items()}).logits.numpy()


@pytest.mark.parametrize("way", ["load", "import"])
def test_the_model_of_masked_words_says_the_same_when_it_is_written_again(masked, tmp_path, way):
    case, directory, _ = masked
    if way == "import":
        assert cli.main(["import", str(directory), str(tmp_path / "ours")]) == 0
    t2t.load(directory if way == "load" else tmp_path / "ours").export(tmp_path / "again")
    before, after = (json.loads((path / "config.json").read_text()) for path in (directory, tmp_path / "again"))
    said = [name for name in case.config if name.startswith(("classifier", "pooler", "cls"))]
    assert {name: after[name] for name in said} == {name: before[name] for name in said}
