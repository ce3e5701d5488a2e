"""Files that Flax did not write, or not whole, are refused when they are opened: no number is made up.

tests/hf/test_tensors.py reads those of Flax.
"""

import msgpack
import numpy as np
import pytest

from t2t.hf import flax_files

ARRAY = ((2, 3), "float32", np.arange(6, dtype=np.float32).tobytes())


def extension(*parts: object, code: int = flax_files.ARRAY) -> msgpack.ExtType:
    return msgpack.ExtType(code, msgpack.packb(parts))


def opened(tmp_path, content: object):
    file = tmp_path / "flax_model.msgpack"
    file.write_bytes(content if isinstance(content, bytes) else msgpack.packb(content))
    return flax_files.open_file(file)


def test_what_is_written_here_is_read(tmp_path):
    found = opened(tmp_path, {"a": {"bias": extension(*ARRAY)}})["a.bias"]
    np.testing.assert_array_equal(found.read(), np.arange(6).reshape(2, 3))


def chunked(shape: object, chunks: object) -> dict:
    return {flax_files.CHUNKED: True, "shape": shape, "chunks": chunks}


PIECE = extension((4,), "int8", b"1234")
DAMAGED = {
    "text": (b"hello world", "something else, than one tree"),
    "random": (bytes(range(255, 0, -1)), "no file of Flax"),
    "more": (msgpack.packb({}) + b"\0", "it holds more"),
    "half": (msgpack.packb({"a": extension(*ARRAY)})[:-5], "ends in the middle of a value"),
    "deep lists": (b"\x91" * 5000 + b"\xc0", "nested more than 100 deep"),
    "deep maps": (b"\x81\xa1a" * 5000 + b"\xc0", "nested more than 100 deep"),
    "endless": (b"\xdf\xff\xff\xff\xff", "no file of Flax"),
    "names that are lists": (b"\x81\x90\xc0", "no file of Flax"),
    "names that are numbers": ({"a": {5: extension(*ARRAY)}}, "below a there is the name 5, which is no text"),
    "a name twice": (b"\x82\xa1a\xc0\xa1a\xc0", "a name twice"),
    "two names of one tensor": ({"kernel": extension(*ARRAY), "weight": extension(*ARRAY)}, "weight is there twice"),
    "type of no size": ({"a": extension((2,), "S0", b"")}, "a cannot be read, it has the type 'S0'; t2t reads"),
    "objects": ({"a": extension((2,), "O", b"x" * 16)}, "has the type 'O'"),
    "several types": ({"a": extension((2,), "f4,f4", b"x" * 16)}, "has the type 'f4,f4'"),
    "no type": ({"a": extension((2,), "nope", b"x" * 16)}, "has the type 'nope'"),
    "short": ({"a": extension((2, 3), "float32", b"x" * 20)}, r"a cannot be read, it has shape \(2, 3\) .* 20 bytes"),
    "long": ({"a": extension((2,), "float32", b"x" * 9)}, "9 bytes"),
    "less than none": ({"a": extension((-2, -3), "float32", b"x" * 24)}, r"\[-2, -3\] is no shape"),
    "shape of text": ({"a": extension("23", "float32", b"x" * 24)}, "'23' is no shape"),
    "shape of halves": ({"a": extension((1.5,), "float32", b"x" * 6)}, "begins no value that Flax writes"),
    "two parts": ({"a": extension((2,), "float32")}, "is no array: shape, type and bytes"),
    "four parts": ({"a": extension((2,), "int8", b"12", b"12")}, "is no array: shape, type and bytes"),
    "number": ({"a": msgpack.ExtType(flax_files.ARRAY, b"\x05")}, "is no array: shape, type and bytes"),
    "more than an array": ({"a": msgpack.ExtType(flax_files.ARRAY, PIECE.data + b"\0")}, "is no array: shape"),
    "another extension": ({"a": extension(*ARRAY, code=3)}, "a cannot be read, it is no array"),
    "an integer": ({"a": 5}, "a cannot be read, it is no array"),
    "no chunks": ({"a": chunked({"0": 4}, {})}, "a cannot be read, it is no array"),
    "a chunk is missing": ({"a": chunked({"0": 8}, {"0": PIECE})}, r"other numbers than its shape \(8,\)"),
    "chunks of two types": (
        {"a": chunked({"0": 8}, {"0": PIECE, "1": extension((4,), "uint8", b"1234")})},
        "types int8 and uint8",
    ),
    "chunks without a shape": ({"a": {flax_files.CHUNKED: True}}, "a cannot be read"),
    "chunks that are a number": ({"a": chunked(4, 4)}, "a cannot be read"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_told_at_opening_with_the_way_to_mend_it(tmp_path, name):
    content, message = DAMAGED[name]
    with pytest.raises(ValueError, match=f"flax_model.msgpack .*{message}.*; copy or download it again"):
        opened(tmp_path, content)


def test_an_empty_file_is_told(tmp_path):
    with pytest.raises(ValueError, match=r"flax_model.msgpack is an empty file: copy or download it again"):
        opened(tmp_path, b"")
