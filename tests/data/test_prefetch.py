import threading
import time

import numpy as np
import pytest

from t2t.data.prefetch import Prefetch


class Counter:
    """Batches that hold their own number."""

    def __init__(self, *, fail_at=None, end_at=None):
        self.step = 0
        self.fail_at = fail_at
        self.end_at = end_at

    def __next__(self):
        if self.step == self.end_at:
            raise StopIteration
        if self.step == self.fail_at:
            raise OSError("the disk is gone")
        self.step += 1
        return {"step": np.array(self.step - 1)}

    def state(self):
        return {"step": self.step}

    def restore(self, state):
        self.step = state["step"]


def steps(batches, number):
    return [int(next(batches)["step"]) for _ in range(number)]


def prefetch_threads():
    return [thread for thread in threading.enumerate() if thread.name == "t2t-prefetch"]


def test_state_is_that_of_the_batch_taken_last():
    source = Counter()
    with Prefetch(source, size=3) as batches:
        assert batches.state() == {"step": 0}
        assert steps(batches, 4) == [0, 1, 2, 3]
        deadline = time.monotonic() + 10
        while source.step < 7 and time.monotonic() < deadline:
            time.sleep(0.001)
        assert source.step >= 7
        assert batches.state() == {"step": 4}


def test_restore_throws_away_what_was_made_ahead():
    with Prefetch(Counter(), size=3) as batches:
        steps(batches, 5)
        batches.restore({"step": 2})
        assert batches.state() == {"step": 2}
        assert steps(batches, 3) == [2, 3, 4]
        assert len(prefetch_threads()) == 1


def test_no_more_than_size_batches_are_made_ahead():
    source = Counter()
    with Prefetch(source, size=2):
        time.sleep(0.1)
        assert source.step <= 3  # two wait in the queue, one in the thread's hand


def test_failures_reach_the_consumer_in_their_turn():
    with Prefetch(Counter(fail_at=2), size=5) as batches:
        assert steps(batches, 2) == [0, 1]
        for _ in range(2):
            with pytest.raises(OSError, match="the disk is gone"):
                next(batches)
        assert batches.state() == {"step": 2}


def test_the_end_of_the_source_is_the_end():
    with Prefetch(Counter(end_at=3)) as batches:
        assert [int(batch["step"]) for batch in batches] == [0, 1, 2]


def test_closing_ends_the_thread_though_it_waits_for_room():
    batches = Prefetch(Counter(), size=1)
    next(batches)
    batches.close()
    assert prefetch_threads() == []
    with pytest.raises(ValueError, match="closed"):
        next(batches)
    batches.close()


def test_size_is_checked():
    with pytest.raises(ValueError, match="size=0"):
        Prefetch(Counter(), size=0)
