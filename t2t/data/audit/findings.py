"""What an audit is asked, and what it has found: its report, and the documents behind it."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from t2t.data.audit import duplicates
from t2t.data.audit.contamination import EvaluationIndex, Leaks
from t2t.data.audit.duplicates import Corpus, Duplicates, Law
from t2t.data.audit.report import Leak, Place, Report
from t2t.data.audit.scan import KEY
from t2t.data.corpora import CorpusError


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What counts as similar and as leaked, and what the work may take."""

    law: Law = field(default_factory=lambda: Law(ngram=5, similarity=0.8, hashes=128))
    leak_ngram: int = 13
    """Words of an n-gram that is looked for."""
    leak_share: float = 0.5
    """Share of its n-grams from which on an evaluation document counts as leaked, in (0, 1]."""
    memory: int = 1_000_000_000
    """Bytes that sorting may take."""
    workers: int = 1
    """Processes that read texts."""
    examples: int = 10
    """Clusters, and leaks of each evaluation set, that are shown with their texts."""

    def __post_init__(self):
        """Refuse what finds nothing."""
        if self.leak_ngram < 1:
            raise ValueError(f"leak_ngram={self.leak_ngram} must be at least 1 word")
        if not 0 < self.leak_share <= 1:
            raise ValueError(f"leak_share={self.leak_share} must lie in (0, 1]")
        if self.memory < 1 or self.workers < 1 or self.examples < 0:
            raise ValueError(
                f"memory={self.memory} and workers={self.workers} must be positive, examples={self.examples} not "
                "negative"
            )


@dataclass(frozen=True, kw_only=True)
class EvaluationSet:
    """Documents that should not be in the corpus."""

    name: str
    texts: Callable[[], Iterable[str]]
    """Reads them; called again where examples are shown."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The evaluation sets, and what of them stands in the corpus.

    Attributes:
        index: of the documents of all sets.
        leaks: what was found.
        coverage: the share of each evaluation document that stands anywhere in the corpus.
        holds_leak: which documents of the corpus have so much of one that they leak it.
        names: of the sets.
        firsts: number of each set's first document.
    """

    index: EvaluationIndex
    leaks: Leaks
    coverage: Float[np.ndarray, " E"]
    holds_leak: Bool[np.ndarray, " D"]
    names: Sequence[str]
    firsts: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What was found; `report` says it all, the rest is good as long as the directory of the work is there."""

    corpus: Corpus
    settings: Settings
    duplicates: Duplicates
    evaluation: Evaluation | None
    report: Report

    def dropped(self) -> Iterator[dict[str, Any]]:
        """Every document that should go, in order: where it is, why, and which earlier document says the same."""
        for start, firsts, similarity in self.duplicates.blocks():
            leaking = leaking_block(self.evaluation, start, len(firsts))
            numbers = np.arange(start, start + len(firsts))
            for row in np.flatnonzero((firsts != numbers) | leaking).tolist():
                about: dict[str, Any] = dataclasses.asdict(place(self.corpus, start + row))
                if firsts[row] != numbers[row]:
                    is_exact = similarity[row] == duplicates.EXACT
                    about["kind"] = "exact" if is_exact else "near"
                    about["similarity"] = 1.0 if is_exact else round(float(similarity[row]), 4)
                    about["first"] = dataclasses.asdict(place(self.corpus, int(firsts[row])))
                if leaking[row]:
                    about["leak"] = True
                yield about

    def kept(self) -> Iterator[str]:
        """The texts of all documents that need not go, in order; reads the files again.

        Raises:
            CorpusError: they have changed.
        """
        texts = (row[KEY] for row in self.corpus.reader.rows(self.corpus.files))
        number = 0
        for start, firsts, _ in self.duplicates.blocks():
            numbers = np.arange(start, start + len(firsts))
            stays = (firsts == numbers) & ~leaking_block(self.evaluation, start, len(firsts))
            for stay, text in zip(stays.tolist(), texts, strict=False):
                number += 1
                if stay:
                    yield text
        if number != self.corpus.documents or next(texts, None) is not None:
            raise CorpusError("The files of the corpus have changed while it was audited: audit it again.")

    def leaked(self) -> Iterator[dict[str, Any]]:
        """Every evaluation document of which something stands in the corpus, by set and number."""
        found = self.evaluation
        if found is None:
            return
        for number in np.flatnonzero(found.leaks.holder >= 0).tolist():
            one = int(np.searchsorted(found.firsts, number, side="right")) - 1
            about = dataclasses.asdict(leak(self.corpus, found, number, first=found.firsts[one]))
            yield {"set": found.names[one], **{k: v for k, v in about.items() if k not in ("text", "found")}}


def leaking_block(found: Evaluation | None, start: int, size: int) -> Bool[np.ndarray, " P"]:
    """Which of some documents of the corpus leak an evaluation document."""
    return np.zeros(size, bool) if found is None else np.asarray(found.holds_leak[start : start + size])


def place(corpus: Corpus, document: int) -> Place:
    """Where a document of the corpus is."""
    file, number = corpus.place(document)
    return Place(file=str(corpus.files[file]), document=number + 1)


def leak(corpus: Corpus, found: Evaluation, number: int, *, first: int) -> Leak:
    """What stands in the corpus of an evaluation document, whose set begins with the document `first`."""
    return Leak(
        document=number - first + 1,
        coverage=round(float(found.coverage[number]), 4),
        share=round(float(found.leaks.best[number]), 4),
        place=place(corpus, int(found.leaks.holder[number])),
        holders=int(found.leaks.holders[number]),
    )
