"""Whole audits: planted duplicates and leaks against looking at every pair, in little memory, by several processes."""

import dataclasses
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from data.audit import texts as texts_lib
from reference import audit as oracle

from t2t.data import corpora
from t2t.data.audit import corpus, duplicates, near_duplicates, units
from t2t.data.audit.duplicates import Law
from t2t.data.audit.findings import EvaluationSet, Settings

LAW = Law(ngram=3, similarity=0.7, hashes=128)


@pytest.fixture(scope="module")
def planted() -> dict[str, list[str]]:
    """Three files: texts, equal copies, copies with some words changed, texts of an evaluation set, short texts."""
    rng = np.random.default_rng(0)
    base = [texts_lib.words(rng, number) for number in rng.integers(20, 120, size=40)]
    copies = [base[i] + "  " for i in range(0, 40, 5)] + [base[5]]
    changed = [texts_lib.change(base[i], rng, 1 + i % 4) for i in range(0, 40, 2)]
    changed += [texts_lib.change(changed[0], rng, 2)]
    evaluation = [texts_lib.words(rng, 40) for _ in range(6)]
    leaking = [f"{base[1][:60]} {texts_lib.change(text, rng, 0)} and more" for text in evaluation[:3]]
    short = ["one two", "One, two!", "...", "---", "...", "東京は大きい"]
    mixed = base + copies + changed + leaking + short
    order = rng.permutation(len(mixed)).tolist()
    shuffled = [mixed[i] for i in order]
    return {"a": shuffled[:30], "b": shuffled[30:31], "c": shuffled[31:], "evaluation": evaluation}


def write(folder: pathlib.Path, rows: list[str], name: str) -> pathlib.Path:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps({"text": row}) + "\n" for row in rows), encoding="utf-8")
    return path


def audit(folder: pathlib.Path, planted, *, evaluation: bool = True, **settings):
    files = [write(folder, planted[name], name) for name in "abc"]
    (folder / "work").mkdir()
    return corpus.audit(
        files,
        corpora.FileReader(),
        evaluation=[EvaluationSet(name="test", texts=lambda: planted["evaluation"])] if evaluation else [],
        settings=Settings(**{"law": LAW, "leak_ngram": 8, **settings}),
        directory=folder / "work",
        say=lambda _: None,
    )


@pytest.fixture(scope="module")
def found(planted, tmp_path_factory):
    return audit(tmp_path_factory.mktemp("corpus"), planted)


def whole(planted) -> list[str]:
    return [*planted["a"], *planted["b"], *planted["c"]]


def first_of_each(planted) -> list[int]:
    """By every pair of texts."""
    rows = whole(planted)
    equal = {(i, j) for j in range(len(rows)) for i in range(j) if rows[i].strip() == rows[j].strip()}
    similar = oracle.similar_pairs(rows, n=3, similarity=0.7)
    assert similar - equal
    return oracle.first_of_clusters(len(rows), equal | similar)


def leaking(planted) -> list[int]:
    rows = whole(planted)
    return [i for i, row in enumerate(rows) if row.endswith("and more")]


def test_all_duplicates_are_found_and_nothing_else(planted, found):
    firsts = np.concatenate([block[1] for block in found.duplicates.blocks()])
    assert firsts.tolist() == first_of_each(planted)


def test_the_report_counts_them(planted, found):
    rows, firsts, report = whole(planted), first_of_each(planted), found.report.duplicates
    copies = [i for i, first in enumerate(firsts) if first != i]
    exact = [i for i in copies if any(rows[j].strip() == rows[i].strip() for j in range(i))]
    assert (report.exact, report.near) == (len(exact), len(copies) - len(exact))
    assert report.characters == sum(len(rows[i]) for i in copies)
    sizes = np.unique(firsts, return_counts=True)[1]
    assert report.clusters == np.count_nonzero(sizes > 1) == sum(number for _, number in report.cluster_sizes)
    assert report.largest[0].documents == sizes.max()
    assert found.report.dropped == len({*copies, *leaking(planted)})
    by_file = [sum(i in copies for i in range(*edges)) for edges in ((0, 30), (30, 31), (31, len(rows)))]
    assert [file.duplicates for file in found.report.files] == by_file


def test_the_documents_that_should_go(planted, found):
    rows, firsts = whole(planted), first_of_each(planted)
    numbers = {("a", k + 1): k for k in range(30)} | {("b", 1): 30}
    numbers |= {("c", k + 1): 31 + k for k in range(len(rows) - 31)}

    def number(place) -> int:
        return numbers[pathlib.Path(place["file"]).stem, place["document"]]

    dropped = list(found.dropped())
    sets = [oracle.ngrams(row, 3) for row in rows]
    assert [number(row) for row in dropped] == sorted(number(row) for row in dropped)
    for row in dropped:
        i = number(row)
        assert ("leak" in row) == (i in leaking(planted))
        if "first" in row:
            assert number(row["first"]) == firsts[i] < i
            same = [j for j, first in enumerate(firsts) if first == firsts[i] and j != i]
            similarities = [oracle.jaccard(sets[i], sets[j]) for j in same]
            is_exact = any(rows[j].strip() == rows[i].strip() for j in range(i))
            assert row["kind"] == ("exact" if is_exact else "near")
            assert is_exact or any(row["similarity"] == round(value, 4) for value in similarities)
            assert row["similarity"] >= 0.7
    gone = {number(row) for row in dropped}
    assert list(found.kept()) == [row for i, row in enumerate(rows) if i not in gone]


def test_all_leaks_are_found(planted, found):
    (report,) = found.report.evaluation
    assert (report.documents, report.looked_for, report.touched, report.leaked) == (6, 6, 3, 3)
    assert report.coverage == [3, 0, 0, 0, 0, 0, 0, 0, 0, 3]
    assert [leak.document for leak in report.examples] == [1, 2, 3]
    rows = whole(planted)
    for leak, line in zip(report.examples, found.leaked(), strict=True):
        assert leak.coverage == leak.share == 1.0 and leak.holders == 1
        assert line["set"] == "test" and line["document"] == leak.document
        text = planted["evaluation"][leak.document - 1]
        assert leak.text == text
        assert oracle.split_units(text)[:8] == [w for w in oracle.split_units(leak.found) if w in text.split()][:8]
        file = {"a": 0, "b": 30, "c": 31}[pathlib.Path(leak.place.file).stem]
        assert rows[file + leak.place.document - 1].endswith("and more")
    assert found.report.leaking == 3


@pytest.mark.slow
def test_little_memory_changes_nothing(planted, found, tmp_path, monkeypatch):
    for module, name, value in (
        (units, "BLOCK", 300), (near_duplicates, "_BLOCK", 7), (near_duplicates, "_PAIRS", 3),
        (duplicates, "_BLOCK", 5),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    assert as_json(audit(tmp_path, planted, memory=640)) == as_json(found)


@pytest.mark.slow
def test_several_processes_change_nothing(planted, found, tmp_path):
    assert as_json(audit(tmp_path, planted, workers=2)) == as_json(found)


def as_json(found) -> dict:
    """The report, whatever folder the files are in."""
    folder = str(pathlib.Path(found.report.files[0].file).parent)
    return json.loads(json.dumps(found.report.to_json()).replace(folder, "corpus"))


MEASURE = """
import pathlib, sys, tracemalloc
from t2t.data import corpora
from t2t.data.audit import corpus, duplicates, near_duplicates, units
from t2t.data.audit.findings import Settings

units.BLOCK, duplicates._BLOCK, near_duplicates._BLOCK = 20_000, 100, 100
for folder in sys.argv[1:]:  # the first one only makes what is made once
    folder = pathlib.Path(folder)
    tracemalloc.start()
    corpus.audit(
        corpora.find_files([str(folder)]), corpora.FileReader(), settings=Settings(memory=64 * 100, examples=1),
        directory=folder / ".work", say=lambda _: None,
    )
    print(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(tmp_path):
    """Eight times as many documents, a quarter of them copies, by a process whose calls are not checked."""
    folders = []
    for name, number in (("warm", 10), ("small", 200), ("large", 1600)):
        rng = np.random.default_rng(number)
        folder = tmp_path / name
        (folder / ".work").mkdir(parents=True)
        rows = [texts_lib.words(rng, 60) for _ in range(number)]
        write(folder, rows, "a")
        write(folder, rows[: number // 4] + [texts_lib.change(row, rng, 1) for row in rows[: number // 4]], "b")
        folders.append(str(folder))
    done = subprocess.run([sys.executable, "-c", MEASURE, *folders], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _, small, large = map(int, done.stdout.split())
    assert large - small < 1400 * 60 * 5 / 10  # a tenth of what the texts have more


def test_short_texts_are_no_duplicates_when_told_so(planted, tmp_path):
    law = dataclasses.replace(LAW, min_units=10)
    made = audit(tmp_path, planted, evaluation=False, law=law)
    rows = whole(planted)
    long = [i for i, row in enumerate(rows) if len(oracle.split_units(row)) >= 10]
    expected = [first if i in long else i for i, first in enumerate(first_of_each(planted))]
    assert expected != first_of_each(planted)
    assert np.concatenate([block[1] for block in made.duplicates.blocks()]).tolist() == expected


def test_without_evaluation_sets(planted, tmp_path):
    made = audit(tmp_path, planted, evaluation=False)
    assert made.report.evaluation == [] and made.report.leaking == 0
    assert not list(made.leaked())
    assert not any("leak" in row for row in made.dropped())


def test_files_that_change_meanwhile_are_refused(planted, found, tmp_path):
    made = audit(tmp_path, planted, evaluation=False)
    write(tmp_path, [*planted["c"], "one more"], "c")
    with pytest.raises(corpora.CorpusError, match="changed while it was audited"):
        list(made.kept())
    monkey = duplicates._recheck
    is_compared = np.ones(made.corpus.documents, bool)
    with pytest.raises(corpora.CorpusError, match=r"c.jsonl has 4\d documents, and had 4\d a moment ago"):
        monkey(made.corpus, LAW, is_compared, workers=1, tell=None)


def test_a_corpus_without_text_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xff\xfe\n\n \n")
    (tmp_path / "work").mkdir()
    reader = corpora.FileReader(on_error="skip", unit="line")
    with pytest.raises(corpora.CorpusError, match="hold no text. The first that cannot be read: .*a.txt, line 1"):
        corpus.audit([path], reader, settings=Settings(), directory=tmp_path / "work", say=lambda _: None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"leak_share": 0.0}, r"leak_share=0.0 must lie in \(0, 1\]"),
        ({"leak_ngram": 0}, "leak_ngram=0 must be at least 1 word"),
        ({"workers": 0}, "workers=0 must be positive"),
    ],
)
def test_settings_that_find_nothing_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Settings(**settings)
    with pytest.raises(ValueError, match="ngram=0 must be at least 1 word"):
        Law(ngram=0, similarity=0.8, hashes=128)
    with pytest.raises(ValueError, match="min_units=-1 must not be negative"):
        Law(ngram=5, similarity=0.8, hashes=128, min_units=-1)
