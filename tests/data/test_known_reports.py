"""Faults that users of other libraries reported, looked for in every objective that could have them."""

import functools
import re

import numpy as np
import pytest

from t2t.data import corruption, denoising_objectives, features, masked_objectives, t5_grid, ul2
from t2t.data.denoisers import CausalLM, MaskedTokens, PrefixLM, SpanCorruption
from t2t.data.permutation_lm import PermutationLM
from tests.data import toy

OBJECTIVES = {
    "span_corruption": SpanCorruption(),
    "mlm": MaskedTokens(),
    "causal_lm": CausalLM(),
    "prefix_lm": PrefixLM(),
    "permutation_lm": PermutationLM(),
    **masked_objectives.OBJECTIVES,
    **denoising_objectives.BART,
    **{f"t5_{name}": t5_grid.t5_objective(name) for name in t5_grid.T5_GRID},
    **{f"ul2_{name}": denoiser for name, denoiser in ul2.denoisers().items()},
}
WEIGHED = [name for name, objective in OBJECTIVES.items() if objective.weighs]
SENTINELS = [f"<extra_id_{k}>" for k in range(40)]
SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", *ul2.denoisers()["x3_50"].mode.split(), "[NLU]", "[S2S]"]
WORDS = [*toy.words(50), "."]
USUAL = toy.word_vocabulary(*SPECIAL, *WORDS, *SENTINELS)
# The same words in the same order, and special tokens anywhere between them: <extra_id_7> is id 1.
SCATTERED = toy.word_vocabulary(
    *SENTINELS[7::-1], *WORDS[:20], *SPECIAL[::-1], *WORDS[20:40], *SENTINELS[8:], *WORDS[40:]
)
LENGTH = 48


@functools.cache
def bound(name, vocabulary=USUAL, length=LENGTH):
    lengths = {"inputs": length, "targets": length}
    made = OBJECTIVES[name].bind(lengths, toy.features(vocabulary, "inputs", "targets"))
    return made.learn([np.arange(vocabulary.size, dtype=np.int32)]) if made.corruption.learns else made


@functools.cache
def text(number, vocabulary=USUAL, start=0):
    """So many words, every ninth of them a full stop."""
    words = ["." if k % 9 == 8 else WORDS[(start + 7 * k) % 50] for k in range(number)]
    return np.array(vocabulary.encode(" ".join(words)), np.int32)


def run(one, tokens, index=0, **more):
    return one.example({"targets": tokens, **more}, corruption.example_rng(0, 0, index))


def pieces(tokens, vocabulary):
    names = vocabulary.pieces()
    return [names[token] for token in tokens]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_special_tokens_are_those_of_the_vocabulary_wherever_they_stand(name):
    """None is computed from the size (universal-ie/UIE#45) or known by heart (huggingface/transformers#4656)."""
    usual, scattered = bound(name), bound(name, SCATTERED)
    assert usual.raw_length == scattered.raw_length
    for index in range(5):
        first = run(usual, text(usual.raw_length, start=index), index)
        second = run(scattered, text(usual.raw_length, SCATTERED, start=index), index)
        assert first.keys() == second.keys()
        for feature, values in first.items():
            if feature in usual.corruption.makes:
                assert pieces(values, USUAL) == pieces(second[feature], SCATTERED), feature
            else:
                np.testing.assert_array_equal(values, second[feature], err_msg=feature)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_sentinels_come_in_reading_order_from_the_first(name):
    """The first span is <extra_id_0>, in inputs and targets (huggingface/transformers#14282)."""
    if name.endswith(("_r10s90_f", "_m_f")):
        pytest.skip("marks every token with the same sentinel")
    for index in range(5):
        made = run(bound(name), text(bound(name).raw_length, start=index), index)
        for feature in bound(name).corruption.makes:
            found = re.findall(r"<extra_id_(\d+)>", " ".join(pieces(made[feature], USUAL)))
            assert found == [str(k) for k in range(len(found))], feature
            assert not found or not name.startswith(("ul2_s", "mlm", "causal", "prefix"))


@pytest.mark.parametrize("name", WEIGHED)
def test_padding_and_special_tokens_are_never_predicted(name):
    """In batches of texts of unequal length (huggingface/transformers#11155); nor drawn as random tokens (#15342)."""
    converter = features.EncoderFeatures(lengths={"inputs": LENGTH, "targets": LENGTH}, pad_id=USUAL.pad_id)
    special = np.array(USUAL.special_ids)
    total = 0
    for index in range(0, 40, 2):
        made = [run(bound(name), text(size), index + (size > 3)) for size in (3, 12)]
        batch = converter.convert([[example] for example in made])
        weights, targets = batch["encoder_loss_weights"], batch["encoder_target_tokens"]
        assert not weights[batch["encoder_segment_ids"] == 0].any()
        assert not weights[np.isin(targets, special)].any()
        total += weights.sum()
        changed = batch["encoder_input_tokens"] != targets
        assert not np.isin(batch["encoder_input_tokens"][changed], special[special != USUAL.mask_id]).any()
        assert (weights[changed] == 1).all()
    assert 15 < total < 150  # of 300 tokens, in short texts at least one


@pytest.mark.parametrize("name", OBJECTIVES)
def test_features_that_an_objective_does_not_make_pass_through(name):
    """Masking by words lost them (huggingface/transformers#12998)."""
    number = np.array([3, 1, 2], np.int32)
    made = run(bound(name), text(9), number=number)
    assert set(made) == {"targets", "number", *bound(name).names}
    np.testing.assert_array_equal(made["number"], number)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_texts_of_every_length_have_an_example(name):
    """Odd lengths and single tokens too (huggingface/transformers#7341)."""
    for size in range(1, bound(name).raw_length + 1):
        made = run(bound(name), text(size), size)
        for feature in bound(name).corruption.makes:
            assert 0 < len(made[feature]) <= LENGTH, (size, feature)
        lengths = {len(made[feature]) for feature in ("inputs", "targets", "weights") if feature in made}
        assert len(lengths) == 1 or name not in WEIGHED


@pytest.mark.parametrize("name", OBJECTIVES)
def test_texts_that_are_too_long_are_refused_with_both_lengths(name):
    """They made batches of other lengths than those asked for (huggingface/transformers#23248)."""
    limit = bound(name).raw_length
    with pytest.raises(ValueError, match=f"{limit + 1} raw tokens but .* at most {limit} into"):
        run(bound(name), text(limit + 1))
