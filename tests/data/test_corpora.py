import gzip
import json
import sys

import pytest

from t2t.data import corpora
from t2t.data.corpora import CorpusError, find_files, read_records, read_texts


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


TEXT = "One.\nStill one.\n\n \nTwo.\r\n\r\n\r\nThree."


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.TXT", "a.b.txt.gz"])
@pytest.mark.parametrize(
    ("unit", "documents"),
    [
        ("file", ["One.\nStill one.\n\n \nTwo.\n\n\nThree."]),
        ("line", ["One.", "Still one.", "Two.", "Three."]),
        ("paragraph", ["One.\nStill one.", "Two.", "Three."]),
    ],
)
def test_units_of_plain_text(folder, name, unit, documents):
    write(folder / name, TEXT)
    assert list(read_texts([name], unit=unit)) == documents


def test_byte_order_mark_is_no_text(folder):
    write(folder / "a.txt", "\ufeffOne.")
    write(folder / "b.csv", "\ufefftext,n\nTwo.,1\n")
    assert list(read_texts(["a.txt", "b.csv"])) == ["One.", "Two."]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_records(folder, suffix):
    lines = [
        json.dumps({"text": "One.\nStill one.", "n": 1}),
        "",
        json.dumps({"text": "Zwei ä"}),
        json.dumps({"text": " "}),
    ]
    write(folder / f"a.jsonl{suffix}", "\n".join(lines))
    write(folder / f"b.csv{suffix}", 'n,text\n1,"Three, ""quoted"",\nover two lines"\n')
    write(folder / f"c.tsv{suffix}", 'text\tn\nan unpaired " quote\t1\nnext\t2\n')
    found = list(read_texts([f"a.jsonl{suffix}", f"b.csv{suffix}", f"c.tsv{suffix}"]))
    assert found == ["One.\nStill one.", "Zwei ä", 'Three, "quoted",\nover two lines', 'an unpaired " quote', "next"]


def test_records_with_several_fields(folder):
    write(folder / "a.tsv", "inputs\ttargets\tother\nhow are you\tfine\tx\n")
    assert list(read_records(["a.tsv"], fields=["inputs", "targets"])) == [{"inputs": "how are you", "targets": "fine"}]
    write(folder / "a.txt", "text")
    with pytest.raises(CorpusError, match="a.txt is plain text, but records with the fields inputs"):
        list(read_records(["a.txt"], fields=["inputs"]))
    write(folder / "b.jsonl", "\n")
    with pytest.raises(CorpusError, match="b.jsonl hold no record"):
        list(read_records(["b.jsonl"], fields=["inputs"]))


def test_parquet(folder):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(arrow.table({"text": ["One.", "Two."], "n": [1, 2]}), folder / "a.parquet")
    assert list(read_texts(["a.parquet"])) == ["One.", "Two."]
    with pytest.raises(CorpusError, match=r"a.parquet: no column 'body'; there is 'text', 'n'"):
        list(read_texts(["a.parquet"], field="body"))
    with pytest.raises(CorpusError, match=r"a.parquet, row 0: field 'n' is 1, not a text"):
        list(read_texts(["a.parquet"], field="n"))
    write(folder / "b.parquet", "no parquet")
    with pytest.raises(CorpusError, match="b.parquet cannot be read as parquet"):
        list(read_texts(["b.parquet"]))


def test_parquet_without_pyarrow_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    write(folder / "a.parquet", "")
    with pytest.raises(CorpusError, match="pip install pyarrow"):
        list(read_texts(["a.parquet"]))


def test_long_documents_fit_a_csv_field(folder):
    write(folder / "a.csv", "text\n" + "x" * 200_000 + "\n")
    assert [len(text) for text in read_texts(["a.csv"])] == [200_000]


def test_globs_are_sorted_and_name_each_file_once(folder):
    for name in ["books/b.txt", "books/a.txt", "books/old/c.txt", "d.txt"]:
        write(folder / name, name)
    assert [str(path) for path in find_files(["d.txt", "books/*.txt", "books/**/*.txt"])] == [
        "d.txt", "books/a.txt", "books/b.txt", "books/old/c.txt",
    ]  # fmt: skip
    assert [path.name for path in find_files([str(folder / "d.txt")])] == ["d.txt"]


def test_missing_files_are_named(folder):
    write(folder / "books/a.txt", "a")
    with pytest.raises(CorpusError, match=r"No file matches 'nothing/\*.txt'"):
        list(read_texts(["books/a.txt", "nothing/*.txt"]))
    with pytest.raises(CorpusError, match=r"books is a folder; name its files, such as 'books/\*.txt'"):
        find_files(["books"])
    with pytest.raises(CorpusError, match="No files are named"):
        find_files([])


@pytest.mark.parametrize("name", ["a.doc", "a", "a.gz", "a.parquet.gz"])
def test_unknown_kinds_are_refused(folder, name):
    write(folder / name, "a")
    with pytest.raises(CorpusError, match=f"{name}: cannot tell the format.*jsonl"):
        find_files([name])


def test_empty_corpus_is_an_error(folder):
    write(folder / "a.txt", " \n\n")
    write(folder / "b.jsonl", '{"text": ""}')
    with pytest.raises(CorpusError, match="a.txt, b.jsonl hold no text"):
        list(read_texts(["a.txt", "b.jsonl"]))


def test_text_that_is_not_utf8_is_found_by_file_and_byte(folder):
    write(folder / "a.txt", "caf\xe9".encode() + b"\nA caf\xe9!\n")
    with pytest.raises(CorpusError, match=r"a.txt is not UTF-8: byte 11 is 0xe9.*iconv"):
        list(read_texts(["a.txt"]))
    write(folder / "b.txt.gz", b"caf\xe9")
    with pytest.raises(CorpusError, match="byte 3 of the unpacked text is 0xe9"):
        list(read_texts(["b.txt.gz"]))


def test_damaged_archives_are_named(folder):
    path = folder / "a.txt.gz"
    write(path, "some text " * 100)
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(CorpusError, match="a.txt.gz cannot be read to its end"):
        list(read_texts(["a.txt.gz"]))
    path.write_bytes(b"no gzip")
    with pytest.raises(CorpusError, match="a.txt.gz cannot be read to its end"):
        list(read_texts(["a.txt.gz"]))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"text": "x"}\n{"text": ', "a.jsonl, line 2: not JSON"),
        ("a.jsonl", "[" * 100_000, "a.jsonl, line 1: not JSON"),
        ("a.jsonl", '{"text": "\\ud800"}', r"a.jsonl, line 1: field 'text' holds \\ud800, half of a surrogate pair"),
        ("a.jsonl", '["x"]', "a.jsonl, line 1: list instead of an object"),
        ("a.jsonl", '{"body": "x", "n": 1}', "a.jsonl, line 1: no field 'text'; there is 'body', 'n'"),
        ("a.jsonl", '{"text": null}', "a.jsonl, line 1: field 'text' is None, not a text"),
        ("a.csv", "body,n\nx,1\n", "a.csv: no column 'text'; the first line names 'body', 'n'"),
        ("a.tsv", "", "a.tsv: no column 'text'; the first line names none"),
        ("a.tsv", "n\ttext\n1\n", "a.tsv, line 2: field 'text' is None"),
        ("a.csv", 'text\n"x', "a.csv, line 2: unexpected end of data"),
    ],
)
def test_malformed_records_are_found_by_line(folder, name, content, message):
    write(folder / name, content)
    with pytest.raises(CorpusError, match=message):
        list(read_texts([name]))


def test_unit_is_checked(folder):
    with pytest.raises(Exception, match="'file', 'line'"):  # by beartype here, by ourselves elsewhere
        list(read_texts(["a.txt"], unit="page"))


def test_reading_files_needs_no_tensorflow():
    assert "seqio" not in vars(corpora)
