"""What a run shows while it works: one line that moves on a terminal, plain lines elsewhere, and all of it in log.txt.

Something is visible at any time: on a terminal the clock ticks; elsewhere a line says what is still going on when
nothing else has been written for a while (reading data, compiling).
"""

import contextlib
import datetime
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

import rich.console
import rich.progress

from t2t.train import processes

SILENCE = 20.0
"""Seconds without a line after which a plain run says what it is doing."""

OURS = logging.getLogger("t2t")


class Progress:
    """Shows phases, steps and messages; takes the records of t2t's loggers while it is entered.

    Args:
        log: file that keeps every line.
        total: the last step of the run.
        console: where to show it; None is the standard output.
    """

    def __init__(self, log: Path, *, total: int, console: rich.console.Console | None = None):
        self._console = console or rich.console.Console(highlight=False, markup=False, soft_wrap=True, file=sys.stdout)
        self._log = log
        self._total = total
        self._quiet = not processes.is_first()
        self._phase, self._since, self._last = "starting", time.monotonic(), time.monotonic()
        self._bar: rich.progress.Progress | None = None
        self._ended = threading.Event()
        self.on_life: Callable[[str], None] = lambda doing: None
        """Called with what is being done whenever something shows that the run is alive."""

    def __enter__(self) -> "Progress":
        if self._quiet:
            return self
        self._file = self._log.open("a", encoding="utf-8", buffering=1)
        self._handler = _Handler(self)
        self._before = OURS.level, OURS.propagate
        OURS.addHandler(self._handler)
        OURS.setLevel(logging.INFO)
        OURS.propagate = False  # some library may have given the root logger a handler, which would show it all twice
        if self._console.is_terminal:
            self._bar = _bar(self._console)
            self._task = self._bar.add_task(self._phase, total=self._total, note="")
            self._bar.start()
        else:
            self._watch = threading.Thread(target=self._break_silence, name="t2t-progress", daemon=True)
            self._watch.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        if self._quiet:
            return
        self._ended.set()
        OURS.removeHandler(self._handler)
        level, OURS.propagate = self._before
        OURS.setLevel(level)
        if self._bar is not None:
            self._bar.stop()
        if isinstance(error, Exception):
            self._keep(f"ended by {type(error).__name__}: {error}")
        with contextlib.suppress(OSError):
            self._file.close()

    def say(self, text: str) -> None:
        """Shows a line and keeps it."""
        if self._quiet:
            return
        self._keep(text)
        self._console.print(text)
        self._last = time.monotonic()

    def phase(self, text: str) -> None:
        """What is going on from now on, until the next phase; updated often, it is no line of its own."""
        self.on_life(text)
        if self._quiet or text == self._phase:
            return
        self._phase, self._since = text, time.monotonic()
        if self._bar is not None:
            self._bar.update(self._task, description=text)

    def step(self, step: int) -> None:
        """Moves the bar."""
        if self._bar is not None:
            self._bar.update(self._task, completed=step)

    def note(self, text: str) -> None:
        """Shows the numbers of the last log line: beside the bar, else as a line."""
        if self._bar is None:
            self.say(text)
        elif not self._quiet:
            self._keep(text)
            self._bar.update(self._task, note=text.partition("  ")[2])

    def _keep(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a full disk stops the run where it saves, with a better message
            self._file.write(f"{datetime.datetime.now():%Y-%m-%d %H:%M:%S} {text}\n")

    def _break_silence(self) -> None:
        while not self._ended.wait(1.0):
            now = time.monotonic()
            if now - self._last > SILENCE:
                self._last = now
                self._console.print(f"  ... {self._phase} ({now - self._since:.0f} s)")


class _Handler(logging.Handler):
    """Passes records of t2t's loggers to a Progress."""

    def __init__(self, progress: Progress):
        super().__init__(logging.INFO)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        level = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        self._progress.say(f"{level}{record.getMessage()}")


def _bar(console: rich.console.Console) -> rich.progress.Progress:
    return rich.progress.Progress(
        rich.progress.SpinnerColumn(),
        rich.progress.TextColumn("{task.description}", markup=False),
        rich.progress.BarColumn(bar_width=20),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TimeElapsedColumn(),
        rich.progress.TextColumn("{task.fields[note]}", markup=False),
        console=console,
        refresh_per_second=4,
    )


def line(step: int, total: int, values: Mapping[str, float], *, eta: float | None) -> str:
    """The numbers of a log line for people.

    Example:
        >>> line(50, 200, {"loss": 7.125, "tokens_per_second": 31234.5, "mfu": 0.371}, eta=95.0)
        'step 50/200  loss 7.1250  31,234 tokens/s  MFU 37.1 %  ETA 1:35'
    """
    parts = [f"step {step}/{total}"]
    if "loss" in values:
        parts.append(f"loss {values['loss']:.4f}")
    parts += [f"{name} {values[name]:.4f}" for name in ("accuracy",) if name in values]
    if "tokens_per_second" in values:
        parts.append(f"{values['tokens_per_second']:,.0f} tokens/s")
    if "mfu" in values:
        parts.append(f"MFU {100 * values['mfu']:.1f} %")
    if eta is not None:
        parts.append(f"ETA {clock(eta)}")
    return "  ".join(parts)


def clock(seconds: float) -> str:
    """A duration for people.

    Example:
        >>> clock(95), clock(3723)
        ('1:35', '1:02:03')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
