"""How much text there is, how long documents are, and of what languages: numbers that add up over parts of a corpus."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int, UInt32

from t2t.data.audit import languages as languages_lib
from t2t.data.audit import units as units_lib
from t2t.data.audit.units import Ragged

PER_OCTAVE = 16
"""Classes of lengths between a number and its double; lengths up to 23 have classes of their own."""

NUM_CLASSES = 1 + 40 * PER_OCTAVE

_REPLACEMENT = 0xFFFD
_LINE_ENDS = (0x09, 0x0A, 0x0D)


@dataclass(frozen=True, kw_only=True)
class TextStatistics:
    """What some documents are in number; two of them add up.

    Attributes:
        documents: that are not empty.
        characters: code points.
        size: bytes of UTF-8.
        units: words, or characters where there are no words (`t2t.data.audit.units`).
        longest: characters of the longest document.
        character_lengths: documents by the class of their length in characters.
        unit_lengths: documents by the class of their length in units.
        letters: letters of each of `languages.SCRIPTS`.
        documents_of: documents in each of `languages.LANGUAGES`.
        characters_of: characters of these.
        with_replacements: documents with U+FFFD, the character that stands for what could not be decoded.
        with_controls: documents with control characters other than tabs and ends of lines.
    """

    documents: int = 0
    characters: int = 0
    size: int = 0
    units: int = 0
    longest: int = 0
    character_lengths: Int[np.ndarray, " C"] = dataclasses.field(default_factory=lambda: np.zeros(NUM_CLASSES, int))
    unit_lengths: Int[np.ndarray, " C"] = dataclasses.field(default_factory=lambda: np.zeros(NUM_CLASSES, int))
    letters: Int[np.ndarray, " S"] = dataclasses.field(
        default_factory=lambda: np.zeros(len(languages_lib.SCRIPTS), int)
    )
    documents_of: Int[np.ndarray, " L"] = dataclasses.field(
        default_factory=lambda: np.zeros(len(languages_lib.LANGUAGES), int)
    )
    characters_of: Int[np.ndarray, " L"] = dataclasses.field(
        default_factory=lambda: np.zeros(len(languages_lib.LANGUAGES), int)
    )
    with_replacements: int = 0
    with_controls: int = 0

    def __add__(self, other: "TextStatistics") -> "TextStatistics":
        """Of both together."""
        sums = {
            field.name: getattr(self, field.name) + getattr(other, field.name) for field in dataclasses.fields(self)
        }
        return TextStatistics(**{**sums, "longest": max(self.longest, other.longest)})


def measure(texts: Sequence[str], units: Ragged) -> TextStatistics:
    """The numbers of some documents, given their units; of long ones a piece at a time."""
    number, size = len(texts), 0
    letters = np.zeros((number, len(languages_lib.SCRIPTS)), np.int64)
    replaced, controlled = np.zeros(number, bool), np.zeros(number, bool)
    for block in units_lib.blocks(texts):
        owners = np.array([owner for owner, _ in block])
        codes, offsets = units_lib.code_points([piece for _, piece in block])
        size += len(codes) + sum(int(np.count_nonzero(codes >= least)) for least in (0x80, 0x800, 0x10000))
        np.add.at(letters, owners, languages_lib.count_scripts(codes, offsets))
        np.logical_or.at(replaced, owners, _any(codes == _REPLACEMENT, offsets))
        np.logical_or.at(controlled, owners, _any(_is_control(codes), offsets))
    lengths = np.array([len(text) for text in texts], np.int64)
    languages = languages_lib.tell_languages(units, letters)
    number_of = {"minlength": len(languages_lib.LANGUAGES)}
    return TextStatistics(
        documents=number,
        characters=int(lengths.sum()),
        size=size,
        units=len(units.values),
        longest=int(lengths.max(initial=0)),
        character_lengths=np.bincount(length_class(lengths), minlength=NUM_CLASSES),
        unit_lengths=np.bincount(length_class(units.sizes), minlength=NUM_CLASSES),
        letters=letters.sum(axis=0),
        documents_of=np.bincount(languages, **number_of),
        characters_of=np.bincount(languages, weights=lengths, **number_of).astype(np.int64),
        with_replacements=int(replaced.sum()),
        with_controls=int(controlled.sum()),
    )


def _is_control(codes: UInt32[np.ndarray, " N"]) -> Bool[np.ndarray, " N"]:
    return (codes < 0x20) & ~np.isin(codes, _LINE_ENDS) | (codes >= 0x7F) & (codes < 0xA0)


def _any(flags: Bool[np.ndarray, " N"], offsets: Int[np.ndarray, " R"]) -> Bool[np.ndarray, " D"]:
    """Whether some flag is set in each text."""
    before = np.concatenate([[0], np.cumsum(flags)])
    return before[offsets[1:]] > before[offsets[:-1]]


def length_class(lengths: Int[np.ndarray, " D"]) -> Int[np.ndarray, " D"]:
    """The number of each length's class: 0 for nothing, then `PER_OCTAVE` classes up to each power of two."""
    classes = 1 + np.floor(PER_OCTAVE * np.log2(np.maximum(lengths, 1))).astype(np.int64)
    return np.minimum(np.where(lengths > 0, classes, 0), NUM_CLASSES - 1)


def least_of_class(number: int) -> int:
    """The least length of a class.

    >>> [least_of_class(number) for number in (0, 1, 17, 177)]
    [0, 1, 2, 2048]
    """
    return 0 if number == 0 else int(np.ceil(2 ** ((number - 1) / PER_OCTAVE) - 1e-9))


def quantile(classes: Int[np.ndarray, " C"], share: float) -> int:
    """The length that this share of the documents do not exceed, to a twentieth; 0 where there are none.

    Args:
        classes: documents by the class of their length.
        share: 0.5 = the median.
    """
    ends = np.cumsum(classes)
    return least_of_class(int(np.searchsorted(ends, share * ends[-1]))) if ends[-1] else 0


def octaves(classes: Int[np.ndarray, " C"]) -> list[tuple[int, int]]:
    """Documents by length for a plot: (least length, documents) from each power of two to the next, without empty ends.

    >>> octaves(np.bincount(length_class(np.array([5, 6, 7, 100]))))
    [(4, 3), (8, 0), (16, 0), (32, 0), (64, 1)]
    """
    found: dict[int, int] = {}
    for number in np.flatnonzero(classes).tolist():
        octave = 0 if number == 0 else 1 + (number - 1) // PER_OCTAVE
        found[octave] = found.get(octave, 0) + int(classes[number])
    if not found:
        return []
    return [(2 ** (k - 1) if k else 0, found.get(k, 0)) for k in range(min(found), max(found) + 1)]
