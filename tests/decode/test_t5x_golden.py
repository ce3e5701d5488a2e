"""Tiny models with weights recorded from T5X generate T5X's texts and give T5X's scores."""

import jax
import numpy as np
import pytest

from t2t.decode import beam, generate, prompts, score
from t2t.decode.decoding import Decoding
from t2t.models.base import Network
from tests.models import t5x_names, t5x_tiny


@pytest.fixture
def golden():
    recorded = t5x_tiny.recorded("tiny_t5_1_0.npz")
    network = Network(t5x_tiny.t5())
    params = t5x_names.encoder_decoder_params(t5x_names.arrays_under(recorded, "param"))
    rows = [[int(token) for token in row if token] for row in recorded["batch/encoder_input_tokens"]]
    batch = prompts.generation_batch(network, rows, start_id=0, rows_in_all=len(rows), length=12)
    with jax.default_matmul_precision("highest"):
        yield recorded, network, params, batch


def test_greedy(golden):
    recorded, network, params, batch = golden
    decoding = Decoding(eos_id=1, max_tokens=8)
    found = generate.generate_tokens(network, params, batch, decoding=decoding, key=jax.random.key(0))
    np.testing.assert_array_equal(found.tokens, recorded["greedy"][:, 0])
    np.testing.assert_allclose(found.log_probabilities, recorded["greedy_scores"][:, 0], atol=1e-4)


def test_four_beams(golden):
    recorded, network, params, batch = golden
    found = beam.beam_search(network, params, batch, decoding=Decoding(eos_id=1, max_tokens=8, beams=4))
    np.testing.assert_array_equal(found.tokens, recorded["beam4"][:, ::-1])
    np.testing.assert_allclose(found.scores, recorded["beam4_scores"][:, ::-1], atol=1e-4)


def test_scores_of_given_texts(golden):
    recorded, network, params, _ = golden
    scores = score.score_tokens(network, params, t5x_tiny.batch(recorded, "batch"))
    np.testing.assert_allclose(scores.sum(axis=1), recorded["score"], atol=1e-4)


def test_scores_of_texts_under_a_decoder():
    """Only the targets after the prompt have a weight, so T5X's score is that of a continuation."""
    recorded = t5x_tiny.recorded("tiny_decoder_causal.npz")
    network = Network(t5x_tiny.decoder())
    params = t5x_names.decoder_params(t5x_names.arrays_under(recorded, "param"))
    with jax.default_matmul_precision("highest"):
        by_token = score.score_tokens(network, params, t5x_tiny.batch(recorded, "batch"))
    np.testing.assert_allclose(by_token.sum(axis=1), recorded["score"], atol=1e-4)


def test_scores_of_prompts_and_continuations_under_a_decoder():
    """Both rows again as pairs of token lists, from which `score` makes the batch itself."""
    recorded = t5x_tiny.recorded("tiny_decoder_causal.npz")
    network = Network(t5x_tiny.decoder())
    params = t5x_names.decoder_params(t5x_names.arrays_under(recorded, "param"))
    pairs = []
    for tokens, weights in zip(
        recorded["batch/decoder_target_tokens"], recorded["batch/decoder_loss_weights"], strict=True
    ):
        given = int(np.argmax(weights))
        pairs.append((tokens[:given].tolist(), tokens[given : given + int(weights.sum())].tolist()))
    with jax.default_matmul_precision("highest"):
        found = score.score(network, params, pairs, start_id=0)
    np.testing.assert_allclose(found, recorded["score"], atol=1e-4)
