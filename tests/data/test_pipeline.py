import dataclasses
import logging

import numpy as np
import pytest

from t2t.data import pipeline, registry, shards
from t2t.data.corruption_base import BoundCorruption, Corruption
from t2t.data.examples import TaskExamples
from t2t.data.features import DecoderFeatures, EncoderDecoderFeatures, EncoderFeatures
from t2t.data.mapped_store import MappedStore
from t2t.data.pipeline import Stream, TrainPipeline, merge_states
from t2t.data.store import TokenStore
from t2t.vocabulary import ByteVocabulary


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shorten(Corruption):
    """Inputs of random length, and targets of one to three tokens."""

    makes = ("inputs", "targets")
    keeps_lengths_equal = False

    def raw_length(self, sides):
        return None

    def num_uniforms(self, length, sides):
        return 2

    def corrupt(self, tokens, u, sides):
        return {"inputs": tokens[: 1 + int(u[0] * len(tokens))], "targets": tokens[: 1 + int(u[1] * 3)]}


BOUND = BoundCorruption(corruption=Shorten(), sides={}, raw_length=None)


def task(name, *, size, first, seed=1, corruption=True):
    """A task whose i-th example has 3 to 6 tokens; the tokens tell task and example: first + i."""
    tokens = [np.full(3 + i % 4, first + i, np.int32) for i in range(size)]
    columns = [{"targets": x} | ({} if corruption else {"inputs": x}) for x in tokens]
    store = TokenStore.collect(columns)
    return TaskExamples(name=name, split="train", store=store, corruption=BOUND if corruption else None, seed=seed)


CONVERTER = EncoderDecoderFeatures(lengths={"inputs": 14, "targets": 9}, start_id=0)


def stream(*, mixed=True, seed=3, converter=CONVERTER):
    tasks = [task("a", size=23, first=100)] + ([task("b", size=11, first=200, seed=2)] if mixed else [])
    return Stream.of(tasks, [3.0, 1.0][: len(tasks)], converter, seed=seed)


def same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def rows_of(batch):
    """The rows of a batch, each as one tuple."""
    return [
        tuple(np.concatenate([np.atleast_1d(batch[name][r]) for name in sorted(batch)]).tolist())
        for r in range(len(batch["lane"]))
    ]


def shared(rows, hosts):
    """The rows of each of so many hosts, in equal runs."""
    return [range(host * rows // hosts, (host + 1) * rows // hosts) for host in range(hosts)]


def step(hosts):
    """The rows of the next batch of all hosts."""
    local = [next(host) for host in hosts]
    return rows_of({name: np.concatenate([part[name] for part in local]) for name in local[0]})


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("hosts", [2, 4])
def test_any_number_of_hosts_makes_the_same_global_batches(hosts, packing, mixed):
    whole = TrainPipeline(stream(mixed=mixed), rows=8, packing=packing, trace=True)
    parts = [
        TrainPipeline(stream(mixed=mixed), rows=8, packing=packing, lanes=lanes, trace=True)
        for lanes in shared(8, hosts)
    ]
    for _ in range(9):
        batch = next(whole)
        local = [next(part) for part in parts]
        assert [len(part["lane"]) for part in local] == [8 // hosts] * hosts
        union = {name: np.concatenate([part[name] for part in local]) for name in batch}
        for name, rows in batch.items():
            np.testing.assert_array_equal(union[name], rows, err_msg=name)
        assert list(union["lane"]) == list(range(8))
    assert merge_states([part.state() for part in parts]) == whole.state()


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 1), (1, 4), (4, 2)])
def test_resuming_equals_going_on_also_on_another_number_of_hosts(before, after, packing, mixed):
    def hosts(number):
        return [
            TrainPipeline(stream(mixed=mixed), rows=4, packing=packing, lanes=lanes, trace=True)
            for lanes in shared(4, number)
        ]

    straight = hosts(1)
    expected = [step(straight) for _ in range(12)]
    first = hosts(before)
    assert [step(first) for _ in range(5)] == expected[:5]
    state = merge_states([p.state() for p in first])
    second = hosts(after)
    for p in second:
        p.restore(state)
    assert [step(second) for _ in range(7)] == expected[5:]


def on_disk(task, directory, *, size):
    """The task with its tokens in shards of so many examples."""
    rows = [task.store[i] for i in range(len(task))]
    starts = range(0, len(rows), size)
    parts = [shards.write(directory, f"{task.name}{i}", TokenStore.collect(rows[i : i + size])) for i in starts]
    return dataclasses.replace(task, store=MappedStore(directory=directory, shards=tuple(parts)))


@pytest.mark.parametrize("size", [4, 50])
def test_tokens_on_disk_make_the_batches_of_those_in_memory(tmp_path, size):
    """In few shards and in many, on two hosts, and after an interruption on one."""
    in_memory = [TrainPipeline(stream(), rows=4, trace=True)]
    expected = [step(in_memory) for _ in range(8)]
    cached = dataclasses.replace(stream(), tasks=tuple(on_disk(one, tmp_path, size=size) for one in stream().tasks))
    hosts = [TrainPipeline(cached, rows=4, lanes=lanes, trace=True) for lanes in shared(4, 2)]
    assert [step(hosts) for _ in range(4)] == expected[:4]
    alone = TrainPipeline(cached, rows=4, trace=True)
    alone.restore(merge_states([host.state() for host in hosts]))
    assert alone.state()["checksums"] == in_memory[0].state()["checksums"]
    assert [step([alone]) for _ in range(4)] == expected[4:]


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
            examples = [packed.stream.read([int(p)])[0][0] for p in positions]
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

    def read(one, epoch):
        positions = range(23 * epoch, 23 * (epoch + 1))
        examples, _ = one.read(positions)
        return {one.order.locate(p).index: x["inputs"].tolist() for p, x in zip(positions, examples, strict=True)}

    first, second = read(stream(mixed=False), 0), read(stream(mixed=False), 1)
    assert sum(first[i] != second[i] for i in range(23)) > 5
    assert first == read(stream(mixed=False), 0)


def masks_by_example(seed, *, epochs, size):
    """What is masked of each example in each epoch of the pipeline: {(epoch, index): (inputs, targets, weights)}."""
    converter = EncoderFeatures(lengths={"inputs": 18, "targets": 18}, pad_id=0)
    stream = pipeline.load_stream("pipeline_mlm", vocabulary=ByteVocabulary(), converter=converter, seed=seed)
    assert len(stream.tasks[0]) == size
    batches = TrainPipeline(stream, rows=4, packing=False, trace=True)
    found = {}
    while len(found) < epochs * size:
        batch = next(batches)
        for row, position in enumerate(batch["position"]):
            draw = stream.order.locate(int(position))
            if draw.epoch < epochs:
                names = ("encoder_input_tokens", "encoder_target_tokens", "encoder_loss_weights")
                found[draw.epoch, draw.index] = [batch[name][row].tolist() for name in names]
    return found


def test_masks_are_drawn_anew_each_epoch_and_alike_in_each_run():
    rows = [{"text": "".join(chr(97 + (i * k) % 26) for k in range(17))} for i in range(1, 13)]
    registry.add_objectives("pipeline", registry.TextSource(lambda split: rows, splits=("train",)))
    one, again, other = (masks_by_example(seed, epochs=2, size=12) for seed in (5, 5, 6))
    assert one == again
    for (epoch, index), (_, targets, _) in one.items():
        assert targets == one[1 - epoch, index][1] == other[epoch, index][1]
    for different in ({(1 - epoch, index): made for (epoch, index), made in one.items()}, other):
        assert sum(one[place][2] != different[place][2] for place in one) > 20  # of 24, each alike with a chance of 1 %


@pytest.mark.parametrize("together", [1, 7, 300])
def test_how_many_examples_are_read_at_a_time_changes_nothing(together, monkeypatch):
    expected = TrainPipeline(stream(), rows=4, trace=True)
    monkeypatch.setattr(pipeline, "READ_TOGETHER", together)
    found = TrainPipeline(stream(), rows=4, trace=True)
    for _ in range(6):
        same(next(found), next(expected))
    assert found.state() == expected.state()


def test_another_seed_gives_another_order():
    batches = [next(TrainPipeline(stream(seed=seed), rows=4))["encoder_input_tokens"] for seed in (3, 3, 4)]
    np.testing.assert_array_equal(batches[0], batches[1])
    assert (batches[0] != batches[2]).any()


def test_overlong_examples_are_cut_counted_and_reported_once(caplog, monkeypatch):
    short = dataclasses.replace(CONVERTER, lengths={"inputs": 4, "targets": 9})
    monkeypatch.setattr(pipeline, "READ_TOGETHER", 1)  # else more are read than are used
    one = TrainPipeline(stream(mixed=False, converter=short), rows=23, packing=False)
    uncut, _ = stream(mixed=False).read(range(2 * 23))
    with caplog.at_level(logging.WARNING):
        next(one)
        next(one)
    assert one.num_trimmed == sum(len(x["inputs"]) - 4 for x in uncut if len(x["inputs"]) > 4) > 5
    assert caplog.text.count("longer than lengths") == 1


def test_state_of_other_data_is_refused():
    state = TrainPipeline(stream(mixed=False), rows=4).state()
    with pytest.raises(ValueError, match="rows was 4 and is 8"):
        TrainPipeline(stream(mixed=False), rows=8).restore(state)
    with pytest.raises(ValueError, match="data changed since the checkpoint: examples"):
        TrainPipeline(stream(), rows=4).restore(state)
    other = stream(mixed=False)
    store = other.tasks[0].store
    columns = dict(store.columns)
    values = columns["targets"].values.copy()
    values[-1] += 1  # one token of as many
    columns["targets"] = dataclasses.replace(columns["targets"], values=values)
    edited = dataclasses.replace(other.tasks[0], store=dataclasses.replace(store, columns=columns))
    with pytest.raises(ValueError, match="data changed since the checkpoint: checksums"):
        TrainPipeline(dataclasses.replace(other, tasks=(edited,)), rows=4).restore(state)
    with pytest.raises(ValueError, match="seed was"):
        TrainPipeline(stream(mixed=False, seed=9), rows=4).restore(state)
    half = TrainPipeline(stream(mixed=False), rows=4, lanes=(0, 1)).state()
    with pytest.raises(ValueError, match=r"lanes \[2, 3\]: merge"):
        TrainPipeline(stream(mixed=False), rows=4).restore(half)


def test_a_host_may_make_any_rows():
    """As where its devices are a square of a torus whose rows lie along the lines."""
    whole, part = (TrainPipeline(stream(), rows=8, lanes=lanes, trace=True) for lanes in (None, (0, 1, 4, 5)))
    for _ in range(3):
        batch, mine = next(whole), next(part)
        for name, rows in batch.items():
            np.testing.assert_array_equal(mine[name], rows[[0, 1, 4, 5]], err_msg=name)


@pytest.mark.parametrize("lanes", [(), (0, 6), (-1,)])
def test_rows_that_no_batch_has_are_refused(lanes):
    with pytest.raises(ValueError, match="one or more of the 6 rows"):
        TrainPipeline(stream(), rows=6, lanes=lanes)


def test_empty_examples_are_left_out_and_never_make_it_hang(monkeypatch):
    monkeypatch.setattr(pipeline, "MAX_EMPTY", 50)
    converter = DecoderFeatures(lengths={"targets": 4}, start_id=0)

    def one(examples):
        store = TokenStore.collect({"targets": np.array(x, np.int32)} for x in examples)
        tasks = [TaskExamples(name="a", split="train", store=store, corruption=None, seed=0)]
        return TrainPipeline(Stream.of(tasks, [1.0], converter, seed=0), rows=1)

    some = one([[], [7, 7], []])
    assert next(some)["decoder_segment_ids"].tolist() == [[1, 1, 2, 2]]
    with pytest.raises(ValueError, match="examples in succession are empty"):
        next(one([[], []]))
