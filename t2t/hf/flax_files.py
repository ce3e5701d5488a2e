"""Flax's `flax_model.msgpack` by the names of PyTorch, read from disk one tensor at a time.

Transformers 4 wrote these files; transformers 5 no longer opens repositories that hold nothing else. Kernels lie there
as [inputs, outputs] and are handed on as PyTorch's `Linear` keeps them; GPT-2's `Conv1D` kept its kernels as
[outputs, inputs] in Flax, so that transposing gives PyTorch's form of them, too.

Reference: msgpack (https://github.com/msgpack/msgpack/blob/master/spec.md), of which the few types that occur are
walked over here without loading them; `flax/serialization.py` for arrays, which are extensions of type 1.
"""

import dataclasses
import math
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from t2t import file_checks
from t2t.hf import torch_files

ARRAY = 1
"""Flax's extension type of arrays: [shape, name of the dtype, bytes]."""

CHUNKED = "__msgpack_chunked_array__"
"""Key of an array of more than 2**30 bytes, which Flax divides into chunks."""

NAMES = {"kernel": "weight", "scale": "weight", "embedding": "weight"}
"""Flax's names of parameters -> PyTorch's."""


@dataclasses.dataclass(frozen=True)
class StoredTensor:
    """An array in a file, in one piece or several."""

    path: Path
    dtype: np.dtype
    pieces: tuple[tuple[int, int], ...]
    """Offset and number of elements of each."""
    flax_shape: tuple[int, ...]
    transposed: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape as PyTorch has it."""
        return self.flax_shape[::-1] if self.transposed else self.flax_shape

    @property
    def code(self) -> str:
        """The type it is stored in, as safetensors names it."""
        return torch_files.code_of(self.dtype)

    def read(self) -> np.ndarray:
        """The array as PyTorch has it."""
        parts = [np.fromfile(self.path, self.dtype, count=size, offset=offset) for offset, size in self.pieces]
        array = (parts[0] if len(parts) == 1 else np.concatenate(parts)).reshape(self.flax_shape)
        return array.T if self.transposed else array


def open_file(path: Path) -> dict[str, StoredTensor]:
    """The parameters of a file, by PyTorch's names; every array has as many numbers as its shape.

    Raises:
        ValueError: the file is damaged or holds something else.
        OSError: it is not there, or may not be read.
    """
    file_checks.require(path)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            tree, end = _value(content, 0, 0)
            if end != len(content) or not isinstance(tree, dict):
                raise ValueError("it holds more, or something else, than one tree")
            return _named(path, tree)
        except (ValueError, TypeError, KeyError, IndexError, OverflowError, struct.error) as error:
            ended = isinstance(error, IndexError | struct.error)
            reason = "it ends in the middle of a value" if ended else f"{error}"
            raise ValueError(f"{path} is damaged or no file of Flax: {reason}; {file_checks.AGAIN}") from error


def _named(path: Path, tree: dict[Any, Any]) -> dict[str, StoredTensor]:
    found = {}
    for names, leaf in _leaves(tree, ()):
        name = ".".join((*names[:-1], NAMES.get(names[-1], names[-1])))
        if name in found:
            raise ValueError(f"{'/'.join(names)} is there twice")
        try:
            found[name] = _stored(path, names, leaf)
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{'/'.join(names)} cannot be read, {error}") from error
    return found


def _leaves(tree: dict[Any, Any], names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in tree.items():
        if not isinstance(name, str):
            raise ValueError(f"below {'/'.join(names)} there is the name {name!r:.100}, which is no text")
        if isinstance(value, dict) and CHUNKED not in value:
            yield from _leaves(value, (*names, name))
        else:
            yield (*names, name), value


def _stored(path: Path, names: tuple[str, ...], leaf: Any) -> StoredTensor:
    pieces, shape = [leaf], None
    if isinstance(leaf, dict):
        shape = _shape([leaf["shape"][str(axis)] for axis in range(len(leaf["shape"]))])
        pieces = [leaf["chunks"][str(k)] for k in range(len(leaf["chunks"]))]
    if not pieces or not all(isinstance(piece, _Array) for piece in pieces):
        raise ValueError("it is no array")
    dtype = _dtype(pieces[0].dtype)
    for piece in pieces:
        if piece.dtype != pieces[0].dtype:
            raise ValueError(f"its parts have the types {pieces[0].dtype} and {piece.dtype}")
        if math.prod(piece.shape) * dtype.itemsize != piece.size:
            raise ValueError(f"it has shape {piece.shape} of {piece.dtype} and {piece.size} bytes")
    shape = pieces[0].shape if shape is None else shape
    if math.prod(shape) != sum(math.prod(piece.shape) for piece in pieces):
        raise ValueError(f"its parts have other numbers than its shape {shape}")
    return StoredTensor(
        path=path,
        dtype=dtype,
        pieces=tuple((piece.offset, math.prod(piece.shape)) for piece in pieces),
        flax_shape=shape,
        transposed=names[-1] == "kernel" and len(shape) == 2,
    )


def _dtype(name: str) -> np.dtype:
    if name == "bfloat16":
        return np.dtype(ml_dtypes.bfloat16)
    if name not in _TYPES:
        raise ValueError(f"it has the type {name!r:.100}; t2t reads bfloat16, {', '.join(_TYPES)}")
    return np.dtype(name)


def _shape(sizes: Any) -> tuple[int, ...]:
    if not isinstance(sizes, list) or not all(type(size) is int and size >= 0 for size in sizes):
        raise ValueError(f"{sizes!r:.100} is no shape")
    return tuple(sizes)


@dataclasses.dataclass(frozen=True)
class _Array:
    dtype: str
    shape: tuple[int, ...]
    offset: int
    size: int
    """Bytes."""


_TYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "bool", "complex64", "complex128")  # fmt: skip
_MAX_DEPTH = 100
_NUMBERS = {0xCC: "B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: "b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_SIZED = {
    0xC4: ("bytes", "B"), 0xC5: ("bytes", ">H"), 0xC6: ("bytes", ">I"),
    0xC7: ("extension", "B"), 0xC8: ("extension", ">H"), 0xC9: ("extension", ">I"),
    0xD9: ("text", "B"), 0xDA: ("text", ">H"), 0xDB: ("text", ">I"),
    0xDC: ("list", ">H"), 0xDD: ("list", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I"),
}  # fmt: skip


def _head(content: Any, at: int) -> tuple[str, Any, int]:
    """Kind of the value at an offset, its size or the value itself, and where it goes on."""
    code = content[at]
    if code < 0x80 or code >= 0xE0:
        return "value", code if code < 0x80 else code - 0x100, at + 1
    for first, kind, mask in ((0x80, "map", 0x0F), (0x90, "list", 0x0F), (0xA0, "text", 0x1F)):
        if first <= code <= first + mask:
            return kind, code & mask, at + 1
    if code in _CONSTANTS:
        return "value", _CONSTANTS[code], at + 1
    if code in _NUMBERS:
        form = _NUMBERS[code]
        return "value", struct.unpack_from(form, content, at + 1)[0], at + 1 + struct.calcsize(form)
    if code in _FIXED_EXTENSIONS:
        return "extension", _FIXED_EXTENSIONS[code], at + 1
    if code not in _SIZED:
        raise ValueError(f"the byte {code:#x} at {at} begins no value that Flax writes")
    kind, form = _SIZED[code]
    return kind, struct.unpack_from(form, content, at + 1)[0], at + 1 + struct.calcsize(form)


def _value(content: Any, at: int, depth: int) -> tuple[Any, int]:
    """The value at an offset, arrays by where they lie, and the offset behind it."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"its values are nested more than {_MAX_DEPTH} deep")
    kind, size, at = _head(content, at)
    if kind == "value":
        return size, at
    if kind in ("map", "list"):
        values = []
        for _ in range(size * (2 if kind == "map" else 1)):
            value, at = _value(content, at, depth + 1)
            values.append(value)
        return (_map(values) if kind == "map" else values), at
    end = at + size + (kind == "extension")  # whose type stands before it
    if end > len(content):
        raise IndexError("it ends in the middle of a value")
    if kind == "extension":
        return (_array(content, at + 1, end, depth + 1) if content[at] == ARRAY else None), end
    return (content[at:end].decode() if kind == "text" else (at, size)), end


def _map(values: list[Any]) -> dict[Any, Any]:
    found = dict(zip(values[::2], values[1::2], strict=True))
    if 2 * len(found) != len(values):
        raise ValueError("a map of it has a name twice")
    return found


def _array(content: Any, at: int, end: int, depth: int) -> _Array:
    parts, after = _value(content, at, depth)
    if after != end or not isinstance(parts, list) or len(parts) != 3:
        raise ValueError(f"the extension at {at} is no array: shape, type and bytes")
    shape, dtype, data = parts
    if isinstance(dtype, tuple):
        dtype = content[dtype[0] : sum(dtype)].decode()
    if not isinstance(dtype, str) or not isinstance(data, tuple):
        raise ValueError(f"the extension at {at} is no array: shape, type and bytes")
    return _Array(dtype, _shape(shape), *data)
