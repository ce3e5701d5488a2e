"""Decoders that score a text at its last token: transformers finds it by the padding that an export names."""

import json

import jax
import numpy as np
import pytest

from t2t import heads
from t2t import vocabulary as vocabularies
from t2t.families import gpt2
from t2t.hf import export
from t2t.models import base
from tests.hf import tiny
from tests.shared_data import shared_data

TEXTS = ["Hello!", "a much longer text, which ends in!!!", "!", "short"]


def published() -> vocabularies.Vocabulary:
    """GPT-2's, which has no padding, and whose id 0 is an exclamation mark."""
    return vocabularies.Vocabulary.load(shared_data("tokenizers", "gpt2"))


def classifier(vocabulary: vocabularies.Vocabulary):
    config = gpt2.gpt2(num_layers=1, d_model=12, num_heads=3, vocab_size=vocabulary.size, max_positions=64)
    return gpt2.with_head(config, heads.SequenceClassification(num_labels=3))


def exported(directory, vocabulary, **settings):
    config = classifier(vocabulary)
    params = tiny.params(config)
    export.export(directory, config=config, params=params, vocabulary=vocabulary, bare_prompts=True, **settings)
    files = ("config.json", "tokenizer_config.json")
    return (config, params, *(json.loads((directory / name).read_text()) for name in files))


@pytest.mark.parametrize(("kind", "ends", "pad"), [("gpt2", False, 50256), ("bytes", False, 0), ("bytes", True, 0)])
def test_padding_that_ends_no_text_is_named(tmp_path, kind, ends, pad):
    vocabulary = published() if kind == "gpt2" else vocabularies.ByteVocabulary()
    _, _, config, tokenizer = exported(tmp_path, vocabulary, ends_prompts=ends)
    assert config["pad_token_id"] == pad
    assert tokenizer["pad_token"] == vocabulary.pieces()[pad]
    assert tokenizer["padding_side"] == "right"
    assert "one text at a time" not in (tmp_path / "README.md").read_text()


def test_without_such_padding_the_card_says_so(tmp_path):
    """GPT-2's only special token ends every text of such a model."""
    _, _, config, _ = exported(tmp_path, published(), ends_prompts=True)
    assert config["pad_token_id"] is None
    assert "give the model one text at a time" in (tmp_path / "README.md").read_text()


@pytest.mark.hf
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "ends"), [("gpt2", False), ("bytes", False), ("bytes", True)])
def test_batches_of_transformers_score_as_ours(tmp_path, kind, ends):
    import torch
    import transformers

    vocabulary = published() if kind == "gpt2" else vocabularies.ByteVocabulary()
    config, params, _, _ = exported(tmp_path, vocabulary, ends_prompts=ends)
    rows = [[*ids, *([vocabulary.eos_id] if ends else [])] for ids in vocabulary.encode_batch(TEXTS)]
    length = max(map(len, rows))
    tokens = np.array([row + [0] * (length - len(row)) for row in rows], np.int32)
    segments = np.array([[1] * len(row) + [0] * (length - len(row)) for row in rows], np.int32)
    batch = {"decoder_input_tokens": tokens, "decoder_segment_ids": segments}
    ours = jax.jit(base.Network(config).apply)(params, batch).logits

    opened = transformers.AutoTokenizer.from_pretrained(tmp_path)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    given = opened(TEXTS, padding=True, return_tensors="pt")
    assert given["attention_mask"].sum(-1).tolist() == list(map(len, rows))
    with torch.no_grad():
        np.testing.assert_allclose(ours, model(**given).logits.numpy(), atol=2e-4, rtol=1e-4)
