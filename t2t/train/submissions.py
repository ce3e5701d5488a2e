r"""Predictions as the servers of benchmarks take them.

    GLUE        CoLA.tsv, MNLI-m.tsv, ...: index and prediction
    SuperGLUE   BoolQ.jsonl, MultiRC.jsonl, ...: {"idx": 0, "label": "true"}
    SQuAD       squad.json: {id: answer}

Records are those of predictions.jsonl: the text that was generated, and the numbers or the id of its example. What is
no label becomes the first one, since a server refuses a file with anything else; the caller hears how many there were.

Reference: https://gluebenchmark.com/faq and https://super.gluebenchmark.com/faq; `evaluate-v2.0.py` of SQuAD.
"""

import dataclasses
import functools
import json
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from t2t.data import labelled_texts, pronouns
from t2t.errors import UsageError

Record = Mapping[str, Any]

TRUTH = ("False", "True")
TWO_WAY = ("entailment", "not_entailment")
THREE_WAY = ("entailment", "neutral", "contradiction")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Labels:
    """Label strings of a task, in the order of their ids, and what stands for each in a submission."""

    file: str
    names: Sequence[str]
    written: Sequence[Any]

    def label(self, record: Record) -> tuple[Any, bool]:
        """What is written for a prediction, and whether it was a label."""
        number = labelled_texts.predicted_label(record["prediction"], labels=self.names)
        return self.written[max(number, 0)], number != labelled_texts.NO_LABEL


def _named(file: str, names: Sequence[str]) -> Labels:
    return Labels(file=file, names=names, written=names)


def _numbered(file: str, names: Sequence[str]) -> Labels:
    return Labels(file=file, names=names, written=range(len(names)))


GLUE = {
    "glue_cola": _numbered("CoLA.tsv", ("unacceptable", "acceptable")),
    "glue_sst2": _numbered("SST-2.tsv", ("negative", "positive")),
    "glue_mrpc": _numbered("MRPC.tsv", ("not_equivalent", "equivalent")),
    "glue_qqp": _numbered("QQP.tsv", ("not_duplicate", "duplicate")),
    "glue_mnli": _named("MNLI-m.tsv", THREE_WAY),
    "glue_mnli_matched": _named("MNLI-m.tsv", THREE_WAY),
    "glue_mnli_mismatched": _named("MNLI-mm.tsv", THREE_WAY),
    "glue_qnli": _named("QNLI.tsv", TWO_WAY),
    "glue_rte": _named("RTE.tsv", TWO_WAY),
    "glue_wnli": _numbered("WNLI.tsv", ("not_entailment", "entailment")),
    "glue_ax": _named("AX.tsv", THREE_WAY),
}
"""GLUE's tasks of labels."""

SUPER_GLUE = {
    "super_glue_boolq": Labels(file="BoolQ.jsonl", names=TRUTH, written=("false", "true")),
    "super_glue_cb": _named("CB.jsonl", ("entailment", "contradiction", "neutral")),
    "super_glue_copa": _numbered("COPA.jsonl", ("choice1", "choice2")),
    "super_glue_rte": _named("RTE.jsonl", TWO_WAY),
    "super_glue_wic": Labels(file="WiC.jsonl", names=TRUTH, written=("false", "true")),
    "super_glue_wsc_marked": _named("WSC.jsonl", TRUTH),
    "super_glue_axb": _named("AX-b.jsonl", TWO_WAY),
    "super_glue_axg": _named("AX-g.jsonl", TWO_WAY),
}
"""SuperGLUE's tasks of labels."""

Made = tuple[list[str], int]
"""The lines of a file, and how many predictions were no label."""


def _table(labels: Callable[[Record], tuple[Any, bool]], records: Sequence[Record]) -> Made:
    made = [labels(record) for record in records]
    rows = sorted((record["idx"], written) for record, (written, _) in zip(records, made, strict=True))
    return ["index\tprediction", *(f"{idx}\t{written}" for idx, written in rows)], sum(not valid for _, valid in made)


def _json_lines(labels: Callable[[Record], tuple[Any, bool]], records: Sequence[Record]) -> Made:
    made = [labels(record) for record in records]
    rows = sorted((record["idx"], written) for record, (written, _) in zip(records, made, strict=True))
    return [json.dumps({"idx": idx, "label": written}) for idx, written in rows], sum(not valid for _, valid in made)


def _similarity(record: Record) -> tuple[str, bool]:
    """STS-B takes numbers from 0 to 5."""
    value = labelled_texts.predicted_number(record["prediction"])
    is_valid = 0 <= value <= 5
    return f"{value:.3f}" if is_valid else "0.000", is_valid


def _referent(written: Sequence[str], record: Record) -> tuple[str, bool]:
    example = {"targets_pretokenized": record["target"]}
    number = pronouns.predicted_referent(record["prediction"], example=example)
    return written[max(number, 0)], number != labelled_texts.NO_LABEL


def _multirc(records: Sequence[Record]) -> Made:
    paragraphs: dict[int, dict[int, dict[int, int]]] = {}
    num_invalid = 0
    for record in records:
        number = labelled_texts.predicted_label(record["prediction"], labels=TRUTH)
        num_invalid += number == labelled_texts.NO_LABEL
        paragraph, question, answer = (record[f"idx/{part}"] for part in ("paragraph", "question", "answer"))
        paragraphs.setdefault(paragraph, {}).setdefault(question, {})[answer] = max(number, 0)
    lines = []
    for paragraph, questions in sorted(paragraphs.items()):
        listed = [
            {"idx": question, "answers": [{"idx": answer, "label": label} for answer, label in sorted(answers.items())]}
            for question, answers in sorted(questions.items())
        ]
        lines.append(json.dumps({"idx": paragraph, "passage": {"questions": listed}}))
    return lines, num_invalid


def _record(records: Sequence[Record]) -> Made:
    answers = {record["idx/query"]: record["prediction"].strip() for record in records}
    rows = sorted(answers.items())
    return [json.dumps({"idx": query, "label": answer}, ensure_ascii=False) for query, answer in rows], 0


def _answers(records: Sequence[Record], *, unanswerable: str | None = None) -> Made:
    texts = {record["id"]: record["prediction"].strip() for record in records}
    return [
        json.dumps({key: "" if text == unanswerable else text for key, text in texts.items()}, ensure_ascii=False)
    ], 0


FORMATS: dict[str, tuple[str, Callable[[Sequence[Record]], Made]]] = {
    **{name: (labels.file, functools.partial(_table, labels.label)) for name, labels in GLUE.items()},
    **{name: (labels.file, functools.partial(_json_lines, labels.label)) for name, labels in SUPER_GLUE.items()},
    "glue_stsb": ("STS-B.tsv", functools.partial(_table, _similarity)),
    "glue_wnli_simple": ("WNLI.tsv", functools.partial(_table, functools.partial(_referent, ("0", "1")))),
    "super_glue_wsc": ("WSC.jsonl", functools.partial(_json_lines, functools.partial(_referent, TRUTH))),
    "super_glue_multirc": ("MultiRC.jsonl", _multirc),
    "super_glue_record": ("ReCoRD.jsonl", _record),
    "squad": ("squad.json", _answers),
    "squad_v2": ("squad_v2.json", functools.partial(_answers, unanswerable="unanswerable")),
}
"""The file of each task, and what makes its lines."""


def check(tasks: Iterable[str]) -> None:
    """Refuses tasks that have no format, and two for one file, before anything is predicted.

    Raises:
        UsageError: naming them, and what is possible.
    """
    files: dict[str, str] = {}
    for task in tasks:
        if task not in FORMATS:
            raise UsageError(f"--submission: {task} has no format; those of {', '.join(FORMATS)} do")
        file = FORMATS[task][0]
        if file in files:
            raise UsageError(f"--submission: {files[file]} and {task} are both {file}; name one of them")
        files[file] = task


def write(directory: pathlib.Path, task: str, records: Sequence[Record]) -> tuple[pathlib.Path, int]:
    """Writes the file of a task.

    Args:
        directory: of all files.
        task: a key of `FORMATS`.
        records: prediction, target, and the numbers or the id of each example.

    Returns:
        The file, and how many predictions were no label, for which the first stands.

    Raises:
        UsageError: records lack what the format needs.
    """
    file, make = FORMATS[task]
    try:
        lines, num_invalid = make(records)
    except KeyError as error:
        raise UsageError(f"the predictions of {task} have no {error}, which {file} needs") from error
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / file
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path, num_invalid
