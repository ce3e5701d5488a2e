"""Readers of the files in which benchmarks are published: each gives rows in the shape that TFDS has them.

    records      tsv, csv, jsonl, json and parquet with a header, one row each
    cola         GLUE's CoLA, which has no header
    folders      a text a file, whose folder is its label (IMDB)
    squad        SQuAD's JSON, of XQuAD and SQuAD 2.0 too
    trivia_qa    TriviaQA's JSON
    super_glue   SuperGLUE's jsonl, nested ones flattened
    conll        a token and its labels a line, sentences between empty lines; CoNLL-U too

Nothing here needs TensorFlow. Files may end in .gz or .zst.
"""

import functools
import glob
import itertools
import json
import logging
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t.data import record_files, text_files
from t2t.data.text_files import CorpusError, MissingFileError, OnError

logger = logging.getLogger(__name__)

Row = Mapping[str, Any]
"""One row of a benchmark in the shape of TFDS, with Python's own values: texts, numbers, lists and dictionaries."""

Example = dict[str, Any]
"""Inputs, targets, and what evaluation needs besides, such as the row's number and all right answers."""

CORPORA = "T2T_CORPORA"
"""Environment variable: the directory of files that people fetch; if unset, `corpora` where the command runs."""

TABLES = (".tsv", ".csv")


def corpora_directory() -> pathlib.Path:
    """Where the files of corpora and benchmarks are looked for."""
    return pathlib.Path(os.environ.get(CORPORA, "corpora"))


def find(patterns: Sequence[str]) -> list[pathlib.Path]:
    """The files that paths, globs and folders name, each once; those of globs and folders sorted.

    Raises:
        MissingFileError: a pattern that matches no file.
    """
    found: dict[pathlib.Path, None] = {}
    for pattern in patterns:
        path = pathlib.Path(pattern)
        if path.is_dir():
            named = sorted(one for one in path.rglob("*") if one.is_file() and not one.name.startswith("."))
        elif path.is_file():
            named = [path]
        else:
            named = sorted(one for one in map(pathlib.Path, glob.glob(str(pattern), recursive=True)) if one.is_file())
        if not named:
            raise MissingFileError(f"No file matches '{pattern}' (in {pathlib.Path.cwd()}).")
        found |= dict.fromkeys(named)
    return list(found)


def suffix_of(path: pathlib.Path) -> str:
    """The suffix that says how a file is read, without that of its packing."""
    name = path.name.lower()
    return pathlib.PurePath(
        next((name.removesuffix(one) for one in text_files.PACKED if name.endswith(one)), name)
    ).suffix


def records(
    path: pathlib.Path,
    on_error: OnError = "stop",
    *,
    columns: Mapping[str, Sequence[str]] | None = None,
    may_be_short: bool = False,
) -> Iterator[dict[str, Any]]:
    """The records of a table or of JSON lines, with all their fields; `idx` is their number where they have none.

    Args:
        path: of the file.
        on_error: what happens to records that cannot be read.
        columns: for fields of rows that files call otherwise, the names that they may have there.
        may_be_short: whether rows of a table with too few cells are damaged as published, and left out.

    Raises:
        CorpusError: the file cannot be read or is of another kind.
    """
    skipped = text_files.Skipped()
    placed = record_files.read_whole(path, suffix_of(path), on_error=on_error)
    for number, (place, record) in enumerate(placed):
        try:
            row = _checked(record, f"{path}, {place}", may_be_short=may_be_short)
        except CorpusError as error:
            if on_error == "stop" and not isinstance(error, _ShortError):
                raise
            skipped.leave_out(error)
            continue
        for name, others in (columns or {}).items():
            found = next((row[other] for other in others if other in row), None)
            if name not in row and found is not None:
                row[name] = found
        row.setdefault("idx", row.get("index", number))
        yield row
    skipped.log(str(path))


class _ShortError(CorpusError):
    """A row with too few cells."""


def _checked(record: dict[str, Any] | CorpusError, place: str, *, may_be_short: bool) -> dict[str, Any]:
    """The fields of a record that have a value.

    Raises:
        CorpusError: it cannot be read, or is short.
    """
    if isinstance(record, CorpusError):
        raise record
    if may_be_short and None in record.values():
        raise _ShortError(f"{place}: fewer cells than columns.")
    for name, value in record.items():
        if isinstance(value, str):
            text_files.check_characters(value, f"{place}: field {name!r}")
    return {name: value for name, value in record.items() if name is not None and value is not None}


def cola(path: pathlib.Path, on_error: OnError = "stop") -> Iterator[Row]:
    """GLUE's CoLA: training and development files have no header and the columns source, label, mark, sentence."""
    lines = text_files.read_lines(path, on_error=on_error)
    first = next(lines, "").rstrip("\r\n").split("\t")
    if suffix_of(path) not in TABLES or len(first) != 4 or first[1] not in ("0", "1"):
        yield from records(path, on_error)
        return
    for number, line in enumerate(itertools.chain(["\t".join(first)], lines)):
        text_files.check_characters(line, f"{path}, line {number + 1}")
        cells = line.rstrip("\r\n").split("\t")
        if len(cells) == 4 and cells[1] in ("0", "1"):
            yield {"sentence": cells[3], "label": cells[1], "idx": number}
        elif line.strip() and on_error == "stop":
            raise CorpusError(
                f"{path}, line {number + 1}: not source, label 0 or 1, mark and sentence with tabs between."
            )


def folders(path: pathlib.Path, on_error: OnError = "stop", *, labels: Mapping[str, str]) -> Iterator[Row]:
    """A text a file, labelled by the name of its folder; other files are tables or JSON lines.

    Args:
        path: of the file.
        on_error: what happens to records that cannot be read.
        labels: the label of each folder; texts in other folders are left out.
    """
    if suffix_of(path) != ".txt":
        yield from records(path, on_error)
    elif path.parent.name in labels:
        text = "".join(text_files.read_lines(path, on_error=on_error))
        yield {"text": text.strip(), "label": labels[path.parent.name], "idx": path.stem}


def _json(path: pathlib.Path) -> Any:
    try:
        return json.loads("".join(text_files.read_lines(path)))
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{path}: not JSON ({error}).") from error


def squad(path: pathlib.Path, on_error: OnError = "stop") -> Iterator[Row]:
    """SQuAD's JSON, {"data": [{"paragraphs": [{"context", "qas"}]}]}, or JSON lines in the shape of TFDS."""
    if suffix_of(path) != ".json":
        yield from records(path, on_error)
        return
    content = _json(path)
    try:
        for article in content["data"]:
            for paragraph in article["paragraphs"]:
                for one in paragraph["qas"]:
                    answers = [answer["text"] for answer in one.get("answers", ())]
                    known = {"id": str(one["id"]), "title": article.get("title", ""), "question": one["question"]}
                    yield {**known, "context": paragraph["context"], "answers": {"text": answers}}
    except (KeyError, TypeError) as error:
        raise CorpusError(f"{path}: not the JSON of SQuAD ({error!r} is missing or of another kind).") from error


def trivia_qa(path: pathlib.Path, on_error: OnError = "stop") -> Iterator[Row]:
    """TriviaQA's JSON, {"Data": [{"Question", "QuestionId", "Answer": {"Value", "Aliases"}}]}, or JSON lines."""
    if suffix_of(path) != ".json":
        yield from records(path, on_error)
        return
    content = _json(path)
    try:
        for one in content["Data"]:
            answer = one.get("Answer", {"Value": "<unk>", "Aliases": []})
            known = {"question": one["Question"], "question_id": one["QuestionId"]}
            yield {**known, "answer": {"value": answer["Value"], "aliases": list(answer["Aliases"])}}
    except (KeyError, TypeError) as error:
        raise CorpusError(f"{path}: not the JSON of TriviaQA ({error!r} is missing or of another kind).") from error


def super_glue(path: pathlib.Path, on_error: OnError = "stop") -> Iterator[Row]:
    """SuperGLUE's JSON lines; those of MultiRC, ReCoRD and WSC are flattened as TFDS does."""
    for row in records(path, on_error):
        passage = row.get("passage")
        if isinstance(passage, Mapping):
            try:
                yield from _record_rows(row, passage) if "qas" in row else _multirc_rows(row, passage)
            except (KeyError, TypeError) as error:
                raise CorpusError(f"{path}: no row of SuperGLUE ({error!r} is missing or of another kind).") from error
        else:
            yield row | row.get("target", {}) if isinstance(row.get("target"), Mapping) else row


def _multirc_rows(row: Row, passage: Mapping[str, Any]) -> Iterator[Row]:
    for question in passage["questions"]:
        for answer in question["answers"]:
            yield {
                "paragraph": passage["text"],
                "question": question["question"],
                "answer": answer["text"],
                "label": answer.get("label"),
                "idx": {"paragraph": row["idx"], "question": question["idx"], "answer": answer["idx"]},
            }


def _record_rows(row: Row, passage: Mapping[str, Any]) -> Iterator[Row]:
    text = passage["text"]
    entities = {text[one["start"] : one["end"] + 1] for one in passage["entities"]}
    for query in row["qas"]:
        yield {
            "passage": text,
            "query": query["query"],
            "entities": sorted(entities),
            "answers": sorted({one["text"] for one in query.get("answers", ())}),
            "idx": {"passage": row["idx"], "query": query["idx"]},
        }


def conll(
    path: pathlib.Path, on_error: OnError = "stop", *, columns: Mapping[str, int], universal: bool = False
) -> Iterator[Row]:
    """Sentences of tokens with labels: {"tokens": [...], name of a column: [...]}.

    Args:
        path: of the file; JSON lines are read too.
        on_error: what happens to records that cannot be read.
        columns: places of the columns, from 0; negative ones count from the end.
        universal: whether it is CoNLL-U: columns between tabs, comments, and words of several tokens left out.

    Raises:
        CorpusError: a line has too few columns.
    """
    if suffix_of(path) in record_files.JSON:
        yield from records(path, on_error)
        return
    lines = (line.rstrip("\r\n") for line in text_files.read_lines(path, on_error=on_error))
    numbered = enumerate(lines, start=1)
    number = 0
    for is_token, block in itertools.groupby(numbered, key=lambda line: bool(line[1].strip())):
        if not is_token:
            continue
        cells = [one for one in map(functools.partial(_cells, universal=universal), block) if one is not None]
        if not cells or cells[0][1][0] == "-DOCSTART-":
            continue
        yield {name: [_cell(path, place, line, at) for place, line in cells] for name, at in columns.items()} | {
            "idx": number
        }
        number += 1


def _cells(line: tuple[int, str], *, universal: bool) -> tuple[int, list[str]] | None:
    number, text = line
    if not universal:
        return number, text.split("\t") if "\t" in text else text.split()
    if text.startswith("#") or not text.split("\t")[0].isdecimal():
        return None
    return number, text.split("\t")


def _cell(path: pathlib.Path, number: int, cells: Sequence[str], place: int) -> str:
    try:
        return cells[place]
    except IndexError:
        raise CorpusError(f"{path}, line {number}: {len(cells)} columns; column {place + 1} is needed.") from None
