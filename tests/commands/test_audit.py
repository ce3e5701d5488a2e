"""`t2t audit`: its files, what it refuses, and a page that hostile texts do not break."""

import gzip
import json

import numpy as np
import pytest
from commands.test_page import HOSTILE, check_self_contained
from data.audit import texts as texts_lib

from t2t import cli


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A corpus of two files, with copies and a leak, and an evaluation set of questions."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [texts_lib.words(rng, 60) for _ in range(12)]
    rows[5] = texts_lib.change(rows[1], rng, 1)
    rows[9] = rows[0]
    rows[10] = f"{HOSTILE} {rows[2]} {HOSTILE}".replace("\ud800", "")
    question = texts_lib.words(rng, 30)
    rows[11] += " " + question + " <b>42</b> Hi"
    (tmp_path / "corpus").mkdir()
    for name, some in (("a", rows[:7]), ("b", rows[7:])):
        lines = [json.dumps({"text": row, "url": "x"}) for row in some]
        (tmp_path / "corpus" / f"{name}.jsonl").write_text("\n".join([*lines, '{"text": " "}\n']))
    records = [{"question": question, "answer": "<b>42</b>"}, {"question": texts_lib.words(rng, 20), "answer": "no"}]
    (tmp_path / "exam.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return tmp_path


EXAM = ("--eval-files", "exam.jsonl", "--eval-fields", "question", "answer")


def run(*arguments: str) -> int:
    return cli.main(["audit", *arguments, "--workers", "1"])


def lines(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_everything_that_is_written(here, capsys):
    assert run("corpus", *EXAM, "--kept", "clean/kept.jsonl.gz", "--examples", "3") == 0
    out, err = capsys.readouterr()
    assert "12 documents in 2 files" in out and "left out: 2 empty, 0 that cannot be read" in out
    assert "duplicates: 1 equal and 1 similar documents say what earlier ones say, 16.7% of all" in out
    assert "exam.jsonl: 1 of 2 documents leaked, something of 1 found" in out
    assert "reading texts" in err
    assert sorted(path.name for path in (here / "audit").iterdir()) == [
        "audit.html", "audit.json", "dropped.jsonl", "leaked.jsonl",
    ]  # fmt: skip
    dropped = lines(here / "audit" / "dropped.jsonl")
    a, b = (f"corpus/{name}.jsonl" for name in "ab")
    assert [(row["file"], row["document"], row.get("kind"), row.get("leak")) for row in dropped] == [
        (a, 6, "near", None), (b, 3, "exact", None), (b, 5, None, True),
    ]  # fmt: skip
    assert [row.get("first") for row in dropped] == [{"file": a, "document": 2}, {"file": a, "document": 1}, None]
    (leak,) = lines(here / "audit" / "leaked.jsonl")
    assert (leak["set"], leak["document"], leak["coverage"], leak["place"]) == (
        "exam.jsonl", 1, 1.0, {"file": b, "document": 5},
    )  # fmt: skip
    with gzip.open("clean/kept.jsonl.gz", "rt", encoding="utf-8") as file:
        kept = [json.loads(line)["text"] for line in file]
    texts = [row["text"] for name in "ab" for row in lines(here / "corpus" / f"{name}.jsonl") if row["text"].strip()]
    assert kept == [text for i, text in enumerate(texts) if i not in (5, 9, 11)]
    report = json.loads((here / "audit" / "audit.json").read_text())
    assert report["corpus"]["documents"] == 12 and report["dropped"] == 3
    assert report["corpus"]["characters"] == sum(map(len, texts))


def test_the_page_stands_by_itself_whatever_texts_hold(here, capsys):
    (here / "corpus" / "c.jsonl").write_text(json.dumps({"text": HOSTILE.replace("\ud800", "") * 9}) + "\n")
    for name in "de":
        (here / "corpus" / f"<script>{name}&.jsonl").write_text((here / "corpus" / "c.jsonl").read_text())
    assert run("corpus", *EXAM) == 0
    found = check_self_contained((here / "audit" / "audit.html").read_text(encoding="utf-8"))
    shown = HOSTILE.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e").replace("\ud800", "")
    assert found.text.count(shown) >= 3
    assert "corpus/<script>d&.jsonl" in found.text
    assert "3 documents" in found.text and "document 1: 100% in the corpus" in found.text
    assert "<b>42</b>" in found.text


def test_an_audit_writes_over_an_earlier_one_when_told_to_alone(here, capsys):
    assert run("corpus") == 0
    assert run("corpus") == 2
    assert "audit holds audit.html, audit.json, dropped.jsonl already; --overwrite" in capsys.readouterr().err
    (here / "audit" / ".work-of-a-killed-one").mkdir()
    assert run("corpus", "--overwrite") == 0
    assert len(list((here / "audit").iterdir())) == 4
    assert lines(here / "audit" / "leaked.jsonl") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing/*.txt"], "No file matches 'nothing/*.txt'"),
        (["corpus", "--eval-files", "nothing.jsonl"], "No file matches 'nothing.jsonl'"),
        (["corpus", "--field", "body"], "no field 'body'; there is 'text', 'url'"),
        (["corpus", "--similarity", "1.5"], "similarity=1.5 must lie in (0, 1]"),
        (["corpus", "--leak-share", "0"], "leak_share=0.0 must lie in (0, 1]"),
        (["corpus", "--memory", "0"], "--memory is 0.0; it must be positive"),
        (["corpus", "--output", "exam.jsonl"], "exam.jsonl is a file; give a directory to write"),
        (["corpus", "--kept", "kept.txt"], "--kept kept.txt must end in .jsonl or .jsonl.gz"),
        (["corpus", "--kept", "exam.jsonl"], "--kept exam.jsonl is there already; --overwrite replaces it"),
        (["corpus", "--kept", "corpus/a.jsonl", "--overwrite"], "--kept corpus/a.jsonl is a file of the corpus"),
    ],
)
def test_what_cannot_be_is_refused(here, capsys, arguments, message):
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err
    assert not (here / "audit").exists()


def test_no_files(here, capsys):
    assert run() == 2
    assert "No files are named" in capsys.readouterr().err
    assert not (here / "audit").exists()


def test_documents_that_cannot_be_read_are_counted_when_told_to(here, capsys):
    (here / "bad.txt").write_bytes(b"good line\nbad \xff\n")
    assert run("bad.txt", "--unit", "line") == 2
    assert "bad.txt is not UTF-8" in capsys.readouterr().err
    assert run("bad.txt", "--unit", "line", "--on-error", "skip") == 0
    out, err = capsys.readouterr()
    assert "left out: 0 empty, 1 that cannot be read" in out and "bad.txt, line 2 is not UTF-8" in err


@pytest.mark.slow
def test_tasks_as_evaluation_sets(here, monkeypatch, capsys):
    (here / "tasks").mkdir()
    (here / "tasks" / "exam.py").write_text(
        "from t2t.data import registry\n"
        "def rows(split):\n"
        "    return [{'inputs': 'one two three four five six', 'targets': 'yes'}]\n"
        "source = registry.TextSource(rows, splits=('test',))\n"
        "registry.add_text_to_text('exam', source, metric_fns=[])\n"
    )
    (here / "corpus" / "c.jsonl").write_text('{"text": "It says: one, two, three, four, five, six."}\n')
    monkeypatch.syspath_prepend(str(here))
    arguments = ("corpus", "--eval-tasks", "exam", "--modules", "tasks.exam")
    assert run(*arguments) == 2
    assert "--eval-tasks: exam has no split validation; it has test" in capsys.readouterr().err
    assert run(*arguments, "--eval-split", "test") == 0
    assert "exam, test: 1 of 2 documents leaked, something of 1 found; 1 too short" in capsys.readouterr().out
    assert run("corpus", "--overwrite", "--eval-tasks", "exams", "--modules", "tasks.exam") == 2
    assert "Did you mean 'exam'" in capsys.readouterr().err
