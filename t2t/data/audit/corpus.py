"""The audit of a corpus as one story: scan its files, find duplicates and leaks, and say what should go.

Texts are read a batch at a time by several processes, numbers of documents are kept on disk (`columns`): some 550 bytes
for each, and 8 more for each word of those that are compared. In memory there are at most `Settings.memory` bytes of
what is sorted, the evaluation sets, and in each process a batch of texts or its longest document.
"""

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Iterator, Sequence

from t2t.data import workers as workers_lib
from t2t.data.audit import columns, duplicates, summary
from t2t.data.audit.contamination import EvaluationIndex, Leaks
from t2t.data.audit.duplicates import Corpus
from t2t.data.audit.findings import Audit, Evaluation, EvaluationSet, Settings
from t2t.data.audit.scan import KEY, Part, Scan
from t2t.data.corpora import CorpusError, FileReader
from t2t.data.text_files import Skipped


def audit(
    files: Sequence[pathlib.Path],
    reader: FileReader,
    *,
    evaluation: Sequence[EvaluationSet] = (),
    settings: Settings,
    directory: pathlib.Path,
    say: Callable[[str], None],
) -> Audit:
    """Reads a corpus and says what is in it.

    Args:
        files: of the corpus.
        reader: of the files.
        evaluation: what should not be in it.
        settings: what counts as similar and as leaked.
        directory: of the work; empty.
        say: told what is going on.

    Raises:
        CorpusError: files that cannot be read, hold no text at all, or have changed during the work.
    """
    reader = dataclasses.replace(reader, key=KEY, fields=())
    index, firsts = _index(evaluation, settings, say)
    parts = _scan(files, reader, index, settings=settings, directory=directory, say=say)
    sizes = [part.statistics.documents for part in parts]
    corpus = Corpus(files=files, sizes=sizes, reader=reader, directory=directory)
    _check_text(corpus, parts)
    found = duplicates.find(
        corpus,
        settings.law,
        memory=settings.memory,
        workers=settings.workers,
        say=say,
        tell=lambda number: say(f"comparing texts, {number:,} documents of a file read"),
    )
    say("counting, and reading examples")
    leaks = None if index is None else _evaluation(corpus, parts, index, evaluation, firsts)
    report = summary.summarize(corpus, parts, found, leaks, sets=evaluation, settings=settings)
    return Audit(corpus=corpus, settings=settings, duplicates=found, evaluation=leaks, report=report)


def _index(
    evaluation: Sequence[EvaluationSet], settings: Settings, say: Callable[[str], None]
) -> tuple[EvaluationIndex | None, list[int]]:
    """The index of all evaluation sets, and where each begins."""
    if not evaluation:
        return None, []
    firsts = []

    def texts() -> Iterator[str]:
        number = 0
        for one in evaluation:
            say(f"reading {one.name}")
            firsts.append(number)
            for text in one.texts():
                yield text
                number += 1

    return EvaluationIndex.of(texts(), n=settings.leak_ngram), firsts


def _scan(
    files: Sequence[pathlib.Path],
    reader: FileReader,
    index: EvaluationIndex | None,
    *,
    settings: Settings,
    directory: pathlib.Path,
    say: Callable[[str], None],
) -> list[Part]:
    """What each file has, in the order of the files."""
    alone = settings.workers == 1
    scan = Scan(
        reader=reader,
        directory=directory,
        ngram=settings.law.ngram,
        hashes=settings.law.hashes,
        min_units=settings.law.min_units,
        index=index,
        leak_share=settings.leak_share,
        tell=(lambda number: say(f"reading texts, {number:,} documents of a file read")) if alone else None,
    )
    parts: dict[int, Part] = {}
    number = 0
    say("reading texts")
    with contextlib.closing(workers_lib.run(scan, enumerate(files), workers=settings.workers)) as results:
        for part in results:
            parts[part.number] = part
            number += part.statistics.documents
            say(f"reading texts, {len(parts):,} of {len(files):,} files, {number:,} documents")
    return [parts[file] for file in range(len(files))]


def _check_text(corpus: Corpus, parts: Sequence[Part]) -> None:
    """Says what was left out, and refuses a corpus without text."""
    files, skipped = corpus.files, Skipped()
    for part in parts:
        skipped.add(part.skipped)
    names = ", ".join(map(str, files[:3])) + (f" and {len(files) - 3:,} more" if len(files) > 3 else "")
    if not corpus.documents:
        first = f" The first that cannot be read: {skipped.first}" if skipped.first else ""
        raise CorpusError(f"{names} hold no text.{first}")
    skipped.log(names)


def _evaluation(
    corpus: Corpus,
    parts: Sequence[Part],
    index: EvaluationIndex,
    sets: Sequence[EvaluationSet],
    firsts: Sequence[int],
) -> Evaluation:
    leaks = Leaks.none(index)
    for part, first in zip(parts, corpus.firsts, strict=False):
        if part.leaks is not None:
            leaks.merge(part.leaks, first=int(first))
    return Evaluation(
        index=index,
        leaks=leaks,
        coverage=leaks.coverage(index),
        holds_leak=columns.gather(corpus.directory, columns.HOLDS_LEAK, corpus.sizes),
        names=[one.name for one in sets],
        firsts=firsts,
    )
