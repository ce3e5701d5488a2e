"""Profiles begin and end where they should, and one that fails costs a warning."""

import logging

import jax
import jax.numpy as jnp
import pytest

from t2t.train import profiling
from t2t.train.profiling import Profiler


@pytest.fixture
def events(monkeypatch):
    """What the profiler was told, in order; nothing is profiled."""
    events = []
    monkeypatch.setattr(jax.profiler, "start_trace", lambda place: events.append(f"start {place.name}"))
    monkeypatch.setattr(jax.profiler, "stop_trace", lambda: events.append("stop"))
    return events


def run(profiler: Profiler, events: list, steps: int, at=lambda step: None):
    with profiler:
        for step in range(1, steps + 1):
            at(step)
            profiler.before(step)
            events.append(step)
            profiler.after(step, jnp.ones(()))


def test_steps_of_the_settings_are_profiled(tmp_path, events):
    run(Profiler(tmp_path, request=None, at=(2, 3, 6), steps=2), events, 7)
    assert events == [1, "start 2", 2, 3, "stop", 4, 5, "start 6", 6, 7, "stop"]


def test_the_end_of_the_run_ends_the_profile(tmp_path, events):
    run(Profiler(tmp_path, request=None, at=(3,), steps=5), events, 3)
    assert events == [1, 2, "start 3", 3, "stop"]


def test_a_file_asks_for_a_profile_once(tmp_path, events, monkeypatch):
    monkeypatch.setattr(profiling, "EVERY", 0.0)
    request = tmp_path / "profile-now"
    run(
        Profiler(tmp_path / "profile", request=request, at=(), steps=1),
        events,
        4,
        at=lambda step: step == 2 and request.touch(),
    )
    assert events == [1, "start 2", 2, "stop", 3, 4]
    assert not request.exists()


@pytest.mark.parametrize("broken", ["start_trace", "stop_trace"])
def test_a_profiler_that_fails_ends_no_run(tmp_path, events, monkeypatch, caplog, broken):
    def fail(*_):
        raise RuntimeError("another profiler is at work")

    monkeypatch.setattr(jax.profiler, broken, fail)
    with caplog.at_level(logging.WARNING, logger="t2t"):
        run(Profiler(tmp_path, request=None, at=(1,), steps=1), events, 2)
    assert [step for step in events if isinstance(step, int)] == [1, 2]
    assert "another profiler is at work" in caplog.text


@pytest.mark.slow
def test_a_profile_is_there_afterwards(tmp_path):
    with Profiler(tmp_path, request=None, at=(1,), steps=1) as profiler:
        profiler.before(1)
        profiler.after(1, jax.jit(jnp.sin)(jnp.ones(4)))
    assert list((tmp_path / "1").rglob("*.xplane.pb"))
