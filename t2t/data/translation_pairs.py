"""XLM's translation language modelling: two translations of each other in one sequence, of which words are masked.

    tokens        </s> the cat is blue </s> </s> le chat est bleu </s>
    positions        0   1   2  3    4    5    0  1    2    3    4    5
    language_ids     0   0   0  0    0    0    1  1    1    1    1    1

    seqio.Task(name, source, output_features=..., preprocessors=[
        TranslationPairs(languages=("en", "fr")),      # {"source", "target", "languages": ["en", "fr"]} -> the above
        MaskedTokens(),
    ])

The model can look up a masked word in the other language. Batches carry `encoder_positions`, which count from 0 again
in the second sentence, and `encoder_language_ids`, for models that have embeddings of languages (`t2t.families.xlm`).
Texts of one language, which XLM learns from by turns, carry theirs by `Language` in front of the corruption.

Reference: Lample and Conneau, "Cross-lingual Language Model Pretraining", arXiv:1901.07291, section 3.3, and
concat_batches of facebookresearch/XLM.

Differs: XLM's code may choose any token but the first and padding for prediction, `</s>` inside included;
`MaskedTokens` never chooses special tokens. Its pairs are left out where a sentence is too long; here they are cut
unless `overlong="skip"`.
"""

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Int

from t2t.data import vocabularies
from t2t.data.corruption_base import Features, LatePreprocessor, Lengths
from t2t.data.host_tensorflow import tf
from t2t.errors import UsageError

logger = logging.getLogger(__name__)

NUM_SPECIALS = 4
"""Special tokens of a pair."""

_BATCH = 512  # pairs per call of a tokeniser


class Translations(NamedTuple):
    """Finished pairs end to end, and the number of tokens of each."""

    tokens: Int[np.ndarray, " N"]
    positions: Int[np.ndarray, " N"]
    language_ids: Int[np.ndarray, " N"]
    lengths: Int[np.ndarray, " P"]


def join_translations(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    *,
    languages: Sequence[tuple[int, int]],
    boundary_id: int,
    room: int | None = None,
) -> Translations:
    """Each pair as `</s> source </s> </s> target </s>`, with its positions and languages.

    Args:
        pairs: ids of both sentences, without special tokens.
        languages: ids of both languages, of each pair.
        boundary_id: what stands before and behind each sentence.
        room: text tokens of a pair; of a pair with more the longer sentence is cut at its end. None = no limit.

    Example:
        >>> made = join_translations([([5, 6], [7])], languages=[(0, 3)], boundary_id=1)
        >>> made.tokens.tolist(), made.positions.tolist(), made.language_ids.tolist()
        ([1, 5, 6, 1, 1, 7, 1], [0, 1, 2, 3, 0, 1, 2], [0, 0, 0, 0, 3, 3, 3])
    """
    tokens: list[int] = []
    sizes = np.zeros((len(pairs), 2), np.int64)
    for number, (source, target) in enumerate(pairs):
        kept = fit_translations(len(source), len(target), room=room)
        for text, size in zip((source, target), kept, strict=True):
            tokens += [boundary_id, *text[:size], boundary_id]
        sizes[number] = kept
    framed = (sizes + NUM_SPECIALS // 2).reshape(-1)
    starts = np.cumsum(framed) - framed
    return Translations(
        tokens=np.array(tokens, np.int32),
        positions=(np.arange(len(tokens)) - np.repeat(starts, framed)).astype(np.int32),
        language_ids=np.repeat(np.array(languages, np.int32).reshape(-1), framed),
        lengths=framed.reshape(-1, 2).sum(axis=1),
    )


def fit_translations(source: int, target: int, *, room: int | None) -> tuple[int, int]:
    """How many tokens of either sentence fit: the longer one is cut, and both to equal parts if both are too long.

    >>> fit_translations(9, 3, room=10), fit_translations(9, 8, room=11), fit_translations(2, 3, room=None)
    ((7, 3), (6, 5), (2, 3))
    """
    if room is None or source + target <= room:
        return source, target
    source = min(source, max(room - target, (room + 1) // 2))
    return source, min(target, room - source)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslationPairs(LatePreprocessor):
    """Pairs of texts as finished sequences, with positions and languages of their tokens.

    Pairs without a word on one side are left out, and counted in the log; so are those that are cut.
    """

    source: str = "source"
    """Field of one text."""
    target: str = "target"
    """Field of its translation."""
    languages: tuple[str, ...] = ()
    """Names of the languages in the order of their ids; empty where records hold ids."""
    pair: tuple[int, int] | None = None
    """Ids of both languages, the same for all records; None reads them in the field `languages` of each."""
    overlong: Literal["trim", "skip"] = "trim"
    """Whether pairs that are too long are cut or left out."""
    feature: str = "targets"
    """Feature of the sequences."""

    def _apply(self, dataset: tf.data.Dataset, sequence_length: Lengths, output_features: Features) -> tf.data.Dataset:
        vocabulary = output_features[self.feature].vocabulary
        room, boundary = self._fit(sequence_length, output_features)
        fields = (self.source, self.target, *(() if self.pair else ("languages",)))
        if missing := [field for field in fields if field not in dataset.element_spec]:
            raise ValueError(
                f"the records lack {missing}, which {self} reads; they have {sorted(dataset.element_spec)}. Name the "
                "fields of the texts, and give pair=(0, 1) where all records have the same two languages"
            )
        left_out, cut = _Count("left out", "one side is empty, or they are too long"), _Count("cut", f"beyond {room}")

        def run(sources: np.ndarray, targets: np.ndarray, names: np.ndarray) -> tuple[np.ndarray, ...]:
            pairs = list(zip(_encode(vocabulary, sources), _encode(vocabulary, targets), strict=True))
            is_long = [room is not None and len(a) + len(b) > room for a, b in pairs]
            kept = [i for i, (a, b) in enumerate(pairs) if a and b and not (is_long[i] and self.overlong == "skip")]
            left_out.add(len(pairs) - len(kept))
            cut.add(sum(is_long[i] for i in kept))
            languages = [self.pair or self._ids(names[i]) for i in kept]
            return tuple(
                join_translations([pairs[i] for i in kept], languages=languages, boundary_id=boundary, room=room)
            )

        def apply(records: dict[str, Any]) -> dict[str, Any]:
            names = records["languages"] if self.pair is None else tf.zeros_like(records[self.source], tf.int32)
            made = tf.numpy_function(
                run, [records[self.source], records[self.target], names], [tf.int32, tf.int32, tf.int32, tf.int64]
            )
            *features, lengths = (tf.ensure_shape(part, [None]) for part in made)
            names = (self.feature, "positions", "language_ids")
            return {name: tf.RaggedTensor.from_row_lengths(x, lengths) for name, x in zip(names, features, strict=True)}

        records = dataset.map(lambda record: {field: record[field] for field in fields}).batch(_BATCH)
        return (
            records.map(apply)
            .unbatch()
            .map(lambda features: {name: tf.ensure_shape(values, [None]) for name, values in features.items()})
        )

    def _fit(self, sequence_length: Lengths, output_features: Features) -> tuple[int | None, int]:
        """Text tokens of a pair, and what stands around its sentences."""
        if wrong := [
            name for name in sorted({"inputs", self.feature} & set(output_features)) if output_features[name].add_eos
        ]:
            raise ValueError(f"{self} makes finished sequences: register the features {wrong} with add_eos=False")
        boundary = vocabularies.special_tokens(output_features[self.feature].vocabulary).eos_id
        if boundary is None:
            raise UsageError(f"{self} needs a vocabulary with a token that ends a text (</s>); this has none")
        lengths = [length for name, length in (sequence_length or {}).items() if name in output_features]
        if lengths and min(lengths) < NUM_SPECIALS + 2:
            raise UsageError(f"lengths {lengths} leave no room for two texts: {self} needs at least {NUM_SPECIALS + 2}")
        return (min(lengths) - NUM_SPECIALS if lengths else None), boundary

    def _ids(self, names: np.ndarray) -> tuple[int, int]:
        """Ids of the two languages of a record."""
        if not self.languages and names.dtype.kind in "iu":
            return int(names[0]), int(names[1])
        texts = [vocabularies.as_text(name) for name in names.tolist()]
        if unknown := [text for text in texts if text not in self.languages]:
            raise ValueError(f"a record has languages {unknown}, which {self} does not name: they are {self.languages}")
        return self.languages.index(texts[0]), self.languages.index(texts[1])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Language:
    """Marks examples as texts of one language: put it between `Chunk` and the corruption."""

    id: int
    """Number of the language."""

    def __call__(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """As a seqio preprocessor."""
        return dataset.map(lambda features: {**features, "language_ids": tf.constant(self.id, tf.int32)})


class _Count:
    """Counts pairs, and says so in the log whenever their number has doubled."""

    def __init__(self, what: str, why: str) -> None:
        self.what, self.why, self.number, self.said = what, why, 0, 0

    def add(self, number: int) -> None:
        self.number += number
        if self.number >= max(2 * self.said, 1):
            logger.warning("%d pairs of translations are %s so far: %s", self.number, self.what, self.why)
            self.said = self.number


def _encode(vocabulary: Any, texts: np.ndarray) -> list[list[int]]:
    return vocabularies.encode_batch(vocabulary, texts.tolist())
