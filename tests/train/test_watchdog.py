"""A run that hangs says where; one that is slow, or compiles, is left alone."""

import subprocess
import sys
import textwrap
import threading
import time

import jax
import jax.numpy as jnp
import pytest

from t2t.config import Watch
from t2t.train import progress, run_directory, watchdog
from t2t.train.watchdog import Watchdog


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()


def test_a_hang_dumps_the_stacks_of_all_threads(tmp_path):
    log, lines, over = tmp_path / "log.txt", [], threading.Event()

    def wait_in_vain():
        over.wait()

    thread = threading.Thread(target=wait_in_vain)
    thread.start()
    try:
        with Watchdog(log, seconds=0.2, ends=False, on_hang=lines.append) as dog:
            dog.beat("joining the others")
            wait_for(lambda: log.exists() and "wait_in_vain" in log.read_text())
    finally:
        over.set()
        thread.join()
    assert "while joining the others: the stacks of all threads follow" in lines[0]
    assert "test_a_hang_dumps_the_stacks_of_all_threads" in log.read_text()


def test_slow_progress_is_progress(tmp_path):
    lines = []
    with Watchdog(tmp_path / "log.txt", seconds=1.0, ends=False, on_hang=lines.append) as dog:
        for _ in range(15):
            time.sleep(0.1)
            dog.beat("a batch")
    assert not lines


def test_a_thread_in_the_compiler_is_seen():
    found = []
    program = jax.jit(lambda x: jax.lax.fori_loop(0, 9, lambda i, y: jnp.tanh(y @ y) + i, x) @ jnp.cos(x))
    lowered = program.lower(jax.ShapeDtypeStruct((37, 37), jnp.float32))
    over = threading.Event()

    def look():
        while not over.is_set():
            found.append(watchdog.is_compiling())

    thread = threading.Thread(target=look)
    thread.start()
    lowered.compile()
    over.set()
    thread.join()
    assert True in found and not watchdog.is_compiling()


def test_compilation_does_not_count(tmp_path, monkeypatch):
    lines, asked = [], []
    monkeypatch.setattr(watchdog, "is_compiling", lambda: asked.append(True) or True)
    with Watchdog(tmp_path / "log.txt", seconds=0.1, ends=False, on_hang=lines.append):
        wait_for(lambda: len(asked) >= 3)
    assert not lines


def test_what_a_run_shows_is_its_life(tmp_path):
    run = run_directory.RunDirectory(tmp_path)
    with progress.Progress(run.log, total=3) as report:
        dog = watchdog.of_run(run, Watch(hang_seconds=None), report)
        before = dog._beat
        time.sleep(0.01)
        report.phase("evaluating: batch 3")
        report.phase("evaluating: batch 3")
    assert dog._beat > before and dog._doing == "evaluating: batch 3"


@pytest.mark.slow
def test_a_process_that_hangs_ends_to_be_started_again(tmp_path):
    script = textwrap.dedent("""
        import pathlib, sys, time
        from t2t.train.watchdog import Watchdog
        with Watchdog(pathlib.Path(sys.argv[1]), seconds=0.3, ends=True):
            time.sleep(100)
    """)
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "log.txt"], capture_output=True, text=True, timeout=90
    )
    assert done.returncode == watchdog.EXIT_CODE == 1
    assert "Thread" in done.stderr and "Thread" in (tmp_path / "log.txt").read_text()
