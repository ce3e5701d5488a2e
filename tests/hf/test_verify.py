"""`t2t export --verify` passes for every class that is exported, and says what it cannot open."""

import jax
import numpy as np
import pytest
from flax import traverse_util

import t2t
from t2t import cli, families, heads
from t2t.errors import UsageError
from t2t.families import deberta, deberta_v2, transfo_xl
from t2t.hf import export, verify
from tests.cases import marked
from tests.hf import oracle, tiny

pytestmark = [pytest.mark.hf, pytest.mark.slow]


def drawn(config):
    """Parameters that make no large numbers."""
    leaves = traverse_util.flatten_dict(tiny.params(config), sep="/")
    near = {path: np.float32(0.2 * leaf + path.endswith("scale")) for path, leaf in leaves.items()}
    return traverse_util.unflatten_dict(near, sep="/")


def check(directory, config):
    params = drawn(config)
    export.export(directory, config=config, params=params)
    return list(verify.verify(directory, config=config, params=params, vocabulary=None))


@pytest.mark.parametrize("case", marked(oracle.CASES))
def test_every_class_is_verified(case):
    exported = oracle.exported(case)
    found = verify.verify(exported.ours, config=exported.config, params=exported.params, vocabulary=None)
    opened, compared = found
    (architecture,) = families.expressing(exported.config)[1]["architectures"]
    assert f"opens it as {architecture}: no key is missing" in opened
    assert "are ours within" in compared


SIZES = {"num_layers": 2, "d_model": 12, "num_heads": 3, "d_ff": 7, "vocab_size": 11, "max_distance": 9}
THIRD = deberta.deberta(**SIZES, num_buckets=4, norms_distances=True, shares_projections=True, key_bias=True)
WITHOUT_CLASS = {
    "replaced tokens": (deberta_v2.with_head(THIRD, heads.PRETRAINING), "mask_predictions.*"),
    "first mask decoder": (
        deberta.with_head(deberta.deberta(**SIZES), heads.EnhancedMaskedLM()),
        "*embeddings.position_embeddings.weight",
    ),
    "third mask decoder": (deberta_v2.with_head(THIRD, heads.EnhancedMaskedLM()), "cls.predictions.*"),
}


@pytest.mark.parametrize("name", WITHOUT_CLASS)
def test_heads_that_no_class_reads_are_named_and_the_encoder_is_compared(name, tmp_path):
    config, pattern = WITHOUT_CLASS[name]
    opened, compared = check(tmp_path, config)
    assert "Model: no key is missing" in opened and pattern in opened
    assert "are ours within" in compared
    other = jax.tree.map(lambda leaf: 1.1 * leaf, drawn(config))
    with pytest.raises(verify.VerificationError, match="computes other numbers"):
        list(verify.verify(tmp_path, config=config, params=other, vocabulary=None))


def test_a_head_that_is_left_over_without_a_reason_is_an_error(tmp_path):
    bare, headed = tiny.BERT, tiny.PRETRAINING
    export.export(tmp_path, config=headed, params=drawn(headed))
    text = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(text.replace("BertForPreTraining", "BertModel"))
    with pytest.raises(verify.VerificationError, match="unexpected_keys"):
        list(verify.verify(tmp_path, config=bare, params=drawn(bare), vocabulary=None))


def test_a_class_that_transformers_lacks_is_named_before_anything_is_written(tmp_path, capsys):
    sizes = {"num_layers": 1, "d_model": 12, "num_heads": 3, "head_dim": 5, "d_ff": 7, "vocab_size": 11}
    config = transfo_xl.with_head(transfo_xl.transfo_xl(**sizes), heads.PRETRAINING)
    with pytest.raises(UsageError, match=r"has no class TransfoXLLMHeadModel. Transformers 5 has no Transformer-XL"):
        verify.check_class(config)
    export.export(tmp_path / "one", config=config, params=tiny.params(config))
    assert cli.main(["export", str(tmp_path / "one"), str(tmp_path / "two"), "--verify"]) == 2
    assert "has no class TransfoXLLMHeadModel" in capsys.readouterr().err
    assert not (tmp_path / "two").exists()
    assert t2t.load(tmp_path / "one").config == config
