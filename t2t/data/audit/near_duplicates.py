"""Texts that are nearly the same, among many: MinHash signatures, and bands of them that bring similar texts together.

Two texts are as similar as their sets of n-grams: |A & B| / |A | B|, Jaccard's coefficient. The least of the n-grams'
hashes under one hash function is the same for both with just that probability, so that the share of equal places in two
signatures of K such minima estimates it, with a standard error of sqrt(s (1 - s) / K).

    signatures    [D, K], of a batch of texts
    band_keys     [D, b], a hash of each band of r places: texts with an equal key somewhere are candidates
    equal_groups  the candidates of a band, in bounded memory however many texts there are
    candidates    their pairs whose signatures agree enough
    jaccard       what decides: the true similarity of a pair

Reference: Broder, "On the resemblance and containment of documents", SEQUENCES 1997; Leskovec, Rajaraman and Ullman,
"Mining of Massive Datasets", chapter 3. Lee et al., "Deduplicating Training Data Makes Language Models Better",
arXiv:2107.06499, section 4.2, take 5-grams and a similarity of 0.8 too.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, UInt16, UInt64

from t2t.data.audit.units import Ragged, mix

SMALL = 64
"""Members of a group up to which every pair of it is looked at; of greater ones, each member and those that stand for
the others."""

_PAIRS = 50_000  # whose signatures are compared at a time
_BLOCK = 1_000_000  # keys that are read at a time


def signatures(ngrams: Ragged, *, hashes: int) -> UInt16[np.ndarray, "D K"]:
    """The MinHash signature of each row of n-grams; one without n-grams has 65535 everywhere.

    Differs: a place holds 16 bits of a minimum, which different texts share by chance once in 65,536 times.
    """
    made = np.full((hashes, len(ngrams)), 0xFFFF, np.uint16)
    filled = np.flatnonzero(ngrams.sizes)
    if len(filled):
        starts = ngrams.offsets[:-1][filled]
        multipliers = mix(np.arange(1, hashes + 1, dtype=np.uint64)) | np.uint64(1)
        for row, multiplier in zip(made, multipliers, strict=True):
            row[filled] = np.minimum.reduceat(ngrams.values * multiplier, starts) >> 16 & 0xFFFF
    return np.ascontiguousarray(made.T)


@dataclass(frozen=True, kw_only=True)
class Banding:
    """A signature cut into bands of so many places; what is left over belongs to none."""

    bands: int
    rows: int

    def missed(self, similarity: float) -> float:
        """The probability that two texts of this similarity have no equal band: (1 - s ** rows) ** bands."""
        return (1 - similarity**self.rows) ** self.bands


def choose_banding(similarity: float, *, hashes: int, missed: float = 1e-4) -> Banding:
    """The bands of most rows, so of fewest needless candidates, that miss at most this share of pairs so similar.

    Example:
        >>> choose_banding(0.8, hashes=128)
        Banding(bands=25, rows=5)

    Raises:
        ValueError: a similarity that is none, or so few hashes that more would be missed.
    """
    if not 0 < similarity <= 1:
        raise ValueError(f"similarity={similarity} must lie in (0, 1]")
    found = [Banding(bands=hashes // rows, rows=rows) for rows in range(1, hashes + 1)]
    fitting = [banding for banding in found if banding.missed(similarity) <= missed]
    if not fitting:
        raise ValueError(
            f"signatures of {hashes} hashes would miss {found[0].missed(similarity):.2%} of the pairs of similarity "
            f"{similarity}: ask for more similar pairs, or take more hashes"
        )
    return fitting[-1]


def band_keys(signatures: UInt16[np.ndarray, "D K"], banding: Banding) -> UInt64[np.ndarray, "D b"]:
    """A hash of each band of each signature; keys of different bands have nothing to do with each other."""
    keys = np.zeros((len(signatures), banding.bands), np.uint64)
    for row in range(banding.rows):
        keys = mix(keys + signatures[:, row : banding.bands * banding.rows : banding.rows])
    return keys


def equal_groups(
    keys: UInt64[np.ndarray, " D"], *, chosen: Bool[np.ndarray, " D"] | None = None, at_once: int
) -> Iterator[Ragged]:
    """The places of equal keys: rows of two or more, ascending within each, among those that are `chosen`.

    Args:
        keys: hashes; they may be mapped from a file.
        chosen: None = all.
        at_once: places that are sorted at a time; the keys are read once for each of D / at_once parts.
    """
    parts = max(1, -(-len(keys) // at_once))
    for part in range(parts):
        places, values = _part(keys, chosen, part, parts)
        order = np.argsort(values, kind="stable")
        places, values = places[order], values[order]
        begins = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])[: len(values)])
        sizes = np.diff(np.append(begins, len(values)))
        several = sizes > 1
        if several.any():
            yield Ragged.of(places[np.repeat(several, sizes)], sizes[several])


def _part(
    keys: UInt64[np.ndarray, " D"], chosen: Bool[np.ndarray, " D"] | None, part: int, parts: int
) -> tuple[Int[np.ndarray, " P"], UInt64[np.ndarray, " P"]]:
    """The places whose keys lie in one of equal parts of their range, and the keys."""
    places, values = [], []
    for start in range(0, len(keys), _BLOCK):
        block = np.asarray(keys[start : start + _BLOCK])
        is_in = (block >> 32) * np.uint64(parts) >> 32 == part
        if chosen is not None:
            is_in &= chosen[start : start + _BLOCK]
        found = np.flatnonzero(is_in)
        places.append(found + start)
        values.append(block[found])
    return (
        np.concatenate(places) if places else np.zeros(0, np.int64),
        np.concatenate(values) if values else np.zeros(0, np.uint64),
    )


def candidates(
    groups: Ragged, signatures: UInt16[np.ndarray, "D K"], *, similarity: float
) -> Iterator[Int[np.ndarray, "P 2"]]:
    """Pairs within the groups whose signatures agree in at least this share of their places, the smaller place first.

    Of a group of more than `SMALL` members each is compared with those that stand for the others: the first member, the
    first that is not similar to it, and so on. So a pair is left out only if another pair joins one of them to a third.

    Args:
        groups: places of texts.
        signatures: of all texts; they may be mapped from a file.
        similarity: by estimate.
    """
    sizes = groups.sizes
    for size in np.unique(sizes[sizes <= SMALL]).tolist():
        starts = groups.offsets[:-1][sizes == size]
        left, right = np.triu_indices(size, 1)
        step = max(1, _PAIRS // len(left))
        for some in range(0, len(starts), step):
            first = starts[some : some + step, None]
            pairs = np.stack([groups.values[first + left].ravel(), groups.values[first + right].ravel()], axis=1)
            yield pairs[agreement(signatures, pairs) >= similarity]
    for index in np.flatnonzero(sizes > SMALL).tolist():
        yield from _by_representatives(groups[index], signatures, similarity=similarity)


def _by_representatives(
    members: Int[np.ndarray, " M"], signatures: UInt16[np.ndarray, "D K"], *, similarity: float
) -> Iterator[Int[np.ndarray, "P 2"]]:
    while len(members) > 1:
        first, others = members[0], members[1:]
        near = np.zeros(len(others), bool)
        for start in range(0, len(others), _PAIRS):
            some = others[start : start + _PAIRS]
            pairs = np.stack([np.full(len(some), first), some], axis=1)
            near[start : start + _PAIRS] = found = agreement(signatures, pairs) >= similarity
            yield pairs[found]
        members = others[~near]


def agreement(signatures: UInt16[np.ndarray, "D K"], pairs: Int[np.ndarray, "P 2"]) -> Float[np.ndarray, " P"]:
    """The estimated similarity of each pair: the share of equal places in their signatures."""
    return np.mean(signatures[pairs[:, 0]] == signatures[pairs[:, 1]], axis=1)


def jaccard(a: UInt64[np.ndarray, " A"], b: UInt64[np.ndarray, " B"]) -> float:
    """The similarity of two sets, as sorted arrays without repetitions; of two empty ones 0.

    >>> jaccard(np.array([1, 2, 3], np.uint64), np.array([2, 3, 4, 5], np.uint64))
    0.4
    """
    common = np.intersect1d(a, b, assume_unique=True).size
    return common / max(1, a.size + b.size - common)


class Clusters:
    """Which texts belong together; each cluster is known by its first text.

    Args:
        parents: 0, 1, 2, ..., which may be mapped from a file and is changed.
    """

    def __init__(self, parents: Int[np.ndarray, " D"]):
        self.parents = parents

    def find(self, place: int) -> int:
        """The first text of a text's cluster."""
        parents = self.parents
        while (parent := int(parents[place])) != place:
            above = int(parents[parent])
            parents[place] = above
            place = above
        return place

    def join(self, a: int, b: int) -> bool:
        """Makes one cluster of those of two texts; False where they are one already."""
        first, second = sorted((self.find(a), self.find(b)))
        self.parents[second] = first
        return first != second

    def join_all(self, groups: Ragged) -> None:
        """Makes one cluster of each group of texts; none of them may belong to one yet."""
        firsts = groups.values[groups.offsets[:-1]]
        self.parents[groups.values] = np.repeat(firsts, groups.sizes)

    def flatten(self, start: int, stop: int) -> Int[np.ndarray, " P"]:
        """The first text of the cluster of each of these texts."""
        found = np.array(self.parents[start:stop])
        while not np.array_equal(above := self.parents[found], found):
            found = np.asarray(above)
        return found
