import gzip
import json
import sys

import pytest

from t2t.data import record_files
from t2t.data.host_tensorflow import tf
from t2t.data.text_files import CorpusError, MissingFileError

TEXTS = ["One.", "Zwei ä.", "日本\nnewline", ""]


def example(features):
    made = {}
    for name, value in features.items():
        if isinstance(value, int):
            made[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
        else:
            values = [value if isinstance(value, bytes) else value.encode()]
            made[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def write_tfrecord(path, rows):
    with tf.io.TFRecordWriter(str(path), options="GZIP" if path.suffix == ".gz" else None) as writer:
        for row in rows:
            writer.write(example(row))


def write_array_record(path, rows):
    module = pytest.importorskip("array_record.python.array_record_module")
    writer = module.ArrayRecordWriter(str(path), "group_size:1")
    for row in rows:
        writer.write(example(row))
    writer.close()


def write_parquet(path, rows):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(arrow.Table.from_pylist(rows), path)


def write_arrow(path, rows, *, as_file=False):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.Table.from_pylist(rows)
    with (arrow.ipc.new_file if as_file else arrow.ipc.new_stream)(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def write_arrow_file(path, rows):
    write_arrow(path, rows, as_file=True)


def write_jsonl(path, rows):
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def read(path, suffix, fields=("text",), **options):
    return list(record_files.read_records(path, suffix, list(fields), **options))


@pytest.mark.parametrize(
    ("name", "suffix", "write"),
    [
        ("a.jsonl", ".jsonl", write_jsonl),
        ("a.json.gz", ".json", write_jsonl),
        ("a.parquet", ".parquet", write_parquet),
        ("a.arrow", ".arrow", write_arrow),
        ("a.arrow", ".arrow", write_arrow_file),
        ("a.tfrecord", ".tfrecord", write_tfrecord),
        ("a.tfrecords.gz", ".tfrecords", write_tfrecord),
        ("a.array_record", ".array_record", write_array_record),
    ],
)
def test_every_kind_gives_back_its_texts(tmp_path, name, suffix, write):
    path = tmp_path / name
    write(path, [{"text": text, "title": f"title {i}", "n": i} for i, text in enumerate(TEXTS)])
    assert read(path, suffix) == [{"text": text} for text in TEXTS]
    assert read(path, suffix, ["title", "text"])[2] == {"title": "title 2", "text": TEXTS[2]}
    with pytest.raises(CorpusError, match=rf"{name}.*'body'.*'text', 'title', 'n'|{name}.*'body'; there is"):
        read(path, suffix, ["body"])
    with pytest.raises(CorpusError, match=rf"{name}, (line 1|row 0|record 0): field 'n' is .*, not a text"):
        read(path, suffix, ["n"])
    path.unlink()
    with pytest.raises(MissingFileError, match=f"{name} has vanished"):
        read(path, suffix)


def test_many_records_of_an_array_record(tmp_path, monkeypatch):
    monkeypatch.setattr(record_files, "_AT_ONCE", 3)
    write_array_record(tmp_path / "a.array_record", [{"text": f"text {i}"} for i in range(10)])
    assert [row["text"] for row in read(tmp_path / "a.array_record", ".array_record")] == [
        f"text {i}" for i in range(10)
    ]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".tfrecord", ".array_record"])
def test_files_of_another_kind_are_named(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"no such file at all, but a text of some length")
    with pytest.raises(CorpusError, match=f"a{suffix}.*(cannot be read as|no TFRecord, or a damaged one)"):
        read(path, suffix)


@pytest.mark.parametrize(
    ("suffix", "write"), [(".arrow", write_arrow), (".tfrecord", write_tfrecord), (".parquet", write_parquet)]
)
def test_files_that_were_cut_off_are_named(tmp_path, suffix, write):
    path = tmp_path / f"a{suffix}"
    write(path, [{"text": "some text " * 50} for _ in range(20)])
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(CorpusError, match=f"a{suffix} cannot be read"):
        read(path, suffix)


def test_a_record_whose_length_is_damaged(tmp_path):
    path = tmp_path / "a.tfrecord"
    write_tfrecord(path, [{"text": "one"}, {"text": "two"}])
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorpusError, match="a.tfrecord, record 0: no TFRecord, or a damaged one"):
        read(path, ".tfrecord")


BAD = b"caf\xe9"


def write_bad_json(path):
    path.write_bytes(
        b'{"text": "one"}\n{"text": "' + BAD + b'"}\nno json\n{"body": ""}\n{"text": 3}\n{"text": "two"}\n'
    )


def write_bad_table(path):
    path.write_bytes(b"n\ttext\n1\tone\n2\t" + BAD + b"\n3\n4\ttwo\n")


def write_bad_arrow(path):
    arrow = pytest.importorskip("pyarrow")
    texts = arrow.array([b"one", BAD, b"two"], arrow.binary()).cast(arrow.string(), safe=False)
    with arrow.ipc.new_stream(str(path), arrow.schema([("text", arrow.string())])) as writer:
        writer.write_table(arrow.table({"text": texts}))


def write_bad_examples(path):
    write_tfrecord(path, [{"text": "one"}, {"text": BAD}, {"text": "two"}])


@pytest.mark.parametrize(
    ("name", "write", "number"),
    [
        ("a.jsonl", write_bad_json, 4),
        ("a.tsv", write_bad_table, 2),
        ("a.arrow", write_bad_arrow, 1),
        ("a.tfrecord", write_bad_examples, 1),
    ],
)
def test_records_that_cannot_be_read_stop_or_are_skipped(tmp_path, name, write, number):
    path = tmp_path / name
    write(path)
    with pytest.raises(CorpusError, match=f"{name}.*is not UTF-8"):
        read(path, path.suffix)
    found = read(path, path.suffix, on_error="skip")
    errors = [record for record in found if isinstance(record, CorpusError)]
    assert [record for record in found if record not in errors] == [{"text": "one"}, {"text": "two"}]
    assert len(errors) == number
    assert "is not UTF-8" in str(errors[0])


@pytest.mark.parametrize(
    ("suffix", "module", "install"),
    [
        (".parquet", "pyarrow", "pyarrow"),
        (".arrow", "pyarrow", "pyarrow"),
        (".array_record", "array_record.python", "array-record"),
    ],
)
def test_a_missing_library_is_named(tmp_path, monkeypatch, suffix, module, install):
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / f"a{suffix}").write_bytes(b"")
    with pytest.raises(CorpusError, match=f"pip install {install}"):
        read(tmp_path / f"a{suffix}", suffix)


@pytest.mark.parametrize("place", [20, -1], ids=["content", "checksum"])
def test_a_record_whose_content_is_damaged(tmp_path, place):
    """A flipped bit in the text would else be learned from."""
    path = tmp_path / "a.tfrecord"
    write_tfrecord(path, [{"text": "one"}])
    size = path.stat().st_size
    write_tfrecord(path, [{"text": "one"}, {"text": "two"}])
    data = bytearray(path.read_bytes())
    data[place % size] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorpusError, match="a.tfrecord, record 0: it is damaged, for its checksum is another"):
        read(path, ".tfrecord")
    error, whole = record_files.read_records(path, ".tfrecord", ["text"], on_error="skip")
    assert isinstance(error, CorpusError) and whole == {"text": "two"}
