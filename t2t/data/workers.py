"""Several processes that do the jobs of one, and what is said when one of them dies."""

import contextlib
import itertools
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

PATIENCE = 5.0
"""Seconds a worker has for ending by itself."""

THREADS = {"T2T_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Environment of the workers: there is one for each core."""


class WorkerDiedError(ChildProcessError):
    """A worker ended in the middle of its job."""


def run(function: Callable[[Job], Result], jobs: Iterable[Job], *, workers: int) -> Iterator[Result]:
    """`function(job)` of every job, in the order in which they are done; jobs are taken one by one as workers are free.

    One worker is this process itself. More are fresh processes: function, jobs and results are pickled, and the main
    module is imported there, so it must not start anything (`if __name__ == "__main__"`).

    Raises:
        WorkerDiedError: a worker was ended; says by what.
        Exception: what the function raised, which ends the others.
    """
    if workers < 1:
        raise ValueError(f"workers={workers} must be positive")
    if workers == 1:
        yield from map(function, jobs)
        return
    jobs = iter(jobs)
    first = list(itertools.islice(jobs, workers))  # no more processes than jobs
    crew: list[_Worker] = []
    try:
        crew = [_Worker(function, number) for number, _ in enumerate(first)]
        for worker, job in zip(crew, first, strict=True):
            worker.send(job)
        busy = list(crew)
        del first
        for job in jobs:
            worker, result = _wait(busy)
            yield result
            worker.send(job)
        while busy:
            worker, result = _wait(busy)
            busy.remove(worker)
            yield result
        for worker in crew:
            worker.close(patience=PATIENCE)
    finally:
        for worker in crew:
            worker.close(patience=0.0)


def _wait(busy: "list[_Worker]") -> "tuple[_Worker, Any]":
    """A worker that is done, and its result."""
    by_handle = {handle: worker for worker in busy for handle in (worker.connection, worker.process.sentinel)}
    worker = by_handle[multiprocessing.connection.wait(list(by_handle))[0]]
    return worker, worker.receive()


class _Worker:
    def __init__(self, function: Callable[[Any], Any], number: int):
        context = multiprocessing.get_context("spawn")  # threads of JAX and TensorFlow do not survive a fork
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, function), name=f"worker-{number}", daemon=True)
        self.process.start()
        theirs.close()

    def send(self, job: Any) -> None:
        try:
            self.connection.send(job)
        except (BrokenPipeError, ConnectionResetError):
            raise self._death() from None

    def receive(self) -> Any:
        try:
            is_done, result = self.connection.recv()
        except (EOFError, ConnectionResetError):
            raise self._death() from None
        if not is_done:
            raise result
        return result

    def close(self, *, patience: float) -> None:
        self.connection.close()
        if patience:
            self.process.join(patience)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def _death(self) -> WorkerDiedError:
        self.process.join(PATIENCE)
        code = self.process.exitcode
        if code is not None and code < 0:
            how = f"by signal {-code} ({signal.strsignal(-code)})"
            hint = ": the system may have no memory left; take fewer workers" if -code == signal.SIGKILL else ""
        else:
            how, hint = f"with exit code {code}", ""
        return WorkerDiedError(f"{self.process.name} (process {self.process.pid}) ended {how}{hint}.")


def _work(connection: multiprocessing.connection.Connection, function: Callable[[Any], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends its workers
    os.environ.update(THREADS)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the parent is gone
        while True:
            job = connection.recv()
            try:
                answer = True, function(job)
            except Exception as error:
                answer = False, error
            del job
            connection.send(answer if _can_be_sent(answer) else (False, RuntimeError(repr(answer[1]))))


def _can_be_sent(answer: tuple[bool, Any]) -> bool:
    """Whether an answer can be pickled and made again, which not every error can."""
    if answer[0]:
        return True
    try:
        pickle.loads(pickle.dumps(answer))
    except Exception:  # an error may do anything when it is made again
        return False
    return True
