"""Documents into the sequences of BERT, ALBERT, ELECTRA and RoBERTa, as preprocessors of seqio tasks.

    seqio.Task(name, source, output_features=..., preprocessors=[
        functools.partial(seqio.preprocessors.rekey, key_map={"targets": "text"}),
        TokenizeSentences(),     # {"targets": text} -> {"targets": ids, "sentence_lengths": tokens of each sentence}
        NextSentence(),          # -> {"targets": [CLS] A [SEP] B [SEP], "token_types", "next_sentence_labels", ...}
        MaskedTokens(),          # masks are drawn anew in each epoch
    ])

Formats read the whole split before they make the first example, since a second segment may come from any document. What
is random in them is a function of their seed, the copy of the corpus and the number of the document: it is drawn once,
before the corruption, and does not depend on who computes which part. Their sequences are finished: features have
`add_eos=False`. Each logs how many examples of which kind there are, how much of their rows is padding and how many
tokens were cut off.
"""

import abc
import dataclasses
import itertools
import logging
import types
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np

from t2t.data import corruption, segment_pairs, sentence_blocks, sentences, vocabularies
from t2t.data import documents as documents_lib
from t2t.data.corruption_base import Features, LatePreprocessor, Lengths
from t2t.data.documents import Documents, FormatStatistics, SequenceFrame, Sequences
from t2t.data.host_tensorflow import tf
from t2t.errors import UsageError

logger = logging.getLogger(__name__)

SENTENCE_LENGTHS = "sentence_lengths"
"""Feature between the two preprocessors: tokens of each sentence of a document."""

_BATCH = 512  # documents per call of a tokeniser
_TOGETHER = 4096  # examples that are made at a time


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizeSentences(LatePreprocessor):
    """Ids of documents and the number of tokens of each sentence; a list of strings is the sentences as they are.

    Reads {feature: text} or {feature: [sentence, ...]} and makes {feature: ids, "sentence_lengths"}; other features are
    dropped. Sentences are tokenised one by one, many at a time by the vocabulary's own threads, so that no token
    reaches from one into the next.
    """

    feature: str = "targets"
    """Feature of the text."""
    wrapped: bool = False
    """Whether lines of a text are broken at some width, so that only an empty line ends a sentence."""

    uses: ClassVar[tuple[types.ModuleType, ...]] = (sentences,)
    """Modules that decide what it makes: tokens on disk are known by them."""

    def _apply(self, dataset: tf.data.Dataset, sequence_length: Lengths, output_features: Features) -> tf.data.Dataset:
        vocabulary = output_features[self.feature].vocabulary
        spec = dataset.element_spec.get(self.feature)
        if spec is None or spec.dtype != tf.string or spec.shape.rank not in (0, 1):
            raise ValueError(f"TokenizeSentences reads a text or a list of sentences in {self.feature!r}, not {spec}")

        def run(texts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, ...]:
            strings = [vocabularies.as_text(text) for text in texts]
            if spec.shape.rank == 0:
                split = [sentences.split_sentences(text, wrapped=self.wrapped) for text in strings]
                strings = list(itertools.chain.from_iterable(split))
                counts = np.array([len(found) for found in split], np.int64)
            rows = vocabularies.encode_batch(vocabulary, strings)
            lengths = np.array([len(row) for row in rows], np.int64)
            tokens = np.fromiter(itertools.chain.from_iterable(rows), np.int32, count=int(lengths.sum()))
            owners = np.repeat(np.arange(len(counts)), counts)
            sizes = np.bincount(owners, weights=lengths, minlength=len(counts)).astype(np.int64)
            return tokens, sizes, lengths.astype(np.int32), counts

        def apply(texts: Any) -> dict[str, Any]:
            if spec.shape.rank == 0:
                arguments = [texts, tf.ones_like(texts, tf.int64)]
            else:
                arguments = [texts.values, texts.row_lengths()]
            made = tf.numpy_function(run, arguments, [tf.int32, tf.int64, tf.int32, tf.int64])
            tokens, sizes, lengths, counts = (tf.ensure_shape(part, [None]) for part in made)
            return {
                self.feature: tf.RaggedTensor.from_row_lengths(tokens, sizes, validate=False),
                SENTENCE_LENGTHS: tf.RaggedTensor.from_row_lengths(lengths, counts, validate=False),
            }

        texts = dataset.map(lambda features: features[self.feature]).ragged_batch(_BATCH)
        made = _dense(texts.map(apply).unbatch())
        # Unbatching forgets that a dataset is repeated without end, which formats must know.
        is_endless = dataset.cardinality() == tf.data.INFINITE_CARDINALITY
        return made.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)) if is_endless else made


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentenceFormat(LatePreprocessor):
    """What the formats share: reading all documents, and handing out finished examples."""

    feature: str = "targets"
    """Feature of the tokens, before and after."""

    uses: ClassVar[tuple[types.ModuleType, ...]] = (segment_pairs, sentence_blocks, documents_lib)
    """Modules that decide what it makes: tokens on disk are known by them."""
    has_pairs: ClassVar[bool] = True
    """Whether examples have `token_types` and `pair_kinds` (numbers of `segment_pairs.Kind`)."""
    has_labels: ClassVar[bool] = True
    """Whether examples have `next_sentence_labels` (0 = the second segment follows)."""

    @abc.abstractmethod
    def sequences(self, documents: Documents, frame: SequenceFrame) -> Iterator[tuple[Sequences, FormatStatistics]]:
        """The examples of a corpus, some at a time, and what they are in number."""

    def _apply(self, dataset: tf.data.Dataset, sequence_length: Lengths, output_features: Features) -> tf.data.Dataset:
        frame = self.frame(sequence_length, output_features)
        if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
            raise ValueError(
                f"{self} reads all documents before its first example, and these are repeated without end: read the "
                "task with num_epochs=1 and repeat what it gives"
            )
        documents = read_documents(dataset, self.feature)

        def generate() -> Iterator[dict[str, np.ndarray]]:
            total = FormatStatistics(length=frame.length)
            for made, counted in self.sequences(documents, frame):
                total += counted
                yield self.features(made)
            logger.info("%s: %s", self, total)

        dtypes = {self.feature: tf.int32, "lengths": tf.int64}
        scalars = (
            *(("pair_kinds",) if self.has_pairs else ()),
            *(("next_sentence_labels",) if self.has_labels else ()),
        )
        sequences = (self.feature, *(("token_types",) if self.has_pairs else ()))
        signature = {
            name: tf.TensorSpec([None], dtypes.get(name, tf.int32)) for name in (*sequences, "lengths", *scalars)
        }

        def divide(made: dict[str, Any]) -> dict[str, Any]:
            rows = {name: tf.RaggedTensor.from_row_lengths(made[name], made["lengths"]) for name in sequences}
            return {**rows, **{name: made[name] for name in scalars}}

        return _dense(tf.data.Dataset.from_generator(generate, output_signature=signature).map(divide).unbatch())

    def features(self, made: Sequences) -> dict[str, np.ndarray]:
        """The features of finished examples, end to end or one number each, and the `lengths` of the examples."""
        features = {self.feature: made.tokens, "lengths": made.lengths}
        if self.has_pairs:
            features |= {"token_types": made.token_types, "pair_kinds": made.kinds}
        if self.has_labels:
            features["next_sentence_labels"] = segment_pairs.labels(made.kinds)
        return features

    def frame(self, sequence_length: Lengths, output_features: Features) -> SequenceFrame:
        """The room of an example for a run's lengths, and the special tokens of its vocabulary.

        Raises:
            UsageError: no lengths, lengths that are too short, or a vocabulary without an end token.
            ValueError: features that would get their special tokens twice.
        """
        lengths = [length for name, length in (sequence_length or {}).items() if name in output_features]
        if not lengths:
            raise UsageError(f"{self} fills sequences of a given length: give lengths, such as inputs=128 targets=128")
        if wrong := [
            name for name in sorted({"inputs", self.feature} & set(output_features)) if output_features[name].add_eos
        ]:
            raise ValueError(f"{self} makes finished sequences: register the features {wrong} with add_eos=False")
        special = vocabularies.special_tokens(output_features[self.feature].vocabulary)
        if special.eos_id is None:
            raise UsageError(f"{self} needs a vocabulary with a token that ends a segment ([SEP], </s>); this has none")
        try:
            return SequenceFrame(length=min(lengths), bos_id=special.bos_id, eos_id=special.eos_id)
        except ValueError as error:
            raise UsageError(f"{self}: {error}") from error


@dataclasses.dataclass(frozen=True, kw_only=True)
class RandomFormat(SentenceFormat):
    """What the formats share that draw their pairs."""

    seed: int = 0
    """Of the pairs, in [0, 2**64)."""
    duplicates: int = 1
    """How often the corpus is gone through, with other pairs each time (BERT's dupe_factor, there 10)."""

    def __post_init__(self) -> None:
        """Refuse numbers without meaning."""
        if self.duplicates < 1:
            raise ValueError(f"duplicates={self.duplicates} must be at least 1")
        if not 0 <= getattr(self, "short_rate", 0.0) <= 1:
            raise ValueError(f"short_rate={self.short_rate} must be a fraction in [0, 1]")

    @abc.abstractmethod
    def pairs(
        self, documents: Documents, index: int, rng: np.random.Generator, frame: SequenceFrame
    ) -> list[segment_pairs.Pair]:
        """The pairs of one document."""

    def sequences(self, documents: Documents, frame: SequenceFrame) -> Iterator[tuple[Sequences, FormatStatistics]]:
        """The examples of a corpus, copy by copy and document by document."""
        pairs: list[segment_pairs.Pair] = []
        for copy in range(self.duplicates):
            for index, number in enumerate(documents.numbers):
                rng = corruption.example_rng(self.seed, copy, int(number))
                pairs += self.pairs(documents, index, rng, frame)
                if len(pairs) >= _TOGETHER:
                    yield _finish(documents, pairs, frame)
                    pairs = []
        if pairs:
            yield _finish(documents, pairs, frame)


def _finish(
    documents: Documents, pairs: list[segment_pairs.Pair], frame: SequenceFrame
) -> tuple[Sequences, FormatStatistics]:
    plan = segment_pairs.as_plan(pairs)
    made = segment_pairs.finish_pairs(documents.tokens, plan, frame=frame)
    return made, segment_pairs.statistics(plan, frame=frame)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NextSentence(RandomFormat):
    """BERT's pairs for next-sentence prediction, RoBERTa's SEGMENT-PAIR: see `segment_pairs.next_sentence_pairs`."""

    short_rate: float = 0.1
    """Share of the documents whose pairs are shorter; RoBERTa has 0."""

    def pairs(
        self, documents: Documents, index: int, rng: np.random.Generator, frame: SequenceFrame
    ) -> list[segment_pairs.Pair]:
        """The pairs of one document."""
        return segment_pairs.next_sentence_pairs(documents, index, rng, room=frame.room, short_rate=self.short_rate)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentenceOrder(RandomFormat):
    """ALBERT's pairs for sentence-order prediction: see `segment_pairs.sentence_order_pairs`."""

    short_rate: float = 0.1
    """Share of the documents whose pairs are shorter."""
    single: Literal["random", "skip"] = "random"
    """What becomes of a sentence without another: a random second segment (ALBERT's code), or no example."""

    def pairs(
        self, documents: Documents, index: int, rng: np.random.Generator, frame: SequenceFrame
    ) -> list[segment_pairs.Pair]:
        """The pairs of one document."""
        return segment_pairs.sentence_order_pairs(
            documents, index, rng, room=frame.room, short_rate=self.short_rate, single=self.single
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentencePairs(RandomFormat):
    """RoBERTa's SENTENCE-PAIR, two single sentences: see `segment_pairs.sentence_pairs`.

    The sequences are short. RoBERTa enlarges its batches until they hold as many tokens as those of the other formats:
    `FormatStatistics.rows_for` says how far.
    """

    def pairs(
        self, documents: Documents, index: int, rng: np.random.Generator, frame: SequenceFrame
    ) -> list[segment_pairs.Pair]:
        """The pairs of one document."""
        return segment_pairs.sentence_pairs(documents, index, rng, room=frame.room)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ElectraSegments(RandomFormat):
    """ELECTRA's one or two segments, without labels: see `segment_pairs.electra_pairs`."""

    has_labels = False

    def pairs(
        self, documents: Documents, index: int, rng: np.random.Generator, frame: SequenceFrame
    ) -> list[segment_pairs.Pair]:
        """The pairs of one document."""
        return segment_pairs.electra_pairs(documents, index, rng, frame=frame)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FullSentences(SentenceFormat):
    """RoBERTa's FULL-SENTENCES: whole sentences as many as fit, across documents: see `sentence_blocks`."""

    across_documents: ClassVar[bool] = True
    has_pairs = False
    has_labels = False

    def sequences(self, documents: Documents, frame: SequenceFrame) -> Iterator[tuple[Sequences, FormatStatistics]]:
        """The examples of a corpus in its order."""
        blocks = sentence_blocks.sentence_blocks(documents, room=frame.room + 1, across_documents=self.across_documents)
        text = sentence_blocks.separated(documents, frame.eos_id)
        for start in range(0, len(blocks), _TOGETHER):
            made = sentence_blocks.finish_blocks(text, blocks[start : start + _TOGETHER], frame=frame)
            tokens = int(made.lengths.sum())
            yield made, FormatStatistics(length=frame.length, examples=len(made.lengths), tokens=tokens)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DocSentences(FullSentences):
    """RoBERTa's DOC-SENTENCES: the same, each sequence within one document.

    Differs: RoBERTa enlarges a batch where sequences are short; here short ones share a row, each a segment of its own.
    """

    across_documents = False


def read_documents(dataset: tf.data.Dataset, feature: str) -> Documents:
    """All documents of a dataset of ids and sentence lengths, in memory.

    Raises:
        ValueError: there are no sentence lengths.
    """
    if SENTENCE_LENGTHS not in dataset.element_spec:
        raise ValueError(f"there is no feature {SENTENCE_LENGTHS!r}: put TokenizeSentences() before the format")
    pairs = dataset.map(lambda features: (features[feature], features[SENTENCE_LENGTHS])).ragged_batch(_BATCH)
    flat = pairs.map(lambda ids, lengths: (ids.values, lengths.values, lengths.row_lengths()))
    none = (np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64))
    tokens, lengths, counts = (np.concatenate(parts) for parts in zip(none, *flat.as_numpy_iterator(), strict=True))
    return Documents.of(tokens, lengths.astype(np.int64), counts)


def _dense(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Slices of ragged tensors as plain ones: they carry a ragged type, which seqio does not take."""
    sequences = [name for name, spec in dataset.element_spec.items() if isinstance(spec, tf.RaggedTensorSpec)]
    return dataset.map(
        lambda features: features | {name: tf.ensure_shape(features[name], [None]) for name in sequences}
    )
