"""Texts as units that need no knowledge of their language, and as hashes of these, by which equal text is found.

A unit is a word, or a single character of a script that puts no spaces between words (Chinese, Thai ...). Words are
runs of letters, marks and digits; case, punctuation, symbols, white space and invisible characters do not count, nor
the way in which Unicode writes a character (NFKC):

    "Don't panic: 東京 is FINE."    don | t | panic | 東 | 京 | is | fine

Everything is 64-bit arithmetic on whole batches of texts. Two different units, or n-grams of units, share a hash with a
probability of about 2 ** -64. Hashes are the same on every machine and in every process.
"""

import functools
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, Num, UInt8, UInt32, UInt64

from t2t.data.documents import ranges
from t2t.vocabulary.words import WITHOUT_SPACES

BLOCK = 500_000
"""Characters that are hashed together; longer texts are cut between words for it, so that memory does not grow."""

_BASE = 0x9E3779B97F4A7C15  # of the sums over the characters of a unit; odd
_INVERSE = pow(_BASE, -1, 2**64)
_GRAM = 0xD1342543DE82EF95  # of the sums over the units of an n-gram; odd
_LENGTH = 0x2545F4914F6CDD1D  # tells n-grams of different n apart

_NOTHING, _WORD, _ALONE, _INVISIBLE = range(4)
_LAST = 0x33400  # above the last letter of Unicode; what follows is unassigned, private, or invisible


@dataclass(frozen=True, kw_only=True)
class Ragged:
    """Rows of unequal length end to end: row i is `values[offsets[i]:offsets[i + 1]]`."""

    values: Num[np.ndarray, " N"]
    offsets: Int[np.ndarray, " R"]

    @classmethod
    def of(cls, values: Num[np.ndarray, " N"], sizes: Int[np.ndarray, " R"]) -> "Ragged":
        """From the size of each row."""
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        return cls(values=values, offsets=offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Num[np.ndarray, " n"]:
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    @property
    def sizes(self) -> Int[np.ndarray, " R"]:
        """Values in each row."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Int[np.ndarray, " N"]:
        """The row of each value."""
        return np.repeat(np.arange(len(self)), self.sizes)


def mix(values: UInt64[np.ndarray, "*axes"]) -> UInt64[np.ndarray, "*axes"]:
    """A bijection of 64-bit numbers in which every bit of the result depends on all bits.

    Reference: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014 (SplitMix64).
    """
    values = values ^ (values >> 30)
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> 27
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> 31
    return values


def normalize(text: str) -> str:
    """The text without differences of case and of Unicode's ways to write a character.

    >>> normalize("ＦＵＬＬ width, e\u0301")
    'full width, é'
    """
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def hash_units(texts: Sequence[str]) -> Ragged:
    """The hash of every unit of every text, in order."""
    sizes = np.zeros(len(texts), np.int64)
    parts = [np.zeros(0, np.uint64)]
    for block in blocks(texts):
        numbers = [number for number, _ in block]
        units = _hash_block([normalize(piece) for _, piece in block])
        np.add.at(sizes, numbers, units.sizes)
        parts.append(units.values)
    return Ragged.of(np.concatenate(parts), sizes)


def blocks(texts: Sequence[str]) -> Iterator[list[tuple[int, str]]]:
    """Pieces of text with the number of their text, so many that they are hashed at once."""
    block: list[tuple[int, str]] = []
    room = BLOCK
    for number, text in enumerate(texts):
        for piece in cut(text, BLOCK):
            if len(piece) > room and block:
                yield block
                block, room = [], BLOCK
            block.append((number, piece))
            room -= len(piece)
    if block:
        yield block


def cut(text: str, size: int) -> Iterator[str]:
    """The text in pieces of at most `size` characters, cut behind white space where there is some.

    >>> list(cut("one two three", 9))
    ['one two ', 'three']
    """
    start = 0
    while len(text) - start > size:
        end = 1 + max(text.rfind(space, start, start + size) for space in " \n\t")
        end = end if end > start else start + size
        yield text[start:end]
        start = end
    yield text[start:]


@functools.cache
def _kinds() -> UInt8[np.ndarray, " U"]:
    """What each code point is, those above all others being as the last."""
    kinds = np.zeros(_LAST + 1, np.uint8)
    for code in range(_LAST):
        category = unicodedata.category(chr(code))
        if category[0] in "LMN":
            kinds[code] = _ALONE if WITHOUT_SPACES.match(chr(code)) else _WORD
        if category == "Cf" or 0xFE00 <= code <= 0xFE0F:  # and what chooses the look of a character
            kinds[code] = _INVISIBLE
    return kinds


def code_points(texts: Sequence[str]) -> tuple[UInt32[np.ndarray, " N"], Int[np.ndarray, " R"]]:
    """The code points of all texts end to end, and where each text begins; last, where all end."""
    data = "".join(texts).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(data, "<u4") if data else np.zeros(0, np.uint32)
    return codes.astype(np.uint32, copy=False), np.cumsum([0, *map(len, texts)])


def _hash_block(texts: Sequence[str]) -> Ragged:
    codes, offsets = code_points(texts)
    kinds = _kinds()[np.minimum(codes, _LAST)]
    seen = kinds != _INVISIBLE
    if not seen.all():
        offsets = np.concatenate([[0], np.cumsum(seen)])[offsets]
        codes, kinds = codes[seen], kinds[seen]
    is_word = kinds == _WORD
    begins = kinds != _NOTHING
    goes_on = is_word[1:] & is_word[:-1]
    begins[1:] &= ~goes_on
    edges = offsets[1:-1]
    edges = edges[edges < len(codes)]
    begins[edges] = kinds[edges] != _NOTHING  # a text does not go on with the word before it
    first = np.flatnonzero(begins)
    return Ragged.of(_sums(codes, first), np.diff(np.searchsorted(first, offsets)))


def _sums(codes: UInt32[np.ndarray, " N"], first: Int[np.ndarray, " U"]) -> UInt64[np.ndarray, " U"]:
    """The hash of the unit that begins at each place: the sum of its characters times powers of its base."""
    if not len(first):
        return np.zeros(0, np.uint64)
    values = _values()[np.minimum(codes, _LAST)]
    values *= _powers(_BASE, len(codes))
    total = np.cumsum(values, dtype=np.uint64)
    last = np.append(first[1:], len(codes)) - 1
    sums = total[last] - total[first] + values[first]
    return mix(sums * _powers(_INVERSE, len(codes))[first])


@functools.cache
def _values() -> UInt64[np.ndarray, " U"]:
    """What each character adds to the hash of its unit; 0 for one that is in none."""
    return mix(np.arange(1, _LAST + 2, dtype=np.uint64)) * (_kinds() != _NOTHING)


def _powers(base: int, number: int) -> UInt64[np.ndarray, " N"]:
    """1, base, base ** 2, ... modulo 2 ** 64."""
    return _powers_of_many(base, number.bit_length())[:number]


@functools.cache
def _powers_of_many(base: int, bits: int) -> UInt64[np.ndarray, " N"]:
    powers = np.full(2**bits, base, np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)


def windows(units: Ragged, lengths: Sequence[int]) -> Iterator[Ragged]:
    """For each of these lengths, ascending: the hashes of all runs of so many units within each row."""
    for length, sums in _window_sums(units.values, lengths):
        counts = np.maximum(units.sizes - length + 1, 0)
        yield Ragged.of(_finish(sums[ranges(units.offsets[:-1], counts)], length), counts)


def ngrams(units: Ragged, n: int) -> Ragged:
    """The hashes of the n-grams of each row; a row of fewer units has one, of all its units, an empty row none."""
    sizes = units.sizes
    made = Ragged.of(np.zeros(0, np.uint64), np.where(sizes < n, np.minimum(sizes, 1), sizes - n + 1))
    values = np.zeros(made.offsets[-1], np.uint64)
    lengths = [*np.unique(sizes[(sizes > 0) & (sizes < n)]).tolist(), n]
    for length, sums in _window_sums(units.values, lengths):
        rows = np.flatnonzero(sizes >= n if length == n else sizes == length)
        counts = made.sizes[rows]
        places = ranges(units.offsets[:-1][rows], counts)
        values[ranges(made.offsets[:-1][rows], counts)] = _finish(sums[places], length)
    return Ragged(values=values, offsets=made.offsets)


def _window_sums(values: UInt64[np.ndarray, " N"], lengths: Sequence[int]) -> Iterator[tuple[int, np.ndarray]]:
    """The sums over so many units from each on, to be used before the next is asked for; the last few are too short."""
    sums, factor, done = np.zeros(len(values), np.uint64), 1, 0
    for length in lengths:
        for k in range(done, min(length, len(values))):
            sums[: len(values) - k] += values[k:] * np.uint64(factor)
            factor = factor * _GRAM % 2**64
        done = length
        yield length, sums


def _finish(sums: UInt64[np.ndarray, " N"], length: int) -> UInt64[np.ndarray, " N"]:
    return mix(sums + np.uint64(length * _LENGTH % 2**64))
