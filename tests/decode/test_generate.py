"""Cached generation equals the slow way: the whole text read again for every token."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import tiny

from t2t.decode import generate, prompts
from t2t.decode.decoding import Decoding, allowed_tokens
from t2t.decode.refusal import TextError
from t2t.models.base import Network
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.classification import ClassificationHead

EOS = 1
GENERATORS = ("t5_1_0", "t5_1_1", "prefix_lm", "gpt2")
PROMPTS = [[5, 9, 3, 22, 8], [7], [4, 4, 30], [11, 12, 13, 14, 15, 16, 17]]


def model(name: str) -> tuple[Network, dict]:
    network = Network(tiny.CONFIGS[name])
    return network, tiny.params(network.config)


@functools.partial(jax.jit, static_argnames="network")
def read_all(network: Network, params, batch):
    return network.apply(params, batch).logits


def right_padded(row: list[int], length: int = 16) -> np.ndarray:
    return np.array([row + [0] * (length - len(row))], np.int32)


def slowly(network: Network, params, prompt: list[int], *, start_id: int | None, max_tokens: int) -> list[int]:
    """Greedy continuation without cache, alone in its batch."""
    start = [] if start_id is None else [start_id]
    both_sides = isinstance(network.config, EncoderDecoderConfig)
    read = start if both_sides else [*start, *prompt]
    marked = len(read)
    for _ in range(max_tokens):
        batch = {"decoder_input_tokens": right_padded(read), "decoder_segment_ids": right_padded([1] * len(read))}
        if both_sides:
            batch["encoder_input_tokens"] = right_padded(prompt)
            batch["encoder_segment_ids"] = right_padded([1] * len(prompt))
        elif network.config.prefix_attention:
            batch["decoder_causal_attention"] = right_padded([1] * marked)
        token = int(np.argmax(read_all(network, params, batch)[0, len(read) - 1]))
        if token == EOS:
            break
        read = [*read, token]
    return read[marked:]


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("start_id", [0, None])
def test_greedy_equals_reading_everything_again(name, start_id):
    network, params = model(name)
    if start_id is None and isinstance(network.config, EncoderDecoderConfig):
        with pytest.raises(ValueError, match="start_id"):
            generate.generate(network, params, PROMPTS, decoding=Decoding(eos_id=EOS), start_id=None)
        return
    decoding = Decoding(eos_id=EOS, max_tokens=6)
    found = generate.generate(network, params, PROMPTS, decoding=decoding, start_id=start_id, batch_size=3)
    assert found == [slowly(network, params, prompt, start_id=start_id, max_tokens=6) for prompt in PROMPTS]
    assert any(found)


def test_log_probability_is_that_of_the_scored_text():
    network, params = model("t5_1_1")
    batch = prompts.generation_batch(network, PROMPTS, start_id=0, rows_in_all=4, length=16)
    decoding = Decoding(eos_id=EOS, max_tokens=5)
    generated = generate.generate_tokens(network, params, batch, decoding=decoding, key=jax.random.key(0))
    for row, prompt in enumerate(PROMPTS):
        text = np.asarray(generated.tokens)[row].tolist()
        text = text[: text.index(EOS) + 1] if EOS in text else text
        batch = {
            "encoder_input_tokens": right_padded(prompt),
            "encoder_segment_ids": right_padded([1] * len(prompt)),
            "decoder_input_tokens": right_padded([0, *text[:-1]]),
            "decoder_segment_ids": right_padded([1] * len(text)),
        }
        scores = jax.nn.log_softmax(read_all(network, params, batch)[0])
        expected = sum(float(scores[i, token]) for i, token in enumerate(text))
        np.testing.assert_allclose(generated.log_probabilities[row], expected, rtol=1e-4)


def test_sampling_is_a_function_of_the_seed():
    network, params = model("gpt2")
    decoding = Decoding(eos_id=None, max_tokens=8, temperature=1.0, top_k=5)
    draw = lambda seed: generate.generate(  # noqa: E731
        network, params, PROMPTS, decoding=decoding, start_id=None, seed=seed
    )
    assert draw(0) == draw(0)
    assert draw(0) != draw(1)


def test_sampling_among_one_token_is_greedy():
    network, params = model("gpt2")
    greedy = Decoding(eos_id=None, max_tokens=8)
    for choice in ({"top_k": 1}, {"top_p": 1e-6}):
        drawn = dataclasses.replace(greedy, temperature=1.0, **choice)
        found = [
            generate.generate(network, params, PROMPTS, decoding=d, start_id=None, seed=3) for d in (greedy, drawn)
        ]
        assert found[0] == found[1]


def test_end_token_waits_for_min_tokens_and_padded_rows_are_never_generated():
    network, params = model("t5_1_0")
    params = jax.tree.map(lambda x: x * 0, params)  # all tokens alike: the first id wins, id 0
    decoding = Decoding(eos_id=0, max_tokens=4, min_tokens=3)
    found = generate.generate(network, params, [[5]], decoding=decoding, start_id=0)
    assert found == [[1, 1, 1]]
    params["embed"]["embedding"] = params["embed"]["embedding"].at[30:].set(1.0)
    params["decoder"]["final_norm"]["scale"] = params["decoder"]["final_norm"]["scale"] + 1.0
    found = generate.generate(
        network, params, [[31]], decoding=Decoding(eos_id=None, max_tokens=2, vocab_size=30), start_id=31
    )
    assert all(token < 30 for token in found[0])


def test_batches_of_a_bucket_share_a_program():
    network, params = model("t5_1_0")
    decoding = Decoding(eos_id=EOS, max_tokens=3)
    generate.generate(network, params, [[3] * 5, [4] * 6], decoding=decoding, start_id=0, batch_size=2)
    compiled = generate.generate_tokens._cache_size()
    generate.generate(network, params, [[3] * 9, [4] * 16, [5], [6] * 2], decoding=decoding, start_id=0, batch_size=2)
    assert generate.generate_tokens._cache_size() == compiled


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"min_tokens": 9, "max_tokens": 8}, "min_tokens=9"),
        ({"temperature": -1}, "temperature=-1"),
        ({"temperature": float("nan")}, "temperature=nan"),
        ({"temperature": float("inf")}, "temperature=inf"),
        ({"length_penalty": float("nan")}, "length_penalty=nan"),
        ({"temperature": 1, "top_k": 0}, "top_k=0"),
        ({"temperature": 1, "top_p": 1.5}, "top_p=1.5"),
        ({"top_k": 3}, "temperature > 0"),
        ({"beams": 0}, "beams=0"),
        ({"beams": 2, "temperature": 0.5}, "choose one"),
    ],
)
def test_refuses_settings_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        Decoding(eos_id=1, **settings)


def test_refuses_prompts_that_do_not_fit_and_models_that_do_not_generate():
    network, params = model("gpt2")
    decoding = Decoding(eos_id=EOS, max_tokens=10)
    with pytest.raises(ValueError, match="16 positions leave room for 7"):
        generate.generate(network, params, [[5] * 8], decoding=decoding, start_id=None)
    with pytest.raises(ValueError, match="text 2 is empty"):
        generate.generate(network, params, [[5], []], decoding=decoding, start_id=None)
    encoder, encoder_params = model("bert")
    with pytest.raises(ValueError, match="no decoder"):
        generate.generate(encoder, encoder_params, [[5]], decoding=decoding, start_id=0)


def test_the_last_token_needs_no_position():
    network, params = model("gpt2")  # 16 positions
    prompt = [5, 9, 3, 22, 8, 7]
    for beams in (1, 2):
        decoding = Decoding(eos_id=None, max_tokens=10, beams=beams)
        (found,) = generate.generate(network, params, [prompt], decoding=decoding, start_id=0)
        assert len(found) == 10
        if beams == 1:
            assert found == slowly(network, params, prompt, start_id=0, max_tokens=10)


@pytest.mark.parametrize("beams", [1, 2])
def test_a_prompt_without_memory_is_named(monkeypatch, beams):
    def fail(*_, **__):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 99999999999 bytes.")

    monkeypatch.setattr(generate, "generate_tokens", fail)
    monkeypatch.setattr(generate.beam, "beam_search", fail)
    network, params = model("t5_1_0")
    decoding = Decoding(eos_id=EOS, max_tokens=4, beams=beams)
    with pytest.raises(TextError) as error:
        generate.generate(network, params, [[5], [5] * 40, [5] * 50], decoding=decoding, start_id=0)
    assert str(error.value) == (
        "text 3 has 50 tokens, for which the device has no memory in a batch of 2 texts: shorten it, "
        "or generate fewer tokens, or take a smaller batch"
    )


def test_other_failures_of_the_device_stay_what_they_are(monkeypatch):
    def fail(*_, **__):
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")

    monkeypatch.setattr(generate, "generate_tokens", fail)
    network, params = model("t5_1_0")
    with pytest.raises(jax.errors.JaxRuntimeError, match="something else"):
        generate.generate(network, params, [[5]], decoding=Decoding(eos_id=EOS), start_id=0)


def test_no_prompts_give_no_texts():
    network, params = model("t5_1_0")
    assert generate.generate(network, params, [], decoding=Decoding(eos_id=1), start_id=0) == []


def test_results_are_in_the_order_of_the_prompts_with_progress():
    network, params = model("t5_1_0")
    done = []
    decoding = Decoding(eos_id=EOS, max_tokens=4)
    prompts_ = [PROMPTS[i % 4] * (1 + i % 3) for i in range(7)]
    found = generate.generate(
        network, params, prompts_, decoding=decoding, start_id=0, batch_size=2, on_batch=done.append
    )
    alone = [generate.generate(network, params, [p], decoding=decoding, start_id=0)[0] for p in prompts_]
    assert found == alone
    assert done[-1] == 7 and done == sorted(done)


def test_a_token_may_be_forced_to_be_the_first():
    decoding = Decoding(eos_id=EOS, max_tokens=4, min_tokens=2, vocab_size=5, first_id=3)
    first, then = (np.flatnonzero(allowed_tokens(7, jnp.int32(step), decoding)[0]).tolist() for step in (0, 2))
    assert (first, then) == ([3], [0, 1, 2, 3, 4])
    network, params = model("t5_1_0")
    for beams in (1, 2):
        settings = Decoding(eos_id=EOS, max_tokens=3, beams=beams, first_id=7)
        found = generate.generate(network, params, PROMPTS, decoding=settings, start_id=0)
        assert [row[0] for row in found] == [7] * len(PROMPTS)


def test_decoding_is_hashable_and_replaceable():
    decoding = Decoding(eos_id=1)
    assert hash(decoding) == hash(dataclasses.replace(decoding))


def test_a_decoder_that_scores_labels_does_not_generate():
    head = ClassificationHead(task="sequence", num_labels=3, pooling="last")
    network = Network(dataclasses.replace(tiny.gpt2(), head=head))
    with pytest.raises(ValueError, match="head scores labels .task 'sequence'., not the vocabulary: generation needs"):
        generate.generate(network, tiny.params(network.config), PROMPTS, decoding=Decoding(eos_id=1), start_id=None)
