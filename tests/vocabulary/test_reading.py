"""Files of vocabularies that hold something else are named, with what they should hold."""

import re

import pytest

from t2t import file_checks
from t2t.vocabulary import reading


def test_text_bytes_and_objects(tmp_path):
    file = tmp_path / "vocab.json"
    file.write_bytes('{"ä":\r\n1}'.encode())
    assert reading.read_bytes(file) == '{"ä":\r\n1}'.encode()
    assert reading.read_text(file) == '{"ä":\n1}'
    assert reading.read_object(file) == {"ä": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "vocab.json holds a list; expected is a JSON object, {...}: copy or download it again"),
        (b"5", "vocab.json holds an integer; expected"),
        (b"null", "vocab.json holds null; expected"),
        (b'"text"', "vocab.json holds a string; expected"),
        (b"", "vocab.json is not JSON (Expecting value"),
        (b'{"a": 1,', "vocab.json is not JSON"),
        (b"[" * 100_000, "vocab.json is not JSON (maximum recursion depth"),
        (b"\xff\xfe", "vocab.json is not UTF-8 ("),
        (file_checks.POINTER + b"v1\noid sha256:4d7a\n", "vocab.json is a pointer of Git LFS"),
    ],
)
def test_other_content_is_told(tmp_path, content, message):
    file = tmp_path / "vocab.json"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        reading.read_object(file)


def test_a_link_that_leads_nowhere_is_told(tmp_path):
    (tmp_path / "vocab.json").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match="vocab.json is a link to nowhere, which is not there"):
        reading.read_object(tmp_path / "vocab.json")


def test_values_are_of_their_kinds(tmp_path):
    reading.check(tmp_path, "lower", True, (bool,))
    reading.check(tmp_path, "lower", 1, (bool,))
    reading.check(tmp_path, "lower", None, (bool, type(None)))
    for value, kinds, message in (
        (7, (bool,), "says lower: 7; expected is true or false"),
        (True, (int, type(None)), "says lower: true; expected is an integer or null"),
        ("é" * 200, (dict,), f'says lower: "{"é" * 99}; expected is an object'),
    ):
        with pytest.raises(ValueError, match=message):
            reading.check(tmp_path, "lower", value, kinds)


def test_ids_are_numbers_of_a_vocabulary():
    reading.check_ids("it", {"a": 0, "b": reading.MAX_IDS - 1})
    for piece, token in (
        ("a", -1),
        ("a", reading.MAX_IDS),
        ("a", "1"),
        ("a", True),
        ("a", None),
        ("a", [1]),
        (None, 1),
    ):
        with pytest.raises(ValueError, match=f"it gives {piece!r} the id .*; ids are integers from 0 to 16777215"):
            reading.check_ids("it", {piece: token})
