"""The order of text for models that remember: `t2t.data.contiguous`, and lanes that read it."""

import collections

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from t2t.data import evaluation, mixing
from t2t.data.contiguous import ContiguousOrder
from t2t.data.examples import TaskExamples
from t2t.data.features import DecoderFeatures
from t2t.data.pipeline import Stream, TrainPipeline, merge_states
from t2t.data.store import TokenStore


def order(*sizes: int, rows: int, rates=None, backward=None) -> ContiguousOrder:
    rates = rates or (1.0,) * len(sizes)
    return ContiguousOrder(sizes=sizes, rates=rates, backward=backward or (False,) * len(sizes), rows=rows)


def lane(one: ContiguousOrder, number: int, steps: int) -> list[mixing.Draw]:
    return [one.locate(number + step * one.rows) for step in range(steps)]


def test_lanes_by_hand():
    """Seven examples in three lanes: they begin at 0, 2 and 4."""
    one = order(7, rows=3)
    assert [draw.index for draw in lane(one, 0, 9)] == [0, 1, 2, 3, 4, 5, 6, 0, 1]
    assert [draw.index for draw in lane(one, 2, 9)] == [4, 5, 6, 0, 1, 2, 3, 4, 5]
    assert [draw.epoch for draw in lane(one, 0, 9)] == [0, 0, 1, 1, 2, 2, 2, 3, 3]
    assert [draw.epoch for draw in lane(one, 2, 9)] == [0, 0, 0, 1, 1, 2, 2, 3, 3]
    back = order(7, rows=3, backward=(True,))
    assert [draw.index for draw in lane(back, 1, 6)] == [4, 3, 2, 1, 0, 6]


@hypothesis.given(st.integers(1, 12), st.integers(1, 7), st.booleans())
def test_every_lane_reads_on_and_no_example_is_drawn_twice_the_same(size, rows, backward):
    one = order(size, rows=rows, backward=(backward,))
    draws = [lane(one, number, 3 * size) for number in range(rows)]
    step = -1 if backward else 1
    for row in draws:
        assert all((b.index - a.index - step) % size == 0 for a, b in zip(row, row[1:], strict=False))
        assert row[0].epoch == 0 or size < rows
    every = collections.Counter((draw.index, draw.epoch) for row in draws for draw in row)
    assert max(every.values()) == 1
    if size % rows == 0:  # an epoch is over when every lane has read its stretch
        first = {(draw.index, draw.epoch) for row in draws for draw in row[: size // rows]}
        assert first == {(index, 0) for index in range(size)}


def test_lanes_are_shared_out_by_the_rates_and_keep_their_task():
    one = order(10, 20, 30, rows=8, rates=(1.0, 2.0, 1.0))
    tasks = [{draw.task for draw in lane(one, number, 50)} for number in range(8)]
    assert all(len(found) == 1 for found in tasks)
    assert sorted(task for found in tasks for task in found) == [0, 0, 1, 1, 1, 1, 2, 2]
    starts = {one.locate(number).index for number in range(8) if tasks[number] == {1}}
    assert starts == {0, 5, 10, 15}


def test_what_no_lane_can_read_is_refused():
    with pytest.raises(ValueError, match=r"2 rows .* leave none to 1 of 3 tasks"):
        order(5, 5, 5, rows=2)
    with pytest.raises(ValueError, match="at least one example"):
        order(5, 0, rows=2)
    with pytest.raises(ValueError, match="one each for every task"):
        ContiguousOrder(sizes=(3,), rates=(1.0, 1.0), backward=(False,), rows=2)


def pieces(size: int) -> TaskExamples:
    store = TokenStore.collect([{"targets": np.array([index, 7], np.int32)} for index in range(size)])
    return TaskExamples(name="pieces", split="train", store=store, corruption=None, seed=0)


def pipeline(*, rows: int = 4, lanes=None) -> TrainPipeline:
    converter = DecoderFeatures(lengths={"targets": 2}, start_id=9)
    stream = Stream.of([pieces(11)], [1.0], converter, seed=0, contiguous=rows)
    return TrainPipeline(stream, rows=rows, packing=False, lanes=lanes)


def numbers(batch) -> list[int]:
    return batch["decoder_target_tokens"][:, 0].tolist()


def test_rows_follow_on_those_of_the_batch_before_on_any_number_of_hosts():
    alone = pipeline()
    batches = [numbers(next(alone)) for _ in range(15)]
    assert batches[0] == [0, 2, 5, 8]
    for before, after in zip(batches, batches[1:], strict=False):
        assert after == [(index + 1) % 11 for index in before]
    halves = [pipeline(lanes=lanes) for lanes in ((0, 1), (2, 3))]
    for expected in batches[:6]:
        assert [number for half in halves for number in numbers(next(half))] == expected
    resumed = pipeline()
    resumed.restore(merge_states([half.state() for half in halves]))
    assert [numbers(next(resumed)) for _ in range(9)] == batches[6:]


@pytest.mark.parametrize("size", [3, 8, 11])
def test_an_evaluation_reads_every_example_once_each_row_on(size):
    converter = DecoderFeatures(lengths={"targets": 2}, start_id=9)
    batches = list(evaluation.eval_batches(pieces(size), converter, rows=4, contiguous=True, trace=True))
    found = np.stack([batch["position"] for batch in batches])
    assert sorted(found[found >= 0].tolist()) == list(range(size))
    for row in found.T:
        read = row[row >= 0]
        assert (row[len(read) :] == -1).all()
        np.testing.assert_array_equal(np.diff(read), 1)
    halves = [
        evaluation.eval_batches(pieces(size), converter, rows=4, contiguous=True, trace=True, lanes=range(host, 4, 2))
        for host in range(2)
    ]
    for batch, *parts in zip(batches, *halves, strict=True):
        for host, part in enumerate(parts):
            np.testing.assert_array_equal(part["position"], batch["position"][host::2])
