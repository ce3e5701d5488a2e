"""Scores against the sum over a single unpadded text."""

import dataclasses
import functools

import jax
import numpy as np
import pytest
from models import tiny

from t2t.decode import score
from t2t.decode.refusal import TextError
from t2t.models.base import Network
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.classification import ClassificationHead

PAIRS = [([5, 9, 3], [22, 8, 1]), ([7], [4, 1]), ([], [4, 4, 30, 6, 1]), ([11] * 6, [1])]


def model(name: str) -> tuple[Network, dict]:
    network = Network(tiny.CONFIGS[name])
    return network, tiny.params(network.config)


@functools.partial(jax.jit, static_argnames="network")
def log_probabilities(network: Network, params, batch):
    return jax.nn.log_softmax(network.apply(params, batch).logits[0])


def right_padded(row: list[int], length: int = 16) -> np.ndarray:
    return np.array([row + [0] * (length - len(row))], np.int32)


def one(network, params, inputs, targets, start_id) -> float:
    """Natural log-probability of the targets, the obvious way."""
    if isinstance(network.config, EncoderDecoderConfig):
        batch = {
            "encoder_input_tokens": right_padded(inputs),
            "encoder_segment_ids": right_padded([1] * len(inputs)),
            "decoder_input_tokens": right_padded([start_id, *targets[:-1]]),
        }
        scores = log_probabilities(network, params, batch)
        return sum(float(scores[i, t]) for i, t in enumerate(targets))
    read = ([] if start_id is None else [start_id]) + inputs + targets
    batch = {"decoder_input_tokens": right_padded(read), "decoder_segment_ids": right_padded([1] * len(read))}
    if network.config.prefix_attention:
        num_marked = len(read) - len(targets)
        batch["decoder_causal_attention"] = right_padded([1] * num_marked)
    scores = log_probabilities(network, params, batch)
    first = len(read) - len(targets)
    return sum(float(scores[i - 1, read[i]]) for i in range(first, len(read)) if i > 0)


@pytest.mark.parametrize("name", ["t5_1_0", "t5_1_1", "prefix_lm", "gpt2"])
@pytest.mark.parametrize("start_id", [0, None])
def test_sum_over_the_targets_alone(name, start_id):
    network, params = model(name)
    pairs = PAIRS if not isinstance(network.config, EncoderDecoderConfig) else [p for p in PAIRS if p[0]]
    if start_id is None and isinstance(network.config, EncoderDecoderConfig):
        with pytest.raises(ValueError, match="start_id"):
            score.score(network, params, pairs, start_id=None)
        return
    found = score.score(network, params, pairs, start_id=start_id, batch_size=3)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, [one(network, params, *pair, start_id) for pair in pairs], rtol=1e-5)
    means = score.score(network, params, pairs[:2], start_id=start_id, reduction="mean")
    np.testing.assert_allclose(means, found[:2] / [len(targets) for _, targets in pairs[:2]], rtol=1e-6)


def test_refusals_name_the_text_and_the_repair():
    network, params = model("gpt2")
    with pytest.raises(ValueError, match="text 2 has no token to score"):
        score.score(network, params, [([5], [6]), ([], [6])], start_id=None)
    with pytest.raises(ValueError, match="16 positions"):
        score.score(network, params, [([5] * 10, [6] * 10)], start_id=None)
    with pytest.raises(ValueError, match="reduction"):
        score.score(network, params, [([5], [6])], start_id=None, reduction="max")
    encoder, encoder_params = model("bert")
    with pytest.raises(ValueError, match="left to right"):
        score.score(encoder, encoder_params, [([5], [6])], start_id=None)


def test_a_text_without_memory_is_named(monkeypatch):
    def fail(*_, **__):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")

    monkeypatch.setattr(score, "score_tokens", fail)
    network, params = model("t5_1_0")
    with pytest.raises(TextError) as error:
        score.score(network, params, [([5], [6]), ([5] * 900, [6])], start_id=0)
    assert str(error.value) == (
        "text 2 has 900 tokens, for which the device has no memory in a batch of 2 texts: shorten it, or take a "
        "smaller batch"
    )
    with pytest.raises(TextError, match="text 1 has 900 tokens, for which the device has no memory: shorten it$"):
        score.score(network, params, [([5] * 900, [6])], start_id=0)


def test_few_texts_make_a_small_batch(monkeypatch):
    network, params = model("gpt2")
    rows = []
    real = score.score_tokens

    def count(network, params, batch):
        rows.append(len(batch["decoder_input_tokens"]))
        return real(network, params, batch)

    monkeypatch.setattr(score, "score_tokens", count)
    pairs = PAIRS[:3]
    found = score.score(network, params, pairs, start_id=0, batch_size=64)
    np.testing.assert_allclose(found, [one(network, params, *pair, 0) for pair in pairs], rtol=1e-5)
    assert rows == [4]


def test_a_decoder_that_scores_labels_gives_no_probabilities():
    head = ClassificationHead(task="tokens", num_labels=3)
    network = Network(dataclasses.replace(tiny.gpt2(), head=head))
    with pytest.raises(ValueError, match="head scores labels .task 'tokens'., not the vocabulary: score needs"):
        score.score(network, tiny.params(network.config), [([5], [6])], start_id=None)
