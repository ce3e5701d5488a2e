import dataclasses
import logging

import numpy as np
import pytest

from t2t.data import pipeline
from t2t.data.examples import TaskExamples
from t2t.data.features import DecoderFeatures, EncoderDecoderFeatures
from t2t.data.pipeline import Stream, TrainPipeline, merge_states
from t2t.data.store import TokenStore


@dataclasses.dataclass(frozen=True)
class Shuffle:
    """Stands for a bound corruption: a random rotation, and targets of random length."""

    def example(self, features, rng):
        tokens = features["targets"]
        return {"inputs": np.roll(tokens, rng.integers(len(tokens))), "targets": tokens[: rng.integers(1, 4)]}


def task(name, *, size, first, seed=1, corruption=True):
    """A task whose i-th example has 3 to 6 tokens; the tokens tell task and example: first + i."""
    tokens = [np.full(3 + i % 4, first + i, np.int32) for i in range(size)]
    columns = [{"targets": x} | ({} if corruption else {"inputs": x}) for x in tokens]
    store = TokenStore.collect(columns)
    return TaskExamples(name=name, split="train", store=store, corruption=Shuffle() if corruption else None, seed=seed)


CONVERTER = EncoderDecoderFeatures(lengths={"inputs": 14, "targets": 9}, start_id=0)


def stream(*, mixed=True, seed=3, converter=CONVERTER):
    tasks = [task("a", size=23, first=100)] + ([task("b", size=11, first=200, seed=2)] if mixed else [])
    return Stream.of(tasks, [3.0, 1.0][: len(tasks)], converter, seed=seed)


def same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def rows_of(batch):
    """The rows of a batch as a set: hosts hold them in another order."""
    return sorted(
        tuple(np.concatenate([np.atleast_1d(batch[name][r]) for name in sorted(batch)]).tolist())
        for r in range(len(batch["lane"]))
    )


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("hosts", [2, 4])
def test_any_number_of_hosts_makes_the_same_global_batches(hosts, packing, mixed):
    whole = TrainPipeline(stream(mixed=mixed), rows=8, packing=packing, trace=True)
    parts = [
        TrainPipeline(stream(mixed=mixed), rows=8, packing=packing, host=(h, hosts), trace=True) for h in range(hosts)
    ]
    for _ in range(9):
        batch = next(whole)
        local = [next(part) for part in parts]
        assert [len(part["lane"]) for part in local] == [8 // hosts] * hosts
        union = {name: np.concatenate([part[name] for part in local]) for name in batch}
        assert rows_of(union) == rows_of(batch)
        assert sorted(union["lane"]) == list(range(8))
    assert merge_states([part.state() for part in parts]) == whole.state()


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 1), (1, 4), (4, 2)])
def test_resuming_equals_going_on_also_on_another_number_of_hosts(before, after, packing, mixed):
    def hosts(number):
        return [
            TrainPipeline(stream(mixed=mixed), rows=4, packing=packing, host=(h, number), trace=True)
            for h in range(number)
        ]

    def step(pipelines):
        local = [next(p) for p in pipelines]
        return rows_of({name: np.concatenate([part[name] for part in local]) for name in local[0]})

    straight = hosts(1)
    expected = [step(straight) for _ in range(12)]
    first = hosts(before)
    assert [step(first) for _ in range(5)] == expected[:5]
    state = merge_states([p.state() for p in first])
    second = hosts(after)
    for p in second:
        p.restore(state)
    assert [step(second) for _ in range(7)] == expected[5:]


def test_every_example_is_read_once_an_epoch_also_packed():
    one = TrainPipeline(stream(mixed=False), rows=1)
    seen = []
    while len(seen) < 3 * 23:
        batch = next(one)
        ids, tokens = batch["encoder_segment_ids"][0], batch["encoder_input_tokens"][0]
        seen += [int(tokens[ids == k][0]) - 100 for k in range(1, ids.max() + 1)]
    for epoch in range(3):
        assert sorted(seen[23 * epoch : 23 * (epoch + 1)]) == list(range(23))


def test_rows_are_closed_only_by_an_example_that_does_not_fit():
    packed = TrainPipeline(stream(), rows=4, trace=True)
    for _ in range(20):
        batch = next(packed)
        for r in range(4):
            count = int(max(batch["encoder_segment_ids"][r].max(), batch["decoder_segment_ids"][r].max()))
            positions = batch["position"][r] + 4 * np.arange(count + 1)
            examples = [packed.stream.read(int(p))[0] for p in positions]
            for name, side in [("inputs", "encoder"), ("targets", "decoder")]:
                used = int((batch[f"{side}_segment_ids"][r] > 0).sum())
                assert used == sum(len(x[name]) for x in examples[:-1])
            limits = CONVERTER.lengths
            assert any(sum(len(x[name]) for x in examples) > limits[name] for name in limits)


def test_unpacked_rows_hold_one_example():
    batch = next(TrainPipeline(stream(), rows=4, packing=False))
    assert batch["encoder_segment_ids"].max() == 1
    assert (batch["encoder_segment_ids"].max(1) == 1).all()


def test_two_epochs_are_corrupted_differently_and_a_restart_alike():
    one = stream(mixed=False)
    first = {one.order.locate(p).index: one.read(p)[0]["inputs"].tolist() for p in range(23)}
    second = {one.order.locate(p).index: one.read(p)[0]["targets"].tolist() for p in range(23, 46)}
    again = {one.order.locate(p).index: one.read(p)[0]["targets"].tolist() for p in range(23)}
    assert sum(len(second[i]) != len(again[i]) for i in range(23)) > 5
    restarted = stream(mixed=False)
    assert first == {restarted.order.locate(p).index: restarted.read(p)[0]["inputs"].tolist() for p in range(23)}


def test_another_seed_gives_another_order():
    batches = [next(TrainPipeline(stream(seed=seed), rows=4))["encoder_input_tokens"] for seed in (3, 3, 4)]
    np.testing.assert_array_equal(batches[0], batches[1])
    assert (batches[0] != batches[2]).any()


def test_overlong_examples_are_cut_counted_and_reported_once(caplog):
    short = dataclasses.replace(CONVERTER, lengths={"inputs": 4, "targets": 9})
    one = TrainPipeline(stream(mixed=False, converter=short), rows=23, packing=False)
    with caplog.at_level(logging.WARNING):
        next(one)
        next(one)
    # Of 23 examples with 3, 4, 5, 6, 3, ... tokens, 6 have one too many and 5 two, in each of two epochs.
    assert one.num_trimmed == 2 * (6 + 2 * 5)
    assert caplog.text.count("longer than lengths") == 1


def test_state_of_other_data_is_refused():
    state = TrainPipeline(stream(mixed=False), rows=4).state()
    with pytest.raises(ValueError, match="rows was 4 and is 8"):
        TrainPipeline(stream(mixed=False), rows=8).restore(state)
    with pytest.raises(ValueError, match="data changed since the checkpoint: examples"):
        TrainPipeline(stream(), rows=4).restore(state)
    with pytest.raises(ValueError, match="seed was"):
        TrainPipeline(stream(mixed=False, seed=9), rows=4).restore(state)
    half = TrainPipeline(stream(mixed=False), rows=4, host=(0, 2)).state()
    with pytest.raises(ValueError, match=r"lanes \[1, 3\]: merge"):
        TrainPipeline(stream(mixed=False), rows=4).restore(half)


def test_hosts_share_rows_equally():
    with pytest.raises(ValueError, match="6 rows cannot be shared by 4 hosts"):
        TrainPipeline(stream(), rows=6, host=(0, 4))
    with pytest.raises(ValueError, match="index must lie"):
        TrainPipeline(stream(), rows=6, host=(2, 2))


def test_empty_examples_are_left_out_and_never_make_it_hang(monkeypatch):
    monkeypatch.setattr(pipeline, "MAX_EMPTY", 50)
    converter = DecoderFeatures(lengths={"targets": 4}, start_id=0)

    def one(examples):
        store = TokenStore.collect({"targets": np.array(x, np.int32)} for x in examples)
        tasks = [TaskExamples(name="a", split="train", store=store, corruption=None, seed=0)]
        return TrainPipeline(Stream.of(tasks, [1.0], converter, seed=0), rows=1)

    some = one([[], [7, 7], []])
    assert next(some)["decoder_segment_ids"].tolist() == [[1, 1, 2, 2]]
    with pytest.raises(ValueError, match="50 examples in succession are empty"):
        next(one([[], []]))
