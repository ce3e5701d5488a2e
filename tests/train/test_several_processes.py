"""Two processes with four devices each train as one with eight: one writes, all agree on data, saves and the end."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest

from t2t.train import checkpoint, writer

# Nightly, on a quiet machine: Gloo gives up when two processes of four devices do not meet within 30 seconds.
pytestmark = [pytest.mark.nightly, pytest.mark.multi_device]

SCRIPT = textwrap.dedent("""
    import sys
    directory, steps = sys.argv[1:]
    from t2t.train import loop, processes
    from tests.train import tiny_run
    processes.join()
    mesh, evaluate = {"data": 4, "fsdp": 2}, {"every": 4}
    loop.train(tiny_run.experiment(train={"steps": int(steps)}, evaluate=evaluate, mesh=mesh), directory)
""")


def launch(directory: pathlib.Path, *, steps: int) -> list[subprocess.Popen]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
        "JAX_NUM_PROCESSES": "2",
    }
    return [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(directory), str(steps)],
            env=environment | {"JAX_PROCESS_ID": str(process)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for process in range(2)
    ]


def train_alone(directory: pathlib.Path, *, steps: int) -> None:
    command = [sys.executable, "-c", SCRIPT, str(directory), str(steps)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def finish(processes: list[subprocess.Popen]) -> list[int]:
    try:
        outputs = [process.communicate(timeout=600)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    # Gloo, which carries the collectives, announces its connections on standard output; lines of two threads may mix.
    announced = set(re.findall("[A-Za-z]+", "[Gloo] Rank is connected to peer ranks. Expected number of ranks"))
    assert set(re.findall("[A-Za-z]+", outputs[1])) <= announced, "only the first process may write"
    return [process.returncode for process in processes]


def losses(directory: pathlib.Path) -> list[tuple]:
    names = ("step", "split", "tokens", "cross_entropy", "accuracy")  # an evaluation counts no tokens
    return [tuple(r.get(name) for name in names) for r in writer.read(directory / "metrics.jsonl")]


def test_two_processes_train_as_one_and_stop_together(tmp_path):
    train_alone(tmp_path / "alone", steps=12)
    assert finish(launch(tmp_path / "together", steps=8)) == [0, 0]

    # Two processes go on, the second alone is told to stop: both save the same step.
    processes = launch(tmp_path / "together", steps=100_000)
    while len(writer.read(tmp_path / "together/metrics.jsonl")) < 6:
        assert all(process.poll() is None for process in processes)
        time.sleep(0.05)
    processes[1].send_signal(signal.SIGTERM)
    assert finish(processes) == [143, 143]
    store = checkpoint.CheckpointStore(tmp_path / "together/checkpoints")
    store.verify(store.latest())
    for ours, alone in zip(losses(tmp_path / "together")[:4], losses(tmp_path / "alone")[:4], strict=True):
        assert ours[:3] == alone[:3]
        assert ours[3:] == pytest.approx(alone[3:], rel=1e-5)

    # One process goes on from what two have saved.
    step = store.latest()
    train_alone(tmp_path / "together", steps=step + 2)
    assert store.latest() == step + 2
