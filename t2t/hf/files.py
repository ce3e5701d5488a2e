"""Safetensors files: tensors written one at a time, as one file or as shards with an index."""

import dataclasses
import json
import math
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import safetensors

from t2t.errors import UsageError

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"

STALE = ("model*.safetensors", INDEX)
"""Patterns of the files of an earlier model, which must not stay beside those of another."""

DTYPES: Mapping[str, np.dtype] = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
"""The types that parameters may be stored in, by the name config.json gives them."""

MAX_SHARD_BYTES = 50 * 10**9
"""transformers 5's default."""

_CODES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor to write: its name, its shape, and how to get it when its turn comes."""

    name: str
    shape: tuple[int, ...]
    get: Callable[[], np.ndarray]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def write(directory: Path, tensors: Sequence[Tensor], *, dtype: str, max_shard_bytes: int) -> list[str]:
    """Write tensors as model.safetensors or, above a size, as shards with an index; returns the names of the files.

    The directory should hold none yet (`staging.replacing`): a stale index or shard would be read with the new ones.
    """
    shards: list[list[Tensor]] = [[]]
    room = max_shard_bytes
    for tensor in tensors:
        size = tensor.size * DTYPES[dtype].itemsize
        if shards[-1] and size > room:
            shards.append([])
            room = max_shard_bytes
        shards[-1].append(tensor)
        room -= size
    if len(shards) == 1:
        write_file(directory / SINGLE, shards[0], dtype=dtype)
        return [SINGLE]
    names = [f"model-{i:05d}-of-{len(shards):05d}.safetensors" for i in range(1, len(shards) + 1)]
    for name, shard in zip(names, shards, strict=True):
        write_file(directory / name, shard, dtype=dtype)
    parameters = sum(tensor.size for tensor in tensors)
    index = {
        "metadata": {"total_size": parameters * DTYPES[dtype].itemsize, "total_parameters": parameters},
        "weight_map": {t.name: name for name, shard in zip(names, shards, strict=True) for t in shard},
    }
    (directory / INDEX).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return [*names, INDEX]


def write_file(path: Path, tensors: Iterable[Tensor], *, dtype: str) -> None:
    """Write one safetensors file, holding one tensor in memory at a time, and read it back to check.

    The library's own writer wants all tensors at once, and release 0.8.0 of it silently stores transposed views in the
    order of their memory; here every tensor is written in C order.

    Raises:
        OSError: the file does not hold what was written.
        UsageError: a number that the type does not have.
        ValueError: a tensor of another shape than it was said to have.

    Reference: the format, https://github.com/huggingface/safetensors#format.
    """
    tensors = list(tensors)
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}  # transformers 4 refuses other formats
    offset = 0
    for tensor in tensors:
        end = offset + tensor.size * DTYPES[dtype].itemsize
        header[tensor.name] = {"dtype": _CODES[dtype], "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    checksums = {}
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors:
            content = _in_order(tensor, dtype).view(np.uint8).reshape(-1)
            checksums[tensor.name] = zlib.crc32(content)
            file.write(content)
        file.flush()
        os.fsync(file.fileno())
    for name in _damaged(path, tensors, checksums):
        raise OSError(f"{path.name}: {name} reads back otherwise than it was written; is the disk sound?")


def _damaged(path: Path, tensors: Sequence[Tensor], checksums: Mapping[str, int]) -> Iterator[str]:
    """Names of the tensors that a file does not hold as they were written."""
    with safetensors.safe_open(str(path), framework="numpy") as written:
        for tensor in tensors:
            read = written.get_tensor(tensor.name)
            if read.shape != tensor.shape or zlib.crc32(read.view(np.uint8).reshape(-1)) != checksums[tensor.name]:
                yield tensor.name


def _in_order(tensor: Tensor, dtype: str) -> np.ndarray:
    given = tensor.get()
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(given, dtype=DTYPES[dtype])
    if array.shape != tensor.shape:
        raise ValueError(f"{tensor.name} has shape {array.shape}, its name table says {tensor.shape}")
    if array.dtype != given.dtype and np.isinf(array).sum() > np.isinf(given).sum():
        raise UsageError(
            f"{tensor.name} holds {float(np.abs(given).max()):.3g}, which {dtype} has no number for: export as "
            "bfloat16 or float32"
        )
    return array
