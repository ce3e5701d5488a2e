import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from t2t.data import packing
from t2t.data.examples import TaskExamples
from t2t.data.features import EncoderDecoderFeatures
from t2t.data.pipeline import Stream, TrainPipeline
from t2t.data.store import TokenStore

CAPACITY = (14, 9)
pairs = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 9)), max_size=60)


def array(pairs):
    return np.array(pairs, np.int64).reshape(-1, 2)


def slow_first_fit(sizes, capacity, open_rows):
    closed, rooms, rows = 0, [], []
    for size in sizes:
        fitting = [row for row, room in enumerate(rooms) if all(map(int.__le__, size, room))]
        if not fitting:
            if len(rooms) == open_rows:
                closed, rooms = closed + len(rooms), []
            fitting = [len(rooms)]
            rooms.append(list(capacity))
        rooms[fitting[0]] = [have - need for have, need in zip(rooms[fitting[0]], size, strict=True)]
        rows.append(closed + fitting[0])
    return rows


@hypothesis.given(pairs, st.sampled_from([1, 2, 5, None]))
def test_an_example_goes_to_the_first_open_row_with_room(sizes, open_rows):
    rows = packing.first_fit(array(sizes), CAPACITY, open_rows=open_rows)
    assert rows.tolist() == slow_first_fit(sizes, CAPACITY, open_rows)
    taken = [array(sizes)[rows == row].sum(0) for row in range(rows.max(initial=-1) + 1)]
    assert all((one <= CAPACITY).all() for one in taken)
    assert packing.filled(array(sizes), rows, CAPACITY) <= 1


def test_one_open_row_is_what_the_pipeline_does():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, [12, 6], (50, 2))
    names = ("inputs", "targets")
    examples = [{name: np.ones(n, np.int32) for name, n in zip(names, pair, strict=True)} for pair in sizes]
    task = TaskExamples(name="a", split="train", store=TokenStore.collect(examples), corruption=None, seed=0)
    converter = EncoderDecoderFeatures(lengths=dict(zip(names, CAPACITY, strict=True)), start_id=0)
    stream = Stream.of([task], [1.0], converter, seed=0)
    order = [stream.order.locate(position).index for position in range(50)]
    lane = TrainPipeline(stream, rows=1)
    rows = packing.first_fit(sizes[order], CAPACITY, open_rows=1)
    for row in range(rows[-1]):
        assert next(lane)["encoder_segment_ids"].max() == (rows == row).sum()


def test_open_rows_fill_what_order_leaves_open():
    """Paragraphs of 100 tokens on average in rows of 512: 95 % and more is filled where rows stay open."""
    sizes = np.minimum(np.random.default_rng(0).geometric(0.01, (4000, 1)), 512)
    numbers = [packing.first_fit(sizes, [512], open_rows=open_rows) for open_rows in (1, 8, 32, None)]
    shares = [packing.filled(sizes, rows, [512]) for rows in numbers]
    assert shares == sorted(shares)
    assert 0.8 < shares[0] < 0.86
    assert shares[2] > 0.97


def test_rows_that_are_full_take_nothing():
    rows = packing.OpenRows([4, 2], limit=2)
    assert [rows.put(size) for size in ([4, 2], [3, 2], [1, 0])] == [0, 1, 1]
    assert rows.is_full
    assert rows.put([1, 0]) is None
    assert not packing.OpenRows([4]).is_full


def test_sizes_that_cannot_be_are_refused():
    assert packing.first_fit(np.zeros((0, 1), np.int64), [4]).tolist() == []
    with pytest.raises(ValueError, match=r"takes \[5\], more than the \[4\]"):
        packing.first_fit(np.array([[2], [5]]), [4])
    assert packing.filled(np.zeros((0, 1), np.int64), np.zeros(0, np.int64), [4]) == 0
