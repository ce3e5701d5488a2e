"""Where the time of a run goes: every second belongs to one phase, over all starts of the run.

    start        from the command to the first batch: imports of tasks, data, restoring
    compile      XLA at work, whenever that is
    step         steps
    data_wait    the devices had nothing to do because the next batch was not there
    checkpoint   the loop waited for a save: the copy to the host, and the end of the one before
    evaluation   evaluations
    lost         steps and all else after the last checkpoint of a start that did not end well, done again since
    down         between two starts, while no process trained

Goodput is the share of `step` in all of them.

A checkpoint holds the seconds up to it, `RUN/clock.json` those up to the last log line: what is in the second and not
in the first when a run goes on was lost.

Reference: "Goodput" as in https://cloud.google.com/blog/products/ai-machine-learning/goodput-metric-as-measure-of-ml-productivity
Differs: compilation is no part of it, and time is measured on the host of the first process alone.
"""

import contextlib
import datetime
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from jax import monitoring

PHASES = ("start", "compile", "step", "data_wait", "checkpoint", "evaluation", "lost", "down")
"""The phases; the last two are found out afterwards."""

_COMPILING = ("/jax/core/compile/backend_compile_duration", "/jax/core/compile/jaxpr_to_mlir_module_duration")
"""JAX's names of what counts as compilation; reading from the cache of programs is part of the first."""

_CACHE_HIT = "/jax/compilation_cache/cache_hits"


class _Compiler:
    """Seconds that this process has compiled, and how many programs it found in the cache, as JAX reports them."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.hits = 0
        monitoring.register_event_duration_secs_listener(self._took)
        monitoring.register_event_listener(self._happened)

    def _took(self, event: str, seconds: float, **_: object) -> None:
        if event in _COMPILING:
            self.seconds += seconds

    def _happened(self, event: str, **_: object) -> None:
        self.hits += event == _CACHE_HIT


COMPILER = _Compiler()
"""JAX reports to listeners for the life of the process, so that there is one."""


class Clock:
    """Measures the phases of a run; `start` is the first.

    Args:
        file: where the totals are kept for the next start; None keeps none.
    """

    def __init__(self, file: Path | None = None):
        self._file = file
        self._phase = "start"
        self._since = time.monotonic()
        self._compiled = COMPILER.seconds
        self._hits = COMPILER.hits
        self._seconds = dict.fromkeys(PHASES, 0.0)
        self._logged = dict.fromkeys(PHASES, 0.0)

    def enter(self, phase: str) -> str:
        """From now on it is this phase; returns the one it was."""
        if phase not in PHASES:
            raise ValueError(f"{phase} is no phase; possible are {', '.join(PHASES)}")
        now, compiled = time.monotonic(), COMPILER.seconds
        elapsed = now - self._since
        compiling = min(compiled - self._compiled, elapsed)  # another thread may compile at the same time
        self._seconds[self._phase] += elapsed - compiling
        self._seconds["compile"] += compiling
        before, self._phase, self._since, self._compiled = self._phase, phase, now, compiled
        return before

    @contextlib.contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """It is this phase inside, and afterwards the one it was."""
        before = self.enter(phase)
        try:
            yield
        finally:
            self.enter(before)

    @contextlib.contextmanager
    def data_wait(self, *, is_busy: Callable[[], bool]) -> Iterator[None]:
        """It is `data_wait` inside; if the devices are busy all the same at its end, it has held up nothing."""
        before = self.enter("data_wait")
        try:
            yield
        finally:
            if is_busy():
                self._phase = before
            self.enter(before)

    def seconds(self) -> dict[str, float]:
        """The seconds of each phase since the run began."""
        self.enter(self._phase)
        return dict(self._seconds)

    def goodput(self) -> float:
        """The share of all time that went into steps, since the run began."""
        seconds = self.seconds()
        return seconds["step"] / max(sum(seconds.values()), 1e-9)

    def cache_hits(self) -> int:
        """Programs that this start did not compile, because an earlier one had kept them."""
        return COMPILER.hits - self._hits

    def go_on(self, checkpoint: dict[str, float] | None) -> None:
        """Adds what earlier starts took, when the run goes on from a checkpoint that holds these seconds (None: none).

        Nothing is lost where a run starts that has no file yet; an unreadable file counts as none.
        """
        before = dict.fromkeys(PHASES, 0.0) | (checkpoint or {})
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            kept = json.loads(self._file.read_text(encoding="utf-8")) if self._file is not None else {}
            before["lost"] += max(sum(kept["seconds"].values()) - sum(before.values()), 0.0)
            process_began = time.time() - sum(self.seconds().values())
            before["down"] += max(process_began - kept["at"], 0.0)
        for phase in PHASES:
            self._seconds[phase] += before[phase]

    def go_back(self, checkpoint: dict[str, float]) -> None:
        """Counts as lost what went into steps and evaluations since the checkpoint to which a run goes back."""
        self.seconds()
        for phase in ("step", "data_wait", "evaluation", "checkpoint"):
            lost = max(self._seconds[phase] - checkpoint.get(phase, 0.0), 0.0)
            self._seconds[phase] -= lost
            self._seconds["lost"] += lost
        self._logged = dict(self._seconds)

    def log(self) -> dict[str, float]:
        """For a log line: goodput since the run began and the seconds of each phase since the last line; kept too."""
        seconds, before = self.seconds(), self._logged
        self._logged = seconds
        self.keep()
        values = {f"seconds_{phase}": seconds[phase] - before[phase] for phase in PHASES[:-2]}
        return {"goodput": self.goodput(), **values}

    def keep(self) -> None:
        """Writes the totals for the next start; a disk that cannot be written shows elsewhere."""
        if self._file is None:
            return
        content = {"seconds": self.seconds(), "at": time.time()}
        partial = self._file.with_name(f"{self._file.name}.partial")
        with contextlib.suppress(OSError):
            partial.write_text(json.dumps(content) + "\n", encoding="utf-8")
            partial.replace(self._file)

    def summary(self) -> str:
        """A line about the whole run: goodput, and the share of every phase that takes part in it."""
        seconds = self.seconds()
        total = max(sum(seconds.values()), 1e-9)
        shares = sorted(((value / total, phase) for phase, value in seconds.items()), reverse=True)
        shown = ", ".join(f"{phase} {100 * share:.1f} %" for share, phase in shares if share >= 0.0005)
        return f"goodput {100 * self.goodput():.1f} % of {datetime.timedelta(seconds=round(total))}: {shown}"
