"""Blocks of documents as tokens, in any process and without TensorFlow: what the workers of `t2t cache` do.

It is the work of `preprocessors.tokenize` and `preprocessors.Chunk`, but for joining documents: that needs no work,
since pieces of a text of all documents are found by their place in it. And that of `TokenizeSentences`.
"""

import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from t2t.data import cache_directory, sentences
from t2t.data.cache_directory import Group
from t2t.data.shards import Shard
from t2t.data.store import TokenStore
from t2t.data.text_files import Skipped
from t2t.vocabulary import Vocabulary

Row = Mapping[str, Any]
"""One document or record: texts, and whatever else stands beside them."""

TOGETHER = 512
"""Rows that are tokenised at a time."""


@dataclass(frozen=True, kw_only=True)
class Rekey:
    """The row under other names, others dropped: {new: old}, as `seqio.preprocessors.rekey`; no old name is ""."""

    names: Mapping[str, str | None]

    def __call__(self, row: Row) -> Row:
        """The row under its new names."""
        return {new: row[old] if old else "" for new, old in self.names.items()}


@dataclass(frozen=True, kw_only=True)
class Prefix:
    """The inputs with a prefix and the targets, as `preprocessors.TextToText`."""

    prefix: str
    inputs: str
    targets: str

    def __call__(self, row: Row) -> Row:
        """The row with the prefix."""
        return {"inputs": f"{self.prefix}{row[self.inputs]}", "targets": row[self.targets]}


@dataclass(frozen=True, kw_only=True)
class Cut:
    """What becomes of the tokens of a document: `preprocessors.Chunk` for one vocabulary and lengths.

    Documents without tokens are dropped, and so are all other features.
    """

    feature: str
    eos_id: int | None
    """Put after each document."""
    length: int | None
    """Tokens of a piece; None leaves documents whole."""
    across_documents: bool
    """Whether documents are joined before they are cut, which is not done here."""

    def __call__(self, row: Row) -> Iterator[Row]:
        """The pieces of a document, or all of it."""
        tokens = row[self.feature]
        if not len(tokens):
            return
        if self.eos_id is not None:
            tokens = np.append(tokens, np.int32(self.eos_id))
        if self.length is None or self.across_documents:
            yield {self.feature: tokens}
        else:
            for start in range(0, len(tokens), self.length):
                yield {self.feature: tokens[start : start + self.length]}


@dataclass(frozen=True, kw_only=True)
class Tokenizer:
    """Rows to rows of tokens.

    Attributes:
        vocabularies: of each feature that is tokenised.
        steps: what is done to a row before that.
        cut: what is done to it afterwards.
    """

    vocabularies: Mapping[str, Vocabulary]
    steps: Sequence[Callable[[Row], Row]] = ()
    cut: Cut | None = None

    def __call__(self, rows: Iterable[Row]) -> TokenStore:
        """The tokens of rows, and numbers that stand beside them; their texts are gone."""
        return TokenStore.collect(self._tokenized(rows))

    def _tokenized(self, rows: Iterable[Row]) -> Iterator[Row]:
        for batch in batches(rows, TOGETHER):
            for step in self.steps:
                batch = [step(row) for row in batch]
            encoded = {
                name: vocabulary.encode_batch([_as_text(row[name]) for row in batch])
                for name, vocabulary in self.vocabularies.items()
            }
            for place, row in enumerate(batch):
                tokens = {name: np.array(ids[place], np.int32) for name, ids in encoded.items()}
                numbers = {name: value for name, value in row.items() if not isinstance(value, str | bytes)}
                made = {**numbers, **tokens}
                yield from [made] if self.cut is None else self.cut(made)


@dataclass(frozen=True, kw_only=True)
class SentenceTokenizer:
    """Rows to the tokens of their sentences, as `sentence_formats.TokenizeSentences`; all else is dropped.

    Attributes:
        vocabulary: of the feature.
        feature: the text.
        wrapped: whether only an empty line ends a sentence.
        lengths: name of the feature that says how many tokens each sentence has.
        steps: what is done to a row before.
    """

    vocabulary: Vocabulary
    feature: str
    wrapped: bool
    lengths: str
    steps: Sequence[Callable[[Row], Row]] = ()

    def __call__(self, rows: Iterable[Row]) -> TokenStore:
        """The tokens of rows."""
        return TokenStore.collect(self._tokenized(rows))

    def _tokenized(self, rows: Iterable[Row]) -> Iterator[Row]:
        for batch in batches(rows, TOGETHER):
            for step in self.steps:
                batch = [step(row) for row in batch]
            texts = [_as_text(row[self.feature]) for row in batch]
            found = [sentences.split_sentences(text, wrapped=self.wrapped) for text in texts]
            ids = iter(self.vocabulary.encode_batch([sentence for part in found for sentence in part]))
            for part in found:
                own = [next(ids) for _ in part]
                yield {
                    self.feature: np.array([token for sentence in own for token in sentence], np.int32),
                    self.lengths: np.array([len(sentence) for sentence in own], np.int32),
                }


def _as_text(text: str | bytes) -> str:
    return text.decode("utf-8", errors="replace") if isinstance(text, bytes) else text


def batches(rows: Iterable[Row], number: int) -> Iterator[list[Row]]:
    """So many rows at a time, the last time fewer."""
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == number:
            yield batch
            batch = []
    if batch:
        yield batch


def blocks(rows: Iterable[Row], size: int, measure: Callable[[Row], int]) -> Iterator[list[Row]]:
    """Rows in order, as many together as reach `size`.

    >>> list(blocks([{"n": 3}, {"n": 4}, {"n": 9}, {"n": 1}], 7, lambda row: row["n"]))
    [[{'n': 3}, {'n': 4}], [{'n': 9}], [{'n': 1}]]
    """
    block: list[Row] = []
    total = 0
    for row in rows:
        block.append(row)
        total += measure(row)
        if total >= size:
            yield block
            block, total = [], 0
    if block:
        yield block


def text_size(row: Row) -> int:
    """Characters of the texts of a row, and one for the row itself."""
    return 1 + sum(len(value) for value in row.values() if isinstance(value, str | bytes))


def token_bytes(row: Row) -> int:
    """Bytes that the tokens of a row take."""
    return sum(4 * np.size(value) for value in row.values() if not isinstance(value, str | bytes))


@dataclass(frozen=True, kw_only=True)
class BlockReader:
    """The blocks of a group of files that are not in the cache yet.

    Attributes:
        directory: of the cache.
        rows: gives the rows of a group, counting what is left out.
        size: characters of a block.
        kept: names of the shards that need not be made.
    """

    directory: pathlib.Path
    rows: Callable[[Any, Skipped], Iterator[Row]]
    size: int
    kept: frozenset[str] = field(default=frozenset(), repr=False)

    def __call__(self, job: tuple[str, Any]) -> Iterator[tuple[str, list[Row]]]:
        """The blocks of a group (its name, and what `rows` takes), each with the name of its shard."""
        group, files = job
        skipped, number = Skipped(), 0
        for block in blocks(self.rows(files, skipped), self.size, text_size):
            name = cache_directory.shard_name(group, number)
            number += 1
            if name not in self.kept:
                yield name, block
        cache_directory.end_group(self.directory, Group(name=group, shards=number, skipped=skipped))


@dataclass(frozen=True, kw_only=True)
class BlockWriter:
    """Tokenises a block and keeps it as a shard."""

    directory: pathlib.Path
    tokenizer: Callable[[Sequence[Row]], TokenStore]

    def __call__(self, block: tuple[str, Sequence[Row]]) -> Shard:
        """The shard of a block of `BlockReader`."""
        name, rows = block
        return cache_directory.keep(self.directory, name, self.tokenizer(rows))
