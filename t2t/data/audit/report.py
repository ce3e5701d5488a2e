"""What an audit has found, as numbers and texts that go into JSON as they are."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from t2t.data.audit import languages as languages_lib
from t2t.data.audit import text_statistics
from t2t.data.audit.text_statistics import TextStatistics

QUANTILES = {"5 %": 0.05, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "95 %": 0.95, "99 %": 0.99}


@dataclass(frozen=True, kw_only=True)
class Place:
    """A document: its file, and which of the file's documents it is, from 1, empty ones not counted."""

    file: str
    document: int


@dataclass(frozen=True, kw_only=True)
class FileReport:
    """What a file has."""

    file: str
    documents: int
    characters: int
    duplicates: int
    """Documents that say what earlier ones say, of this file or another."""
    leaking: int
    """Documents with text of an evaluation set."""


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A document of a cluster."""

    place: Place
    kind: str
    """first, exact or near."""
    similarity: float
    """To a document of the cluster."""
    text: str
    """Its beginning."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Documents that say the same."""

    documents: int
    copies: Sequence[Copy]
    """Some of them, the first of all first."""


@dataclass(frozen=True, kw_only=True)
class DuplicateReport:
    """How much of the corpus says what is said before."""

    exact: int
    """Documents that are equal to an earlier one, but for white space around them."""
    near: int
    """Others that are similar to one of their cluster that comes before."""
    characters: int
    """Of both."""
    clusters: int
    cluster_sizes: Sequence[tuple[int, int]]
    """(least documents, clusters) from each power of two to the next."""
    compared: int
    """Pairs whose similarity was computed from their texts."""
    missed: float
    """Probability with which a pair that is just similar enough shares no band, and is missed."""
    largest: Sequence[Cluster]


@dataclass(frozen=True, kw_only=True)
class Leak:
    """An evaluation document whose text stands in the corpus."""

    document: int
    """Number of the evaluation document in its set, from 1."""
    coverage: float
    """Share of its n-grams that stand anywhere in the corpus."""
    share: float
    """Share that one document of the corpus has."""
    place: Place
    """That document."""
    holders: int
    """Documents of the corpus that have something of it."""
    text: str = ""
    """The evaluation document, its beginning."""
    found: str = ""
    """What is around it in the corpus."""


@dataclass(frozen=True, kw_only=True)
class SetReport:
    """What of an evaluation set stands in the corpus."""

    name: str
    documents: int
    looked_for: int
    short: int
    """Not looked for, because they are too short."""
    repeated: int
    """Not looked for, because an earlier one says the same."""
    common: int
    """Not looked for, because nothing in them tells them from a hundred others."""
    touched: int
    """Of which some n-gram stands in the corpus."""
    leaked: int
    """Of which so many n-grams stand in the corpus that they count as leaked."""
    coverage: Sequence[int]
    """Documents that were looked for by the share of them that stands in the corpus, in tenths; all of it is in the
    last."""
    examples: Sequence[Leak]
    """Those of most coverage."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """All of it.

    Attributes:
        settings: what counts as similar, and as leaked.
        statistics: of all documents.
        empty: documents without text, which are in no other number.
        unreadable: documents that were left out because they cannot be read.
        files: the files, in the order in which they are read.
        duplicates: of all files.
        leaking: documents of the corpus with text of an evaluation set.
        dropped: documents that are duplicates or leaking.
        evaluation: the evaluation sets.
    """

    settings: dict[str, Any]
    statistics: TextStatistics
    empty: int
    unreadable: int
    files: Sequence[FileReport]
    duplicates: DuplicateReport
    leaking: int
    dropped: int
    evaluation: Sequence[SetReport]

    def to_json(self) -> dict[str, Any]:
        """As JSON takes it."""
        return {
            "settings": self.settings,
            "corpus": {
                "documents": self.statistics.documents,
                "empty": self.empty,
                "unreadable": self.unreadable,
                **describe(self.statistics),
            },
            "duplicates": dataclasses.asdict(self.duplicates),
            "leaking": self.leaking,
            "dropped": self.dropped,
            "evaluation": [dataclasses.asdict(found) for found in self.evaluation],
            "files": [dataclasses.asdict(file) for file in self.files],
        }


def describe(statistics: TextStatistics) -> dict[str, Any]:
    """Sizes, lengths, scripts and languages, by name; what has nothing is left out."""
    return {
        "characters": statistics.characters,
        "bytes": statistics.size,
        "words": statistics.units,
        "with_replacement_characters": statistics.with_replacements,
        "with_control_characters": statistics.with_controls,
        "length_in_characters": {
            **_lengths(statistics.character_lengths, total=statistics.characters, number=statistics.documents),
            "longest": statistics.longest,
        },
        "length_in_words": _lengths(statistics.unit_lengths, total=statistics.units, number=statistics.documents),
        "letters_by_script": _counts(languages_lib.SCRIPTS, statistics.letters),
        "documents_by_language": _counts(languages_lib.LANGUAGES, statistics.documents_of),
        "characters_by_language": _counts(languages_lib.LANGUAGES, statistics.characters_of),
    }


def _lengths(classes: Any, *, total: int, number: int) -> dict[str, Any]:
    quantiles = {name: text_statistics.quantile(classes, share) for name, share in QUANTILES.items()}
    return {
        "mean": round(total / max(number, 1), 1),
        **quantiles,
        "from": [[least, documents] for least, documents in text_statistics.octaves(classes)],
    }


def _counts(names: Sequence[str], numbers: Any) -> dict[str, int]:
    """The numbers above 0 by name, the greatest first."""
    found = sorted(((int(number), name) for name, number in zip(names, numbers, strict=True) if number), reverse=True)
    return {name: number for number, name in found}
