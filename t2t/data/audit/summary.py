"""The report of an audit: sums over all documents, and examples with their texts."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Int

from t2t.data.audit import columns, duplicates, excerpts, text_statistics
from t2t.data.audit.duplicates import Corpus, Duplicates
from t2t.data.audit.findings import Evaluation, EvaluationSet, Settings, leak, leaking_block, place
from t2t.data.audit.report import Cluster, Copy, DuplicateReport, FileReport, Leak, Report, SetReport
from t2t.data.audit.scan import Part
from t2t.data.text_files import Skipped

CLUSTER_SIZE = columns.Column(name="cluster_size", dtype=np.int64)
"""Documents of the cluster of which a document is the first."""

MEMBERS = 4
"""Documents that are shown of a cluster."""

_SIZES = 1_000_000  # that are looked at together


def summarize(
    corpus: Corpus,
    parts: Sequence[Part],
    found: Duplicates,
    evaluation: Evaluation | None,
    *,
    sets: Sequence[EvaluationSet],
    settings: Settings,
) -> Report:
    """The report; reads some files and evaluation sets again, for examples."""
    statistics, skipped = text_statistics.TextStatistics(), Skipped()
    for part in parts:
        statistics += part.statistics
        skipped.add(part.skipped)
    sizes = columns.create(corpus.directory, CLUSTER_SIZE, corpus.documents)
    totals = _Totals.of(corpus, found, evaluation, sizes)
    largest = _largest(found, sizes, number=settings.examples)
    shown = [] if evaluation is None else _most_covered(evaluation, number=settings.examples)
    wanted = {document for members in largest for document in members}
    if evaluation is not None:
        wanted |= {int(evaluation.leaks.holder[number]) for numbers in shown for number in numbers}
    texts = excerpts.read_documents(corpus, wanted)
    law, cluster_sizes = settings.law, _cluster_sizes(sizes)
    return Report(
        settings={
            "ngram": law.ngram,
            "similarity": law.similarity,
            "min_words": law.min_units,
            "leak_ngram": settings.leak_ngram,
            "leak_share": settings.leak_share,
        },
        statistics=statistics,
        empty=skipped.empty,
        unreadable=skipped.unreadable,
        files=_file_reports(corpus, parts, totals.by_file),
        duplicates=DuplicateReport(
            exact=totals.exact,
            near=totals.near,
            characters=totals.characters,
            clusters=sum(number for _, number in cluster_sizes),
            cluster_sizes=cluster_sizes,
            compared=found.compared,
            missed=law.banding.missed(law.similarity),
            largest=[_cluster(corpus, found, members, int(sizes[members[0]]), texts) for members in largest],
        ),
        leaking=sum(part.num_leaking for part in parts),
        dropped=totals.dropped,
        evaluation=[
            _set_report(corpus, evaluation, one, numbers, texts, order=order, settings=settings)
            for order, (one, numbers) in enumerate(zip(sets, shown, strict=True))
            if evaluation is not None
        ],
    )


class _Totals:
    """Sums over all documents."""

    def __init__(self, files: int):
        self.by_file = np.zeros(files, np.int64)
        self.exact = self.near = self.characters = self.dropped = 0

    @classmethod
    def of(
        cls, corpus: Corpus, found: Duplicates, evaluation: Evaluation | None, sizes: Int[np.ndarray, " D"]
    ) -> "_Totals":
        """Counts; writes the size of each cluster where its first document is."""
        totals = cls(len(corpus.files))
        lengths = columns.gather(corpus.directory, columns.LENGTH, corpus.sizes)
        for start, firsts, similarity in found.blocks():
            stop = start + len(firsts)
            is_copy = firsts != np.arange(start, stop)
            is_exact = similarity == duplicates.EXACT
            np.add.at(sizes, firsts, 1)
            totals.exact += int(np.count_nonzero(is_copy & is_exact))
            totals.near += int(np.count_nonzero(is_copy & ~is_exact))
            totals.characters += int(lengths[start:stop][is_copy].sum(dtype=np.int64))
            totals.dropped += int(np.count_nonzero(is_copy | leaking_block(evaluation, start, len(firsts))))
            files = np.searchsorted(corpus.firsts, np.flatnonzero(is_copy) + start, side="right") - 1
            totals.by_file += np.bincount(files, minlength=len(corpus.files))
        return totals


def _file_reports(corpus: Corpus, parts: Sequence[Part], copies: Int[np.ndarray, " F"]) -> list[FileReport]:
    return [
        FileReport(
            file=str(path),
            documents=part.statistics.documents,
            characters=part.statistics.characters,
            duplicates=number,
            leaking=part.num_leaking,
        )
        for path, part, number in zip(corpus.files, parts, copies.tolist(), strict=True)
    ]


def _cluster_sizes(sizes: Int[np.ndarray, " D"]) -> list[tuple[int, int]]:
    classes = np.zeros(text_statistics.NUM_CLASSES, np.int64)
    for start in range(0, len(sizes), _SIZES):
        some = np.asarray(sizes[start : start + _SIZES])
        classes += np.bincount(text_statistics.length_class(some[some > 1]), minlength=len(classes))
    return text_statistics.octaves(classes)


def _largest(found: Duplicates, sizes: Int[np.ndarray, " D"], *, number: int) -> list[list[int]]:
    """Some documents of each of the largest clusters, the first of all first."""
    best: list[tuple[int, int]] = []
    for start in range(0, len(sizes), _SIZES):
        some = np.asarray(sizes[start : start + _SIZES])
        order = np.lexsort((np.arange(len(some)), -some))[:number]
        best += [(-int(some[row]), start + row) for row in order.tolist() if some[row] > 1]
        best = sorted(best)[:number]
    members: dict[int, list[int]] = {first: [] for _, first in best}
    wanted = np.array(sorted(members), np.int64)
    for start, firsts, _ in found.blocks():
        for row in np.flatnonzero(np.isin(firsts, wanted)).tolist():
            own = members[int(firsts[row])]
            if len(own) < MEMBERS:
                own.append(start + row)
    return list(members.values())


def _cluster(corpus: Corpus, found: Duplicates, members: Sequence[int], size: int, texts: Mapping[int, str]) -> Cluster:
    copies = []
    for document in members:
        similarity = float(found.similarity[document])
        is_exact = similarity == duplicates.EXACT
        copies.append(
            Copy(
                place=place(corpus, document),
                kind="first" if document == members[0] else "exact" if is_exact else "near",
                similarity=1.0 if is_exact or document == members[0] else round(similarity, 4),
                text=excerpts.beginning(texts[document]),
            )
        )
    return Cluster(documents=size, copies=copies)


def _most_covered(found: Evaluation, *, number: int) -> list[list[int]]:
    """The evaluation documents of each set of which most stands in the corpus."""
    chosen = []
    for first, stop in zip(found.firsts, [*found.firsts[1:], len(found.index)], strict=True):
        order = np.lexsort((np.arange(first, stop), -found.coverage[first:stop]))[:number] + first
        chosen.append([document for document in order.tolist() if found.coverage[document]])
    return chosen


def _set_report(
    corpus: Corpus,
    found: Evaluation,
    one: EvaluationSet,
    shown: Sequence[int],
    texts: Mapping[int, str],
    *,
    order: int,
    settings: Settings,
) -> SetReport:
    first, stop = [*found.firsts, len(found.index)][order : order + 2]
    index, coverage = found.index, found.coverage[first:stop]
    looked_for = index.sizes[first:stop] > 0
    own = excerpts.pick(one.texts(), {number - first for number in shown}) if shown else {}
    return SetReport(
        name=one.name,
        documents=stop - first,
        looked_for=int(looked_for.sum()),
        short=int(index.short[first:stop].sum()),
        repeated=int(index.repeated[first:stop].sum()),
        common=int(index.common[first:stop].sum()),
        touched=int(np.count_nonzero(coverage)),
        leaked=int(np.count_nonzero(coverage >= settings.leak_share)),
        coverage=np.histogram(coverage[looked_for], bins=10, range=(0, 1))[0].tolist(),
        examples=[
            _example(corpus, found, number, own.get(number - first, ""), texts, first=first, settings=settings)
            for number in shown
        ],
    )


def _example(
    corpus: Corpus,
    found: Evaluation,
    number: int,
    text: str,
    texts: Mapping[int, str],
    *,
    first: int,
    settings: Settings,
) -> Leak:
    about = leak(corpus, found, number, first=first)
    holder = texts[int(found.leaks.holder[number])]
    return Leak(
        document=about.document,
        coverage=about.coverage,
        share=about.share,
        place=about.place,
        holders=about.holders,
        text=excerpts.beginning(text),
        found=excerpts.around(holder, text, n=settings.leak_ngram),
    )
