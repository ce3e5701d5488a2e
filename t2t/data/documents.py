"""Tokenised documents with their sentences, the sequences that formats of pretraining make of them, and their count.

A format plans with ranges of the tokens of all documents and finishes sequences from its plan: see `segment_pairs` and
`sentence_blocks`.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Documents:
    """Tokenised documents end to end; those without tokens are left out, and so are sentences without.

    Attributes:
        tokens: of all documents.
        bounds: where each sentence starts in `tokens`, and where the last one stops.
        firsts: number of each document's first sentence, and the number of sentences.
        numbers: of each document in its source.
    """

    tokens: Int[np.ndarray, " N"]
    bounds: Int[np.ndarray, " S"]
    firsts: Int[np.ndarray, " D"]
    numbers: Int[np.ndarray, " E"]

    @classmethod
    def of(
        cls,
        tokens: Int[np.ndarray, " N"],
        sentence_lengths: Int[np.ndarray, " S"],
        sentence_counts: Int[np.ndarray, " D"],
    ) -> "Documents":
        """From the tokens of all documents, the tokens of each sentence and the sentences of each document.

        Raises:
            ValueError: numbers that do not add up.
        """
        if int(sentence_lengths.sum()) != len(tokens) or int(sentence_counts.sum()) != len(sentence_lengths):
            raise ValueError(
                f"{len(tokens)} tokens in sentences of {sentence_lengths.sum()}, {len(sentence_lengths)} sentences in "
                f"documents of {sentence_counts.sum()}: the numbers of each pair must be equal"
            )
        is_full = sentence_lengths > 0
        owners = np.repeat(np.arange(len(sentence_counts)), sentence_counts)[is_full]
        counts = np.bincount(owners, minlength=len(sentence_counts))
        numbers = np.flatnonzero(counts)
        return cls(
            tokens=tokens.astype(np.int32, copy=False),
            bounds=np.concatenate([[0], np.cumsum(sentence_lengths[is_full])]).astype(np.int64),
            firsts=np.concatenate([[0], np.cumsum(counts[numbers])]).astype(np.int64),
            numbers=numbers,
        )

    @classmethod
    def of_lists(cls, documents: Iterable[Sequence[Sequence[int]]]) -> "Documents":
        """From documents as lists of sentences of ids."""
        documents = [list(document) for document in documents]
        sentences = [sentence for document in documents for sentence in document]
        return cls.of(
            np.array([token for sentence in sentences for token in sentence], np.int32),
            np.array([len(sentence) for sentence in sentences], np.int64),
            np.array([len(document) for document in documents], np.int64),
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def sentences(self, index: int) -> tuple[int, int]:
        """Numbers of the first sentence of a document and of the first behind it."""
        return int(self.firsts[index]), int(self.firsts[index + 1])


@dataclasses.dataclass(frozen=True, kw_only=True)
class SequenceFrame:
    """How long an example may be and what stands around its text; a vocabulary may lack bos.

    Raises:
        ValueError: no room for a pair of two tokens.
    """

    length: int
    bos_id: int | None
    eos_id: int

    def __post_init__(self) -> None:
        if self.length < self.num_specials + 2:
            raise ValueError(
                f"sequences of {self.length} tokens have no room for two segments beside {self.num_specials} special "
                f"tokens: lengths must be at least {self.num_specials + 2}"
            )

    @property
    def has_bos(self) -> int:
        """Special tokens before a text: 0 or 1."""
        return int(self.bos_id is not None)

    @property
    def num_specials(self) -> int:
        """Special tokens of a pair."""
        return self.has_bos + 2

    @property
    def room(self) -> int:
        """Text tokens of a pair; a single text has room for one more."""
        return self.length - self.num_specials

    def blank(self, lengths: Int[np.ndarray, " P"]) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " P"]]:
        """Sequences of these lengths end to end, bos first and else all eos, and where each one starts."""
        starts = np.cumsum(lengths) - lengths
        out = np.full(int(lengths.sum()), self.eos_id, np.int32)
        if self.bos_id is not None:
            out[starts] = self.bos_id
        return out, starts


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sequences:
    """Finished examples end to end, the length of each, and what only pairs have.

    Attributes:
        tokens: of all examples, special tokens included.
        lengths: tokens of each example.
        token_types: 0 in the first segment, 1 in the second.
        kinds: how each pair came about (`segment_pairs.Kind`).
    """

    tokens: Int[np.ndarray, " N"]
    lengths: Int[np.ndarray, " P"]
    token_types: Int[np.ndarray, " N"] | None = None
    kinds: Int[np.ndarray, " P"] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class FormatStatistics:
    """What a format made of a corpus; every example counts as a row of `length` tokens of its own."""

    length: int
    examples: int = 0
    tokens: int = 0
    """Special tokens included, padding not."""
    cut: int = 0
    """Text tokens that were cut off."""
    kinds: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Pairs by how they came about, those of which no example was made included."""

    def __add__(self, other: "FormatStatistics") -> "FormatStatistics":
        """Of both together."""
        kinds = {kind: self.kinds.get(kind, 0) + other.kinds.get(kind, 0) for kind in {**self.kinds, **other.kinds}}
        return FormatStatistics(
            length=self.length,
            examples=self.examples + other.examples,
            tokens=self.tokens + other.tokens,
            cut=self.cut + other.cut,
            kinds=kinds,
        )

    @property
    def padding(self) -> float:
        """Share of padding in rows of one example, in [0, 1)."""
        return 1 - self.tokens / (self.examples * self.length) if self.examples else 0.0

    def rows_for(self, tokens: int) -> int:
        """Rows that hold so many tokens on average: RoBERTa enlarges its batches until all formats see as many."""
        return round(tokens * self.examples / max(self.tokens, 1))

    def __str__(self) -> str:
        """One line for people.

        >>> print(FormatStatistics(length=8, examples=2, tokens=12, cut=3, kinds={"follows": 2}))
        2 examples of 6.0 tokens, padding 25.0% of rows of 8, 3 tokens cut off, follows 100.0%
        """
        total = max(sum(self.kinds.values()), 1)
        parts = [
            f"{self.examples:,} examples of {self.tokens / max(self.examples, 1):.1f} tokens",
            f"padding {self.padding:.1%} of rows of {self.length}",
            *([f"{self.cut:,} tokens cut off"] if self.cut else []),
            *(f"{kind} {number / total:.1%}" for kind, number in self.kinds.items()),
        ]
        return ", ".join(parts)


def ranges(starts: Int[np.ndarray, " P"], sizes: Int[np.ndarray, " P"]) -> Int[np.ndarray, " N"]:
    """start, start + 1, ... of each range, end to end.

    >>> ranges(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    ends = np.cumsum(sizes)
    return np.repeat(starts - (ends - sizes), sizes) + np.arange(int(ends[-1]) if len(ends) else 0)
