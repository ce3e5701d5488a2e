"""Our vocabularies as seqio sees them, and tasks whose vocabulary is chosen when they are used."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import SupportsInt

import numpy as np

from t2t.data.host_tensorflow import tf  # isort: skip - TensorFlow's settings come before seqio
import seqio

from t2t import vocabulary as vocabularies
from t2t.vocabulary.words import WordMarks


class SeqioVocabulary(seqio.Vocabulary):
    """A `t2t.vocabulary.Vocabulary` in a seqio Feature. `vocab_size` counts all ids, sentinels included."""

    def __init__(self, vocabulary: vocabularies.Vocabulary):
        """Wrap a vocabulary, which stays reachable as `.vocabulary`."""
        super().__init__(extra_ids=len(vocabulary.sentinels))
        self.vocabulary = vocabulary

    @property
    def pad_id(self) -> int:
        """The id of padding; 0, which seqio pads with, where the vocabulary has none."""
        return self.vocabulary.pad_id or 0

    @property
    def bos_id(self) -> int | None:
        """The id that begins a sequence, if there is one."""
        return self.vocabulary.bos_id

    @property
    def eos_id(self) -> int | None:
        """The id that ends a sequence, if there is one."""
        return self.vocabulary.eos_id

    @property
    def unk_id(self) -> int | None:
        """The id of what the vocabulary cannot write, if there is one."""
        return self.vocabulary.unk_id

    @property
    def vocab_size(self) -> int:
        """Number of ids, sentinels included."""
        return self.vocabulary.size

    @property
    def _base_vocab_size(self) -> int:
        return self.vocabulary.size

    def _encode(self, s: str | bytes) -> list[int]:
        return self.vocabulary.encode(as_text(s))

    def _decode(self, ids: Iterable[SupportsInt]) -> str:
        return self.vocabulary.decode(ids)

    def _encode_tf(self, s: tf.Tensor) -> tf.Tensor:
        def encode(text: bytes | np.ndarray) -> np.ndarray:  # an array without dimensions in eager mode
            return np.asarray(self._encode(text.item() if isinstance(text, np.ndarray) else text), np.int32)

        return tf.ensure_shape(tf.numpy_function(encode, [s], tf.int32), [None])

    def _decode_tf(self, ids: tf.Tensor) -> tf.Tensor:
        def decode(ids: np.ndarray) -> np.ndarray:
            rows = ids.reshape(-1, ids.shape[-1])
            return np.array([t.encode() for t in self.vocabulary.decode_batch(rows)], object).reshape(ids.shape[:-1])

        return tf.ensure_shape(tf.numpy_function(decode, [ids], tf.string), ids.shape[:-1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SeqioVocabulary) and self.vocabulary == other.vocabulary

    def __hash__(self) -> int:
        return hash(self.vocabulary)

    def __str__(self) -> str:
        return f"SeqioVocabulary({self.vocabulary!r})"


class PlaceholderVocabulary(seqio.Vocabulary):
    """The vocabulary of a task that is registered before its vocabulary is known; `bind_vocabulary` replaces it."""

    def _unbound(self, *_):
        raise ValueError(
            "this task has no vocabulary yet: bind one with t2t.data.vocabularies.bind_vocabulary(task, vocabulary), "
            "or name a vocabulary in the experiment"
        )

    bos_id = eos_id = unk_id = pad_id = vocab_size = _base_vocab_size = property(_unbound)
    _encode = _decode = _encode_tf = _decode_tf = _unbound

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlaceholderVocabulary)

    def __hash__(self) -> int:
        return hash(PlaceholderVocabulary)


def as_text(text: str | bytes) -> str:
    """A string from what TensorFlow hands over; bytes that are not UTF-8 become U+FFFD."""
    return text.decode("utf-8", errors="replace") if isinstance(text, bytes) else text


def encode_batch(vocabulary: seqio.Vocabulary, texts: Sequence[str | bytes]) -> list[list[int]]:
    """Ids of each text by any seqio vocabulary; ours encode all of them at once."""
    texts = [as_text(text) for text in texts]
    if isinstance(vocabulary, SeqioVocabulary):
        return vocabulary.vocabulary.encode_batch(texts)
    return [list(vocabulary.encode(text)) for text in texts]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpecialTokens:
    """What corruption needs to know of a vocabulary; None where an id does not exist."""

    size: int
    bos_id: int | None
    eos_id: int | None
    mask_id: int | None
    sentinels: tuple[int, ...]
    special_ids: tuple[int, ...]
    modes: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Ids of the tokens that name UL2's modes, by name."""


def special_tokens(vocabulary: seqio.Vocabulary) -> SpecialTokens:
    """The special tokens of any seqio vocabulary.

    Vocabularies of seqio's own have no mask; their sentinels are the extra ids, counted from the last one down as all
    code on seqio does.
    """
    if isinstance(vocabulary, SeqioVocabulary):
        ours = vocabulary.vocabulary
        return SpecialTokens(**{f.name: getattr(ours, f.name) for f in dataclasses.fields(SpecialTokens)})

    def existing(token: int | None) -> int | None:
        return None if token is None or token < 0 else int(token)

    bos, eos, unk = existing(vocabulary.bos_id), existing(vocabulary.eos_id), existing(vocabulary.unk_id)
    sentinels = tuple(vocabulary.vocab_size - 1 - k for k in range(vocabulary.extra_ids))
    special = {token for token in (bos, eos, unk, vocabulary.pad_id, *sentinels) if token is not None}
    return SpecialTokens(
        size=vocabulary.vocab_size,
        bos_id=bos,
        eos_id=eos,
        mask_id=None,
        sentinels=sentinels,
        special_ids=tuple(sorted(special)),
    )


def word_marks(vocabulary: seqio.Vocabulary | None) -> WordMarks:
    """Where words begin among the tokens of one of our vocabularies.

    Raises:
        ValueError: it is another's, or does not mark words.
    """
    if not isinstance(vocabulary, SeqioVocabulary):
        raise ValueError(
            f"{vocabulary} cannot tell where words begin: bind one of t2t.vocabulary, such as "
            "t2t.vocabulary.Vocabulary.load(PATH)"
        )
    return vocabulary.vocabulary.word_marks


def bind_vocabulary(
    task: seqio.Task | seqio.Mixture, vocabulary: vocabularies.Vocabulary
) -> seqio.Task | seqio.Mixture:
    """A task or mixture like this one, placeholders replaced by the vocabulary; it is not registered.

    Features with a vocabulary of their own keep it; one of another size than the given is refused, because its ids
    would mean other tokens. Features of labels (`seqio.PassThroughVocabulary`) are left alone.

    Raises:
        ValueError: a feature has another vocabulary already.
    """
    features = {}
    for name, feature in task.output_features.items():
        own = feature.vocabulary
        if isinstance(own, PlaceholderVocabulary):
            feature = dataclasses.replace(feature, vocabulary=SeqioVocabulary(vocabulary))
        elif isinstance(own, SeqioVocabulary) and own.vocabulary != vocabulary:
            raise ValueError(f"feature {name!r} of {task.name!r} uses {own.vocabulary!r}, not {vocabulary!r}")
        elif not isinstance(own, seqio.PassThroughVocabulary) and own.vocab_size != vocabulary.size:
            raise ValueError(
                f"feature {name!r} of {task.name!r} has a vocabulary of {own.vocab_size} ids, the experiment's has "
                f"{vocabulary.size}; register the task with PlaceholderVocabulary() or train on its vocabulary"
            )
        features[name] = feature
    return seqio.helpers.mixture_or_task_with_new_vocab(
        task,
        f"{task.name}.{vocabulary.fingerprint[:12]}",
        new_output_features=features,
        add_to_seqio_registry=False,
    )
