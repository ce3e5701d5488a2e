"""Schedules against T5X's recorded values and points worked out by hand."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import schedules
from tests.shared_data import shared_data

T5X = {
    "pretrain_constant*rsqrt_decay_1.0_10000": (
        schedules.inverse_square_root,
        {"peak": 0.01, "warmup_steps": 10_000, "flat": True},
    ),
    "finetune_constant_0.001": (schedules.constant, {"peak": 0.001}),
    "constant*linear_warmup*rsqrt_decay_0.5_1000": (
        schedules.inverse_square_root,
        {"peak": 0.5 / 1000**0.5, "warmup_steps": 1000, "flat": False},
    ),
    "constant*linear_warmup*rsqrt_normalized_decay_0.01_1000": (
        schedules.inverse_square_root,
        {"peak": 0.01, "warmup_steps": 1000, "flat": False},
    ),
}


@pytest.mark.parametrize("name", T5X)
def test_equals_t5x(name):
    """T5X never goes below 1e-8, which only step 0 of a linear warm-up does."""
    golden = json.loads(shared_data("t5x_golden", "lr_schedules.json").read_text())
    schedule, options = T5X[name]
    rates = jax.vmap(lambda step: schedule(step, **options))(jnp.asarray(golden["steps"]))
    np.testing.assert_allclose(np.maximum(rates, 1e-8), golden[name], rtol=1e-6)


@pytest.mark.parametrize(
    ("schedule", "options", "points"),
    [
        (schedules.linear, {"peak": 4.0, "steps": 10, "warmup_steps": 2, "end": 2.0}, {0: 0, 1: 2, 2: 4, 6: 3, 10: 2}),
        (schedules.cosine, {"peak": 4.0, "steps": 10, "warmup_steps": 2, "end": 2.0}, {0: 0, 1: 2, 2: 4, 6: 3, 10: 2}),
        (schedules.cosine, {"peak": 1.0, "steps": 6}, {0: 1.0, 2: 0.75, 4: 0.25, 6: 0.0, 7: 0.0}),
        (schedules.constant, {"peak": 3.0, "warmup_steps": 3}, {0: 0, 1: 1, 2: 2, 3: 3, 1000: 3}),
        (
            schedules.warmup_stable_decay,
            {"peak": 1.0, "steps": 20, "warmup_steps": 5, "decay_steps": 4, "end": 0.0, "square_root": True},
            {0: 0, 1: 0.2, 5: 1, 16: 1, 17: 0.5, 20: 0, 50: 0},
        ),
    ],
)
def test_by_hand(schedule, options, points):
    for step, rate in points.items():
        np.testing.assert_allclose(schedule(jnp.asarray(step), **options), rate, atol=1e-6, err_msg=f"step {step}")
