"""Shards of a token cache: files of flat arrays that are mapped into memory, not read.

A shard holds documents or examples as `TokenStore` does, in the safetensors format: a short JSON header, then arrays
end to end, aligned. Any program that opens safetensors reads it. An access is a slice of the mapped file, so a cache
may be larger than the memory, and processes on one machine share what the system keeps of it.

Differs: ArrayRecord, the usual choice, keeps records as bytes that are decoded one by one (docs/decisions.md).
"""

import hashlib
import json
import os
import pathlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2t.data.store import Column, TokenStore

SUFFIX = ".safetensors"

DTYPES = {"I32": np.dtype(np.int32), "I64": np.dtype(np.int64), "F32": np.dtype(np.float32)}

_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class DamagedShardError(ValueError):
    """A shard is not as it was written; the message says what is wrong, and the caller what to do."""


@dataclass(frozen=True, kw_only=True)
class Shard:
    """What a manifest knows of a shard."""

    name: str
    """Of its file, without the suffix."""
    size: int
    """Bytes of its file."""
    sha256: str
    """Of its file."""
    rows: int
    """Documents or examples it holds."""
    values: Mapping[str, int]
    """How many values each feature has, over all rows."""
    dtypes: Mapping[str, str]
    """Type of each feature, as safetensors names it."""

    @property
    def file(self) -> str:
        """Name of its file."""
        return f"{self.name}{SUFFIX}"


def write(directory: pathlib.Path, name: str, store: TokenStore) -> Shard:
    """Writes rows as a shard: complete or not at all."""
    content = _pack(store)
    path = directory / f"{name}{SUFFIX}"
    replace(path, content)
    return Shard(
        name=name,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        rows=len(store),
        values={feature: int(column.values.size) for feature, column in store.columns.items()},
        dtypes={feature: _NAMES[column.values.dtype] for feature, column in store.columns.items()},
    )


def replace(path: pathlib.Path, content: bytes) -> None:
    """Writes a file in one move, so that nobody sees half of it."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        unfinished.write_bytes(content)
        os.replace(unfinished, path)
    except OSError as error:
        if error.filename is None:  # a full disk names no file
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        unfinished.unlink(missing_ok=True)


def problem(directory: pathlib.Path, shard: Shard, *, hashed: bool) -> str | None:
    """What is wrong with the file of a shard, None if nothing is.

    Args:
        directory: of the cache.
        shard: as the manifest knows it.
        hashed: whether to read it all and compare its hash, or only its size.
    """
    path = directory / shard.file
    try:
        size = path.stat().st_size
        if size != shard.size:
            return f"{path} has {size:,} bytes instead of {shard.size:,}"
        if hashed:
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != shard.sha256:
                    return f"{path} does not match its SHA-256"
    except FileNotFoundError:
        return f"{path} has vanished"
    except OSError as error:
        return f"{path} cannot be read ({error})"
    return None


def open_shard(path: pathlib.Path) -> TokenStore:
    """The rows of a shard, mapped into memory.

    Raises:
        OSError: there is no such file, or it cannot be read.
        DamagedShardError: it is not as `write` wrote it.
    """
    with path.open("rb") as file:
        begin = file.read(8)
        try:
            header = json.loads(file.read(struct.unpack("<Q", begin)[0]))
            start = file.tell()
            data = np.asarray(np.memmap(file, np.uint8, "r", offset=start)) if file.read(1) else np.zeros(0, np.uint8)
            rows = int(header.pop("__metadata__")["rows"])
            arrays = {name: _array(data, about) for name, about in header.items()}
            columns = {}
            for key, values in arrays.items():
                kind, _, name = key.partition("/")
                if kind != "offsets":
                    offsets = np.arange(rows + 1) if kind == "scalars" else arrays[f"offsets/{name}"]
                    columns[name] = Column(values=values, offsets=offsets, is_scalar=kind == "scalars")
        except (struct.error, ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
            raise DamagedShardError(f"{path} is damaged ({error!r})") from error
    return TokenStore(columns=columns, size=rows)


def _array(data: np.ndarray, about: Mapping[str, Any]) -> np.ndarray:
    start, end = about["data_offsets"]
    if not 0 <= start <= end <= len(data):
        raise ValueError(f"an array ends behind the file, at {end}")
    array = data[start:end].view(DTYPES[about["dtype"]])
    if list(array.shape) != about["shape"]:
        raise ValueError(f"an array has {array.shape[0]} values instead of {about['shape']}")
    return array


def _pack(store: TokenStore) -> bytes:
    from safetensors import numpy as safetensors

    arrays: dict[str, np.ndarray] = {}
    for name, column in store.columns.items():
        arrays[f"{'scalars' if column.is_scalar else 'values'}/{name}"] = np.ascontiguousarray(column.values)
        if not column.is_scalar:
            arrays[f"offsets/{name}"] = np.asarray(column.offsets, np.int64)
    return safetensors.save(arrays, metadata={"rows": str(len(store))})
