"""The duplicates of a whole corpus, in bounded memory: from signatures on disk to clusters of equal and similar texts.

    1. texts that are equal but for white space around them, by their digests
    2. of the first of each, the pairs that share a band of their signatures and agree in enough of them
    3. a second reading of the texts in these pairs alone, and the true similarity of each pair

So a pair that is reported is as similar as it should be, without doubt; one that is missed shares no band, or falls
more than three standard errors short in its signatures. Clusters are what pairs connect.
"""

import contextlib
import pathlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, UInt16, UInt64

from t2t.data import workers as workers_lib
from t2t.data.audit import columns, near_duplicates
from t2t.data.audit.near_duplicates import Clusters
from t2t.data.audit.scan import GRAMS, IS_COMPARED, NUM_GRAMS, Recheck
from t2t.data.audit.units import Ragged
from t2t.data.corpora import CorpusError, FileReader

EXACT = 2.0
"""In the column of similarities: the text has come before."""

_BLOCK = 50_000  # documents that are looked at together
_SORTED = 64  # bytes that sorting takes for each place
_PAIR_SIZE = 16  # bytes of a pair on disk


@dataclass(frozen=True, kw_only=True)
class Law:
    """What counts as similar, and how it is found."""

    ngram: int
    similarity: float
    hashes: int
    min_units: int = 0
    """Units of texts that are looked at; shorter ones are no duplicates."""

    def __post_init__(self):
        """Refuse what finds nothing."""
        if self.ngram < 1:
            raise ValueError(f"ngram={self.ngram} must be at least 1 word")
        if self.min_units < 0:
            raise ValueError(f"min_units={self.min_units} must not be negative")
        _ = self.banding

    @property
    def banding(self) -> near_duplicates.Banding:
        """The bands of a signature."""
        return near_duplicates.choose_banding(self.similarity, hashes=self.hashes)

    @property
    def least_agreement(self) -> float:
        """Of two signatures whose texts are compared: three standard errors less than the similarity."""
        return self.similarity - 3 * np.sqrt(self.similarity * (1 - self.similarity) / self.hashes)


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The files of a corpus, and the columns of their documents that have been written."""

    files: Sequence[pathlib.Path]
    sizes: Sequence[int]
    """Documents of each file."""
    reader: FileReader
    directory: pathlib.Path
    """Of the columns."""

    @property
    def documents(self) -> int:
        """Of all files."""
        return sum(self.sizes)

    @property
    def firsts(self) -> Int[np.ndarray, " F"]:
        """The number of each file's first document; last, that of all documents."""
        return np.cumsum([0, *self.sizes])

    def place(self, document: int) -> tuple[int, int]:
        """The file of a document, and which of its documents it is, from 0."""
        file = int(np.searchsorted(self.firsts, document, side="right")) - 1
        return file, document - int(self.firsts[file])


@dataclass(frozen=True, kw_only=True)
class Duplicates:
    """Which documents say what earlier ones say.

    Attributes:
        clusters: the documents that belong together.
        similarity: of each document to one of its cluster; `EXACT` for one that is equal to an
            earlier one, 0 for one alone.
        compared: pairs whose true similarity was computed.
    """

    clusters: Clusters
    similarity: Float[np.ndarray, " D"]
    compared: int

    def blocks(self) -> Iterator[tuple[int, Int[np.ndarray, " P"], Float[np.ndarray, " P"]]]:
        """(number of the first, first of each one's cluster, similarity) of some documents at a time."""
        for start in range(0, len(self.similarity), _BLOCK):
            stop = min(start + _BLOCK, len(self.similarity))
            yield start, self.clusters.flatten(start, stop), np.asarray(self.similarity[start:stop])


def find(
    corpus: Corpus,
    law: Law,
    *,
    memory: int,
    workers: int,
    say: Callable[[str], None],
    tell: Callable[[int], None] | None = None,
) -> Duplicates:
    """The duplicates of a corpus whose files have been scanned.

    Args:
        corpus: with the columns that `scan.Scan` writes.
        law: what counts as similar.
        memory: bytes that sorting may take.
        workers: processes that read texts.
        say: told what is going on.
        tell: see `scan.Recheck`.

    Raises:
        CorpusError: files that have changed since they were scanned.
    """
    at_once = max(1, memory // _SORTED)
    say("looking for equal texts")
    clusters = Clusters(
        columns.create(corpus.directory, columns.Column(name="first", dtype=np.int64), corpus.documents)
    )
    similarity = columns.create(corpus.directory, columns.Column(name="similar", dtype=np.float32), corpus.documents)
    duplicates = Duplicates(clusters=clusters, similarity=similarity, compared=0)
    chosen = columns.gather(corpus.directory, columns.IS_LONG, corpus.sizes)
    _join_equal(corpus, duplicates, chosen, all_lengths=law.min_units == 0, at_once=at_once)
    say("looking for similar texts")
    signatures = columns.gather(corpus.directory, columns.signature(law.hashes), corpus.sizes)
    keys = _write_keys(corpus, law, signatures)
    pairs = corpus.directory / "pairs"
    is_compared = columns.create(corpus.directory, IS_COMPARED, corpus.documents)
    number = _write_pairs(pairs, keys, signatures, chosen, is_compared, law=law, at_once=at_once)
    if not number:
        return duplicates
    say(f"comparing {number:,} pairs of texts")
    _recheck(corpus, law, is_compared, workers=workers, tell=tell)
    compared = _join_similar(corpus, law, duplicates, pairs)
    return Duplicates(clusters=clusters, similarity=similarity, compared=compared)


def _join_equal(
    corpus: Corpus, duplicates: Duplicates, chosen: Bool[np.ndarray, " D"], *, all_lengths: bool, at_once: int
) -> None:
    """Joins equal texts that are `chosen`, or of any length, of which only the first is chosen for what follows."""
    parents = duplicates.clusters.parents
    for start in range(0, len(parents), _BLOCK):
        stop = min(start + _BLOCK, len(parents))
        parents[start:stop] = np.arange(start, stop)
    found = columns.gather(corpus.directory, columns.DIGEST, corpus.sizes)
    among = None if all_lengths else chosen
    for groups in near_duplicates.equal_groups(found[:, 0], chosen=among, at_once=at_once):
        equal = split_groups(groups, found[groups.values, 1])
        duplicates.clusters.join_all(equal)
        others = np.delete(equal.values, equal.offsets[:-1])
        chosen[others] = False
        duplicates.similarity[others] = EXACT


def split_groups(groups: Ragged, keys: UInt64[np.ndarray, " M"]) -> Ragged:
    """The groups of two or more members that have equal keys too, ascending within each.

    Args:
        groups: of places.
        keys: of each member.
    """
    order = np.lexsort((groups.values, keys, groups.owners))
    places, keys, owners = groups.values[order], keys[order], groups.owners[order]
    begins = np.ones(len(places), bool)
    begins[1:] = (keys[1:] != keys[:-1]) | (owners[1:] != owners[:-1])
    sizes = np.diff(np.append(np.flatnonzero(begins), len(places)))
    several = sizes > 1
    return Ragged.of(places[np.repeat(several, sizes)], sizes[several])


def _write_keys(corpus: Corpus, law: Law, signatures: UInt16[np.ndarray, "D K"]) -> list[UInt64[np.ndarray, " D"]]:
    """The keys of every band, each band by itself, since they are sorted so."""
    banding = law.banding
    bands = [columns.Column(name=f"band.{band}", dtype=np.uint64) for band in range(banding.bands)]
    keys = [columns.create(corpus.directory, band, corpus.documents) for band in bands]
    for start in range(0, corpus.documents, _BLOCK):
        made = near_duplicates.band_keys(np.asarray(signatures[start : start + _BLOCK]), banding)
        for band, values in zip(keys, made.T, strict=True):
            band[start : start + _BLOCK] = values
    return keys


def _write_pairs(
    path: pathlib.Path,
    keys: Sequence[UInt64[np.ndarray, " D"]],
    signatures: UInt16[np.ndarray, "D K"],
    chosen: Bool[np.ndarray, " D"],
    is_compared: Bool[np.ndarray, " D"],
    *,
    law: Law,
    at_once: int,
) -> int:
    """Writes the pairs to be compared, and marks their texts; returns how many there are."""
    number = 0
    crowded = columns.create(path.parent, columns.Column(name="crowded", dtype=np.bool_), len(signatures))
    with path.open("wb") as file:
        for band, values in enumerate(keys):
            for groups in near_duplicates.equal_groups(values, chosen=chosen, at_once=at_once):
                for pairs in near_duplicates.candidates(groups, signatures, similarity=law.least_agreement):
                    new = pairs[~_is_known(pairs, keys[:band], crowded)]
                    is_compared[new] = True
                    file.write(np.ascontiguousarray(new, np.int64).data)
                    number += len(new)
                crowded[groups.values[np.repeat(groups.sizes > near_duplicates.SMALL, groups.sizes)]] = True
    return number


def _is_known(
    pairs: Int[np.ndarray, "P 2"], earlier: Sequence[UInt64[np.ndarray, " D"]], crowded: Bool[np.ndarray, " D"]
) -> Bool[np.ndarray, " P"]:
    """Which pairs an earlier band has given, where it was looked at all pairs of their groups."""
    left, right = pairs.T
    known = np.zeros(len(pairs), bool)
    for keys in earlier:
        known |= keys[left] == keys[right]
    return known & ~crowded[left] & ~crowded[right]


def _recheck(
    corpus: Corpus,
    law: Law,
    is_compared: Bool[np.ndarray, " D"],
    *,
    workers: int,
    tell: Callable[[int], None] | None,
) -> None:
    firsts = corpus.firsts
    jobs = [
        (number, path, int(first))
        for number, (path, first, size) in enumerate(zip(corpus.files, firsts, corpus.sizes, strict=False))
        if size and is_compared[first : first + size].any()
    ]
    recheck = Recheck(
        reader=corpus.reader,
        directory=corpus.directory,
        ngram=law.ngram,
        documents=corpus.documents,
        tell=tell if workers == 1 else None,
    )
    with contextlib.closing(workers_lib.run(recheck, jobs, workers=workers)) as results:
        for number, documents in results:
            if documents != corpus.sizes[number]:
                raise CorpusError(
                    f"{corpus.files[number]} has {documents:,} documents, and had {corpus.sizes[number]:,} a moment "
                    "ago: audit it when nobody writes to it"
                )


def _join_similar(corpus: Corpus, law: Law, duplicates: Duplicates, path: pathlib.Path) -> int:
    """Joins the pairs that are as similar as they should be; returns how many were compared."""
    grams = _Grams(corpus)
    compared = 0
    with path.open("rb") as file:
        while data := file.read(_PAIR_SIZE * _BLOCK):
            for left, right in np.frombuffer(data, np.int64).reshape(-1, 2).tolist():
                if duplicates.clusters.find(left) == duplicates.clusters.find(right):
                    continue
                compared += 1
                similarity = near_duplicates.jaccard(grams[left], grams[right])
                if similarity >= law.similarity:
                    duplicates.clusters.join(left, right)
                    for place in (left, right):
                        duplicates.similarity[place] = max(similarity, float(duplicates.similarity[place]))
    return compared


class _Grams:
    """The n-grams of the documents that are compared: the parts that the second reading wrote, end to end."""

    def __init__(self, corpus: Corpus):
        directory, number = corpus.directory, corpus.documents
        self._starts = columns.create(directory, columns.Column(name="gram_start", dtype=np.int64), number)
        self._sizes = columns.create(directory, columns.Column(name="gram_size", dtype=np.int64), number)
        end = 0
        with (directory / GRAMS.name).open("wb") as whole:
            for part, (first, size) in enumerate(zip(corpus.firsts, corpus.sizes, strict=False)):
                path = columns.part_path(directory, GRAMS, part)
                if path.exists():
                    sizes = np.fromfile(columns.part_path(directory, NUM_GRAMS, part), NUM_GRAMS.dtype, size)
                    self._sizes[first : first + size] = sizes
                    self._starts[first : first + size] = end + np.cumsum(sizes) - sizes
                    end += int(sizes.sum())
                    with path.open("rb") as file:
                        shutil.copyfileobj(file, whole, 2**20)
                    path.unlink()
        self._values = columns.reopen(directory, GRAMS, end)

    def __getitem__(self, document: int) -> UInt64[np.ndarray, " G"]:
        start = int(self._starts[document])
        return self._values[start : start + int(self._sizes[document])]
