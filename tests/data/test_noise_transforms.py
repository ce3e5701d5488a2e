import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from t2t.data import corruption, noise_transforms
from tests.reference import denoising as oracle


def uniform(*shape, index=0):
    return corruption.example_rng(7, 0, index).random(shape)


def test_regular_masks_by_hand():
    # The example of T5's code: a quarter of the tokens in spans of two, begun at the second token of one.
    mask = noise_transforms.regular_noise_mask(
        np.array([0.3, 0.2]), length=26, noise_density=0.25, shortest=2, longest=2
    )
    assert "".join("FT"[noise] for noise in mask.astype(int)) == "TFFFFFFTTFFFFFFTTFFFFFFTTF"


def test_distances_of_regular_masks_are_rounded():
    law = {"length": 40, "noise_density": 0.15, "shortest": 2, "longest": 2}  # 2 / 0.15 = 13.3
    mask = noise_transforms.regular_noise_mask(np.array([0.5, 0.0]), **law)
    assert np.flatnonzero(mask).tolist() == [0, 1, 13, 14, 26, 27, 39]


def test_regular_masks_draw_length_and_offset():
    u = uniform(1000, 2, index=1)
    masks = noise_transforms.regular_noise_mask(u, length=120, noise_density=0.25, shortest=1, longest=5)
    inner = [oracle.spans(mask)[1:-1] for mask in masks.tolist()]
    lengths = [{len(places) for noise, places in runs if noise} for runs in inner]
    assert all(len(found) == 1 for found in lengths)
    counts = np.bincount([found.pop() for found in lengths], minlength=6)
    assert counts[0] == 0
    assert np.abs(counts[1:] - 200).max() < 4 * math.sqrt(1000 * 0.2 * 0.8)
    assert np.abs(masks.mean(0) - 0.25).max() < 4 * math.sqrt(0.25 * 0.75 / 1000)


def test_noise_becomes_the_mark_or_a_random_token():
    tokens, mask, u = np.arange(40_000) % 50, uniform(40_000) < 0.5, uniform(2, 40_000, index=1)
    made = noise_transforms.replace_noise(tokens, mask, u, mark=999, random=0.1, ids=np.array([101, 102, 103]))
    np.testing.assert_array_equal(made[~mask], tokens[~mask])
    number, drawn = mask.sum(), made[mask][made[mask] != 999]
    assert abs(len(drawn) - 0.1 * number) < 4 * math.sqrt(number * 0.09)
    counts = np.bincount(drawn - 101)
    assert len(counts) == 3
    assert np.abs(counts - len(drawn) / 3).max() < 4 * math.sqrt(len(drawn) * 2 / 9)


def test_gathered_noise_comes_from_the_text():
    tokens, mask = np.array([1, 1, 1, 2]), np.array([1, 1, 0, 0], bool)
    made = noise_transforms.gather_noise(np.tile(tokens, (8000, 1)), np.tile(mask, (8000, 1)), uniform(8000, 4))
    np.testing.assert_array_equal(made[:, 2:], np.tile([1, 2], (8000, 1)))
    assert abs((made[:, :2] == 2).sum() - 4000) < 4 * math.sqrt(16_000 * 0.25 * 0.75)


@hypothesis.given(st.integers(0, 30).flatmap(lambda n: hnp.arrays(bool, n, elements=st.booleans())), st.integers(0, 99))
def test_permuted_noise_changes_places_with_noise(mask, index):
    tokens = np.arange(len(mask))
    made = noise_transforms.permute_noise(tokens, mask, uniform(len(mask), index=index))
    np.testing.assert_array_equal(made[~mask], tokens[~mask])
    assert sorted(made[mask].tolist()) == tokens[mask].tolist()


def test_permutations_of_noise_are_uniform():
    mask = np.array([1, 0, 1, 1], bool)
    made = noise_transforms.permute_noise(np.tile(np.arange(4), (6000, 1)), np.tile(mask, (6000, 1)), uniform(6000, 4))
    orders, counts = np.unique(made, axis=0, return_counts=True)
    assert len(orders) == 6
    assert np.abs(counts - 1000).max() < 4 * math.sqrt(6000 / 6 * 5 / 6)


def targets_length(mask, marks):
    """Noise tokens, and with marks the spans between."""
    return sum(len(places) if noise else marks for noise, places in oracle.spans(mask))


@hypothesis.given(
    st.integers(0, 25).flatmap(lambda n: hnp.arrays(bool, n, elements=st.booleans())), st.integers(1, 26), st.booleans()
)
def test_fitted_noise_is_the_most_that_fits_from_the_left(mask, longest, marks):
    made = noise_transforms.fit_noise(mask, longest=longest, marks=marks)
    ends = [end for end in range(len(mask) + 1)]
    cut = [(mask & (np.arange(len(mask)) < end)).tolist() for end in ends]
    fitting = [row for row in cut if targets_length(row, marks) <= longest]
    assert made.tolist() == fitting[-1]


def test_a_batch_of_transforms_equals_its_rows():
    tokens = np.arange(60).reshape(3, 20)
    mask, u, pairs = uniform(3, 20, index=1) < 0.4, uniform(3, 20), uniform(3, 2, 20)
    law = {"mark": 999, "random": 0.5, "ids": np.array([7, 8])}
    made = {
        "permute": noise_transforms.permute_noise(tokens, mask, u),
        "gather": noise_transforms.gather_noise(tokens, mask, u),
        "replace": noise_transforms.replace_noise(tokens, mask, pairs, **law),
        "fit": noise_transforms.fit_noise(mask, longest=9, marks=True),
    }
    for row in range(3):
        alone = {
            "permute": noise_transforms.permute_noise(tokens[row], mask[row], u[row]),
            "gather": noise_transforms.gather_noise(tokens[row], mask[row], u[row]),
            "replace": noise_transforms.replace_noise(tokens[row], mask[row], pairs[row], **law),
            "fit": noise_transforms.fit_noise(mask[row], longest=9, marks=True),
        }
        for name, values in alone.items():
            np.testing.assert_array_equal(made[name][row], values, err_msg=name)


@pytest.mark.parametrize("size", [0, 1])
def test_texts_without_room_for_noise(size):
    tokens, none = np.arange(size), np.zeros(size, bool)
    assert noise_transforms.permute_noise(tokens, none, np.zeros(size)).tolist() == tokens.tolist()
    assert noise_transforms.gather_noise(tokens, none, np.zeros(size)).tolist() == tokens.tolist()
    assert noise_transforms.fit_noise(none, longest=1, marks=True).tolist() == none.tolist()
