"""Ctrl-C from the first line of a command to its last: it ends the process, whatever a library makes of it.

Python's KeyboardInterrupt is lost where it is raised in a callback or under a library's `except:`, and it may come back
as another error. So it is remembered, and a process that does not end by it in a few seconds is ended; one that still
imports modules ends at once. As ever, Python hears of Ctrl-C when C++ that is at work, such as a compilation, returns.
"""

import _thread  # threading's own lock may be held where the signal comes
import os
import signal
import sys
import threading
import time
from types import FrameType, TracebackType

PATIENCE = 3.0
"""Seconds for what a command does before it ends, such as removing half a file."""

EXIT_CODE = 130
"""Of a process that Ctrl-C has ended: 128 + the number of the signal."""


class Watch:
    """Listens to Ctrl-C while it is entered: the first raises KeyboardInterrupt, a second ends the process at once.

    Outside the main thread, and where Ctrl-C is ignored or handled by somebody else, nothing is changed.
    """

    def __init__(self) -> None:
        self.received = False
        self._is_over = False
        self._is_mine = False
        self._lock = _thread.allocate_lock()  # between the thread that ends the process and the end of the watch

    def __enter__(self) -> "Watch":
        in_main = threading.current_thread() is threading.main_thread()
        self._is_mine = in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._is_mine:
            try:
                self._terminal = os.dup(2)  # libraries that talk too much may be kept from standard error
            except OSError:  # it is closed
                self._terminal = os.open(os.devnull, os.O_WRONLY)
            self._before = sys.unraisablehook
            signal.signal(signal.SIGINT, self._receive)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        with self._lock:
            self._is_over = True
        if not self._is_mine:
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.close(self._terminal)
        if self.received:
            sys.unraisablehook = self._before
            if "logging" in sys.modules:
                sys.modules["logging"].disable(0)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del number
        if self.received:
            os._exit(EXIT_CODE)
        if _is_importing(frame):
            self._end()  # C++ that imports a module aborts at an exception, with pages of text
        self.received = True
        # What is torn down half-way has nothing to say.
        sys.unraisablehook = lambda unraisable: None
        if "logging" in sys.modules:
            sys.modules["logging"].disable()
        _thread.start_new_thread(self._end_later, ())
        raise KeyboardInterrupt

    def _end_later(self) -> None:
        time.sleep(PATIENCE)
        with self._lock:
            if not self._is_over:
                self._end()

    def _end(self) -> None:
        os.write(self._terminal, b"interrupted\n")
        os._exit(EXIT_CODE)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
