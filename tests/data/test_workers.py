import os
import signal
import time

import pytest

from t2t.data import workers
from t2t.data.workers import WorkerDiedError


def test_one_worker_is_this_process():
    found = workers.run(lambda job: (job, os.getpid()), range(3), workers=1)
    assert list(found) == [(i, os.getpid()) for i in range(3)]
    with pytest.raises(ValueError, match="workers=0 must be positive"):
        list(workers.run(abs, [1], workers=0))


def test_no_jobs_start_no_process():
    assert list(workers.run(abs, [], workers=3)) == []


@pytest.mark.slow
def test_jobs_are_shared_and_taken_as_workers_are_free():
    taken = []

    def jobs():
        for i in range(20):
            taken.append(i)
            yield -i

    found = workers.run(abs, jobs(), workers=3)
    results = [next(found)]
    assert len(taken) <= 4
    results += found
    assert sorted(results) == list(range(20))


@pytest.mark.slow
def test_errors_of_the_function_come_back():
    with pytest.raises(ZeroDivisionError):
        list(workers.run(divmod_of, [(1, 1), (1, 0)], workers=2))
    with pytest.raises(FileNotFoundError, match="nothing"):
        list(workers.run(os.stat, ["/", "/nothing"], workers=2))


def divmod_of(pair):
    return divmod(*pair)


@pytest.mark.slow
def test_a_worker_that_ends_is_reported_with_its_code():
    began = time.monotonic()
    with pytest.raises(WorkerDiedError, match=r"worker-\d \(process \d+\) ended with exit code 7"):
        list(workers.run(os._exit, [7, 7], workers=2))
    with pytest.raises(WorkerDiedError, match=r"ended by signal 9 \(Killed\): .*memory.*fewer workers"):
        list(workers.run(kill_itself, [signal.SIGKILL] * 5, workers=2))
    assert time.monotonic() - began < 30


def kill_itself(number):
    os.kill(os.getpid(), number)


@pytest.mark.slow
def test_workers_end_with_whoever_asked():
    found = workers.run(process_of, range(10), workers=2)
    pids = {next(found), next(found)}
    found.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.slow
def test_one_thread_each():
    assert set(workers.run(os.getenv, ["T2T_THREADS", "RAYON_NUM_THREADS"], workers=2)) == {"1"}


def process_of(job):
    return os.getpid()
