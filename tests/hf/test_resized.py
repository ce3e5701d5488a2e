"""Vocabularies that transformers resized or padded: read as they are, written with the same number of rows."""

import jax
import jax.numpy as jnp
import pytest

from t2t.hf import export, load
from t2t.models import base
from tests.cases import by_family, marked
from tests.hf import oracle

pytestmark = [pytest.mark.hf, pytest.mark.slow]


def _one_of_each_family():
    """The first class of each family whose output has a value for each token, and whose tables transformers resizes."""
    scoring = [c for c in oracle.CASES if c.architecture.endswith(("LM", "LMHeadModel", "ConditionalGeneration"))]
    return [p for p in marked(scoring, by=by_family) if not p.marks]


@pytest.mark.parametrize("case", _one_of_each_family())
def test_a_resized_model_computes_the_same(case, tmp_path):
    import torch
    import transformers

    model = oracle.build(case)
    rows = case.config["vocab_size"] + 3
    model.resize_token_embeddings(rows, pad_to_multiple_of=8, mean_resizing=False)
    rows = -(-rows // 8) * 8
    if case.is_untied and model.lm_head.weight is model.get_input_embeddings().weight:  # tied by the change of size
        model.lm_head.weight = torch.nn.Parameter(0.3 * torch.randn(rows, case.config["d_model"]))
    opened = load.open_directory(oracle.save(model, tmp_path / "theirs"))
    assert opened.config.vocab_size == rows
    arrays = oracle.batch(case, padded=True)
    network = base.Network(opened.config)
    params = jax.tree.map(jnp.asarray, opened.params())
    ours = jax.jit(lambda params, arrays: network.apply(params, arrays, hidden_states=True))(params, arrays)
    oracle.assert_equal(ours, oracle.outputs(case, model, arrays), arrays)
    export.export(tmp_path / "ours", config=opened.config, params=params)
    again = getattr(transformers, case.exported or case.architecture).from_pretrained(
        tmp_path / "ours", attn_implementation="eager"
    )
    oracle.assert_equal(ours, oracle.outputs(case, again.eval(), arrays), arrays)


def test_rows_that_config_json_does_not_know_are_told(tmp_path):
    case = next(case for case in oracle.CASES if case.architecture == "T5ForConditionalGeneration")
    model = oracle.build(case)
    model.resize_token_embeddings(case.config["vocab_size"] + 5, mean_resizing=False)
    model.config.vocab_size = case.config["vocab_size"]
    with pytest.raises(ValueError, match=r"shared\.weight has shape .*, config\.json means"):
        load.open_directory(oracle.save(model, tmp_path))
