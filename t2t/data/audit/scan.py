"""What one process does with one file of a corpus: measure its texts, write what finds duplicates, look for leaks."""

import hashlib
import pathlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt64

from t2t.data.audit import columns, near_duplicates, text_statistics
from t2t.data.audit import units as units_lib
from t2t.data.audit.contamination import EvaluationIndex, Leaks, holds_leak
from t2t.data.audit.text_statistics import TextStatistics
from t2t.data.corpora import FileReader
from t2t.data.text_files import Skipped

KEY = "text"
"""Under which a reader hands on a document."""

GRAMS = columns.Column(name="grams", dtype=np.uint64)
"""The n-grams of documents that are compared, ascending."""

NUM_GRAMS = columns.Column(name="num_grams", dtype=np.int64)
"""How many each document has."""

IS_COMPARED = columns.Column(name="is_compared", dtype=np.bool_)
"""Whether a document is compared with another."""

Tell = Callable[[int], None]
"""Called now and then with the number of documents of a file that have been read."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a file has."""

    number: int
    statistics: TextStatistics
    skipped: Skipped
    leaks: Leaks | None
    num_leaking: int = 0
    """Documents with text of an evaluation set."""


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Some documents at a time: so many that they have `units.BLOCK` characters, or one that has more."""
    some: list[str] = []
    size = 0
    for text in texts:
        if some and size + len(text) > units_lib.BLOCK:
            yield some
            some, size = [], 0
        some.append(text)
        size += len(text)
    if some:
        yield some


def digests(texts: Iterable[str]) -> UInt64[np.ndarray, "D 2"]:
    """A hash of each text as it is but for white space around it."""
    found = (hashlib.blake2b(text.strip().encode(), digest_size=16).digest() for text in texts)
    return np.frombuffer(b"".join(found), "<u8").astype(np.uint64).reshape(-1, 2)


@dataclass(frozen=True, kw_only=True)
class Scan:
    """The first reading of a file; it can be sent to another process.

    Args:
        reader: of files, whose documents come under `KEY`.
        directory: where columns are written.
        ngram: units of the n-grams by which similar texts are found.
        hashes: of a signature.
        min_units: of texts that may be duplicates.
        index: evaluation documents to look for.
        leak_share: see `contamination.holds_leak`.
        tell: of progress, in this process alone.
    """

    reader: FileReader
    directory: pathlib.Path
    ngram: int
    hashes: int
    min_units: int
    index: EvaluationIndex | None
    leak_share: float
    tell: Tell | None = None

    def __call__(self, job: tuple[int, pathlib.Path]) -> Part:
        """Reads the file of that number.

        Raises:
            CorpusError: it cannot be read.
        """
        number, path = job
        skipped, statistics, num_leaking = Skipped(), TextStatistics(), 0
        leaks = None if self.index is None else Leaks.none(self.index)
        with columns.Writer(self.directory, number) as writer:
            for texts in batches(row[KEY] for row in self.reader.rows([path], skipped)):
                units = units_lib.hash_units(texts)
                if self.index is not None and leaks is not None:
                    hits = self.index.find(units)
                    leaks.add(hits, self.index, first=statistics.documents)
                    grams = np.maximum(units.sizes - self.index.n + 1, 1)
                    leaking = holds_leak(hits, self.index, ngrams=grams, share=self.leak_share)
                    writer.add(columns.HOLDS_LEAK, leaking)
                    num_leaking += int(leaking.sum())
                grams = units_lib.ngrams(units, self.ngram)
                writer.add(columns.DIGEST, digests(texts))
                writer.add(columns.LENGTH, np.array([len(text) for text in texts]))
                writer.add(columns.IS_LONG, units.sizes >= max(1, self.min_units))
                writer.add(columns.signature(self.hashes), near_duplicates.signatures(grams, hashes=self.hashes))
                statistics += text_statistics.measure(texts, units)
                if self.tell is not None:
                    self.tell(statistics.documents)
        return Part(number=number, statistics=statistics, skipped=skipped, leaks=leaks, num_leaking=num_leaking)


@dataclass(frozen=True, kw_only=True)
class Recheck:
    """The second reading of a file, for the n-grams of documents that are compared; it can be sent to another process.

    Args:
        reader: of files, whose documents come under `KEY`.
        directory: of the columns.
        ngram: units of the n-grams.
        documents: of all files.
        tell: of progress, in this process alone.
    """

    reader: FileReader
    directory: pathlib.Path
    ngram: int
    documents: int
    tell: Tell | None = None

    def __call__(self, job: tuple[int, pathlib.Path, int]) -> tuple[int, int]:
        """Reads the file of that number, whose first document has the last number; returns how many documents it has.

        Raises:
            CorpusError: it cannot be read.
        """
        number, path, first = job
        is_compared = columns.reopen(self.directory, IS_COMPARED, self.documents)
        done = 0
        with columns.Writer(self.directory, number) as writer:
            for texts in batches(row[KEY] for row in self.reader.rows([path])):
                compared = is_compared[first + done : first + done + len(texts)]
                some = [text for text, is_one in zip(texts, compared, strict=False) if is_one]
                grams = units_lib.ngrams(units_lib.hash_units(some), self.ngram)
                rows = [np.unique(grams[row]) for row in range(len(grams))]
                sizes = np.zeros(len(texts), np.int64)
                sizes[np.flatnonzero(compared)] = [len(row) for row in rows]
                writer.add(NUM_GRAMS, sizes)
                if rows:
                    writer.add(GRAMS, np.concatenate(rows))
                done += len(texts)
                if self.tell is not None:
                    self.tell(done)
        return number, done
