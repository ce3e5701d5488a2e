"""Profiles of some steps, by JAX's own profiler: RUN/profile/STEP, for TensorBoard, XProf or Perfetto.

Asked for by step in the settings, or at any time by the file RUN/profile-now (`touch RUN/profile-now`), which is
removed when it is obeyed. A profiler that fails costs a warning, never the run.
"""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import jax

from t2t.config import Watch
from t2t.train import processes
from t2t.train.run_directory import RunDirectory

log = logging.getLogger(__name__)

EVERY = 1.0
"""Seconds between two looks for the file: on a network's disk each takes time."""


class Profiler:
    """Starts and ends profiles between steps; use it as a context manager.

    Args:
        directory: where profiles go, each in a folder named by its step.
        request: the file that asks for one; None where another process looks for it.
        at: steps from which on profiles are taken.
        steps: how many steps a profile covers.
    """

    def __init__(self, directory: Path, *, request: Path | None, at: Sequence[int], steps: int):
        self._directory, self._request, self._at, self._steps = directory, request, frozenset(at), steps
        self._until: int | None = None
        self._place = directory
        self._looked = -EVERY

    def __enter__(self) -> "Profiler":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        self._end(None)

    def before(self, step: int) -> None:
        """To be called before the work of a step is handed to the devices."""
        if self._until is None and (step in self._at or self._is_asked()):
            self._place = self._directory / str(step)
            if _survives(self._start, "no profile is taken"):
                self._until = step + self._steps - 1

    def after(self, step: int, results: Any) -> None:
        """To be called after it, with something that the step computes."""
        if self._until is not None and step >= self._until:
            self._end(results)

    def _start(self) -> None:
        self._place.mkdir(parents=True, exist_ok=True)
        jax.profiler.start_trace(self._place)

    def _end(self, results: Any) -> None:
        if self._until is None:
            return
        self._until = None
        jax.block_until_ready(results)  # the devices are behind the host
        if _survives(jax.profiler.stop_trace, "the profile is lost"):
            log.info("a profile is in %s (tensorboard --logdir %s)", self._place, self._directory)

    def _is_asked(self) -> bool:
        now = time.monotonic()
        if self._request is None or now - self._looked < EVERY:
            return False
        self._looked = now
        try:
            self._request.unlink()
        except OSError:  # it is not there, or cannot be removed and would ask for ever
            return False
        return True


def of_run(run: RunDirectory, settings: Watch) -> Profiler:
    """The profiler of a run; the first process obeys the file."""
    request = run.profile_request if processes.is_first() else None
    return Profiler(run.profiles, request=request, at=settings.profile_at, steps=settings.profile_steps)


def _survives(what: Callable[[], object], otherwise: str) -> bool:
    try:
        what()
    except Exception as error:  # whatever a profiler raises: it must not end a run of weeks
        log.warning("%s: %s: %s", otherwise, type(error).__name__, error)
        return False
    return True
