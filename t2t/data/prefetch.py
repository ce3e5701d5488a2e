"""Batches made ahead of time by a background thread."""

import queue
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from t2t.types import Batch


@runtime_checkable
class Resumable(Protocol):
    """An iterator of batches that can say where it stands."""

    def __next__(self) -> Batch: ...

    def state(self) -> dict[str, Any]:
        """Where the next batch starts."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from there."""


class Prefetch:
    """The same batches and states as the iterator's own, made up to `size` batches ahead while the device works.

    `state()` belongs to the batch taken last, not to the one made last. What the iterator raises is raised from `next`
    when its turn comes. Use it as a context manager, or call `close()`, to end the thread.

    Example:
        with Prefetch(TrainPipeline(stream, rows=8), size=2) as batches:
            batch = next(batches)
    """

    def __init__(self, batches: Resumable, *, size: int = 2) -> None:
        if size < 1:
            raise ValueError(f"size={size} must be at least 1 batch.")
        self._batches = batches
        self._size = size
        self._state = batches.state()
        self._start()

    def _start(self) -> None:
        self._queue: queue.Queue = queue.Queue(maxsize=self._size)
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(
            target=_produce, args=(self._batches, self._queue, self._stop), name="t2t-prefetch", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> "Prefetch":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        if self._failure is not None:
            raise self._failure
        if self._stop.is_set():
            raise ValueError("This Prefetch is closed.")
        batch, state, failure = self._queue.get()
        if failure is not None:
            self._failure = failure
            raise failure
        self._state = state
        return batch

    def state(self) -> dict[str, Any]:
        """Where the batch after the last one taken starts."""
        return self._state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; what was made ahead is thrown away."""
        self.close()
        self._batches.restore(state)
        self._state = self._batches.state()
        self._start()

    def close(self) -> None:
        """End the thread. The iterator itself may be some batches ahead afterwards; `restore` sets it right."""
        self._stop.set()
        while self._thread.is_alive():
            try:  # the thread may be waiting for room
                self._queue.get_nowait()
            except queue.Empty:
                self._thread.join(timeout=0.01)


def _produce(batches: Resumable, out: queue.Queue, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            item = next(batches), batches.state(), None
        except BaseException as failure:
            item = None, None, failure
        out.put(item)
        if item[2] is not None:
            return
