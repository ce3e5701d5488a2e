import math

import numpy as np
import pytest

from t2t.data import corruption, noise_patterns
from tests.reference import denoising as oracle

TRIALS = 300


def counts(pattern, length, density):
    """Noise tokens, spans of noise and clean spans of many masks."""
    rows = corruption.uniforms(3, 0, range(TRIALS), pattern.num_uniforms(length))
    found = []
    for u in rows:
        runs = oracle.spans(pattern.mask(u, length=length, density=density).tolist())
        noise = [places for is_noise, places in runs if is_noise]
        found.append((sum(map(len, noise)), len(noise), len(runs) - len(noise)))
    return np.array(found)


def amounts(pattern, length, density):
    made = pattern.amounts(length, density)
    return np.array([made.noise, made.noise_spans, made.clean_spans])


@pytest.mark.parametrize("density", [0.1, 0.15, 0.5, 1.0])
@pytest.mark.parametrize("length", [1, 2, 60])
def test_means_of_independent_noise(density, length):
    found = counts(noise_patterns.Iid(), length, density)
    error = 4 * found.std(0) / math.sqrt(TRIALS) + 1e-9
    assert (np.abs(found.mean(0) - amounts(noise_patterns.Iid(), length, density)) < error).all()


@pytest.mark.parametrize("mean", [1.0, 3.0, 10.0])
@pytest.mark.parametrize("length", [0, 1, 2, 60])
def test_counts_of_spans_are_exact(mean, length):
    pattern = noise_patterns.Spans(mean_length=mean)
    assert (counts(pattern, length, 0.15) == amounts(pattern, length, 0.15)).all()


def test_means_of_regular_noise():
    pattern = noise_patterns.Regular(shortest=1, longest=3)
    found = counts(pattern, 120, 0.25)
    assert np.abs(found.mean(0) - amounts(pattern, 120, 0.25)).max() < 1


def test_patterns_refuse_what_has_no_meaning():
    with pytest.raises(ValueError, match=r"mean_length=0\.5"):
        noise_patterns.Spans(mean_length=0.5)
    for wrong in ({"shortest": 0}, {"shortest": 4, "longest": 3}):
        with pytest.raises(ValueError, match="in order"):
            noise_patterns.Regular(**wrong)
