import collections
import pickle

import numpy as np
import pytest
import seqio

from t2t import vocabulary as vocabularies
from t2t.data import corruption, corruption_base, denoisers
from t2t.data.host_tensorflow import tf
from tests.data import toy

BYTES = vocabularies.ByteVocabulary()
BOTH = ("inputs", "targets")
LENGTHS = {"inputs": 64, "targets": 20}
TEXT = np.arange(70, 140, dtype=np.int32)


def source(*rows):
    def examples(split, shuffle_files=False, seed=None):
        del split, shuffle_files, seed
        spec = {"targets": tf.TensorSpec([None], tf.int32), "number": tf.TensorSpec([], tf.int32)}
        return tf.data.Dataset.from_generator(
            lambda: ({"targets": row, "number": i} for i, row in enumerate(rows)), output_signature=spec
        )

    return seqio.FunctionDataSource(examples, ["train"])


def task(objective, *rows):
    features = toy.features(BYTES, *objective.makes)
    return seqio.Task(objective.__class__.__name__, source(*rows), output_features=features, preprocessors=[objective])


def read(task, seed, lengths=LENGTHS, **options):
    return list(task.get_dataset(lengths, "train", shuffle=False, seed=seed, **options).as_numpy_iterator())


def test_plain_seqio_gives_what_the_bound_corruption_gives():
    objective = denoisers.SpanCorruption()
    bound = objective.bind(LENGTHS, toy.features(BYTES, *BOTH))
    for i, example in enumerate(read(task(objective, TEXT, TEXT[:9], TEXT), seed=5)):
        raw = TEXT if i != 1 else TEXT[:9]
        expected = bound.example({"targets": raw}, corruption.example_rng(5, 0, i))
        for side in BOTH:
            np.testing.assert_array_equal(example[side], expected[side])
            assert example[side].dtype == np.int32
        assert example["number"] == i  # features of no concern pass through


@pytest.mark.parametrize(
    ("objective", "keys"),
    [
        (denoisers.MaskedTokens(), {"inputs", "targets", "weights", "number"}),
        (denoisers.CausalLM(), {"targets", "number"}),
        (denoisers.PrefixLM(), {"inputs", "targets", "number"}),
    ],
)
def test_every_objective_works_in_plain_seqio(objective, keys):
    example = read(task(objective, TEXT[:19]), seed=1)[0]
    assert set(example) == keys
    assert all(value.dtype == np.int32 for value in example.values())


def test_epochs_differ_and_restarts_repeat():
    reader = task(denoisers.SpanCorruption(), TEXT, TEXT)
    two_epochs = [tuple(example["targets"]) for example in read(reader, seed=3, num_epochs=2)]
    assert len(set(two_epochs)) == 4
    assert two_epochs == [tuple(example["targets"]) for example in read(reader, seed=3, num_epochs=2)]
    assert two_epochs[0] != tuple(read(reader, seed=4)[0]["targets"])


def test_without_a_seed_every_run_differs():
    reader = task(denoisers.SpanCorruption(), TEXT)
    assert tuple(read(reader, seed=None)[0]["targets"]) != tuple(read(reader, seed=None)[0]["targets"])


def test_static_masks_are_the_same_wherever_seqio_shows_an_example():
    other = np.flip(TEXT)
    reader = task(denoisers.MaskedTokens(copies=1, rate=0.5), TEXT, other)
    seen = {}
    for options in ({"num_epochs": 3}, {"num_epochs": 1}):
        for example in read(reader, seed=3, lengths=None, **options):
            seen.setdefault(example["targets"].tobytes(), set()).add(example["inputs"].tobytes())
    assert [len(inputs) for inputs in seen.values()] == [1, 1]
    assert read(reader, seed=4, lengths=None)[0]["inputs"].tobytes() not in set.union(*seen.values())


def test_seqio_shows_every_copy_about_as_often():
    reader = task(denoisers.MaskedTokens(copies=3, rate=0.5), TEXT)
    made = collections.Counter(
        example["inputs"].tobytes() for example in read(reader, seed=3, lengths=None, num_epochs=60)
    )
    assert len(made) == 3
    assert min(made.values()) >= 10


def test_copies_are_counted_from_one():
    with pytest.raises(ValueError, match="copies=0 must be positive, or None"):
        denoisers.SpanCorruption(copies=0).bind({}, toy.features(BYTES, *BOTH))


def test_what_must_know_the_whole_split_does_not_stream():
    with pytest.raises(ValueError, match="must know the tokens of the whole split"):
        read(task(denoisers.MaskedTokens(smoothing=0.5), TEXT), seed=1)
    bound = denoisers.CausalLM().bind({}, toy.features(BYTES, "targets"))
    assert not bound.corruption.learns
    assert bound.learn([TEXT]) == bound


def shards(reader, number):
    """The examples of each host of a number of hosts, as plain seqio reads them."""
    return [read(reader, seed=3, shard_info=seqio.ShardInfo(index=k, num_shards=number)) for k in range(number)]


def test_in_plain_seqio_masks_depend_on_the_number_of_hosts():
    """What a data set tells of an example is its place in it, which is another one in a part of it."""
    reader = task(denoisers.MaskedTokens(rate=0.5), *[np.roll(TEXT[:19], k) for k in range(4)])
    (whole,), parts = shards(reader, 1), shards(reader, 2)
    assert [example["number"] for part in parts for example in part] == [0, 2, 1, 3]
    bound = denoisers.MaskedTokens(rate=0.5).bind(LENGTHS, toy.features(BYTES, *BOTH))
    for part in parts:
        for place, example in enumerate(part):
            raw = np.roll(TEXT[:19], int(example["number"]))
            expected = bound.example({"targets": raw}, corruption.example_rng(3, 0, place))
            np.testing.assert_array_equal(example["weights"], expected["weights"])
    assert any((parts[k % 2][k // 2]["weights"] != whole[k]["weights"]).any() for k in range(4))


def test_in_plain_seqio_static_masks_are_the_same_on_any_number_of_hosts():
    reader = task(denoisers.MaskedTokens(copies=1, rate=0.5), *[np.roll(TEXT[:19], k) for k in range(4)])
    (whole,), parts = shards(reader, 1), shards(reader, 2)
    for k in range(4):
        np.testing.assert_array_equal(parts[k % 2][k // 2]["inputs"], whole[k]["inputs"])


def test_plain_seqio_goes_on_after_examples_that_are_skipped():
    reader = task(denoisers.SpanCorruption(), *[np.roll(TEXT, k) for k in range(4)])
    whole = read(reader, seed=3)
    rest = reader.get_dataset(LENGTHS, "train", shuffle=False, seed=3).skip(2).as_numpy_iterator()
    for example, expected in zip(rest, whole[2:], strict=True):
        np.testing.assert_array_equal(example["inputs"], expected["inputs"])


def test_two_corruptions_consume_different_seeds():
    with seqio.map_seed_manager(10):
        assert [corruption_base._seqio_seed(), corruption_base._seqio_seed()] == [10, 12]


def test_without_lengths_nothing_is_cut():
    example = read(task(denoisers.SpanCorruption(), np.tile(TEXT[:50], 4)), seed=0, lengths=None)[0]
    assert len(example["inputs"]) == 200 - 30 + 10 + 1


def test_two_evaluations_see_the_same_masks():
    bound = denoisers.MaskedTokens().bind({}, toy.features(BYTES, *BOTH))
    first, again, other = (
        bound.example({"targets": TEXT}, corruption.example_rng(0, 0, i))["weights"] for i in (8, 8, 9)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("objective", [denoisers.SpanCorruption(), denoisers.MaskedTokens(), denoisers.CausalLM()])
def test_a_batch_equals_its_examples(objective):
    bound = objective.bind({}, toy.features(BYTES, *BOTH))
    indices = np.array([3, 0, 77])
    made = bound.batch(np.tile(TEXT, (3, 1)), seed=2, epoch=4, indices=indices)
    assert tuple(made) == bound.names
    for row, index in enumerate(indices):
        example = bound.example({"targets": TEXT}, corruption.example_rng(2, 4, int(index)))
        for name in bound.names:
            np.testing.assert_array_equal(made[name][row], example[name])


def test_bound_corruptions_go_to_other_processes():
    bound = denoisers.SpanCorruption().bind(LENGTHS, toy.features(BYTES, *BOTH))
    bound.example({"targets": TEXT}, corruption.example_rng(0, 0, 0))
    there = pickle.loads(pickle.dumps(bound))
    expected = bound.example({"targets": TEXT}, corruption.example_rng(0, 0, 1))
    made = there.example({"targets": TEXT}, corruption.example_rng(0, 0, 1))
    assert all((made[side] == expected[side]).all() for side in BOTH)
    np.testing.assert_array_equal(there.sides["inputs"].word_marks.begins, bound.sides["inputs"].word_marks.begins)


def test_the_shortest_length_leaves_room():
    sides = denoisers.SpanCorruption().bind({"inputs": 9, "targets": 7}, toy.features(BYTES, *BOTH)).sides
    assert corruption_base.shortest_length(sides, reserved=2) == 5
    with pytest.raises(ValueError, match=r"lengths \[9, 7\] leave no room for text beside 7 special tokens"):
        corruption_base.shortest_length(sides, reserved=7)
    free = denoisers.SpanCorruption().bind({}, toy.features(BYTES, *BOTH)).sides
    assert corruption_base.shortest_length(free, reserved=2) is None


def test_missing_features_are_named():
    with pytest.raises(ValueError, match="makes 'inputs', which the task's output_features lack"):
        denoisers.SpanCorruption().bind(LENGTHS, toy.features(BYTES, "targets"))
    with pytest.raises(ValueError, match="needs output_features"):
        denoisers.SpanCorruption()(tf.data.Dataset.range(2))


def test_surround():
    tokens = np.array([[5, 6], [7, 8]], np.int32)
    np.testing.assert_array_equal(corruption_base.surround(tokens, 1, 2), [[1, 5, 6, 2], [1, 7, 8, 2]])
    np.testing.assert_array_equal(corruption_base.surround(tokens, None, None), tokens)
