"""Preprocessors of seqio tasks: deterministic ones that read, tokenise and chunk, then at most one corruption.

    seqio.Task(name, source, output_features=..., preprocessors=[
        preprocessors.tokenize,                                  # {"targets": text} -> {"targets": ids}
        preprocessors.Chunk(corruption=SpanCorruption()),        # documents -> pieces of the raw length it needs
        SpanCorruption(),                                        # {"targets": ids} -> {"inputs": ids, "targets": ids}
    ])

Supervised tasks end with `seqio.preprocessors.append_eos_after_trim` instead.
"""

import dataclasses
from typing import Any

import numpy as np

from t2t.data.host_tensorflow import tf  # isort: skip - TensorFlow's settings come before seqio
import seqio

from t2t.data import vocabularies
from t2t.data.corruption_base import BoundCorruption, Corruption, Features, LatePreprocessor, Lengths, Side
from t2t.data.denoisers import CausalLM, MaskedTokens, PrefixLM, SpanCorruption

__all__ = [
    "BoundCorruption",
    "CausalLM",
    "Chunk",
    "Corruption",
    "MaskedTokens",
    "PrefixLM",
    "Side",
    "SpanCorruption",
    "TextToText",
    "tokenize",
]

_BATCH = 512  # examples per call of a tokeniser, documents per concatenation


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextToText:
    """Makes {"inputs": prefix + text, "targets": text} of two string fields; other fields are dropped.

    Reference: the task prefixes of arXiv:1910.10683, appendix D.
    """

    prefix: str = ""
    """What tells the model the task, its space included: "summarize: "."""
    inputs: str = "inputs"
    """Field of the text."""
    targets: str = "targets"
    """Field of the answer."""

    def __call__(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """As a seqio preprocessor."""

        def apply(features: dict[str, Any]) -> dict[str, Any]:
            inputs = tf.strings.join([self.prefix, features[self.inputs]])
            return {"inputs": inputs, "targets": features[self.targets]}

        return dataset.map(apply, num_parallel_calls=tf.data.AUTOTUNE)


def tokenize(dataset: tf.data.Dataset, output_features: Features, copy_pretokenized: bool = True) -> tf.data.Dataset:
    """Ids instead of strings for every output feature, many examples at a time by the vocabulary's own threads.

    Args:
        dataset: examples; features that are no output features, or no strings, pass through.
        output_features: the features to tokenise, with their vocabularies.
        copy_pretokenized: keep the string as NAME_pretokenized, as seqio does for metrics.
    """
    spec = dataset.element_spec
    names = [name for name in output_features if name in spec and spec[name].dtype == tf.string]
    if wrong := [name for name in names if spec[name].shape.rank != 0]:
        raise ValueError(f"features {wrong} are lists of strings; tokenize takes one string each")

    def apply(features: dict[str, Any]) -> dict[str, Any]:
        out = dict(features)
        for name in names:
            out[name] = _encode(features[name], output_features[name].vocabulary)
            if copy_pretokenized:
                out[f"{name}_pretokenized"] = features[name]
        return out

    dense = {name: (1 if name in names else s.shape.rank) for name, s in spec.items()}

    def reshape(features: dict[str, Any]) -> dict[str, Any]:
        # Slices of ragged tensors carry a ragged type without ragged dimensions, which seqio does not take.
        return {k: tf.ensure_shape(v, [None]) if dense.get(k) == 1 else v for k, v in features.items()}

    return dataset.ragged_batch(_BATCH).map(apply).unbatch().map(reshape)


def _encode(texts: tf.Tensor, vocabulary: seqio.Vocabulary) -> tf.RaggedTensor:
    def run(texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = vocabularies.encode_batch(vocabulary, list(texts))
        lengths = np.array([len(row) for row in rows], np.int64)
        return np.array([token for row in rows for token in row], np.int32), lengths

    values, lengths = tf.numpy_function(run, [texts], [tf.int32, tf.int64])
    # Unchecked: checks of what is right by construction are most of the time that making a small task takes.
    values, lengths = tf.ensure_shape(values, [None]), tf.ensure_shape(lengths, [None])
    return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chunk(LatePreprocessor):
    """Cuts tokenised documents into pieces of exactly the raw length a corruption needs for the run's lengths.

    Only the feature of raw tokens is left. The last piece (of the corpus, or of each document) may be shorter; without
    lengths, documents stay whole. Special tokens inside a piece are those of `end_documents` only: bos and eos are
    added by the corruption, after cutting.

    Differs: T5 concatenates 128 documents at a time, so that each group ends with a shorter piece.
    """

    corruption: Corruption
    """The objective that follows."""
    across_documents: bool = True
    """Concatenate documents before cutting; else each document is cut by itself."""
    end_documents: bool = False
    """Put EOS after each document."""

    def _apply(self, dataset: tf.data.Dataset, sequence_length: Lengths, output_features: Features) -> tf.data.Dataset:
        feature = self.corruption.feature
        length = self.corruption.bind(sequence_length, output_features).raw_length
        eos = output_features[feature].vocabulary.eos_id if self.end_documents else None
        if self.end_documents and eos is None:
            raise ValueError("end_documents=True needs a vocabulary with EOS")
        documents = dataset.map(lambda features: tf.cast(features[feature], tf.int32))
        documents = documents.filter(lambda tokens: tf.size(tokens) > 0)
        if eos is not None:
            documents = documents.map(lambda tokens: tf.concat([tokens, [eos]], 0))
        if length is None:
            pieces = documents
        elif self.across_documents:
            pieces = _concatenate_and_split(documents, length)
        else:
            pieces = documents.flat_map(lambda tokens: tf.data.Dataset.from_tensor_slices(_split(tokens, length)))
        return pieces.map(lambda tokens: {feature: tf.ensure_shape(tokens, [None])})


def _split(tokens: tf.Tensor, length: int) -> tf.RaggedTensor:
    """Pieces of the given length, the last one shorter."""
    starts = tf.range(0, tf.size(tokens, tf.int64), length)
    return tf.RaggedTensor.from_row_starts(tokens, starts, validate=False)


def _concatenate_and_split(documents: tf.data.Dataset, length: int) -> tf.data.Dataset:
    """All documents as one text, in pieces of the given length; only the very last is shorter."""
    groups = documents.ragged_batch(_BATCH).map(lambda rows: (rows.values, False))
    end = tf.data.Dataset.from_tensors((tf.zeros([0], tf.int32), True))

    def step(rest: tf.Tensor, group: tuple[tf.Tensor, tf.Tensor]) -> tuple[tf.Tensor, tf.RaggedTensor]:
        tokens = tf.concat([rest, group[0]], 0)
        size = tf.size(tokens)
        ready = tf.where(group[1], size, size - size % length)
        return tokens[ready:], _split(tokens[:ready], length)

    return groups.concatenate(end).scan(tf.zeros([0], tf.int32), step).unbatch()
