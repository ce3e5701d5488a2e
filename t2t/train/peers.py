"""The processes of a run keep an eye on each other: one that has failed, died or stands still ends all, by name.

Without it the others wait for ever in a collective operation that the lost one never enters. Each process writes a
sign of life into the key-value store of `jax.distributed` (which process 0 keeps) every few seconds, and where it
fails, why. JAX's own heartbeats stay as a second line, at twice the time: they end a process by SIGABRT, and know
neither hosts nor errors. Where process 0 itself is gone, JAX ends the others so within a second.
"""

import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import jax
from jax._src import distributed  # the key-value store has no public name (jax 0.10)

from t2t.errors import UsageError

TIMEOUT = 180.0
"""Seconds without a sign of life after which a process is given up: longer than C++ that keeps Python from running."""

ALIVE, FAILED, HOST, OVER = "t2t/alive/", "t2t/failed/", "t2t/host/", "t2t/over/"
"""Folders of the store, in which each process has a key: a count, {"text", "code"}, a name, and that it has ended."""

FAILURE, WRONG = 1, 2
"""Exit codes of the command line: to try again may help, or will not."""


class Peers:
    """Signs of life of this process, and of the others.

    Args:
        store: a client of `jax.distributed`, or what has its `key_value_set` and `key_value_dir_get`.
        process: index of this process.
        count: number of processes.
        timeout: seconds without a sign of life after which a process is given up.
    """

    def __init__(self, store: Any, *, process: int, count: int, timeout: float = TIMEOUT):
        self.timeout = timeout
        self.every = min(timeout / 10, 5.0)
        self._store, self._process, self._count = store, process, count
        self._hosts: dict[int, str] = {}
        self._seen: dict[int, tuple[str, float]] = {}  # the last sign of each other process, and when it was new
        self._failed: dict[int, dict[str, Any]] = {}
        self._answered = time.monotonic()
        self._is_over = threading.Event()
        self._lock = threading.Lock()

    def start(self) -> None:
        """Says where this process is and begins to watch, in threads that never keep a process from ending."""
        self._put(HOST, socket.gethostname())
        for target in (self._exchange, self._judge):
            threading.Thread(target=target, daemon=True, name=f"peers{target.__name__}").start()

    def stop(self) -> None:
        """Ends the watch: this process is done, and the others need not wait for more signs of it."""
        self._is_over.set()
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            self._put(OVER, "1")

    def exchange(self, beat: int) -> None:
        """Writes a sign of life and reads those of the others."""
        self._put(ALIVE, str(beat))
        alive, over = self._get(ALIVE), self._get(OVER)
        if len(self._hosts) < self._count:
            self._hosts = self._get(HOST)
        failed = {index: json.loads(text) for index, text in self._get(FAILED).items()}
        now = time.monotonic()
        with self._lock:
            for index in range(self._count):
                sign = "over" if index in over else alive.get(index, "")
                if index not in self._seen or self._seen[index][0] != sign or sign == "over":
                    self._seen[index] = sign, now
            self._failed = {index: found for index, found in failed.items() if index != self._process}
            self._answered = now

    def verdict(self) -> tuple[str, int] | None:
        """What has become of the others, with the exit code it means for this process; None: nothing is amiss."""
        now = time.monotonic()
        with self._lock:
            for index, found in sorted(self._failed.items()):
                return f"{self.name(index)} failed: {found['text']}", found["code"]
            if now - self._answered > self.timeout:  # silent signs are no news then
                return f"{self.name(0)}, which keeps what the processes tell each other, {self._silent()}", FAILURE
            lost = [i for i, (_, since) in self._seen.items() if i != self._process and now - since > self.timeout]
        if lost:
            return f"{' and '.join(self.name(index) for index in lost)} {self._silent()}", FAILURE
        return None

    def name(self, process: int) -> str:
        """A process as messages call it."""
        return f"process {process} of {self._count} (on {self._hosts.get(process, 'an unknown host')})"

    def fail(self, error: BaseException, *, code: int) -> None:
        """Tells the others why this process ends, and gives them the time to hear of it."""
        text = json.dumps({"text": f"{type(error).__name__}: {error}"[:2000], "code": code})
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            self._put(FAILED, text)
            if self._process == 0:  # the store goes with this process
                time.sleep(3 * self.every)

    def wait_for_verdict(self) -> None:
        """Waits until it is clear whether another process is to blame; if so, this process ends here."""
        time.sleep(self.timeout + 3 * self.every)

    def _silent(self) -> str:
        return f"has given no sign of life for {self.timeout:g} seconds: it has died, stands still or lost its network"

    def _exchange(self) -> None:
        beat = 0
        while not self._is_over.is_set():
            beat += 1
            with contextlib.suppress(jax.errors.JaxRuntimeError):  # no answer: `_judge` knows since when
                self.exchange(beat)
            self._is_over.wait(self.every)

    def _judge(self) -> None:
        while not self._is_over.wait(self.every):
            found = self.verdict()
            if found is not None and not self._is_over.is_set():
                _end(*found)

    def _put(self, folder: str, value: str) -> None:
        self._store.key_value_set(f"{folder}{self._process}", value, allow_overwrite=True)

    def _get(self, folder: str) -> dict[int, str]:
        return {int(key.rpartition("/")[2]): value for key, value in self._store.key_value_dir_get(folder)}


def _end(text: str, code: int) -> None:
    """Ends this process at once: it may stand in a collective operation, which nothing interrupts."""
    message = (
        f"error: {text}. This process ends with it, for none can go on without the others; see what it wrote last. A "
        "training run goes on from its last checkpoint when the same command is started again on every host\n"
    )
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    with contextlib.suppress(OSError):
        os.write(2, message.encode())
    os._exit(code)


@contextlib.contextmanager
def watched(*, timeout: float = TIMEOUT) -> Iterator[None]:
    """Ends this process when another is lost, and the others when this one fails. Trivial where it is alone.

    An error raised inside is told to the others. One of JAX itself may be what the loss of another process looks like
    from here: it is raised after that had time to show.

    Args:
        timeout: seconds without a sign of life after which a process is given up.
    """
    if jax.process_count() == 1:
        yield
        return
    peers = Peers(
        distributed.global_state.client, process=jax.process_index(), count=jax.process_count(), timeout=timeout
    )
    peers.start()
    try:
        yield
    except SystemExit:  # all have agreed to stop
        _leave(peers)
        raise
    except BaseException as error:
        if _is_of_jax(error):
            peers.wait_for_verdict()
        peers.fail(error, code=WRONG if isinstance(error, UsageError) else FAILURE)
        peers.stop()
        raise
    else:
        _leave(peers)


def _leave(peers: Peers) -> None:
    """Waits for the others to come to their end too, as long as they live."""
    jax.distributed.shutdown()
    peers.stop()


def _is_of_jax(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, jax.errors.JaxRuntimeError):
            return True
        error = error.__cause__ or error.__context__
    return False
