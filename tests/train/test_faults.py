"""Bad steps: the verdict by numbers worked out by hand, states that stay to the bit, and limits."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.config import Faults
from t2t.train import faults
from t2t.train import step as steps
from t2t.train.interval import Interval
from t2t.train.optimizer import AdamW, Constant
from t2t.train.state import init_state
from tests.train.fake_network import AXES
from tests.train.test_step import NETWORK, OBJECTIVE, greatest_difference, make_batch

SKIP = Faults(on_nan="skip", on_spike="skip", spike_window=4, spike_deviations=2.0)


def guard_of(*losses: float, window: int = 4) -> faults.Guard:
    guard = faults.new_guard()
    for loss in losses:
        guard = faults.follow(guard, jnp.float32(loss), window=window)
    return guard


def verdict(guard, loss, settings=SKIP, *, is_finite=True):
    code, guard = faults.judge(guard, jnp.float32(loss), is_finite=jnp.bool_(is_finite), settings=settings)
    return int(code), guard


@pytest.mark.parametrize("count", [1, 2, 5, 20])
def test_mean_and_variance_are_those_of_all_losses_within_a_window(count):
    losses = np.random.default_rng(count).uniform(1, 9, count)
    guard = guard_of(*losses, window=20)
    assert int(guard.losses) == count
    np.testing.assert_allclose(guard.mean, losses.mean(), rtol=1e-6)
    np.testing.assert_allclose(guard.variance, losses.var(), rtol=1e-5, atol=1e-6)


def test_older_losses_fade():
    guard = guard_of(9.0, 9.0, *[1.0] * 60, window=4)
    np.testing.assert_allclose([guard.mean, guard.variance], [1.0, 0.0], atol=1e-5)


def test_a_loss_above_the_mean_by_so_many_deviations_is_a_spike():
    guard = guard_of(3.0, 5.0, 3.0, 5.0)  # mean 4, deviation 1: the limit is 6
    assert verdict(guard, 5.99)[0] == faults.FINE
    assert verdict(guard, 6.01)[0] == faults.SKIPPED_SPIKE
    assert verdict(guard, 6.01, dataclasses.replace(SKIP, on_spike="roll_back"))[0] == faults.SPIKE
    assert verdict(guard, 6.01, dataclasses.replace(SKIP, on_spike="ignore"))[0] == faults.FINE
    assert verdict(guard, 6.01, dataclasses.replace(SKIP, spike_deviations=3.0))[0] == faults.FINE
    assert verdict(guard_of(3.0, 5.0, 3.0), 100.0)[0] == faults.FINE, "before a window is full"


def test_the_mean_hears_of_good_losses_only():
    guard = guard_of(3.0, 5.0, 3.0, 5.0)
    for loss, is_finite in ((6.01, True), (np.nan, False), (5.0, False)):
        after = verdict(guard, loss, is_finite=is_finite)[1]
        assert (after.mean, after.variance, after.losses) == (guard.mean, guard.variance, 4)
        assert int(after.skipped) == 1
    after = verdict(guard, 4.0)[1]
    assert (int(after.losses), int(after.skipped)) == (5, 0)


def test_what_is_not_finite_is_left_to_the_host_unless_skipped():
    guard = guard_of(3.0, 5.0, 3.0, 5.0)
    assert verdict(guard, np.nan, is_finite=False)[0] == faults.SKIPPED_NON_FINITE
    code, after = verdict(guard, np.nan, dataclasses.replace(SKIP, on_nan="roll_back"), is_finite=False)
    assert (code, float(after.mean)) == (faults.FINE, 4.0)


def setup(policy: Faults | None):
    config = AdamW(learning_rate=Constant(peak=1e-2, warmup_steps=4), weight_decay=0.01)
    params = {"model": NETWORK.init(jax.random.key(0))}
    optimizer = config.make(jax.eval_shape(lambda: params), {"model": AXES})
    step = steps.make_train_step(
        OBJECTIVE, {"model": NETWORK}, optimizer, seed=3, rate=config.learning_rate.rate(), policy=policy
    )
    return step, init_state(params, optimizer)


def poisoned(batch):
    return batch | {"decoder_loss_weights": batch["decoder_loss_weights"].at[1, 0].set(jnp.nan)}


def test_a_skipped_step_leaves_everything_but_the_count():
    step, state = setup(SKIP)
    state, _ = step(state, make_batch(0))
    before = jax.device_get(state)
    state, metrics = step(state, poisoned(make_batch(1)))
    assert (int(state.step), int(state.guard.skipped)) == (2, 1)
    for name in ("params", "opt_state", "carry"):
        jax.tree.map(np.testing.assert_array_equal, jax.device_get(getattr(state, name)), getattr(before, name))
    assert int(metrics.pop(faults.VERDICT)[0]) == faults.SKIPPED_NON_FINITE
    always = {"param_norm", "learning_rate"}
    assert {name: float(weight) for name, (_, weight) in metrics.items()} == {
        name: float(name in always) for name in metrics
    }
    assert all(np.isfinite(total) for total, _ in metrics.values())


def test_the_rate_that_is_shown_is_that_of_the_optimizer():
    """It counts its own updates: after a skipped step it goes on where it was, in the middle of the warm-up."""
    step, state = setup(SKIP)
    rates = []
    for number in range(4):
        batch = make_batch(number)
        state, metrics = step(state, poisoned(batch) if number == 1 else batch)
        rates.append(float(metrics["learning_rate"][0]))
    counts = [int(leaf) for leaf in jax.tree.leaves(state.opt_state) if leaf.dtype == jnp.int32]
    assert set(counts) == {3}
    assert rates[2] == rates[1] and rates[3] > rates[2] > rates[0]


def test_good_steps_are_those_of_a_run_that_judges_nothing():
    ends = []
    for policy in (None, Faults(), SKIP):
        step, state = setup(policy)
        for number in range(3):
            state, metrics = step(state, make_batch(number))
        ends.append((jax.device_get(state), {name: metrics[name] for name in metrics if name != faults.VERDICT}))
    assert jax.tree.structure(ends[0]) == jax.tree.structure(ends[2])
    jax.tree.map(np.testing.assert_array_equal, ends[0], ends[1])
    for name in ("params", "opt_state"):  # another program: XLA may fuse it otherwise
        assert greatest_difference(*(getattr(state, name) for state, _ in (ends[2], ends[0]))) < 1e-6


def metrics_of(code: int, loss: float = 1.0):
    return {"loss": (jnp.float32(loss), jnp.float32(1)), faults.VERDICT: (jnp.int32(code), jnp.float32(1))}


def test_the_interval_passes_on_what_the_device_has_found():
    history = faults.History(SKIP)
    interval = Interval(history)
    interval.add(7, metrics_of(faults.FINE), tokens=1)
    interval.add(8, metrics_of(faults.SKIPPED_SPIKE), tokens=1)
    interval.fetch()
    assert (history.num_skipped, history.state()["skipped"]) == (1, [8])
    assert interval.means() == {"loss": 1.0}
    interval.add(9, metrics_of(faults.FINE), tokens=1, position={"positions": [5]})
    interval.add(10, metrics_of(faults.SPIKE), tokens=1, position={"positions": [6]})
    with pytest.raises(faults.SpikeError, match="step 10") as error:
        interval.fetch()
    assert (error.value.step, error.value.position) == (10, {"positions": [6]})


def test_too_many_skips_in_a_window_end_the_run_and_old_ones_do_not_count():
    settings = Faults(on_nan="skip", max_skips=2, skip_window=10)
    history = faults.History(settings)
    for step in (1, 2, 12, 13):
        history = faults.History(settings, history.state())  # as in a checkpoint
        history.skip(step, faults.SKIPPED_NON_FINITE)
    assert history.num_skipped == 4
    with pytest.raises(faults.TooManyFaultsError, match=r"3 of the last 10 steps .*step 14 .*max_skips is 2"):
        history.skip(14, faults.SKIPPED_SPIKE)


def test_too_many_roll_backs_end_the_run():
    history = faults.History(Faults(on_nan="roll_back", max_roll_backs=1))
    error = faults.NonFiniteError(7, ["loss"])
    assert history.rolls_back(error) and not history.rolls_back(faults.SpikeError(7))
    history.roll_back(error, to=5)
    assert history.values() == {"roll_backs": 1.0}
    with pytest.raises(faults.TooManyFaultsError, match=r"step 7: loss not finite; the run has gone back 1 times"):
        history.roll_back(error, to=5)


def test_a_plain_run_logs_nothing_of_it():
    assert faults.History(Faults()).values() == {}
    assert not faults.is_watching(None) and not faults.is_watching(Faults(on_nan="roll_back"))


def test_impossible_limits_are_refused():
    with pytest.raises(ValueError, match=r"faults\.max_skips is 0"):
        Faults(max_skips=0)
