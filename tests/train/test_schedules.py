"""The schedule dataclasses: what they compute, and what they refuse."""

import numpy as np
import pytest

from t2t.train.schedules import WSD, Constant, Cosine, InverseSquareRoot, Linear


def test_the_default_is_t5s_pretraining():
    rate = InverseSquareRoot().rate()
    np.testing.assert_allclose([rate(0), rate(10_000), rate(1_000_000)], [0.01, 0.01, 0.001], rtol=1e-6)


@pytest.mark.parametrize(
    "schedule",
    [
        Constant(peak=2.0, warmup_steps=4),
        InverseSquareRoot(peak=2.0, warmup_steps=4, warmup="linear"),
        Linear(peak=2.0, warmup_steps=4),
        Cosine(peak=2.0, warmup_steps=4),
        WSD(peak=2.0, warmup_steps=4, decay_steps=2),
    ],
)
def test_all_rise_linearly_to_the_peak(schedule):
    rate = schedule.rate(10)
    np.testing.assert_allclose([rate(s) for s in (0, 1, 2, 4)], [0.0, 0.5, 1.0, 2.0], rtol=1e-6)


def test_the_end_is_the_runs_unless_stated():
    assert float(Linear(peak=1.0).rate(8)(4)) == 0.5
    assert float(Linear(peak=1.0, steps=16).rate(8)(4)) == 0.75
    assert float(WSD(peak=1.0, decay_steps=2, decay="linear").rate(8)(7)) == 0.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(peak=0.0), "peak=0.0"),
        (lambda: Constant(peak=float("nan")), "peak=nan"),
        (lambda: Linear(peak=1.0, warmup_steps=-1), "warmup_steps=-1"),
        (lambda: InverseSquareRoot(warmup_steps=0), "warmup_steps=0"),
        (lambda: Cosine(peak=1.0, end=2.0), "end=2.0"),
        (lambda: Linear(peak=1.0, warmup_steps=20, steps=10), "train 20 steps or more"),
        (lambda: Linear(peak=1.0, warmup_steps=20).rate(10), "train 20 steps or more"),
        (lambda: Linear(peak=1.0).rate(), "length of the run"),
        (lambda: WSD(peak=1.0, decay_steps=0), "use Constant"),
        (lambda: WSD(peak=1.0, warmup_steps=6, decay_steps=6, steps=10), "warmup_steps=6 and decay_steps=6"),
    ],
)
def test_refuses(make, message):
    with pytest.raises(ValueError, match=message):
        make()
