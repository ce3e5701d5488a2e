"""Sources that are read as one shard, in order."""

import abc
from typing import Any

from t2t.data.host_tensorflow import tf  # isort: skip - TensorFlow's settings come before seqio
import seqio

SHUFFLED = 10_000
"""Examples among which plain seqio shuffles, at most."""


class OneShardSource(seqio.DataSource):
    """A source whose examples `dataset` gives in order; the rest of what seqio asks of a source is here."""

    @property
    def supports_arbitrary_sharding(self) -> bool:
        """No: seqio shards the examples after reading."""
        return False

    def list_shards(self, split: str) -> list[str]:
        """One shard a split."""
        return [split]

    @abc.abstractmethod
    def dataset(self, split: str) -> tf.data.Dataset:
        """The examples of a split, in order."""

    def get_dataset(
        self,
        split: str = "train",
        shuffle: bool = True,
        seed: int | None = None,
        shard_info: seqio.ShardInfo | None = None,
        **_: Any,
    ) -> tf.data.Dataset:
        """The examples of a split, as seqio asks for them.

        Raises:
            ValueError: an unknown split, or more than one shard.
        """
        if split not in self.splits:
            raise ValueError(f"split={split!r}: this source has {', '.join(self.splits)}")
        if shard_info is not None and shard_info.num_shards > 1:
            raise ValueError("this source is read as one shard; use tf.data.Dataset.shard")
        dataset = self.dataset(split)
        return dataset.shuffle(SHUFFLED, seed=seed) if shuffle else dataset


def reads_as(source: seqio.DataSource, kind: type[OneShardSource]) -> bool:
    """Whether a source gives what sources of this kind give: it is one, and no subclass that reads otherwise."""
    own = type(source)
    return isinstance(source, kind) and own.dataset is kind.dataset and own.get_dataset is kind.get_dataset
