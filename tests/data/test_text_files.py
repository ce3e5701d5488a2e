import gzip
import logging
import sys
import types

import pytest

from t2t.data import corpora, text_files
from t2t.data.text_files import CorpusError, Skipped, check_characters, open_bytes, read_lines, read_units


class Unpacker:
    """Frames of a stand-in for zstd: the number of its bytes, the bytes; 255 is no frame."""

    def __init__(self):
        self.eof, self.unused_data, self._data = False, b"", b""

    def decompress(self, data):
        self._data += data
        if self._data[:1] == b"\xff":
            raise ArithmeticError("no frame")
        size = self._data[0]
        if len(self._data) <= size:
            return b""
        self.eof, self.unused_data = True, self._data[size + 1 :]
        return self._data[1 : size + 1]


@pytest.fixture
def stand_in(monkeypatch):
    """Reads `.zst` files of the stand-in, a byte at a time."""
    monkeypatch.setattr(text_files, "_zstd", lambda path: (Unpacker, ArithmeticError))
    monkeypatch.setattr(text_files, "_CHUNK", 1)


def test_frames_follow_each_other(tmp_path, stand_in):
    path = tmp_path / "a.txt.zst"
    path.write_bytes(b"\x04one\n" + b"\x00" + b"\x07two\n3.\n")
    assert list(read_lines(path)) == ["one\n", "two\n", "3.\n"]
    path.write_bytes(b"\x00")
    assert list(read_lines(path)) == []


@pytest.mark.parametrize("content", [b"\x04one\n\x05tw", b"\xff"])
def test_damaged_frames_are_named(tmp_path, stand_in, content):
    path = tmp_path / "a.txt.zst"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match="a.txt.zst cannot be read to its end: (it ends in the middle|no frame)"):
        list(read_lines(path))


def test_real_zstd(tmp_path):
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    path = tmp_path / "a.txt.zst"
    text = "".join(f"line {i} é\n" for i in range(30_000))
    half = zstandard.compress(text[: len(text) // 2].encode()), zstandard.compress(text[len(text) // 2 :].encode())
    path.write_bytes(b"".join(half))
    assert "".join(read_lines(path)) == text
    path.write_bytes(b"".join(half)[:-5])
    with pytest.raises(CorpusError, match="cannot be read to its end: it ends in the middle of a frame"):
        list(read_lines(path))
    path.write_bytes(b"no zstd")
    with pytest.raises(CorpusError, match="cannot be read to its end"):
        list(read_lines(path))


def test_zstd_without_a_library_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "compression", None)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "a.txt.zst").write_bytes(b"\x04one\n")
    with pytest.raises(CorpusError, match="a.txt.zst: reading .zst needs zstandard.*pip install zstandard"):
        list(read_lines(tmp_path / "a.txt.zst"))


def test_zstd_of_the_standard_library_is_taken(tmp_path, monkeypatch):
    zstd = types.SimpleNamespace(ZstdDecompressor=Unpacker, ZstdError=ArithmeticError)
    monkeypatch.setitem(sys.modules, "compression", types.SimpleNamespace(zstd=zstd))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "a.txt.zst").write_bytes(b"\x03one")
    with open_bytes(tmp_path / "a.txt.zst") as file:
        assert file.read() == b"one"


def test_bytes_that_are_no_text_are_found_in_their_document(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress("good é\n\nb\xe4d\nmore\n\nlast\n".encode("latin1")))
    with pytest.raises(CorpusError, match=r"byte 5 of the unpacked text is 0xe9.*--data.on-error skip"):
        list(read_units(path, "paragraph"))
    units = list(read_units(path, "paragraph", on_error="skip"))
    assert [place for place, _ in units] == ["paragraph 1", "paragraph 2", "paragraph 3"]
    assert units[2][1] == "last"
    with pytest.raises(CorpusError, match="here is not UTF-8: it holds the byte 0xe4"):
        check_characters(units[1][1], "here")


def test_half_a_character_is_no_text():
    check_characters("é 🙂 \ud7ff", "here")
    with pytest.raises(CorpusError, match=r"here holds \\udbff, half of a surrogate pair"):
        check_characters("a\udbff", "here")


def test_what_is_left_out_is_counted_and_logged(caplog):
    skipped = Skipped()
    skipped.log("books")
    assert not caplog.records
    skipped.leave_out(CorpusError("a.txt is bad"))
    skipped.leave_out(CorpusError("b.txt is bad"))
    skipped.add(Skipped(empty=1200, unreadable=1, first="c.txt is bad"))
    with caplog.at_level(logging.INFO):
        skipped.log("books")
    assert "books: 1,200 empty documents are left out" in caplog.text
    assert "books: 3 documents cannot be read and are left out. The first: a.txt is bad" in caplog.text


def test_a_document_of_fifty_megabytes(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"word " * 10_000_000)
    for unit in ("file", "paragraph", "line"):
        (place, text), *others = read_units(path, unit)
        assert (len(text), place, others) == (50_000_000, f"{unit} 1", [])


def test_utf_16_without_a_mark_is_no_text(tmp_path):
    """Every byte of it is UTF-8: only that half of them are 0 tells."""
    path = tmp_path / "a.txt"
    path.write_bytes("Good.\n\nSome text.\n".encode("utf-16-le"))
    with pytest.raises(CorpusError, match=r"a.txt: byte 1 is 0, .* UTF-16, or no text.*iconv -f utf-16le"):
        list(text_files.read_lines(path))
    with pytest.raises(CorpusError, match="line 3 of b holds a byte of 0"):
        text_files.check_characters("a\0b", "line 3 of b")


def test_documents_with_a_byte_of_0_are_left_out_and_counted(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"Good.\n\nN\0o.\n\nGood too.\n")
    (tmp_path / "a.jsonl").write_text('{"text": "Good."}\n{"text": "N\\u0000o."}\n')
    skipped = text_files.Skipped()
    reader = corpora.FileReader(on_error="skip")
    rows = [row["text"] for row in reader.rows([tmp_path / "a.txt", tmp_path / "a.jsonl"], skipped)]
    assert rows == ["Good.", "Good too.", "Good."]
    assert (skipped.unreadable, skipped.first) == (
        2,
        f"{tmp_path / 'a.txt'}, paragraph 2 holds a byte of 0: it is UTF-16, or no text.",
    )
    with pytest.raises(CorpusError, match="line 2: field 'text' holds a byte of 0"):
        list(corpora.FileReader().rows([tmp_path / "a.jsonl"]))
