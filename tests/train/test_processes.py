"""Values of all processes: of the only one here; several are tested by launching them (test_several_processes.py)."""

import subprocess
import sys
import textwrap

import pytest

from t2t.errors import UsageError
from t2t.train import processes


def test_one_process_is_the_first_and_gathers_its_own_value():
    assert processes.is_first()
    assert processes.gather_json({"positions": [3, -1]}) == [{"positions": [3, -1]}]
    processes.wait_for_all("nobody else")


def test_the_failure_of_one_process_is_that_of_all(monkeypatch):
    mine = OSError("disk full")
    assert processes.agree_on_failure(None) is None
    assert processes.agree_on_failure(mine) is mine
    monkeypatch.setattr(processes, "gather_json", lambda mine: ["OSError: disk full", mine])
    assert str(processes.agree_on_failure(None)) == "another process failed: OSError: disk full"


@pytest.fixture
def joined(monkeypatch):
    """The arguments of each call of jax.distributed.initialize, which is not made; no variable is set."""
    calls = []
    monkeypatch.setattr(
        processes.jax.distributed, "initialize", lambda *given, **options: calls.append((given, options))
    )
    for name in processes.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return calls


def set_variables(monkeypatch, *values):
    for name, value in zip(processes.VARIABLES, values, strict=False):
        monkeypatch.setenv(name, value)


def test_a_process_is_alone_unless_told_otherwise(joined, monkeypatch):
    processes.join()
    assert joined == []
    processes.join("auto")
    set_variables(monkeypatch, "host:1234", "4", "3")
    processes.join()
    processes.join(peer_timeout=7)
    twice = {"heartbeat_timeout_seconds": 360}
    assert joined == [
        ((), twice),
        (("host:1234", 4, 3), twice),
        (("host:1234", 4, 3), {"heartbeat_timeout_seconds": 14}),
    ]
    with pytest.raises(UsageError, match="is 0 seconds: give more"):
        processes.join(peer_timeout=0)


def test_variables_that_name_no_process_are_refused(joined, monkeypatch):
    set_variables(monkeypatch, "host:1234", "4")
    with pytest.raises(UsageError, match=r"JAX_NUM_PROCESSES set without JAX_PROCESS_ID: set all"):
        processes.join()
    set_variables(monkeypatch, "host:1234", "4", "last")
    with pytest.raises(UsageError, match="names no process of a run: invalid literal"):
        processes.join()
    assert joined == []


def test_a_cluster_that_jax_does_not_know_is_refused(monkeypatch):
    def initialize(**options):
        raise ValueError("coordinator_address should be defined.")

    monkeypatch.setattr(processes.jax.distributed, "initialize", initialize)
    with pytest.raises(UsageError, match="--distributed auto finds no cluster that JAX knows: coordinator_address"):
        processes.join("auto")


def test_who_cannot_be_reached_is_said(monkeypatch):
    def initialize(*given, **options):
        raise RuntimeError("DEADLINE_EXCEEDED")

    monkeypatch.setattr(processes.jax.distributed, "initialize", initialize)
    set_variables(monkeypatch, "host:1234", "4", "3")
    with pytest.raises(
        ConnectionError, match="process 3 has not met the other 3 at host:1234, where process 0 listens"
    ):
        processes.join()


@pytest.mark.slow
def test_nothing_computes_before_a_process_joins():
    """Once JAX has looked for devices, a process stays alone."""
    code = textwrap.dedent("""
        import sys
        from jax._src import xla_bridge
        from t2t.commands import train
        from t2t.train import processes

        def join(how, *, peer_timeout):
            import t2t.train.loop
            print(how, xla_bridge.backends_are_initialized())
            sys.exit(0)

        processes.join = join
        train.run(["quickstart", "--distributed", "auto"])
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "auto False\n", done.stderr
