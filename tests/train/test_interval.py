"""Metrics of an interval: exact sums however often they are fetched, also across a checkpoint; NaN is caught."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from t2t.train import processes
from t2t.train.faults import NonFiniteError
from t2t.train.interval import Interval


def metrics(total: float, weight: float = 1.0, **latest: float):
    pairs = {"loss": (total, weight)} | {name: (value, 1.0) for name, value in latest.items()}
    return {name: (jnp.float32(a), jnp.float32(b)) for name, (a, b) in pairs.items()}


def test_means_divide_sums_by_weights():
    interval = Interval()
    interval.add(1, metrics(6.0, 2.0, learning_rate=0.5), tokens=10)
    interval.add(2, metrics(1.0, 5.0, learning_rate=0.25), tokens=7)
    interval.fetch()
    assert interval.means() == {"loss": 1.0, "learning_rate": 0.25}
    assert (interval.steps, interval.tokens, interval.weight("loss"), interval.weight("other")) == (2, 17, 7.0, 0.0)


def test_clearing_keeps_the_tokens_of_the_run():
    interval = Interval()
    interval.add(1, metrics(1.0), tokens=10)
    interval.fetch()
    interval.clear()
    assert (interval.steps, interval.tokens, interval.total_tokens, interval.means()) == (0, 0, 10, {})


def test_tokens_are_those_of_all_processes(monkeypatch):
    monkeypatch.setattr(processes, "gather_json", lambda mine: [mine, 100])
    interval = Interval()
    interval.add(1, metrics(1.0), tokens=10)
    interval.add(2, metrics(1.0), tokens=7)
    interval.fetch()
    assert (interval.tokens, interval.total_tokens) == (117, 117)


def test_a_checkpoint_in_the_middle_changes_no_bit():
    values = np.random.default_rng(0).uniform(1e-3, 1e3, 50)
    straight, broken = Interval(), Interval()
    for step, value in enumerate(values, start=1):
        straight.add(step, metrics(value, value / 3), tokens=step)
        broken.add(step, metrics(value, value / 3), tokens=step)
        if step in (7, 8, 31):
            broken.fetch()
            broken = Interval.of(json.loads(json.dumps(broken.state())))
    straight.fetch()
    broken.fetch()
    assert straight.state() == broken.state()


def test_a_value_that_is_not_finite_names_its_step():
    interval = Interval()
    interval.add(4, metrics(1.0), tokens=1)
    interval.add(5, metrics(np.nan, grad_norm=np.inf), tokens=1)
    interval.add(6, metrics(np.nan), tokens=1)
    with pytest.raises(NonFiniteError, match="step 5: grad_norm, loss not finite") as error:
        interval.fetch()
    assert (error.value.step, error.value.names) == (5, ["grad_norm", "loss"])


def test_metrics_without_weight_are_left_out():
    interval = Interval()
    interval.add(1, metrics(0.0, 0.0), tokens=0)
    interval.fetch()
    assert interval.means() == {}
