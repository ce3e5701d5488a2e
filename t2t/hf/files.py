"""Safetensors files: tensors of one file or of shards with an index, read and written one at a time."""

import dataclasses
import json
import math
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import safetensors

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"

DTYPES: Mapping[str, np.dtype] = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
"""The types that parameters may be stored in, by the name config.json gives them."""

_CODES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}

READABLE = frozenset({"F64", *_CODES.values()})
"""The types that parameters are read from; integers are quantised weights, which mean nothing without their scales."""


class TensorReader:
    """The tensors of a directory, by name; each is read from disk when it is asked for."""

    def __init__(self, directory: str | os.PathLike):
        self._files = _locate(Path(directory))
        self._opened: dict[Path, safetensors.safe_open] = {}

    @property
    def names(self) -> frozenset[str]:
        """Names of all tensors."""
        return frozenset(self._files)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor, without reading it."""
        return tuple(self._file(name).get_slice(name).get_shape())

    def code(self, name: str) -> str:
        """The type a tensor is stored in, as safetensors names it: F32, I8, ..."""
        return self._file(name).get_slice(name).get_dtype()

    def __call__(self, name: str) -> np.ndarray:
        """A tensor in the type it is stored in."""
        return self._file(name).get_tensor(name)

    def _file(self, name: str) -> safetensors.safe_open:
        path = self._files[name]
        if path not in self._opened:
            self._opened[path] = _open(path)
        return self._opened[path]


def _open(path: Path) -> safetensors.safe_open:
    try:
        return safetensors.safe_open(str(path), framework="numpy")
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(f"{path} cannot be read as safetensors: {error}; copy or download it again") from error


def _locate(directory: Path) -> dict[str, Path]:
    """The file of every tensor. A single file counts before an index, as in transformers."""
    single, index = directory / SINGLE, directory / INDEX
    if single.exists():
        with _open(single) as file:
            return dict.fromkeys(file.keys(), single)
    if index.exists():
        shards = _read_index(index)
        absent = sorted({shard for shard in shards.values() if not (directory / shard).exists()})
        if absent:
            raise FileNotFoundError(f"{index} names shards that are missing: {', '.join(absent)}")
        held_by = {shard: _open(directory / shard).keys() for shard in set(shards.values())}
        lost = sorted(name for name, shard in shards.items() if name not in held_by[shard])
        if lost:
            raise ValueError(f"{index} names tensors that their shards do not hold: {', '.join(lost[:5])}")
        return {name: directory / shard for name, shard in shards.items()}
    others = sorted(p.name for p in directory.glob("*") if p.suffix in (".bin", ".msgpack", ".h5", ".pt"))
    held = f"; it holds {', '.join(others)}: save the model as safetensors first" if others else ""
    raise FileNotFoundError(f"{directory} has neither {SINGLE} nor {INDEX}{held}")


def _read_index(index: Path) -> dict[str, str]:
    """Names of tensors -> names of files beside the index; a path to elsewhere is refused."""
    try:
        shards = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        odd = [shard for shard in shards.values() if not isinstance(shard, str) or Path(shard).name != shard]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{index} is no index of shards, an object with a weight_map: {error}") from error
    if odd:
        raise ValueError(f"{index} names {odd[0]!r}, which is no name of a file beside it")
    return shards


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

    Files of an earlier export are removed, so that no stale index or shard is left beside the new ones.
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
    for stale in (*directory.glob("model*.safetensors"), *directory.glob(INDEX)):
        stale.unlink()
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
    partial = path.with_name(f"{path.name}.partial")
    checksums = {}
    with open(partial, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors:
            content = _in_order(tensor, dtype).view(np.uint8).reshape(-1)
            checksums[tensor.name] = zlib.crc32(content)
            file.write(content)
        file.flush()
        os.fsync(file.fileno())
    with safetensors.safe_open(str(partial), framework="numpy") as written:
        for tensor in tensors:
            read = written.get_tensor(tensor.name)
            if read.shape != tensor.shape or zlib.crc32(read.view(np.uint8).reshape(-1)) != checksums[tensor.name]:
                raise OSError(f"{path}: {tensor.name} reads back otherwise than it was written; is the disk sound?")
    partial.replace(path)


def _in_order(tensor: Tensor, dtype: str) -> np.ndarray:
    array = np.ascontiguousarray(tensor.get(), dtype=DTYPES[dtype])
    if array.shape != tensor.shape:
        raise ValueError(f"{tensor.name} has shape {array.shape}, its name table says {tensor.shape}")
    return array
