"""Beam search against brute force over all texts of a tiny vocabulary, and against recorded results of T5X."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest
from models import tiny

from t2t.decode import beam, generate, prompts
from t2t.decode.decoding import Decoding
from t2t.models.base import Network

EOS = 1
VOCAB_SIZE = 4
LENGTH = 3


def four_words() -> tuple[Network, dict]:
    config = tiny.t5(version="1.1")
    config = dataclasses.replace(config, embed=dataclasses.replace(config.embed, vocab_size=VOCAB_SIZE))
    network = Network(config)
    return network, tiny.params(network.config)


def brute_force(network, params, prompt, *, alpha: float) -> list[tuple[float, list[int]]]:
    """Every text that ends within LENGTH tokens with its penalised log-probability, best first."""
    texts = [
        [*words, EOS]
        for n in range(LENGTH)
        for words in itertools.product([t for t in range(VOCAB_SIZE) if t != EOS], repeat=n)
    ]
    read = np.array([[0, *text[:-1], *[0] * (LENGTH - len(text))] for text in texts], np.int32)
    batch = {"encoder_input_tokens": np.array([prompt] * len(texts), np.int32), "decoder_input_tokens": read}
    scores = np.asarray(jax.jit(lambda p, b: jax.nn.log_softmax(network.apply(p, b).logits))(params, batch))
    found = []
    for row, text in enumerate(texts):
        total = sum(float(scores[row, i, token]) for i, token in enumerate(text))
        found.append((total / ((5 + len(text)) / 6) ** alpha, text))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_enough_beams_find_what_brute_force_finds(alpha):
    network, params = four_words()
    batch = prompts.generation_batch(network, [[2, 3, 0]], start_id=0, rows_in_all=1, length=16)
    decoding = Decoding(eos_id=EOS, max_tokens=LENGTH, beams=VOCAB_SIZE**LENGTH, length_penalty=alpha)
    found = beam.beam_search(network, params, batch, decoding=decoding)
    expected = brute_force(network, params, [2, 3, 0], alpha=alpha)
    for place, (score, text) in enumerate(expected):
        np.testing.assert_allclose(found.scores[0, place], score, rtol=1e-4)
        assert np.asarray(found.tokens)[0, place].tolist()[: len(text)] == text


@pytest.mark.parametrize("name", ["t5_1_0", "prefix_lm", "gpt2"])
def test_rows_do_not_depend_on_their_neighbours(name):
    network = Network(tiny.CONFIGS[name])
    params = tiny.params(network.config)
    decoding = Decoding(eos_id=EOS, max_tokens=5, beams=3)
    texts = [[5, 9, 3], [7, 7], [30, 4, 4, 8]]
    together = generate.generate(network, params, texts, decoding=decoding, start_id=0)
    alone = [generate.generate(network, params, [text], decoding=decoding, start_id=0)[0] for text in texts]
    assert together == alone


def test_one_beam_is_greedy():
    network = Network(tiny.CONFIGS["gpt2"])
    params = tiny.params(network.config)
    batch = prompts.generation_batch(network, [[5, 9, 3], [7]], start_id=None, rows_in_all=2, length=8)
    decoding = Decoding(eos_id=EOS, max_tokens=6)
    greedy = generate.generate_tokens(network, params, batch, decoding=decoding, key=jax.random.key(0))
    searched = beam.beam_search(network, params, batch, decoding=decoding)
    assert np.array_equal(greedy.tokens, searched.tokens[:, 0])


def test_a_row_without_end_holds_its_live_texts():
    network = Network(tiny.CONFIGS["t5_1_0"])
    params = tiny.params(network.config)
    batch = prompts.generation_batch(network, [[5, 9, 3]], start_id=0, rows_in_all=1, length=16)
    found = beam.beam_search(network, params, batch, decoding=Decoding(eos_id=None, max_tokens=3, beams=2))
    assert np.isfinite(found.scores).all() and found.scores[0, 0] >= found.scores[0, 1]
