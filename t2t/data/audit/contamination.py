"""Text of evaluation sets inside a corpus, found by n-grams that both have.

An evaluation document is known by those of its n-grams that few others have: what a hundred of them share is the form
of a question, and tells nothing of the corpus. One of fewer than n units is a single run of all its units; below
`SHORTEST` it cannot be told from chance, and is not looked for.

    share of an evaluation document       of its n-grams, how many stand in a document of the corpus (or in any of them)
    share of a document of the corpus     of its n-grams, how many stand in an evaluation document

Reference: "Language Models are Few-Shot Learners", arXiv:2005.14165, appendix C, where n is at most 13 and one common
n-gram makes an example suspect; "PaLM: Scaling Language Modeling with Pathways", arXiv:2204.02311, section 8, asks for
a share of 70 % of its 8-grams.

Differs: words are counted without regard to language (`t2t.data.audit.units`), and an evaluation document that says
what another says is looked for once.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

from t2t.data.audit import units as units_lib
from t2t.data.audit.units import Ragged
from t2t.data.documents import ranges

SHORTEST = 5
"""Units from which on an evaluation document is looked for."""

COMMON = 100
"""Evaluation documents that may share an n-gram by which each of them is known."""

_TOGETHER = 2048  # evaluation documents that are hashed at a time
_MAX_BITS = 24  # of the table that spares most searches


@dataclass(frozen=True, kw_only=True)
class Hits:
    """What a batch of documents has in common with evaluation documents, by pairs of them.

    Attributes:
        documents: number of each pair's document in the batch.
        evaluations: number of its evaluation document.
        counts: how many n-grams of that are in the document.
        grams: numbers of all n-grams that are in some document, each once.
    """

    documents: Int[np.ndarray, " P"]
    evaluations: Int[np.ndarray, " P"]
    counts: Int[np.ndarray, " P"]
    grams: Int[np.ndarray, " G"]


@dataclass(frozen=True, kw_only=True)
class EvaluationIndex:
    """The n-grams of evaluation documents, to be looked for; it takes some 30 bytes for each word of them.

    Attributes:
        n: units of an n-gram.
        hashes: of the n-grams that are looked for, ascending.
        owners: the evaluation documents that have each of them.
        sizes: how many of them each evaluation document has; 0 = it is not looked for.
        lengths: units of the n-grams there are: n, and those of shorter documents.
        short: evaluation documents that are too short.
        repeated: evaluation documents that say what an earlier one says.
        common: evaluation documents without an n-gram that tells them from a hundred others.
    """

    n: int
    hashes: UInt64[np.ndarray, " G"]
    owners: Ragged
    sizes: Int[np.ndarray, " E"]
    lengths: tuple[int, ...]
    short: Bool[np.ndarray, " E"]
    repeated: Bool[np.ndarray, " E"]
    common: Bool[np.ndarray, " E"]

    @classmethod
    def of(cls, texts: Iterable[str], *, n: int) -> "EvaluationIndex":
        """The index of these evaluation documents, numbered as they come."""
        sizes, whole, hashes, owners = [], [], [], []
        for first, units in _batches(texts):
            grams = units_lib.ngrams(units, n)
            is_long = units.sizes >= SHORTEST
            sizes.append(units.sizes)
            whole.append(_whole(units))
            hashes.append(grams.values[is_long[grams.owners]])
            owners.append(grams.owners[is_long[grams.owners]] + first)
        lengths = _join(sizes, np.int64)
        short = lengths < SHORTEST
        repeated = ~short & _is_repeated(_join(whole, np.uint64))
        found, numbers = _distinct(_join(hashes, np.uint64), _join(owners, np.int64), left_out=repeated)
        index = _known_by(found, numbers, documents=len(lengths))
        present = {int(length) for length in np.unique(np.minimum(lengths[index.sizes > 0], n))}
        return cls(
            n=n,
            hashes=index.hashes,
            owners=index.owners,
            sizes=index.sizes,
            lengths=tuple(sorted(present)),
            short=short,
            repeated=repeated,
            common=~short & ~repeated & (index.sizes == 0),
        )

    def __len__(self) -> int:
        return len(self.sizes)

    @functools.cached_property
    def _bits(self) -> int:
        return min(_MAX_BITS, max(8, int(len(self.hashes)).bit_length() + 4))

    @functools.cached_property
    def _table(self) -> Bool[np.ndarray, " T"]:
        """Whether some n-gram's hash begins with these bits: most of what is looked up ends here."""
        table = np.zeros(2**self._bits, bool)
        table[self.hashes >> (64 - self._bits)] = True
        return table

    def find(self, units: Ragged) -> Hits:
        """What these documents, as units, have in common with evaluation documents."""
        documents, grams = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for windows in units_lib.windows(units, self.lengths):
            maybe = np.flatnonzero(self._table[windows.values >> (64 - self._bits)])
            places = np.minimum(np.searchsorted(self.hashes, windows.values[maybe]), len(self.hashes) - 1)
            is_hit = self.hashes[places] == windows.values[maybe]
            documents.append(np.searchsorted(windows.offsets, maybe[is_hit], side="right") - 1)
            grams.append(places[is_hit])
        number = max(1, len(self.hashes))
        pairs = np.unique(np.concatenate(documents) * number + np.concatenate(grams))
        return self._of_documents(pairs // number, pairs % number)

    def _of_documents(self, documents: Int[np.ndarray, " H"], grams: Int[np.ndarray, " H"]) -> Hits:
        """The pairs of documents behind pairs of document and n-gram."""
        starts = self.owners.offsets[grams]
        sizes = self.owners.offsets[grams + 1] - starts
        owners = self.owners.values[ranges(starts, sizes)]
        codes, counts = np.unique(np.repeat(documents, sizes) * len(self) + owners, return_counts=True)
        return Hits(
            documents=codes // max(1, len(self)),
            evaluations=codes % max(1, len(self)),
            counts=counts,
            grams=np.unique(grams),
        )


@dataclass(frozen=True, kw_only=True)
class _Known:
    hashes: UInt64[np.ndarray, " G"]
    owners: Ragged
    sizes: Int[np.ndarray, " E"]


def _batches(texts: Iterable[str]) -> Iterator[tuple[int, Ragged]]:
    """The units of some texts at a time, with the number of the first of them."""
    first, some, size = 0, [], 0
    for text in texts:
        some.append(text)
        size += len(text)
        if len(some) == _TOGETHER or size > units_lib.BLOCK:
            yield first, units_lib.hash_units(some)
            first, some, size = first + len(some), [], 0
    if some:
        yield first, units_lib.hash_units(some)


def _join(parts: Sequence[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype), *parts])


def _whole(units: Ragged) -> UInt64[np.ndarray, " R"]:
    """A hash of all units of each row in their order."""
    within = np.arange(len(units.values)) - np.repeat(units.offsets[:-1], units.sizes)
    values = units_lib.mix(units.values + units_lib.mix(within.astype(np.uint64) + 1))
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    return units_lib.mix(total[units.offsets[1:]] - total[units.offsets[:-1]] + units.sizes.astype(np.uint64))


def _is_repeated(values: UInt64[np.ndarray, " E"]) -> Bool[np.ndarray, " E"]:
    """True where a value has come before."""
    repeated = np.ones(len(values), bool)
    repeated[np.unique(values, return_index=True)[1]] = False
    return repeated


def _distinct(
    hashes: UInt64[np.ndarray, " H"], owners: Int[np.ndarray, " H"], *, left_out: Bool[np.ndarray, " E"]
) -> tuple[UInt64[np.ndarray, " P"], Int[np.ndarray, " P"]]:
    """The pairs of n-gram and evaluation document, each once, in order; without documents that are left out."""
    kept = ~left_out[owners]
    hashes, owners = hashes[kept], owners[kept]
    order = np.lexsort((owners, hashes))
    hashes, owners = hashes[order], owners[order]
    is_new = np.ones(len(hashes), bool)
    is_new[1:] = (hashes[1:] != hashes[:-1]) | (owners[1:] != owners[:-1])
    return hashes[is_new], owners[is_new]


def _known_by(hashes: UInt64[np.ndarray, " P"], owners: Int[np.ndarray, " P"], *, documents: int) -> _Known:
    """The n-grams that few documents have, with these documents."""
    begins = np.ones(len(hashes), bool)
    begins[1:] = hashes[1:] != hashes[:-1]
    first = np.flatnonzero(begins)
    sizes = np.diff(np.append(first, len(hashes)))
    telling = sizes <= COMMON
    kept = np.repeat(telling, sizes)
    return _Known(
        hashes=hashes[first[telling]],
        owners=Ragged.of(owners[kept], sizes[telling]),
        sizes=np.bincount(owners[kept], minlength=documents),
    )


@dataclass(kw_only=True)
class Leaks:
    """What a corpus has of each evaluation document, added up over its parts.

    Attributes:
        seen: whether each n-gram of the index was found anywhere.
        best: the largest share of each evaluation document that one document of the corpus has.
        holder: the first document of the corpus that has it; -1 = none has anything.
        holders: how many documents of the corpus have something of it.
    """

    seen: Bool[np.ndarray, " G"]
    best: Float[np.ndarray, " E"]
    holder: Int[np.ndarray, " E"]
    holders: Int[np.ndarray, " E"]

    @classmethod
    def none(cls, index: EvaluationIndex) -> "Leaks":
        """Nothing found yet."""
        number = len(index)
        return cls(
            seen=np.zeros(len(index.hashes), bool),
            best=np.zeros(number),
            holder=np.full(number, -1, np.int64),
            holders=np.zeros(number, np.int64),
        )

    def add(self, hits: Hits, index: EvaluationIndex, *, first: int) -> None:
        """Counts what a batch has, whose documents are numbered from `first` on; batches may come in any order."""
        self.seen[hits.grams] = True
        shares = hits.counts / index.sizes[hits.evaluations]
        self.holders[:] += np.bincount(hits.evaluations, minlength=len(index))
        order = np.lexsort((hits.documents, -shares, hits.evaluations))
        evaluations, shares, documents = hits.evaluations[order], shares[order], hits.documents[order] + first
        begins = np.ones(len(evaluations), bool)
        begins[1:] = evaluations[1:] != evaluations[:-1]
        self._merge(evaluations[begins], shares[begins], documents[begins])

    def _merge(
        self, evaluations: Int[np.ndarray, " P"], shares: Float[np.ndarray, " P"], documents: Int[np.ndarray, " P"]
    ) -> None:
        best, holder = self.best[evaluations], self.holder[evaluations]
        better = (shares > best) | ((shares == best) & (documents < holder))
        self.best[evaluations[better]] = shares[better]
        self.holder[evaluations[better]] = documents[better]

    def merge(self, other: "Leaks", *, first: int) -> None:
        """Counts what another part of the corpus has, whose documents are numbered from `first` on."""
        self.seen[other.seen] = True
        self.holders[:] += other.holders
        touched = np.flatnonzero(other.holder >= 0)
        self._merge(touched, other.best[touched], other.holder[touched] + first)

    def coverage(self, index: EvaluationIndex) -> Float[np.ndarray, " E"]:
        """The share of each evaluation document's n-grams that stand anywhere in the corpus; 0 if not looked for."""
        seen = np.bincount(index.owners.values[self.seen[index.owners.owners]], minlength=len(index))
        return seen / np.maximum(index.sizes, 1)


def holds_leak(
    hits: Hits, index: EvaluationIndex, *, ngrams: Int[np.ndarray, " D"], share: float
) -> Bool[np.ndarray, " D"]:
    """Which documents of a batch have this share of an evaluation document, or are by this share made of one.

    Args:
        hits: of the batch.
        index: of the evaluation documents.
        ngrams: how many n-grams each document of the batch has.
        share: in (0, 1].
    """
    of_evaluation = hits.counts / index.sizes[hits.evaluations]
    of_document = hits.counts / np.maximum(ngrams[hits.documents], 1)
    holds = np.zeros(len(ngrams), bool)
    holds[hits.documents[np.maximum(of_evaluation, of_document) >= share]] = True
    return holds
