"""Lanes with several open rows, in the training pipeline."""

import collections
import dataclasses

import numpy as np
import pytest

from t2t.data import packing, windows
from t2t.data.examples import TaskExamples
from t2t.data.features import DecoderFeatures
from t2t.data.pipeline import Stream, TrainPipeline, merge_states
from t2t.data.store import TokenStore
from tests.data.test_pipeline import CONVERTER, rows_of, shared, stream


def pipeline(*, rows=4, lanes=None, open_rows=3, mixed=True):
    return TrainPipeline(stream(mixed=mixed), rows=rows, open_rows=open_rows, lanes=lanes, trace=True)


def step(pipelines):
    local = [next(one) for one in pipelines]
    return rows_of({name: np.concatenate([part[name] for part in local]) for name in local[0]})


@pytest.mark.parametrize(("lane", "first"), [(0, 1), (1, 2), (2, 3), (3, 1)])
def test_rows_are_those_of_first_fit(lane, first):
    """The first window of a lane is of one to three rows, the others of three."""
    one = pipeline()
    examples, _ = one.stream.read(range(lane, 400, 4))
    sizes = np.array([CONVERTER.sizes(example) for example in examples])
    begin = packing.first_fit(sizes, CONVERTER.capacity, open_rows=first)
    number = int((begin < first).sum())
    rows = np.append(begin[:number], packing.first_fit(sizes[number:], CONVERTER.capacity, open_rows=3) + first)
    for row in range(12):
        batch = {name: values[lane] for name, values in next(one).items()}
        chosen = np.flatnonzero(rows == row)
        assert batch["position"] == lane + 4 * chosen[0]
        for name, side in (("inputs", "encoder_input_tokens"), ("targets", "decoder_target_tokens")):
            tokens = np.concatenate([examples[place][name] for place in chosen])
            np.testing.assert_array_equal(batch[side][: len(tokens)], tokens)


def test_every_example_is_read_once_an_epoch():
    one = pipeline(rows=1, mixed=False)
    read = collections.Counter()
    while one.state()["positions"][0] < 3 * 23 or one.state()["taken"][0]:
        batch = next(one)
        ids, tokens = batch["encoder_segment_ids"][0], batch["encoder_input_tokens"][0]
        read.update(int(tokens[ids == k][0]) for k in range(1, ids.max() + 1))
    assert sum(read.values()) == one.state()["positions"][0]
    assert set(read.values()) <= {3, 4}


@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 1), (1, 4), (4, 2)])
def test_any_number_of_hosts_and_a_restart_change_nothing(before, after):
    straight = [pipeline()]
    expected = [step(straight) for _ in range(14)]
    first = [pipeline(lanes=lanes) for lanes in shared(4, before)]
    assert [step(first) for _ in range(6)] == expected[:6]
    state = merge_states([one.state() for one in first])
    assert any(state["taken"])
    second = [pipeline(lanes=lanes) for lanes in shared(4, after)]
    for one in second:
        one.restore(state)
    assert [step(second) for _ in range(8)] == expected[6:]
    assert merge_states([one.state() for one in second]) == straight[0].state()


def test_rows_are_fuller_than_in_order():
    def filled(open_rows):
        one = pipeline(rows=2, open_rows=open_rows, mixed=False)
        sides = ("encoder_segment_ids", "decoder_segment_ids")
        return np.mean([(batch[side] > 0).mean() for batch in (next(one) for _ in range(40)) for side in sides])

    assert filled(8) > filled(1) + 0.02


def test_how_many_examples_are_read_at_a_time_changes_nothing(monkeypatch):
    expected = pipeline()
    monkeypatch.setattr(windows, "READ_TOGETHER", 2)
    found = pipeline()
    assert [step([found]) for _ in range(8)] == [step([expected]) for _ in range(8)]


def test_a_state_of_another_packing_is_refused():
    states = {open_rows: pipeline(open_rows=open_rows).state() for open_rows in (1, 4, 8)}
    for open_rows, other in ((1, 8), (8, 1), (8, 4)):
        with pytest.raises(ValueError, match="open_rows was"):
            pipeline(open_rows=open_rows).restore(states[other])
    with pytest.raises(ValueError, match="open_rows=0 must be 1, or more"):
        pipeline(open_rows=0)
    with pytest.raises(ValueError, match="more with packing, which is False"):
        TrainPipeline(stream(), rows=4, open_rows=4, packing=False)


def test_empty_examples_are_left_out_and_never_make_it_hang(monkeypatch):
    monkeypatch.setattr(windows, "MAX_EMPTY", 50)
    converter = DecoderFeatures(lengths={"targets": 4}, start_id=0)

    def one(examples):
        store = TokenStore.collect({"targets": np.array(x, np.int32)} for x in examples)
        tasks = [TaskExamples(name="a", split="train", store=store, corruption=None, seed=0)]
        return TrainPipeline(Stream.of(tasks, [1.0], converter, seed=0), rows=1, open_rows=3)

    assert next(one([[], [7, 7], []]))["decoder_segment_ids"].tolist() == [[1, 1, 2, 2]]
    with pytest.raises(ValueError, match="examples in succession are empty"):
        next(one([[], []]))


def test_what_does_not_fit_is_cut_and_counted():
    short = dataclasses.replace(CONVERTER, lengths={"inputs": 4, "targets": 9})
    one = TrainPipeline(stream(mixed=False, converter=short), rows=1, open_rows=2)
    uncut, _ = stream(mixed=False).read(range(windows.READ_TOGETHER))
    next(one)
    assert one.num_trimmed == sum(len(x["inputs"]) - 4 for x in uncut if len(x["inputs"]) > 4) > 5
