import gzip
import json
import logging
import os
import pickle
import sys

import pytest

from t2t.data import corpora
from t2t.data.corpora import CorpusError, FileReader, MissingFileError, Skipped, find_files, read_records, read_texts
from tests.data.test_record_files import write_array_record, write_arrow, write_parquet, write_tfrecord


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


def test_empty_cells_behind_the_last_column_lose_nothing(folder):
    write(folder / "a.csv", "text,n\nOne.,1,,\n")
    assert list(read_texts(["a.csv"])) == ["One."]


def test_globs_are_sorted_and_name_each_file_once(folder):
    for name in ["books/b.txt", "books/a.txt", "books/old/c.txt", "d.txt"]:
        write(folder / name, name)
    assert [str(path) for path in find_files(["d.txt", "books/*.txt", "books/**/*.txt"])] == [
        "d.txt", "books/a.txt", "books/b.txt", "books/old/c.txt",
    ]  # fmt: skip
    assert [path.name for path in find_files([str(folder / "d.txt")])] == ["d.txt"]


def test_links_to_folders_are_followed_once(folder):
    """Nothing below a link is lost, and a link that leads in a circle gives no file twice."""
    for name in ["books/b/one.txt", "books/a/two.txt", "elsewhere/three.txt"]:
        write(folder / name, name)
    for name, target in {"a/in_a_circle": "..", "a/again": "../b", "more": "../elsewhere"}.items():
        (folder / "books" / name).symlink_to(target, target_is_directory=True)
    files = ["books/a/two.txt", "books/b/one.txt", "books/more/three.txt"]
    assert [str(path) for path in find_files(["books"])] == files
    names = {path.name for path in find_files(["books/**/*.txt"])}
    assert names == {"one.txt", "two.txt", "three.txt"} and len(find_files(["books/**/*.txt"])) == 3
    again = ["books/b/one.txt", str(folder / "books/b/one.txt"), "books/a/../b/one.txt", "books"]
    assert [str(path) for path in find_files(again)] == ["books/b/one.txt", files[0], files[2]]


def test_a_folder_that_cannot_be_read_is_not_left_out(folder, monkeypatch):
    write(folder / "books/open.txt", "a")
    write(folder / "books/closed/b.txt", "b")
    scan = os.scandir

    def refuse(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    for pattern in ("books", "books/**/*.txt", "books/*/*.txt", "*/*/*.txt"):
        with pytest.raises(CorpusError, match="The folder books/closed cannot be read: Permission denied"):
            find_files([pattern])
    assert len(find_files(["books/*.txt"])) == 1  # does not look into it


def test_missing_files_are_named(folder):
    write(folder / "books/a.txt", "a")
    with pytest.raises(CorpusError, match=r"No file matches 'nothing/\*.txt'"):
        list(read_texts(["books/a.txt", "nothing/*.txt"]))
    with pytest.raises(CorpusError, match="No files are named"):
        find_files([])
    with pytest.raises(CorpusError, match="An empty name stands among the files"):
        find_files(["books/a.txt", ""])


def test_a_folder_gives_all_its_files_and_says_how_many(folder, caplog):
    corpora._tell.cache_clear()
    for name in ["b.txt", "a.jsonl.gz", "old/c.md", "old/.hidden.txt", ".git/d.txt", "e.png", "dataset_info.json"]:
        write(folder / "books" / name, '{"text": "x"}')
    with caplog.at_level(logging.INFO):
        found = find_files(["books"])
        assert find_files(["books/"]) == found
    assert [str(path) for path in found] == ["books/a.jsonl.gz", "books/b.txt", "books/old/c.md"]
    assert caplog.messages == ["books: 3 files (1 .jsonl, 1 .txt, 1 .md); 2 others are left out"]
    (folder / "nothing").mkdir()
    with pytest.raises(MissingFileError, match="No file of a known kind is in nothing"):
        find_files(["nothing"])


def test_a_file_whose_name_is_a_pattern(folder):
    write(folder / "a[1].txt", "one")
    assert list(read_texts(["a*.txt"])) == list(read_texts(["a[1].txt"])) == ["one"]


def test_data_sets_of_hugging_face_on_disk(folder):
    for split, texts in {"train": ["One.", "Two.", "Three."], "test": ["Four."]}.items():
        (folder / "set" / split).mkdir(parents=True)
        names = [f"data-{i:05}-of-00002.arrow" for i in range(2)]
        write_arrow(folder / "set" / split / names[0], [{"text": text} for text in texts])
        write_arrow(folder / "set" / split / names[1], [{"text": "last"}])
        write_arrow(folder / "set" / split / "cache-0123.arrow", [{"text": "of a cache"}])
        state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "0"}
        write(folder / "set" / split / "state.json", json.dumps(state))
        write(folder / "set" / split / "dataset_info.json", "{}")
    assert list(read_texts(["set/train"])) == ["One.", "Two.", "Three.", "last"]
    write(folder / "set" / "dataset_dict.json", '{"splits": ["train", "test"]}')
    with pytest.raises(CorpusError, match="set holds several parts of a data set; name one: set/test or set/train"):
        find_files(["set"])
    write(folder / "set" / "train" / "state.json", json.dumps(state | {"_indices_data_files": [{"filename": "i"}]}))
    with pytest.raises(CorpusError, match=r"set/train holds a choice of rows.*flatten_indices"):
        find_files(["set/train"])
    write(folder / "set" / "train" / "state.json", "{}")
    with pytest.raises(CorpusError, match="state.json is not as `datasets` writes it"):
        find_files(["set/train"])
    (folder / "set" / "test" / names[0]).unlink()
    with pytest.raises(MissingFileError, match="data-00000-of-00002.arrow has vanished"):
        list(read_texts(["set/test"]))


def test_kinds_may_be_mixed(folder):
    write(folder / "1.txt.gz", "one")
    write_parquet(folder / "2.parquet", [{"text": "two"}])
    write_arrow(folder / "3.arrow", [{"text": "three"}])
    write_tfrecord(folder / "4.tfrecord-00000-of-00001", [{"text": "four"}])
    write_array_record(folder / "5.array_record", [{"text": "five"}])
    write(folder / "6.00000-of-01024.json.gz", '{"text": "six"}')
    assert list(read_texts(["."])) == ["one", "two", "three", "four", "five", "six"]


def test_documents_that_cannot_be_read_are_skipped_if_told_to(folder, caplog):
    write(folder / "a.txt", b"one\n\nb\xe4d\n\n\n\ntwo")
    write(folder / "b.jsonl", b'{"text": " "}\n{"text": 3}\n{"text": "three"}\n')
    with caplog.at_level(logging.INFO):
        assert list(read_texts(["a.txt", "b.jsonl"], on_error="skip")) == ["one", "two", "three"]
    assert "a.txt, b.jsonl: 1 empty documents are left out" in caplog.text
    assert "2 documents cannot be read and are left out. The first: a.txt, paragraph 2 is not UTF-8" in caplog.text
    with pytest.raises(CorpusError, match="a.txt is not UTF-8: byte 6 is 0xe4"):
        list(read_texts(["a.txt"]))
    write(folder / "c.txt", b"\xff")
    with pytest.raises(CorpusError, match="c.txt hold no text. The first that cannot be read: c.txt, paragraph 1"):
        list(read_texts(["c.txt"], on_error="skip"))


def test_a_reader_goes_to_other_processes(folder):
    write(folder / "a.txt", "one\ntwo\n\n")
    reader = pickle.loads(pickle.dumps(FileReader(unit="line", key="body")))
    skipped = Skipped()
    assert list(reader.rows(find_files(["a.txt"]), skipped)) == [{"body": "one"}, {"body": "two"}]
    assert skipped == Skipped(empty=1)


@pytest.mark.parametrize("name", ["a.doc", "a", "a.gz", "a.parquet.gz", "a.arrow.zst", ".txt"])
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
    for name in ["empty.txt.gz", "empty.jsonl.zst", "empty.tfrecord.gz"]:
        (folder / name).write_bytes(b"")
        with pytest.raises(CorpusError, match=f"{name} cannot be read to its end: it has 0 bytes"):
            list(read_texts([name]))
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
        ("a.csv", '"text\nx', "a.csv, line 2: unexpected end of data"),
        ("a.csv", "text\rx\r", "a.csv, line 1: new-line character seen in unquoted field"),
        ("a.csv", "text\nOne, two.\n", "a.csv, line 2: 2 cells .* names 1; .* ' two.'.*put the text in quotes"),
        ("a.tsv", "n\ttext\n1\tOne\ttwo.\n", "a.tsv, line 2: 3 cells .* names 2; .* 'two.'.*write it as jsonl"),
        ("a.csv", "text,text\nx,y\n", "a.csv: several columns 'text'"),
        ("a.jsonl", '{"text": "x", "n": ' + "1" * 5000 + "}", "a.jsonl, line 1: not JSON .*4300"),
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
