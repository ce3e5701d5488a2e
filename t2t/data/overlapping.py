"""Windows over a text that overlap: each begins where the part ends that a model remembers of the one before."""

import dataclasses

from t2t.data.corruption_base import Features, LatePreprocessor, Lengths
from t2t.data.host_tensorflow import tf
from t2t.data.permutation_lm import PermutationLM

_BATCH = 512  # documents per concatenation


@dataclasses.dataclass(frozen=True, kw_only=True)
class OverlappingChunk(LatePreprocessor):
    """Joins tokenised documents and cuts windows of the raw length, each `corruption.step` tokens behind the last.

    Only the feature of raw tokens is left. What is left at the end fills no window and is left out, so that every
    window follows on the next one backwards too; a text shorter than one window stays as it is.

    Reference: zihangdai/xlnet, data_utils.py (`reuse_len`).
    """

    corruption: PermutationLM
    """The objective that follows, with `reuse`."""

    def __post_init__(self):
        """Refuse an objective without windows."""
        if self.corruption.reuse is None:
            raise ValueError(f"{self.corruption} has no reuse: its examples do not overlap, cut them with Chunk")

    def _apply(self, dataset: tf.data.Dataset, sequence_length: Lengths, output_features: Features) -> tf.data.Dataset:
        bound = self.corruption.bind(sequence_length, output_features)
        feature, step = self.corruption.feature, self.corruption.step(bound.sides)
        documents = dataset.map(lambda features: tf.cast(features[feature], tf.int32))
        documents = documents.filter(lambda tokens: tf.size(tokens) > 0)
        pieces = _windows(documents, bound.raw_length, step)
        return pieces.map(lambda tokens: {feature: tf.ensure_shape(tokens, [None])})


def _windows(documents: tf.data.Dataset, length: int, step: int) -> tf.data.Dataset:
    groups = documents.ragged_batch(_BATCH).map(lambda rows: (rows.values, False))
    end = tf.data.Dataset.from_tensors((tf.zeros([0], tf.int32), True))

    def advance(
        state: tuple[tf.Tensor, tf.Tensor], group: tuple[tf.Tensor, tf.Tensor]
    ) -> tuple[tuple[tf.Tensor, tf.Tensor], tf.RaggedTensor]:
        rest, is_first = state  # tokens from where the next window begins, and whether it is the first
        tokens = tf.concat([rest, group[0]], 0)
        number = tf.maximum(tf.size(tokens) - length + step, 0) // step
        whole = tf.reshape(tf.signal.frame(tokens, length, step), [-1])
        rest, is_first = tokens[number * step :], is_first & (number == 0)
        is_all = is_first & group[1] & (tf.size(rest) > 0)
        short = rest[: tf.where(is_all, tf.size(rest), 0)]
        lengths = tf.concat([tf.fill([number], length), tf.fill([tf.cast(is_all, tf.int32)], tf.size(short))], 0)
        return (rest, is_first), tf.RaggedTensor.from_row_lengths(tf.concat([whole, short], 0), lengths)

    return groups.concatenate(end).scan((tf.zeros([0], tf.int32), tf.constant(True)), advance).unbatch()
