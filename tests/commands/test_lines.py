"""Texts in, JSON lines out."""

import gzip
import io
import json

import pytest

from t2t import api, heads
from t2t.commands import lines
from t2t.errors import UsageError
from t2t.families import bert, gpt2
from t2t.vocabulary import ByteVocabulary
from tests.hf import tiny


def test_one_text_a_line(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("one\n\nthree ü\n", encoding="utf-8")
    assert lines.read_texts(str(path)) == ["one", "", "three ü"]


def test_a_column_of_jsonl_also_gzipped(tmp_path):
    path = tmp_path / "in.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.write('{"q": "a\\nb"}\n{"q": "c"}\n')
    assert lines.read_texts(str(path), field="q") == ["a\nb", "c"]
    with pytest.raises(UsageError, match=r"in.jsonl.gz:1 has no text in column text; it has q"):
        lines.read_texts(str(path))


def test_broken_and_missing_input_is_named(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "a"}\n{"text"\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"in.jsonl:2 is no JSON"):
        lines.read_texts(str(path))
    path.write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="has no lines"):
        lines.read_texts(str(path))
    with pytest.raises(UsageError, match="there is no file"):
        lines.read_texts(str(tmp_path / "nothing.txt"))


@pytest.mark.parametrize(
    ("value", "shown"), [(5, "5"), (None, "null"), (["a"], r'\["a"\]'), ({"a": "ü" * 99}, '{"a": "ü{52}…')]
)
def test_a_column_that_holds_no_text_is_named(tmp_path, value, shown):
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"text": "a"}) + "\n" + json.dumps({"text": value}) + "\n", encoding="utf-8")
    with pytest.raises(UsageError, match=rf"in.jsonl:2 holds {shown} in column text, which is no text: put it in quo"):
        lines.read_texts(str(path))


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("a\nb\n"))
    assert lines.read_texts("-") == ["a", "b"]


def test_rows_are_written_as_they_come(tmp_path, capsys):
    path = tmp_path / "deep" / "out.jsonl"
    with lines.writer(str(path)) as write:
        write({"input": "ü", "output": "b"})
        assert json.loads(path.read_text(encoding="utf-8")) == {"input": "ü", "output": "b"}
    with lines.writer("-") as write:
        write({"a": 1})
    assert capsys.readouterr().out == '{"a": 1}\n'


def test_batches_keep_the_order():
    assert list(lines.batches(["a", "b", "c"], size=2, label="x")) == [["a", "b"], ["c"]]
    with pytest.raises(UsageError, match="--batch-size is 0"):
        list(lines.batches(["a"], size=0, label="x"))


def test_lines_end_at_line_ends_alone(tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes("\ufeffone\u2028still one\x0b\x85\r\n\ntwo".encode())
    assert lines.read_texts(str(path)) == ["one\u2028still one\x0b\x85", "", "two"]
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"text": "a\u2028b"}, ensure_ascii=False) + "\n", encoding="utf-8")
    assert lines.read_texts(str(path)) == ["a\u2028b"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("in.txt", b"caf\xe9\n", r"in\.txt is not UTF-8 .*iconv"),
        ("in.jsonl", b'{"text": "a"}\n{"text": "\\ud800"}\n', r"in\.jsonl:2 holds \\ud800"),
        ("in.txt.gz", gzip.compress(b"one\n" * 99, mtime=0)[:-9], r"in\.txt\.gz cannot be read to its end"),
        ("in.txt.gz", b"one\n", r"in\.txt\.gz cannot be read to its end: Not a gzipped file"),
    ],
)
def test_damaged_input_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        lines.read_texts(str(tmp_path / name))


def test_what_a_file_held_stays_until_there_is_something_to_write(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text("precious\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no model"), lines.writer(str(path)):
        raise ValueError("no model")
    assert path.read_text(encoding="utf-8") == "precious\n"
    with lines.writer(str(path)) as write:
        write({"a": 1})
        write({"a": 2})
    assert path.read_text(encoding="utf-8") == '{"a": 1}\n{"a": 2}\n'
    with pytest.raises(UsageError, match="it would be lost"), lines.writer(str(path), source=str(path)):
        pass
    with pytest.raises(UsageError, match="cannot be written"), lines.writer(str(tmp_path)):
        pass


@pytest.mark.parametrize("line", ["[" * 100_000, "9" * 5000])
def test_a_line_that_json_has_no_room_for_is_named(tmp_path, line):
    path = tmp_path / "in.jsonl"
    path.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"in.jsonl:1 is no JSON"):
        lines.read_texts(str(path))


def test_models_that_write_nothing_are_refused():
    labels = bert.with_head(tiny.BERT, heads.SequenceClassification())
    scored = gpt2.with_head(tiny.GPT2, heads.SequenceClassification())
    for config, message in (
        (labels, "m is an encoder"),
        (scored, "the head of m scores labels"),
        (tiny.GPT2, r"m has no vocabulary to read text with \(no file\)"),
    ):
        model = api.Model(config=config, params={}, about={"no_vocabulary": "no file"})
        with pytest.raises(UsageError, match=message):
            lines.check_model(model, name="m")
    lines.check_model(api.Model(config=tiny.GPT2, params={}, vocabulary=ByteVocabulary()), name="m")
