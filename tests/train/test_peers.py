"""Signs of life, on a store and a clock of the test's own: who is lost, who has failed, and what is no news."""

import inspect

import jax
import pytest

from t2t.commands import arguments
from t2t.errors import UsageError
from t2t.train import peers, processes


class Store(dict):
    """The key-value store of jax.distributed; `silent` as if process 0 were gone."""

    silent = False

    def key_value_set(self, key, value, allow_overwrite=False):
        assert allow_overwrite
        self._answer()[key] = value

    def key_value_dir_get(self, folder):
        return [(key, value) for key, value in self._answer().items() if key.startswith(folder)]

    def _answer(self):
        if self.silent:
            raise jax.errors.JaxRuntimeError("UNAVAILABLE: Socket closed")
        return self


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(peers.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(peers.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


@pytest.fixture
def three(clock):
    """Three processes that have met."""
    store = Store()
    made = [peers.Peers(store, process=index, count=3, timeout=10) for index in range(3)]
    for index, one in enumerate(made):
        store[f"{peers.HOST}{index}"] = f"host-{index}"
        one.exchange(0)
    return made


def beat(made, clock, *, seconds, silent=()):
    for _ in range(seconds):
        clock[0] += 1
        for index, one in enumerate(made):
            if index not in silent:
                one.exchange(round(clock[0]))


def test_a_silent_process_is_lost_after_the_timeout(three, clock):
    beat(three, clock, seconds=30)
    assert all(one.verdict() is None for one in three)
    beat(three, clock, seconds=10, silent=[2])
    assert three[0].verdict() is None
    beat(three, clock, seconds=2, silent=[2])
    text, code = three[0].verdict()
    assert text.startswith("process 2 of 3 (on host-2) has given no sign of life for 10 seconds")
    assert code == 1


def test_a_process_that_never_came_is_lost_too(three, clock):
    late = peers.Peers(Store(), process=0, count=2, timeout=10)
    late.exchange(0)
    beat([late], clock, seconds=12)
    assert "process 1 of 2 (on an unknown host)" in late.verdict()[0]


def test_one_that_is_done_is_not_lost(three, clock):
    three[1].stop()
    beat(three, clock, seconds=30, silent=[1])
    assert three[0].verdict() is None


def test_without_answers_the_first_is_lost_and_no_other(three, clock):
    three[1]._store.silent = True
    clock[0] += 11
    assert (
        three[1].verdict()[0].startswith("process 0 of 3 (on host-0), which keeps what the processes tell each other")
    )


@pytest.mark.parametrize(("error", "code"), [(OSError("disk full"), 1), (UsageError("no such task"), 2)])
def test_a_failure_is_told_with_its_code(three, clock, error, code):
    three[2].fail(error, code=code)
    beat(three, clock, seconds=1)
    assert three[0].verdict() == (f"process 2 of 3 (on host-2) failed: {type(error).__name__}: {error}", code)
    assert three[2].verdict() is None  # of itself it need not be told


def test_alone_nothing_is_watched():
    with peers.watched():
        pass
    with pytest.raises(KeyError), peers.watched():
        raise KeyError("as it is")


def test_errors_of_jax_are_found_behind_others():
    cause = ValueError("a step failed")
    cause.__cause__ = jax.errors.JaxRuntimeError("Gloo all-reduce failed: Connection closed by peer")
    assert peers._is_of_jax(cause)
    assert not peers._is_of_jax(ValueError("no such file"))


def test_the_command_line_waits_as_long():
    assert arguments.Processes().peer_timeout == peers.TIMEOUT
    for function in (processes.join, processes.joined):
        assert inspect.signature(function).parameters["peer_timeout"].default == peers.TIMEOUT
