"""`t2t audit FILES`: what a corpus is made of, its duplicates, and what of evaluation sets is in it."""

import contextlib
import dataclasses
import functools
import gzip
import json
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal

import tyro

from t2t import finding
from t2t.commands import arguments as arguments_lib
from t2t.commands import page
from t2t.errors import UsageError

REPORT, PAGE, DROPPED, LEAKED = "audit.json", "audit.html", "dropped.jsonl", "leaked.jsonl"
"""What is written."""

WORK = ".work-"
"""What the directory of the work begins with, in that of the output."""

HASHES = 128
"""Numbers of a signature; with the usual similarity one pair in 20,000 is missed."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Audit:
    """Look at a corpus before training on it: lengths, languages, duplicates, and text of evaluation sets in it.

    Writes audit.json and audit.html (one file, with plots and examples), dropped.jsonl (each document that says what an
    earlier one says, or leaks an evaluation document) and leaked.jsonl (each evaluation document of which something is
    in the corpus). The corpus may be larger than memory and than --memory: numbers of documents are kept on disk, some
    550 bytes for each.
    """

    files: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILES ...")]
    """The corpus: paths, globs or folders of the kinds that --data.files of t2t train reads (txt, jsonl, parquet)."""
    eval_files: tuple[str, ...] = ()
    """Evaluation sets, which should not be in the corpus; each argument is one set."""
    eval_fields: tuple[str, ...] = ()
    """Columns of evaluation records that are looked for together, such as question answer; none is --field."""
    eval_tasks: tuple[str, ...] = ()
    """Registered tasks as evaluation sets, such as pydocs_topic: the texts that they read."""
    eval_split: str = "validation"
    """Part of these tasks."""
    modules: tuple[str, ...] = ()
    """Python modules that register tasks; none takes every module under tasks/."""
    field: str = "text"
    """Column of the text in files of records."""
    unit: Literal["file", "line", "paragraph"] = "paragraph"
    """What counts as one document in plain text files."""
    on_error: Literal["stop", "skip"] = "stop"
    """Whether a document that cannot be read ends the audit, or is left out and counted."""
    output: Annotated[str, tyro.conf.arg(aliases=["-o"])] = "audit"
    """Directory to write."""
    overwrite: bool = False
    """Replace what an earlier audit wrote there."""
    kept: str | None = None
    """File of JSON lines (.jsonl or .jsonl.gz) that gets the text of every document that is not in dropped.jsonl."""
    ngram: int = 5
    """Words of the n-grams by which texts are compared."""
    similarity: float = 0.8
    """Share of common n-grams (Jaccard's coefficient), in (0, 1], from which on texts are duplicates."""
    min_words: int = 0
    """Words from which on a document may be a duplicate: 10 leaves each "Yes." in among the paragraphs of a novel."""
    leak_ngram: int = 13
    """Words of the n-grams that are looked for; an evaluation document of 5 to 12 words is looked for as a whole."""
    leak_share: float = 0.5
    """Share of its n-grams, in (0, 1], from which on an evaluation document counts as leaked."""
    workers: int | None = None
    """Processes that read; None is one for each core, and no more than there are files."""
    memory: float = 1000.0
    """Megabytes that sorting may take, besides some 100 for each process."""
    examples: int = 10
    """Clusters of duplicates, and leaks of each evaluation set, that the page shows."""


def run(arguments: Sequence[str]) -> int:
    """Audit the corpus, write what was found, and say it in short."""
    options = arguments_lib.parse(Audit, arguments, command="audit")
    output = pathlib.Path(options.output)
    _check_outputs(options, output)
    with (
        arguments_lib.status() as say,
        arguments_lib.show_log(),
        _work_directory(output) as work,
    ):
        say("importing NumPy")
        from t2t.commands import audit_page
        from t2t.data import corpora
        from t2t.data.audit import corpus

        files = corpora.find_files(options.files)
        if options.kept is not None and pathlib.Path(options.kept).resolve() in {path.resolve() for path in files}:
            raise UsageError(f"--kept {options.kept} is a file of the corpus; give another")
        reader = corpora.FileReader(field=options.field, unit=options.unit, on_error=options.on_error)
        found = corpus.audit(
            files,
            reader,
            evaluation=_evaluation_sets(options, reader),
            settings=_settings(options, files=len(files)),
            directory=work,
            say=say,
        )
        say("writing")
        _write_lines(output / DROPPED, found.dropped())
        _write_lines(output / LEAKED, found.leaked())
        if options.kept is not None:
            _write_lines(pathlib.Path(options.kept), ({"text": text} for text in found.kept()))
        report = found.report.to_json()
        content = json.dumps(report, ensure_ascii=False, indent=2)
        (output / REPORT).write_text(f"{content}\n", encoding="utf-8")
        page.write(output / PAGE, audit_page.make(report))
    print("\n".join(_summary(report)))
    print(f"wrote {', '.join(str(output / name) for name in (PAGE, REPORT, DROPPED, LEAKED))}")
    if options.kept is not None:
        print(f"wrote {report['corpus']['documents'] - report['dropped']:,} documents to {options.kept}")
    return 0


def _check_outputs(options: Audit, output: pathlib.Path) -> None:
    """Refuses what cannot be written, before the work."""
    if output.exists() and not output.is_dir():
        raise UsageError(f"{output} is a file; give a directory to write")
    arguments_lib.check_writable(output, instead="give another --output")
    others = sorted(path.name for path in output.iterdir()) if output.is_dir() else []
    if others and not options.overwrite:
        raise UsageError(f"{output} holds {', '.join(others[:3])} already; --overwrite replaces what an audit wrote")
    if options.kept is not None:
        kept = pathlib.Path(options.kept)
        if not kept.name.endswith((".jsonl", ".jsonl.gz")):
            raise UsageError(f"--kept {kept} must end in .jsonl or .jsonl.gz")
        if kept.exists() and not options.overwrite:
            raise UsageError(f"--kept {kept} is there already; --overwrite replaces it")
        arguments_lib.check_writable(kept.parent, instead="give another --kept")


@contextlib.contextmanager
def _work_directory(output: pathlib.Path) -> Iterator[pathlib.Path]:
    """A directory in the output for the numbers of documents; what a killed audit has left is taken away."""
    output.mkdir(parents=True, exist_ok=True)
    for old in output.glob(f"{WORK}*"):
        shutil.rmtree(old)
    try:
        with tempfile.TemporaryDirectory(dir=output, prefix=WORK) as work:
            yield pathlib.Path(work)
    finally:
        with contextlib.suppress(OSError):  # it holds what was found
            output.rmdir()


def _settings(options: Audit, *, files: int) -> Any:
    from t2t.data.audit import duplicates, findings

    if options.workers is not None and options.workers < 1:
        raise UsageError(f"--workers is {options.workers}; it must be positive")
    if not options.memory > 0:
        raise UsageError(f"--memory is {options.memory}; it must be positive")
    try:
        return findings.Settings(
            law=duplicates.Law(
                ngram=options.ngram,
                similarity=options.similarity,
                hashes=HASHES,
                min_units=options.min_words,
            ),
            leak_ngram=options.leak_ngram,
            leak_share=options.leak_share,
            memory=max(1, round(options.memory * 1e6)),
            workers=min(options.workers or arguments_lib.num_cores(), files),
            examples=options.examples,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


def _evaluation_sets(options: Audit, reader: Any) -> list[Any]:
    """The evaluation sets of files and of tasks, which are found now and read later."""
    from t2t.data import corpora
    from t2t.data.audit import findings

    fields = dataclasses.replace(reader, fields=options.eval_fields)
    sets = []
    for pattern in options.eval_files:
        files = corpora.find_files([pattern])
        sets.append(findings.EvaluationSet(name=pattern, texts=functools.partial(_of_files, files, fields)))
    for name, texts in _tasks(options):
        sets.append(findings.EvaluationSet(name=name, texts=texts))
    return sets


def _of_files(files: Sequence[pathlib.Path], reader: Any) -> Iterator[str]:
    """The documents of files, or of records the fields together."""
    for row in reader.rows(files):
        yield "\n".join(row.values())


def _tasks(options: Audit) -> Iterator[tuple[str, Callable[[], Iterable[str]]]]:
    """The texts of the tasks that are evaluation sets."""
    if not options.eval_tasks:
        return
    finding.extend_path()
    modules = options.modules or finding.task_modules()
    finding.check_modules(modules)
    from t2t.data import examples, texts
    from t2t.train import tasks

    tasks.import_modules(modules)
    for name in options.eval_tasks:
        try:
            task = examples.get_task(name)
        except ValueError as error:
            raise UsageError(f"--eval-tasks: {error}") from error
        if options.eval_split not in task.splits:
            splits = ", ".join(task.splits)
            raise UsageError(f"--eval-tasks: {name} has no split {options.eval_split}; it has {splits} (--eval-split)")
        yield f"{name}, {options.eval_split}", functools.partial(texts.raw_texts, task, split=options.eval_split)


def _write_lines(path: pathlib.Path, rows: Iterable[dict[str, Any]]) -> None:
    """Writes JSON lines in one move."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    opener = gzip.open if path.name.endswith(".gz") else open
    try:
        with opener(unfinished, "wt", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _summary(report: dict[str, Any]) -> Iterator[str]:
    """What was found in a few lines."""
    corpus, copies = report["corpus"], report["duplicates"]
    number = corpus["documents"]
    files = len(report["files"])
    yield (
        f"{number:,} documents in {files:,} file{'s' * (files != 1)}: {corpus['characters']:,} characters, "
        f"{corpus['words']:,} words; median {corpus['length_in_words']['median']:,} words a document"
    )
    if corpus["empty"] or corpus["unreadable"]:
        yield f"left out: {corpus['empty']:,} empty, {corpus['unreadable']:,} that cannot be read"
    languages = list(corpus["characters_by_language"].items())[:5]
    yield "languages: " + ", ".join(f"{name} {share / corpus['characters']:.1%}" for name, share in languages)
    yield (
        f"duplicates: {copies['exact']:,} equal and {copies['near']:,} similar documents say what earlier ones say, "
        f"{(copies['exact'] + copies['near']) / number:.1%} of all"
    )
    for found in report["evaluation"]:
        yield (
            f"{found['name']}: {found['leaked']:,} of {found['documents']:,} documents leaked, something of "
            f"{found['touched']:,} found; {found['short']:,} too short, {found['repeated']:,} repeated, "
            f"{found['common']:,} with nothing of their own"
        )
