"""Finds out that a run hangs: a collective that another process never joins, a file system that does not answer.

Whoever makes progress says so (`beat`). When nobody has for too long, the stacks of all threads go to the log, where
they show what is being waited for, and the process may end, so that a controller starts it again. While XLA compiles,
nobody can say anything: a thread that is inside its compiler counts as progress.
"""

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType

from t2t.config import Watch
from t2t.train.progress import Progress
from t2t.train.run_directory import RunDirectory

EXIT_CODE = 1
"""Of a process that is ended because it hangs: to be started again, like after any crash."""

_COMPILER = ("jax/_src/compiler.py", ("backend_compile_and_load", "compile_or_get_cached"))
"""File and functions of JAX in which a thread is while XLA compiles."""


class Watchdog:
    """Watches while it is entered.

    Args:
        log: file to which the stacks are added; they go to standard error too.
        seconds: without a beat after which the run hangs; None watches nothing.
        ends: whether the process then ends.
        on_hang: called with a line that says so, before anything else.
    """

    def __init__(
        self,
        log: Path,
        *,
        seconds: float | None,
        ends: bool,
        on_hang: Callable[[str], None] = lambda line: None,
    ):
        self._log, self._seconds, self._ends, self._on_hang = log, seconds, ends, on_hang
        self._over = threading.Event()
        self._beat = time.monotonic()
        self._doing = "starting"

    def __enter__(self) -> "Watchdog":
        self._beat = time.monotonic()
        if self._seconds is not None:
            self._thread = threading.Thread(target=self._watch, name="t2t-watchdog", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        self._over.set()

    def beat(self, doing: str) -> None:
        """Something has been done; `doing` is what comes next."""
        self._beat, self._doing = time.monotonic(), doing

    def _watch(self) -> None:
        while not self._over.wait(min(self._seconds / 10, 10.0)):
            silence = time.monotonic() - self._beat
            if silence < self._seconds:
                continue
            if is_compiling():
                self.beat("compiling")
                continue
            self._report(f"no progress for {silence:.0f} s while {self._doing}: the stacks of all threads follow")
            if self._ends:
                os._exit(EXIT_CODE)  # nothing can be saved by a process that hangs
            self.beat(self._doing)

    def _report(self, line: str) -> None:
        self._on_hang(line)
        for write in (self._to_log, lambda: faulthandler.dump_traceback(sys.__stderr__, all_threads=True)):
            try:
                write()
            except (OSError, ValueError, AttributeError):  # closed, full or not there: the other is left
                continue

    def _to_log(self) -> None:
        with self._log.open("a", encoding="utf-8") as file:
            faulthandler.dump_traceback(file, all_threads=True)


def of_run(run: RunDirectory, settings: Watch, report: Progress) -> Watchdog:
    """The watchdog of a run: whatever the run shows counts as progress."""
    dog = Watchdog(run.log, seconds=settings.hang_seconds, ends=settings.on_hang == "end", on_hang=report.say)
    report.on_life = dog.beat
    return dog


def is_compiling() -> bool:
    """Whether a thread of this process is inside XLA's compiler."""
    return any(_compiles(frame) for frame in sys._current_frames().values())


def _compiles(frame: FrameType | None) -> bool:
    file, functions = _COMPILER
    while frame is not None:
        if frame.f_code.co_name in functions and frame.f_code.co_filename.replace(os.sep, "/").endswith(file):
            return True
        frame = frame.f_back
    return False
