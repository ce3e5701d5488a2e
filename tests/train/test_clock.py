"""Where the time went: every second in one phase, over restarts and roll-backs, by a clock turned by hand."""

import json
import types

import jax
import jax.numpy as jnp
import pytest

from t2t.train import clock as clock_lib
from t2t.train.clock import Clock


@pytest.fixture
def hands(monkeypatch):
    """The hands of the clock, and of XLA's."""
    hands = types.SimpleNamespace(now=1000.0)
    monkeypatch.setattr(clock_lib.time, "monotonic", lambda: hands.now)
    monkeypatch.setattr(clock_lib.time, "time", lambda: hands.now + 5000.0)
    monkeypatch.setattr(clock_lib, "COMPILER", types.SimpleNamespace(seconds=0.0, hits=0))
    return hands


def spent(clock: Clock) -> dict[str, float]:
    return {phase: seconds for phase, seconds in clock.seconds().items() if seconds}


def test_every_second_belongs_to_one_phase(hands):
    clock = Clock()
    hands.now += 7
    clock.enter("step")
    hands.now += 20
    with clock.during("evaluation"):
        hands.now += 3
        with clock.during("checkpoint"):
            hands.now += 2
        hands.now += 1
    hands.now += 5
    assert spent(clock) == {"start": 7, "step": 25, "evaluation": 4, "checkpoint": 2}
    assert clock.goodput() == 25 / 38


def test_compilation_is_taken_out_of_the_phase_it_happens_in(hands):
    clock = Clock()
    hands.now += 10
    clock_lib.COMPILER.seconds += 6
    clock.enter("step")
    hands.now += 2
    clock_lib.COMPILER.seconds += 50  # of another thread: no more than the time that went by
    assert spent(clock) == {"start": 4, "compile": 8}


@pytest.mark.parametrize(("is_busy", "expected"), [(True, {"step": 3.0}), (False, {"step": 1.0, "data_wait": 2.0})])
def test_waiting_for_data_counts_where_the_devices_wait_too(hands, is_busy, expected):
    clock = Clock()
    clock.enter("step")
    with clock.data_wait(is_busy=lambda: is_busy):
        hands.now += 2
    hands.now += 1
    assert spent(clock) == expected


def test_a_run_that_goes_on_counts_what_was_lost_and_how_long_it_was_down(hands, tmp_path):
    first = Clock(tmp_path / "clock.json")
    first.enter("step")
    hands.now += 30
    saved = json.loads(json.dumps(first.seconds()))  # into a checkpoint
    hands.now += 12
    first.log()  # killed soon after
    hands.now += 100
    second = Clock(tmp_path / "clock.json")
    hands.now += 4
    second.go_on(saved)
    assert spent(second) == {"step": 30, "lost": 12, "down": 100, "start": 4}
    second.enter("step")
    hands.now += 10
    assert second.goodput() == 40 / 156
    assert "goodput 25.6 % of 0:02:36: down 64.1 %, step 25.6 %, lost 7.7 %, start 2.6 %" == second.summary()


@pytest.mark.parametrize("text", [None, "", "[]", '{"seconds": 3, "at": 1}'])
def test_a_file_that_says_nothing_loses_nothing(hands, tmp_path, text):
    if text is not None:
        (tmp_path / "clock.json").write_text(text)
    clock = Clock(tmp_path / "clock.json")
    clock.go_on(None)
    assert spent(clock) == {}


def test_steps_that_were_rolled_back_are_lost(hands):
    clock = Clock()
    clock.enter("step")
    hands.now += 10
    saved = clock.seconds()
    hands.now += 6
    with clock.during("evaluation"):
        hands.now += 2
    clock.go_back(saved)
    assert spent(clock) == {"step": 10, "lost": 8}


def test_a_line_holds_the_seconds_since_the_last(hands, tmp_path):
    clock = Clock(tmp_path / "clock.json")
    hands.now += 2
    clock.enter("step")
    hands.now += 2
    assert clock.log()["seconds_start"] == 2
    hands.now += 4
    values = clock.log()
    assert (values["goodput"], values["seconds_step"], values["seconds_start"]) == (0.75, 4, 0)
    assert json.loads((tmp_path / "clock.json").read_text()) == {"seconds": clock.seconds(), "at": 6008.0}


def test_phases_have_names():
    with pytest.raises(ValueError, match="lunch is no phase; possible are start, compile"):
        Clock().enter("lunch")


def test_jax_reports_what_it_compiles():
    clock = Clock()
    jax.jit(lambda x: jnp.sin(x) * 3.25 + 17)(jnp.ones(3))
    assert clock.seconds()["compile"] > 0
