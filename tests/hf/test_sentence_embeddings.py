"""An exported encoder opens as a SentenceTransformer, whose vectors are the pooled states of ours."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t2t
from t2t import heads
from t2t import vocabulary as vocabularies
from t2t.errors import UsageError
from t2t.families import albert, bert, deberta, distilbert, electra, modernbert, roberta, xlnet
from t2t.hf import load
from t2t.models import base
from t2t.nn import classification
from tests.hf import tiny

BYTES = vocabularies.ByteVocabulary()
SIZES = {"num_layers": 2, "d_model": 12, "num_heads": 3, "d_ff": 7, "vocab_size": 384}
CONFIG = bert.bert(**SIZES, max_positions=64)
TEXTS = ["A text.", "Another, longer text.", "x"]


def model() -> t2t.Model:
    params = jax.tree.map(lambda leaf: jnp.asarray(0.3 * leaf), tiny.params(CONFIG))
    return t2t.Model(config=CONFIG, params=params, vocabulary=BYTES)


@pytest.mark.hf
@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_vectors_are_pooled_states(tmp_path, pooling):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    ours = model()
    ours.export(tmp_path / "out", sentence_embeddings=pooling)
    opened = sentence_transformers.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    assert opened.max_seq_length == 64
    ends = [] if BYTES.bos_id is None else [BYTES.bos_id]
    rows = [[*ends, *BYTES.encode(text), BYTES.eos_id] for text in TEXTS]
    tokens = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for row, ids in zip(tokens, rows, strict=True):
        row[: len(ids)] = ids
    segments = (np.arange(tokens.shape[1]) < np.array([[len(row)] for row in rows])).astype(np.int32)
    batch = {"encoder_input_tokens": tokens, "encoder_segment_ids": segments}
    hidden = base.Network(CONFIG).apply(ours.params, batch).last_hidden
    expected = classification.pool(hidden, pooling=pooling, segment_ids=jnp.asarray(segments))
    np.testing.assert_allclose(opened.encode(TEXTS), expected, atol=1e-4)


ENCODERS = {
    "albert": albert.albert(**SIZES, embed_dim=5),
    "deberta": deberta.deberta(**SIZES, max_distance=9),
    "distilbert": distilbert.distilbert(**SIZES, max_positions=64),
    "electra": electra.electra(**SIZES, max_positions=64),
    "modernbert": modernbert.modernbert(**SIZES),
    "roberta": roberta.roberta(**SIZES, max_positions=64, position_offset=1),
    "xlnet": xlnet.xlnet(**SIZES),
}


@pytest.mark.hf
@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODERS)
def test_a_vector_does_not_depend_on_the_texts_beside_it(tmp_path, name):
    """The mean leaves padding out, on whichever side it stands (huggingface/sentence-transformers#2569)."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    config = ENCODERS[name]
    params = jax.tree.map(lambda leaf: 0.3 * leaf, tiny.params(config))
    t2t.Model(config=config, params=params, vocabulary=BYTES).export(tmp_path, sentence_embeddings="mean")
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == name
    opened = sentence_transformers.SentenceTransformer(str(tmp_path), device="cpu")
    alone = np.concatenate([opened.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(opened.encode(TEXTS), alone, atol=1e-6)
    assert np.abs(alone[0] - alone[1]).max() > 1e-3


@pytest.mark.parametrize("head", [heads.MaskedLM(), heads.PRETRAINING, heads.SequenceClassification()])
def test_a_head_is_left_out(tmp_path, head):
    config = bert.with_head(CONFIG, head)
    params = tiny.params(config)
    ours = t2t.Model(config=config, params=params, vocabulary=BYTES)
    written = ours.export(tmp_path / "out", sentence_embeddings="mean")
    assert "modules.json" in written
    opened = load.open_directory(tmp_path / "out")
    assert opened.config == CONFIG
    found = opened.params()
    for name in ("embed", "encoder"):
        tiny.assert_trees_equal(found[name], params[name])
    # What the model was trained without is zeros.
    pooler = params.get("pooler", {"kernel": np.zeros((12, 12)), "bias": np.zeros(12)})
    tiny.assert_trees_equal(found["pooler"], pooler)


def test_a_decoder_has_no_sentence_embeddings(tmp_path):
    with pytest.raises(UsageError, match="come from an encoder"):
        t2t.init(tiny.GPT2).export(tmp_path / "out", sentence_embeddings="mean")
    assert not (tmp_path / "out").exists()
