"""Random objectives as objects: what every `Corruption` shares, in plain seqio and in our pipeline.

Every random choice is a function of (seed, epoch, example index). `bind` fits a corruption to lengths and vocabularies;
the bound object turns one example into another in NumPy, given a generator. In plain seqio the same happens inside
`tf.numpy_function`; our pipeline recognises the class and works after random access instead.

Sequences leave here finished: int32, without padding, EOS in place where the feature says `add_eos` and the vocabulary
has one.
"""

import abc
import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from t2t.data.host_tensorflow import tf  # isort: skip - TensorFlow's settings come before seqio
import seqio

from t2t.data import corruption, vocabularies
from t2t.vocabulary.words import WordMarks

Lengths = Mapping[str, int] | None
Features = Mapping[str, seqio.Feature]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Side:
    """One feature that a corruption makes: its length in tokens (None = any), its EOS (None = none), its vocabulary."""

    name: str
    length: int | None
    eos_id: int | None
    special: vocabularies.SpecialTokens
    vocabulary: seqio.Vocabulary | None = dataclasses.field(default=None, repr=False, compare=False)
    """For what only some objectives ask of it, such as where words begin."""

    @classmethod
    def of(cls, name: str, sequence_length: Lengths, output_features: Features) -> "Side":
        """The side of a task's output feature."""
        if name not in output_features:
            raise ValueError(f"the corruption makes {name!r}, which the task's output_features lack")
        feature = output_features[name]
        special = vocabularies.special_tokens(feature.vocabulary)
        return cls(
            name=name,
            length=(sequence_length or {}).get(name),
            eos_id=special.eos_id if feature.add_eos else None,
            special=special,
            vocabulary=feature.vocabulary,
        )

    @property
    def num_eos(self) -> int:
        """How many EOS end the sequence: 0 or 1."""
        return int(self.eos_id is not None)

    @functools.cached_property
    def sentinels(self) -> np.ndarray:
        """Ids of the sentinels."""
        return np.array(self.special.sentinels, np.int32)

    @functools.cached_property
    def is_text(self) -> np.ndarray:
        """[size], False for special tokens."""
        table = np.ones(self.special.size, bool)
        table[list(self.special.special_ids)] = False
        return table

    @functools.cached_property
    def text_ids(self) -> np.ndarray:
        """All ids that are not special tokens."""
        return np.flatnonzero(self.is_text).astype(np.int32)

    @functools.cached_property
    def word_marks(self) -> WordMarks:
        """Where words begin among its tokens; raises ValueError if the vocabulary cannot tell."""
        return vocabularies.word_marks(self.vocabulary)

    def finish(self, tokens: np.ndarray) -> np.ndarray:
        """The tokens with EOS, [..., T] to [..., T + 1]."""
        return surround(tokens, None, self.eos_id)


def surround(tokens: np.ndarray, first: int | None, last: int | None) -> np.ndarray:
    """The tokens, [..., T], with one before and one after each row; None adds nothing.

    >>> surround(np.array([5, 6]), None, 1)
    array([5, 6, 1])
    """
    before, after = int(first is not None), int(last is not None)
    if not before + after:
        return tokens
    out = np.empty((*tokens.shape[:-1], tokens.shape[-1] + before + after), tokens.dtype)
    out[..., before : before + tokens.shape[-1]] = tokens
    if before:
        out[..., 0] = first
    if after:
        out[..., -1] = last
    return out


def shortest_length(sides: Mapping[str, Side], *, reserved: int) -> int | None:
    """The shortest length of the sides without so many special tokens; None where no side has a length.

    Raises:
        ValueError: that leaves no room for text.
    """
    lengths = [side.length for side in sides.values() if side.length is not None]
    if not lengths:
        return None
    if min(lengths) <= reserved:
        raise ValueError(f"lengths {lengths} leave no room for text beside {reserved} special tokens")
    return min(lengths) - reserved


@dataclasses.dataclass(frozen=True, kw_only=True)
class LatePreprocessor(abc.ABC):
    """A preprocessor that is a dataclass and learns lengths and features when a task is read: seqio sets the fields."""

    sequence_length: Lengths = dataclasses.field(default=None, repr=False, compare=False)
    """Set by seqio."""
    output_features: Features | None = dataclasses.field(default=None, repr=False, compare=False)
    """Set by seqio."""

    @abc.abstractmethod
    def _apply(self, dataset: tf.data.Dataset, sequence_length: Lengths, output_features: Features) -> tf.data.Dataset:
        """The dataset after this preprocessor."""

    def __call__(
        self, dataset: tf.data.Dataset, sequence_length: Lengths = None, output_features: Features | None = None
    ) -> tf.data.Dataset:
        """As a seqio preprocessor."""
        features = output_features or self.output_features
        if features is None:
            raise ValueError(f"{self} needs output_features: use it in a seqio task, or give them")
        return self._apply(dataset, sequence_length or self.sequence_length, features)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Corruption(LatePreprocessor):
    """A random objective on raw token sequences; subclasses say which features it makes and how."""

    feature: str = "targets"
    """Feature of the raw tokens."""
    copies: int | None = None
    """How many corruptions of an example there are, taken in turn epoch by epoch: 1 is the same in every epoch
    (static), 10 are BERT's duplicates of the corpus, None is a new one in every epoch (dynamic)."""
    makes: ClassVar[tuple[str, ...]]
    """Features it makes that have a vocabulary and a length."""
    weighs: ClassVar[bool] = False
    """Whether it makes `weights` too, 1 where the loss counts."""
    judged: ClassVar[bool] = False
    """Whether a second model learns from every token, by judging what the first one writes in place of the chosen."""

    @abc.abstractmethod
    def raw_length(self, sides: Mapping[str, Side]) -> int | None:
        """The most raw tokens that fit the lengths, None without a limit; raises if the objective cannot fit."""

    @abc.abstractmethod
    def num_uniforms(self, length: int, sides: Mapping[str, Side]) -> int:
        """How many random numbers an example of so many raw tokens takes."""

    @abc.abstractmethod
    def corrupt(self, tokens: np.ndarray, u: np.ndarray, sides: Mapping[str, Side]) -> dict[str, np.ndarray]:
        """The made features of [..., T] raw tokens from [..., N] uniforms."""

    @property
    def learns(self) -> bool:
        """Whether it must see the raw tokens of a split (`learn`) before it can corrupt them; most need not."""
        return False

    def learn(self, tokens: Iterable[np.ndarray], sides: Mapping[str, Side]) -> "Corruption":
        """The corruption that knows the raw tokens of a split, in as many arrays as it pleases."""
        return self

    def draw(self, epoch: int) -> int:
        """Which of its corruptions an example gets in an epoch: the epoch of the generator to use.

        >>> from t2t.data.preprocessors import MaskedTokens
        >>> [MaskedTokens(copies=copies).draw(12) for copies in (None, 1, 10)]
        [12, 0, 2]
        """
        return epoch if self.copies is None else epoch % self.copies

    @property
    def keeps_lengths_equal(self) -> bool:
        """Whether examples of equally many raw tokens stay of equal length."""
        return True

    @property
    def works_on_batches(self) -> bool:
        """Whether `BoundCorruption.batch` works; features of unequal lengths then come as an array of arrays."""
        return self.keeps_lengths_equal

    @property
    def adds(self) -> tuple[str, ...]:
        """Further features it makes, int32 and without a vocabulary."""
        return ()

    @property
    def reads_backwards(self) -> bool:
        """Whether it reverses texts, so that the one before an example in the text is the one that goes on."""
        return False

    def bind(self, sequence_length: Lengths, output_features: Features) -> "BoundCorruption":
        """The corruption for given lengths and vocabularies; raises ValueError where it cannot work."""
        if self.copies is not None and self.copies < 1:
            raise ValueError(f"copies={self.copies} must be positive, or None for a new corruption in every epoch")
        sides = {name: Side.of(name, sequence_length, output_features) for name in self.makes}
        raw_length = self.raw_length(sides)
        if raw_length is not None and raw_length < 1:
            lengths = {side.name: side.length for side in sides.values()}
            raise ValueError(f"lengths {lengths} leave no room for text under {self}: raise them")
        return BoundCorruption(corruption=self, sides=sides, raw_length=raw_length)

    def _apply(self, dataset: tf.data.Dataset, sequence_length: Lengths, output_features: Features) -> tf.data.Dataset:
        """In plain seqio example i of the dataset gets `example_rng(seed, 0, i)`, seed being seqio's.

        seqio repeats a dataset before its random preprocessors, so later epochs have higher indices here. Without a
        seed (`task.get_dataset(seed=None)`) one is drawn, and every run differs, as seqio's own preprocessors do.

        With `copies` the raw tokens themselves take the place of the index, since nothing here tells the epoch: each
        example has so many corruptions, the same wherever it comes, of which every visit takes one at random.
        """
        bound = self.bind(sequence_length, output_features)
        if self.learns:
            raise ValueError(f"{self} must know the tokens of the whole split, which seqio reads one by one")
        seed = _seqio_seed()

        def run(index: np.int64, tokens: np.ndarray) -> list[np.ndarray]:
            rng = corruption.example_rng(seed, 0, int(index))
            if self.copies is not None:
                copy = int(rng.integers(self.copies))
                rng = corruption.example_rng(seed, copy, _content_key(tokens))
            made = bound.example({self.feature: tokens}, rng)
            return [made[name] for name in bound.names]

        def make(index: tf.Tensor, features: dict[str, Any]) -> dict[str, Any]:
            made = tf.numpy_function(run, [index, features[self.feature]], [tf.int32] * len(bound.names))
            return {**features, **{name: tf.ensure_shape(m, [None]) for name, m in zip(bound.names, made, strict=True)}}

        return dataset.enumerate().map(make, num_parallel_calls=tf.data.AUTOTUNE)


def _content_key(tokens: np.ndarray) -> int:
    """A number in [0, 2**64) for the tokens of an example."""
    return int.from_bytes(hashlib.blake2b(np.asarray(tokens, "<i4").tobytes(), digest_size=8).digest(), "little")


def _seqio_seed() -> int:
    """The next seed of `seqio.map_seed_manager`, consumed as `seqio.map_over_dataset` does; random outside of it."""
    seed = seqio.utils._NEXT_MAP_SEED
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    seqio.utils._NEXT_MAP_SEED = seed + 2
    return int(seed)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BoundCorruption:
    """A corruption that knows its lengths and vocabularies: a pure function of an example and a generator."""

    corruption: Corruption
    sides: Mapping[str, Side]
    raw_length: int | None
    """The most raw tokens an example may have."""

    @property
    def names(self) -> tuple[str, ...]:
        """The features it makes."""
        weights = ("weights",) if self.corruption.weighs else ()
        return (*self.corruption.makes, *weights, *self.corruption.adds)

    def learn(self, tokens: Iterable[np.ndarray]) -> "BoundCorruption":
        """The same of the corruption that knows the raw tokens of a split; see `Corruption.learn`."""
        return dataclasses.replace(self, corruption=self.corruption.learn(tokens, self.sides))

    def example(self, features: Mapping[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """One example made from one with raw tokens; features it does not make pass through.

        Raises:
            ValueError: the example has more raw tokens than the lengths hold.
        """
        tokens = self._checked(features[self.corruption.feature])
        u = rng.random(self.corruption.num_uniforms(len(tokens), self.sides))
        return {**features, **self.corruption.corrupt(tokens, u, self.sides)}

    def batch(self, tokens: np.ndarray, *, seed: int, epoch: int, indices: np.ndarray) -> dict[str, np.ndarray]:
        """Examples of equal length [B, T] at once; row b is `example` under `example_rng(seed, epoch, indices[b])`.

        Raises:
            ValueError: too many raw tokens, or a corruption that works on one example at a time.
        """
        tokens = self._checked(tokens)
        number = self.corruption.num_uniforms(tokens.shape[-1], self.sides)
        return self.corruption.corrupt(tokens, corruption.uniforms(seed, epoch, indices, number), self.sides)

    def _checked(self, tokens: np.ndarray) -> np.ndarray:
        if self.raw_length is not None and tokens.shape[-1] > self.raw_length:
            lengths = ", ".join(f"{side.name} {side.length}" for side in self.sides.values())
            raise ValueError(
                f"an example has {tokens.shape[-1]} raw tokens but {self.corruption} fits at most {self.raw_length} "
                f"into {lengths}: cut documents before it with t2t.data.preprocessors.Chunk(corruption=...)"
            )
        return np.asarray(tokens, np.int32)
