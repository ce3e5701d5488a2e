import itertools
import json
import math
from collections import Counter

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from t2t.data import corruption, noise_transforms
from tests.reference import corruption as oracle
from tests.reference import spans as spans_oracle
from tests.shared_data import shared_data

T5 = {"noise_density": 0.15, "mean_noise_span_length": 3.0}
SENTINELS = np.arange(32099, 31999, -1, dtype=np.int32)


def golden(name: str) -> dict:
    return dict(np.load(shared_data("t5x_golden", name)))


def chi_square_limit(degrees: int) -> float:
    """What a chi-square variable exceeds once in some 30,000 trials (4 sigma, Wilson and Hilferty)."""
    return degrees * (1 - 2 / (9 * degrees) + 4 * math.sqrt(2 / (9 * degrees))) ** 3


# Keys.


def test_a_generator_is_a_function_of_seed_epoch_and_index():
    draws = {key: tuple(corruption.example_rng(*key).random(3)) for key in itertools.product((0, 7), (0, 1), (0, 1, 2))}
    assert len(set(draws.values())) == len(draws)
    assert draws[7, 1, 2] == tuple(corruption.example_rng(7, 1, 2).random(3))


def test_neighbouring_examples_share_no_numbers():
    long = corruption.example_rng(3, 0, 5).random(100_000)
    assert not set(long) & set(corruption.example_rng(3, 0, 6).random(100_000))


def test_uniforms_are_the_draws_of_each_example():
    indices = [4, 0, 2**40]
    expected = [corruption.example_rng(9, 2, i).random(11) for i in indices]
    np.testing.assert_array_equal(corruption.uniforms(9, 2, indices, 11), expected)


# T5's arithmetic.


def test_raw_lengths_equal_those_of_t5():
    table = json.loads(shared_data("t5x_golden", "random_spans_helper.json").read_text())
    assert len(table["rows"]) == 72
    for length, density, mean, tokens, targets in table["rows"]:
        ours = corruption.span_lengths(length, noise_density=density, mean_noise_span_length=mean)
        assert (ours.tokens, ours.targets) == (tokens, targets), (length, density, mean)


def test_published_lengths():
    def lengths(inputs, density, mean):
        ours = corruption.span_lengths(inputs, noise_density=density, mean_noise_span_length=mean)
        return ours.tokens, ours.targets

    assert lengths(512, 0.15, 3) == (568, 114)
    assert lengths(1024, 0.15, 3) == (1137, 229)
    assert lengths(128, 0.15, 3) == (141, 29)
    assert lengths(64, 0.2, 2) == (70, 22)
    assert lengths(64, 0.2, 1) == (63, 27)
    assert lengths(512, 0.5, 3) == (766, 512)


@hypothesis.given(
    st.integers(2, 300), st.sampled_from([0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5]), st.sampled_from([1.0, 2.0, 3.0, 8.0])
)
def test_raw_lengths_equal_the_oracle(length, density, mean):
    ours = corruption.span_lengths(length, noise_density=density, mean_noise_span_length=mean)
    assert (ours.tokens, ours.targets) == oracle.span_lengths(length, density, mean)


def test_lengths_of_nothing_are_refused():
    with pytest.raises(ValueError, match="inputs_length=0"):
        corruption.span_lengths(0, **T5)
    with pytest.raises(ValueError, match="leaves so little clean"):
        corruption.span_lengths(8, noise_density=1 - 1e-15, mean_noise_span_length=1e9)


def test_counts_round_halves_to_even():
    assert corruption.span_counts(5, noise_density=0.5, mean_noise_span_length=1.0)[0] == 2
    assert corruption.span_counts(7, noise_density=0.5, mean_noise_span_length=1.0)[0] == 4
    assert corruption.span_counts(13, noise_density=0.5, mean_noise_span_length=1.0)[0] == 6


def test_some_of_a_text_is_always_clean():
    counts = {
        length: corruption.span_counts(length, noise_density=0.95, mean_noise_span_length=1.0) for length in (2, 5)
    }
    assert counts == {2: (1, 1), 5: (4, 1)}  # not 2 and 5, which rounding gives


def test_counts_equal_those_of_t5():
    rows = json.loads(shared_data("t5x_golden", "noise_counts.json").read_text())["rows"]
    assert len(rows) > 100
    for length, density, mean, _, noise, spans in rows:
        mask = corruption.span_noise_mask(
            corruption.example_rng(0, 0, length).random(length), noise_density=density, mean_noise_span_length=mean
        )
        found = int(mask.sum()), int(corruption.span_starts(mask).sum())
        assert found == (noise, spans), (length, density, mean)


def test_never_more_spans_than_clean_tokens():
    mask = corruption.span_noise_mask(
        np.random.default_rng(0).random(20), noise_density=0.9, mean_noise_span_length=1.0
    )
    assert mask.sum() == 18
    assert corruption.span_starts(mask).sum() == 2


# Masks.


def t5_span_uniforms(length: int, density: float, mean: float, seeds) -> np.ndarray:
    """Uniforms under which our choice is that of TensorFlow's stateless shuffles."""
    import tensorflow as tf

    def shuffled(items: int, seed) -> np.ndarray:
        order = np.argsort(tf.random.stateless_uniform([items - 1], seed=seed).numpy(), kind="stable")
        return order / max(items - 1, 1)

    noise, _ = corruption.span_counts(length, noise_density=density, mean_noise_span_length=mean)
    parts = shuffled(noise, seeds[:2]), shuffled(max(length, 2) - noise, seeds[2:])
    return np.concatenate([*parts, [0.0, 0.0]])[:length]


@pytest.mark.slow
def test_masks_equal_those_of_t5_under_the_same_seeds():
    import tensorflow as tf

    masks = golden("noise_masks.npz")
    compared = Counter()
    for name, expected in masks.items():
        kind, length, density, *rest = name.split("_")
        length, density, seeds = int(length), float(density), [int(x) for x in rest[-4:]]
        if kind == "span":
            law = {"noise_density": density, "mean_noise_span_length": float(rest[0])}
            ours = corruption.span_noise_mask(t5_span_uniforms(length, density, float(rest[0]), seeds), **law)
        elif kind == "iid":
            u = tf.random.stateless_uniform([length], seed=seeds[:2]).numpy()
            ours = corruption.iid_noise_mask(u, noise_density=density)
        else:
            places = [corruption.prefix_length(u, length, noise_density=density) for u in (0.0, 1 - 1e-12)]
            assert places[0] <= expected.sum() <= places[1], name
            ours = np.arange(length) < expected.sum()
        np.testing.assert_array_equal(ours, expected, err_msg=name)
        compared[kind] += 1
    assert compared == {"span": 150, "prefix": 90, "iid": 30}


def test_span_masks_are_uniform_over_all_compositions():
    law = {"noise_density": 0.45, "mean_noise_span_length": 1.6}
    length, trials = 9, 36_000
    assert corruption.span_counts(length, **law) == (4, 2)
    possible = oracle.span_masks(length, 4, 2)
    masks = corruption.span_noise_mask(corruption.uniforms(1, 0, range(trials), length), **law)
    counts = Counter(map(tuple, masks.tolist()))
    assert set(counts) == possible
    expected = trials / len(possible)
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi_square < chi_square_limit(len(possible) - 1)


def test_masks_begin_clean_and_end_in_noise():
    masks = corruption.span_noise_mask(corruption.uniforms(0, 0, range(500), 60), **T5)
    assert not masks[:, 0].any()
    assert masks[:, -1].all()
    assert (masks.sum(-1) == 9).all()
    assert (corruption.span_starts(masks).sum(-1) == 3).all()


def test_rolled_masks_are_uniform_in_every_position():
    trials, length = 20_000, 20
    masks = corruption.span_noise_mask(corruption.uniforms(0, 0, range(trials), length), **T5, random_roll=True)
    assert (masks.sum(-1) == 3).all()
    rate = 3 / length
    assert np.abs(masks.mean(0) - rate).max() < 4 * math.sqrt(rate * (1 - rate) / trials)


def test_independent_noise_is_as_frequent_as_asked():
    masks = corruption.iid_noise_mask(corruption.uniforms(0, 0, range(200), 100), noise_density=0.15)
    assert abs(masks.sum() - 3000) < 4 * math.sqrt(20_000 * 0.15 * 0.85)


def test_choices_survive_equal_uniforms():
    u = np.array([[0.5, 0.1, 0.5, 0.5, 0.9], [0.3, 0.3, 0.3, 0.3, 0.3]])
    np.testing.assert_array_equal(corruption._choose(u, 2), [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0]])


@pytest.mark.parametrize("length", [0, 1])
def test_a_text_too_short_for_noise_stays(length):
    assert not corruption.span_noise_mask(np.zeros(length), **T5).any()


def test_prefix_lengths():
    def extremes(length, density):
        return tuple(corruption.prefix_length(u, length, noise_density=density) for u in (0.0, 1 - 1e-12))

    assert extremes(10, 0.5) == (1, 9)
    assert extremes(9, 0.25) == (4, 8)
    assert extremes(10, 0.0) == (9, 9)
    assert extremes(1, 0.5) == (0, 0)
    assert extremes(0, 0.5) == (0, 0)
    with pytest.raises(ValueError, match="noise_density=0.6"):
        corruption.prefix_length(0.5, 10, noise_density=0.6)


def test_prefix_lengths_are_uniform():
    trials, length = 9_000, 10
    counts = Counter(corruption.prefix_length(u, length) for u in corruption.example_rng(0, 0, 0).random(trials))
    assert set(counts) == set(range(1, length))
    expected = trials / (length - 1)
    assert sum((c - expected) ** 2 / expected for c in counts.values()) < chi_square_limit(length - 2)


# What masks do to texts.


def test_transforms_equal_those_of_t5():
    data = golden("mask_transforms.npz")
    transforms = {
        "noise_span_to_unique_sentinel": lambda t, m: corruption.spans_to_unique_sentinels(t, m, SENTINELS),
        "nonnoise_span_to_unique_sentinel": lambda t, m: corruption.spans_to_unique_sentinels(t, ~m, SENTINELS),
        "noise_span_to_sentinel": lambda t, m: noise_transforms.replace_spans(t, m, [32099] * len(t)),
        "nonnoise_span_to_sentinel": lambda t, m: noise_transforms.replace_spans(t, ~m, [32099] * len(t)),
        "noise_token_to_sentinel": lambda t, m: corruption.tokens_to_sentinel(t, m, 32099),
        "drop_noise_tokens": lambda t, m: noise_transforms.keep_tokens(t, ~m),
        "drop_nonnoise_tokens": noise_transforms.keep_tokens,
    }
    for i in range(20):
        tokens, mask = data[f"{i}_tokens"], data[f"{i}_mask"]
        for name, transform in transforms.items():
            result = transform(tokens, mask)
            np.testing.assert_array_equal(result, data[f"{i}_{name}"], err_msg=f"{i} {name}")
            assert result.dtype == np.int32


masked_texts = st.integers(0, 40).flatmap(
    lambda n: st.tuples(
        hnp.arrays(np.int32, n, elements=st.integers(0, 31_999)), hnp.arrays(bool, n, elements=st.booleans())
    )
)


@hypothesis.given(masked_texts)
def test_sentinels_equal_the_oracle(text):
    tokens, mask = text
    for m in (mask, ~mask):
        ours = corruption.spans_to_unique_sentinels(tokens, m, SENTINELS)
        assert ours.tolist() == oracle.spans_to_unique_sentinels(tokens.tolist(), m.tolist(), SENTINELS.tolist())


@hypothesis.given(masked_texts)
def test_any_text_under_any_mask_comes_back(text):
    tokens, mask = text
    inputs = corruption.spans_to_unique_sentinels(tokens, mask, SENTINELS)
    targets = corruption.spans_to_unique_sentinels(tokens, ~mask, SENTINELS)
    np.testing.assert_array_equal(oracle.invert_span_corruption(inputs, targets, SENTINELS), tokens)
    final = np.append(targets, SENTINELS[corruption.span_starts(~mask).sum()])
    if len(mask) and mask[-1]:
        np.testing.assert_array_equal(oracle.invert_span_corruption(inputs, final, SENTINELS), tokens)


def test_too_few_sentinels_are_refused():
    tokens, mask = np.arange(6, dtype=np.int32), np.array([0, 1, 0, 1, 0, 1], bool)
    with pytest.raises(ValueError, match="3 spans but the vocabulary has 2 sentinels"):
        corruption.spans_to_unique_sentinels(tokens, mask, [99, 98])


def test_a_batch_of_unequal_spans_is_refused():
    tokens, mask = np.arange(8, dtype=np.int32).reshape(2, 4), np.array([[0, 1, 0, 1], [0, 0, 1, 1]], bool)
    with pytest.raises(ValueError, match="one by one"):
        corruption.spans_to_unique_sentinels(tokens, mask, [99, 98])
    tokens, mask = np.arange(8, dtype=np.int32).reshape(2, 4), np.array([[0, 1, 0, 1], [0, 0, 1, 0]], bool)
    with pytest.raises(ValueError, match="one by one"):
        corruption.spans_to_unique_sentinels(tokens, ~mask, [99, 98])


def test_a_batch_equals_its_examples():
    tokens = np.random.default_rng(0).integers(3, 32_000, (5, 568)).astype(np.int32)
    masks = corruption.span_noise_mask(corruption.uniforms(3, 1, range(5), 568), **T5)
    inputs = corruption.spans_to_unique_sentinels(tokens, masks, SENTINELS)
    assert inputs.shape == (5, 511)
    for i in range(5):
        mask = corruption.span_noise_mask(corruption.example_rng(3, 1, i).random(568), **T5)
        np.testing.assert_array_equal(mask, masks[i])
        np.testing.assert_array_equal(corruption.spans_to_unique_sentinels(tokens[i], mask, SENTINELS), inputs[i])


@hypothesis.given(hnp.arrays(bool, st.integers(0, 40)), st.integers(1, 8))
def test_joined_spans_equal_the_oracle(mask, sentinels):
    joined = corruption.join_last_spans(mask, sentinels=sentinels)
    assert joined.tolist() == spans_oracle.join_last_spans(mask.tolist(), sentinels)
    assert joined.sum() == mask.sum()
    assert all(corruption.span_starts(side).sum() <= sentinels for side in (joined, ~joined))


def test_joined_spans_by_hand():
    masks = np.array([[0, 1, 0, 1, 0, 0, 1, 1], [0, 1, 1, 1, 0, 0, 0, 1], [1, 0, 1, 0, 1, 0, 1, 0]], bool)
    expected = np.array([[0, 1, 0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 0, 0, 0, 1], [1, 0, 0, 0, 0, 1, 1, 1]], bool)
    np.testing.assert_array_equal(corruption.join_last_spans(masks, sentinels=2), expected)
    with pytest.raises(ValueError, match="sentinels=0"):
        corruption.join_last_spans(masks, sentinels=0)
