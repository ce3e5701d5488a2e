import pytest

seqio = pytest.importorskip("seqio")

from t2t.data.host_tensorflow import tf  # noqa: E402
from t2t.data.one_shard import OneShardSource, reads_as  # noqa: E402
from t2t.data.registry import TextSource  # noqa: E402


class Numbers(OneShardSource):
    """0 to 99."""

    def dataset(self, split):
        return tf.data.Dataset.from_tensor_slices({"n": list(range(100))})

    def num_input_examples(self, split):
        return 100


class Others(Numbers):
    """The same backwards."""

    def dataset(self, split):
        return tf.data.Dataset.from_tensor_slices({"n": list(range(100))[::-1]})


def read(source, **options):
    return [row["n"] for row in source.get_dataset("train", **options).as_numpy_iterator()]


def test_examples_come_in_order_or_shuffled():
    source = Numbers(splits=("train",))
    assert read(source, shuffle=False) == list(range(100))
    first, again, other = (read(source, shuffle=True, seed=seed) for seed in (1, 1, 2))
    assert first == again != other and sorted(first) == list(range(100))
    assert source.list_shards("train") == ["train"] and not source.supports_arbitrary_sharding


def test_other_splits_and_shards_are_refused():
    source = Numbers(splits=("train",))
    with pytest.raises(ValueError, match="split='test': this source has train"):
        source.get_dataset("test")
    with pytest.raises(ValueError, match="read as one shard; use tf.data.Dataset.shard"):
        source.get_dataset("train", shard_info=seqio.ShardInfo(index=0, num_shards=2))
    assert len(list(source.get_dataset("train", shard_info=seqio.ShardInfo(index=0, num_shards=1)))) == 100


def test_a_subclass_that_reads_otherwise_is_no_such_source():
    assert reads_as(Numbers(splits=("train",)), Numbers)
    assert not reads_as(Others(splits=("train",)), Numbers)
    assert not reads_as(Numbers(splits=("train",)), TextSource)
