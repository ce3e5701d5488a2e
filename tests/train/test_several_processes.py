"""Several processes train as one: the same numbers, one writes, all agree on data, saves and every kind of end."""

import json
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

pytestmark = [pytest.mark.slow, pytest.mark.multi_device]
nightly = pytest.mark.nightly  # what two processes show already, and what takes minutes

SCRIPT = textwrap.dedent("""
    import json, sys
    directory, steps, mesh = sys.argv[1:]
    from t2t.train import loop, processes
    from tests.train import tiny_run
    with processes.joined(peer_timeout=6):
        changes = {"train": {"steps": int(steps), "log_every": 2}, "evaluate": {"every": 4}, "checkpoint": {"every": 4}}
        changes["optimizer"] = {"clip_norm": None}  # a norm adds up the squares of all devices in any order
        loop.train(tiny_run.experiment(**changes, mesh=json.loads(mesh)), directory)
""")
MESH = {"data": 2, "fsdp": 2, "tensor": 2}
LOST = r"error: process 1 of 2 \(on \S+\) has given no sign of life for 6 seconds: it has died, stands still"
GLOO = "[Gloo] Rank is connected to peer ranks. Expected number of connected peer ranks is"
"""What the library of collective operations on CPUs announces on standard output; lines of two threads may mix."""


def launch(command: list[str], *, count: int) -> list[subprocess.Popen]:
    """So many processes of eight devices in all. Also a single one joins, and so adds in the order of several."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = os.environ["XLA_FLAGS"].replace("device_count=8", f"device_count={8 // count}")
    environment = os.environ | {
        "XLA_FLAGS": flags,
        "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
        "JAX_NUM_PROCESSES": str(count),
    }
    return [
        subprocess.Popen(
            [sys.executable, *command],
            env=environment | {"JAX_PROCESS_ID": str(process)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process in range(count)
    ]


def train(directory: pathlib.Path, *, steps: int, count: int, mesh: dict | None = None) -> list[subprocess.Popen]:
    return launch(["-c", SCRIPT, str(directory), str(steps), json.dumps(mesh or MESH)], count=count)


def finish(processes: list[subprocess.Popen]) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each."""
    try:
        found = [process.communicate(timeout=500) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for output, _ in found[1:]:
        assert set(re.findall("[A-Za-z]+", output)) <= set(re.findall("[A-Za-z]+", GLOO)), "only the first may write"
    return [(process.returncode, *texts) for process, texts in zip(processes, found, strict=True)]


def ended(processes: list[subprocess.Popen]) -> list[int]:
    found = finish(processes)
    if any(code not in (0, 143) for code, _, _ in found):
        print(*(errors[-3000:] for _, _, errors in found), sep="\n")  # pytest shows it where the test fails
    return [code for code, _, _ in found]


def wait_for_lines(directory: pathlib.Path, count: int, processes: list[subprocess.Popen]) -> None:
    """Returns when a run has logged so often."""
    while len(writer.read(directory / "metrics.jsonl")) < count:
        assert all(process.poll() is None for process in processes), finish(processes)
        time.sleep(0.05)


def losses(directory: pathlib.Path) -> list[tuple]:
    names = ("step", "split", "tokens", "cross_entropy", "accuracy")  # an evaluation counts no tokens
    return [tuple(r.get(name, 0) for name in names) for r in writer.read(directory / "metrics.jsonl")]


def assert_close(ours: list[tuple], theirs: list[tuple]) -> None:
    """Where both have logged: runs of other lengths end with other evaluations."""
    expected = {line[:2]: line[2:] for line in theirs}
    shared = [line for line in ours if line[:2] in expected]
    assert len(shared) >= 3
    for step, split, *values in shared:
        assert values == pytest.approx(list(expected[step, split]), rel=1e-5), (step, split)


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> pathlib.Path:
    """A run of 12 steps in one process."""
    directory = tmp_path_factory.mktemp("alone")
    assert ended(train(directory, steps=12, count=1)) == [0]
    return directory


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=nightly)])
def test_the_numbers_of_one_process_to_the_bit(alone, tmp_path, count):
    assert ended(train(tmp_path, steps=8, count=count)) == [0] * count
    ours = losses(tmp_path)
    assert ours == losses(alone)[: len(ours)]
    assert ours[-1][0] == 8


def test_one_is_told_to_stop_and_all_save_and_others_go_on(alone, tmp_path):
    """On another number of processes and another mesh, where sums have another order."""
    processes = train(tmp_path, steps=100_000, count=2)
    wait_for_lines(tmp_path, 3, processes)
    processes[1].send_signal(signal.SIGTERM)
    assert ended(processes) == [143, 143]
    store = checkpoint.CheckpointStore(tmp_path / "checkpoints")
    step = store.latest()
    store.verify(step)
    mesh = {"data": 1, "fsdp": 4, "tensor": 2}
    assert ended(train(tmp_path, steps=max(12, step + 2), count=1, mesh=mesh)) == [0]
    assert_close(losses(tmp_path), losses(alone))


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=nightly)], ids=lambda s: s.name)
def test_a_lost_process_ends_the_others_by_name_and_the_run_goes_on(alone, tmp_path, how):
    processes = train(tmp_path, steps=100_000, count=2)
    wait_for_lines(tmp_path, 5, processes)
    processes[1].send_signal(how)
    sent = time.monotonic()
    code, _, errors = finish(processes[:1])[0]
    assert time.monotonic() - sent < 30
    processes[1].kill()
    finish(processes[1:])
    assert code == 1
    assert re.search(LOST, errors), errors
    assert "goes on from its last checkpoint when the same command is started again" in errors
    step = checkpoint.CheckpointStore(tmp_path / "checkpoints").latest()
    assert step >= 4
    assert ended(train(tmp_path, steps=step + 2, count=2)) == [0, 0]
    assert_close(losses(tmp_path), losses(alone))


@nightly
def test_the_others_end_when_the_first_is_lost(tmp_path):
    """JAX itself ends them, by SIGABRT: the first keeps what the processes tell each other."""
    processes = train(tmp_path, steps=100_000, count=2)
    wait_for_lines(tmp_path, 2, processes)
    processes[0].kill()
    assert finish(processes)[1][0] in (-signal.SIGABRT, 1)


@nightly
def test_the_error_of_one_is_told_by_the_others(tmp_path):
    script = SCRIPT.replace(
        "    changes =", "    if processes.jax.process_index() == 1: raise OSError('disk full')\n    changes ="
    )
    found = finish(launch(["-c", script, str(tmp_path), "8", json.dumps(MESH)], count=2))
    assert [code for code, _, _ in found] == [1, 1]
    assert re.search(r"error: process 1 of 2 \(on \S+\) failed: OSError: disk full", found[0][2])


@nightly
def test_commands_share_the_work(alone, tmp_path):
    """Evaluation, generation, scores and an export are those of one process."""
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"first: word{i} and more\n" for i in range(7)))
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("".join(f"first: word{i}\tword\n" for i in range(5)))
    made = {}
    for count in (1, 2):
        where = tmp_path / str(count)
        for command in (
            ["eval", str(alone), "--tasks", "tiny_span_corruption", "tiny_first", "--output", str(where / "eval")],
            ["generate", str(alone), "-i", str(lines), "-o", str(where / "out.jsonl"), "--batch-size", "2",
             "--max-tokens", "5", "--temperature", "1"],
            ["score", str(alone), "-i", str(pairs), "-o", str(where / "scores.jsonl"), "--batch-size", "2"],
            ["export", str(alone), str(where / "hf")],
        ):  # fmt: skip
            assert ended(launch(["-m", "t2t", *command], count=count)) == [0] * count, command
        files = [path for path in sorted(where.rglob("*")) if path.is_file() and path.name != "README.md"]
        made[count] = {str(path.relative_to(where)): path.read_bytes() for path in files}
    assert made[1].keys() == made[2].keys()
    assert len(made[1]) > 8
    for name, content in made[1].items():
        assert made[2][name] == content, name
