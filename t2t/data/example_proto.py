"""The wire format of tf.train.Example, as far as texts need it, without TensorFlow.

    message Example { Features features = 1; }
    message Features { map<string, Feature> feature = 1; }
    message Feature { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }
    message BytesList { repeated bytes value = 1; }

Reference: tensorflow/core/example/feature.proto; Protocol Buffers, "Encoding"; TFRecord's checksums in
tensorflow/core/lib/hash/crc32c.h (CRC-32C, RFC 3720, rotated and shifted).
"""

import enum
from collections.abc import Collection, Iterator

import google_crc32c


class Kind(enum.Enum):
    """What a feature holds."""

    NOTHING = 0
    BYTES = 1
    FLOATS = 2
    INTEGERS = 3


def masked_crc(data: bytes) -> int:
    """TFRecord's checksum of some bytes.

    >>> hex(masked_crc(b"123456789"))  # the CRC-32C of these is 0xe3069283
    '0xc78ab0e5'
    """
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def parse(data: bytes, wanted: Collection[str]) -> dict[str, list[bytes] | Kind]:
    """The features of a serialised tf.train.Example by name.

    Args:
        data: the message.
        wanted: names of features whose values are read; others are there with the name of their kind.

    Returns:
        The values of wanted features of bytes, the kind of others.

    Raises:
        ValueError: the bytes are no such message.
    """
    found: dict[str, list[bytes] | Kind] = {}
    for features in _messages(data, 1):
        for entry in _messages(features, 1):
            name = b"".join(_messages(entry, 1)).decode("utf-8", "replace")
            kinds = [(number, value) for value in _messages(entry, 2) for number, value in _fields(value)]
            kind = Kind(kinds[-1][0] if kinds else 0)
            is_read = kind is Kind.BYTES and name in wanted
            lists = [value for _, value in kinds if value is not None]
            found[name] = [text for texts in lists for text in _messages(texts, 1)] if is_read else kind
    return found


def _messages(data: bytes, number: int) -> Iterator[bytes]:
    """The values of a field of messages, texts or bytes."""
    for found, value in _fields(data):
        if found == number and value is not None:
            yield value


def _fields(data: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Number and value of every field; None where it is a number."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 2:
            size, at = _varint(data, at)
            end = at + size
        elif kind == 0:
            end = _varint(data, at)[1]
        elif kind in (1, 5):
            end = at + {1: 8, 5: 4}[kind]
        else:
            raise ValueError(f"byte {at} begins a field of the unknown kind {kind}")
        if end > len(data):
            raise ValueError("it ends in the middle of a field")
        yield key >> 3, data[at:end] if kind == 2 else None
        at = end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("it ends in the middle of a number" if at >= len(data) else "a number has no end")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            return value, at
