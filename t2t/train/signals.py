"""SIGTERM and Ctrl-C as requests: the step is finished, the state saved, and only then the process ends."""

import os
import signal
import threading
from types import FrameType, TracebackType

import jax
from jax.experimental import multihost_utils

HANDLED = (signal.SIGTERM, signal.SIGINT)


class Interrupted(SystemExit):
    """A run was asked to stop and has saved its state; ends the process with 143 (SIGTERM) or 130 (Ctrl-C).

    These are the codes of a process that a signal has ended (128 + its number), so that shells and job controllers know
    that the work is not done; the same command goes on.
    """

    def __init__(self, number: int, step: int):
        super().__init__(128 + number)
        self.step = step


class StopRequests:
    """Listens to SIGTERM and Ctrl-C while it is entered; a second Ctrl-C ends the process at once.

    A second SIGTERM does not: job controllers send it to a process and once more to its group, or again some time
    later, and have SIGKILL for what must end at once.

    Outside the main thread signals cannot be received, and nothing is changed.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._interrupted = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> "StopRequests":
        if threading.current_thread() is threading.main_thread():
            for number in self._mine():
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def agreed(self, step: int) -> int | None:
        """The signal for which every process stops after this step. All processes ask after every step."""
        if jax.process_count() > 1:
            # Its own listener makes the processes agree on a step: the signal may have reached only one of them.
            return signal.SIGTERM if multihost_utils.reached_preemption_sync_point(step) else None
        return self.received

    def _mine(self) -> tuple[signal.Signals, ...]:
        return HANDLED if jax.process_count() == 1 else ()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number == signal.SIGINT and self._interrupted:
            os._exit(128 + number)  # no cleaning up: that is what was to be cut short
        self._interrupted |= number == signal.SIGINT
        self.received = self.received or number
        again = "; once more to stop at once, unsaved" if number == signal.SIGINT else ""
        text = f"\n{signal.Signals(number).name}: finishing the step and saving{again}\n"
        os.write(2, text.encode())  # print could meet another print half-way
