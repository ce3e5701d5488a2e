"""Distances are told apart as in transformers: buckets of relative positions at published sizes, and windows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t import families
from t2t.functional import disentangled, positions
from t2t.hf import load
from t2t.models import base
from tests.cases import Case
from tests.hf import oracle

pytestmark = [pytest.mark.hf, pytest.mark.slow]

DISTANCES = np.arange(-600, 601)


def published(model_type):
    """The first size that a family has."""
    return next(iter(families.by_model_type(model_type).presets.values()))()


def assert_buckets(scheme, theirs, *, bidirectional):
    """Ours of all distances, by the settings of a published model."""
    assert scheme.bidirectional == bidirectional
    sizes = {"num_buckets": scheme.num_buckets, "max_distance": scheme.max_distance}
    found = positions.relative_position_buckets(DISTANCES, bidirectional=bidirectional, **sizes)
    np.testing.assert_array_equal(found, theirs.numpy())


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("model_type", ["t5", "mt5", "umt5"])
def test_buckets_of_t5(model_type, bidirectional):
    import torch
    import transformers

    cls = getattr(transformers, f"{model_type.upper()}EncoderModel")
    model = cls(cls.config_class(vocab_size=9, d_model=6, d_kv=2, d_ff=4, num_layers=1, num_heads=3))
    attention = model.encoder.block[0].layer[0].SelfAttention
    if model_type == "umt5":  # whose method reads what it needs from its layer
        attention.is_decoder = not bidirectional
        theirs = attention._relative_position_bucket(torch.tensor(DISTANCES))
    else:
        theirs = attention._relative_position_bucket(torch.tensor(DISTANCES), bidirectional=bidirectional)
    config = published(model_type)
    stack = config.encoder if bidirectional else config.decoder
    assert_buckets(stack.position or stack.blocks[0].position, theirs, bidirectional=bidirectional)


def test_buckets_of_mpnet():
    import torch
    from transformers.models.mpnet import modeling_mpnet

    theirs = modeling_mpnet.MPNetEncoder.relative_position_bucket(torch.tensor(DISTANCES))
    assert_buckets(published("mpnet").stack.position, theirs, bidirectional=True)


def test_buckets_of_deberta():
    import torch
    from transformers.models.deberta_v2 import modeling_deberta_v2

    scheme = published("deberta-v2").stack.position
    sizes = scheme.num_buckets, scheme.max_distance
    theirs = modeling_deberta_v2.make_log_bucket_position(torch.tensor(DISTANCES), *sizes).numpy()
    found = disentangled.log_buckets(DISTANCES, num_buckets=scheme.num_buckets, max_distance=scheme.max_distance)
    np.testing.assert_array_equal(found, theirs)


SIZES = {"hidden_size": 12, "vocab_size": 53, "intermediate_size": 8}
WINDOWS = {
    "modernbert": Case(
        name="modernbert-window",
        architecture="ModernBertModel",
        config={**SIZES, "num_hidden_layers": 3, "num_attention_heads": 3, "local_attention": 128, "pad_token_id": 0},
    ),
    "gpt_neo": Case(
        name="gpt_neo-window",
        architecture="GPTNeoModel",
        side="decoder",
        config={**SIZES, "num_layers": 2, "num_heads": 3, "attention_types": [[["global", "local"], 1]],
                "window_size": 256, "max_position_embeddings": 400},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_states_beyond_a_published_window(name, tmp_path):
    case = WINDOWS[name]
    model = oracle.build(case)
    opened = load.open_directory(oracle.save(model, tmp_path))
    tokens = np.random.default_rng(0).integers(2, 53, (2, 380)).astype(np.int32)
    arrays = {f"{case.side}_input_tokens": tokens, f"{case.side}_segment_ids": np.ones_like(tokens)}
    apply = jax.jit(lambda p: base.Network(opened.config).apply(p, arrays, hidden_states=True))
    ours = apply(jax.tree.map(jnp.asarray, opened.params()))
    oracle.assert_equal(ours, oracle.outputs(case, model, arrays), arrays)
