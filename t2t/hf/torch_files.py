"""PyTorch's `pytorch_model.bin` without torch: state dicts of tensors, read from disk one tensor at a time.

The files are pickles. Only what describes tensors is understood; everything else that a pickle could ask for is refused
and never called. Both forms are read: the zip archive (torch since 1.6) and the sequence of pickles before it.

Reference: `torch/serialization.py` (the format), `torch/_weights_only_unpickler.py` (what a state dict may contain).
"""

import collections
import dataclasses
import io
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

MAGIC = 0x1950A86A20F9469CFC6C
"""First pickle of the old form."""

DTYPES: Mapping[str, np.dtype] = {
    "FloatStorage": np.dtype(np.float32),
    "DoubleStorage": np.dtype(np.float64),
    "HalfStorage": np.dtype(np.float16),
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "LongStorage": np.dtype(np.int64),
    "IntStorage": np.dtype(np.int32),
    "ShortStorage": np.dtype(np.int16),
    "CharStorage": np.dtype(np.int8),
    "ByteStorage": np.dtype(np.uint8),
    "BoolStorage": np.dtype(np.bool_),
}


def code_of(dtype: np.dtype) -> str:
    """The name that safetensors gives a type.

    >>> code_of(np.dtype("float16")), code_of(np.dtype("int8"))
    ('F16', 'I8')
    """
    return "BF16" if dtype == ml_dtypes.bfloat16 else f"{dtype.kind.upper()}{8 * dtype.itemsize}"


@dataclasses.dataclass(frozen=True)
class Storage:
    """A row of numbers in a file, which `places` tells by key."""

    dtype: np.dtype
    key: str
    size: int
    places: Mapping[str, tuple[Path, int]]

    def values(self) -> np.ndarray:
        """The numbers, mapped from the file."""
        if self.size == 0:
            return np.empty(0, self.dtype)
        path, offset = self.places[self.key]
        return np.memmap(path, self.dtype, mode="r", offset=offset, shape=(self.size,))


@dataclasses.dataclass(frozen=True)
class StoredTensor:
    """A tensor as a view of a storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def code(self) -> str:
        """The type it is stored in, as safetensors names it."""
        return code_of(self.storage.dtype)

    def read(self) -> np.ndarray:
        """The tensor, in the type it is stored in."""
        values = self.storage.values()
        last = self.offset + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        if 0 in self.shape:
            return np.empty(self.shape, values.dtype)
        if not (0 <= self.offset and last < len(values) and all(step >= 0 for step in self.strides)):
            raise ValueError(f"a tensor of shape {self.shape} reaches beyond its {len(values)} stored values")
        steps = [step * values.itemsize for step in self.strides]
        return np.array(np.lib.stride_tricks.as_strided(values[self.offset :], self.shape, steps, writeable=False))


def open_file(path: Path) -> dict[str, StoredTensor]:
    """The tensors of a state dict by name.

    Raises:
        ValueError: the file is damaged, holds something else than a state dict, or asks to run code.
    """
    try:
        content = _open_zip(path) if zipfile.is_zipfile(path) else _open_old(path)
    except (pickle.UnpicklingError, zipfile.BadZipFile, EOFError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"{path} cannot be read as a PyTorch state dict: {error}") from error
    if isinstance(content, dict) and set(content) == {"state_dict"}:
        content = content["state_dict"]
    tensors = {name: value for name, value in content.items() if isinstance(value, StoredTensor)} if content else {}
    if not isinstance(content, dict) or len(tensors) < len(content) or not all(isinstance(n, str) for n in tensors):
        raise ValueError(f"{path} holds something else than a state dict of tensors")
    return tensors


def _open_zip(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        entries = {info.filename: info for info in archive.infolist()}
        (pickled,) = [name for name in entries if name.endswith("/data.pkl")]
        root = pickled.removesuffix("data.pkl")
        if f"{root}byteorder" in entries and archive.read(f"{root}byteorder") != b"little":
            raise pickle.UnpicklingError("its numbers are big-endian")
        places = {}
        with open(path, "rb") as file:
            for name, info in entries.items():
                if name.startswith(f"{root}data/"):
                    if info.compress_type != zipfile.ZIP_STORED:
                        raise pickle.UnpicklingError(f"{name} is compressed")
                    places[name.removeprefix(f"{root}data/")] = path, _start(file, info.header_offset)
        return _Unpickler(io.BytesIO(archive.read(pickled)), places).load()


def _start(file: io.BufferedReader, header_offset: int) -> int:
    """Where the content of an entry of an archive begins, behind its local header."""
    file.seek(header_offset)
    header = file.read(30)
    name, extra = int.from_bytes(header[26:28], "little"), int.from_bytes(header[28:30], "little")
    return header_offset + 30 + name + extra


def _open_old(path: Path) -> Any:
    places: dict[str, tuple[Path, int]] = {}
    with open(path, "rb") as file:
        if _Unpickler(file, places).load() != MAGIC:
            raise pickle.UnpicklingError("it does not begin as a file of torch.save does")
        for _ in range(2):  # the version of the protocol, and the sizes of C's types
            _Unpickler(file, places).load()
        unpickler = _Unpickler(file, places)
        content = unpickler.load()
        for key in _Unpickler(file, places).load():
            size = int.from_bytes(file.read(8), "little")
            places[key] = path, file.tell()
            file.seek(size * unpickler.storages[key].dtype.itemsize, io.SEEK_CUR)
    return content


class _Unpickler(pickle.Unpickler):
    """Understands dictionaries of tensors and calls nothing else."""

    def __init__(self, file: Any, places: Mapping[str, tuple[Path, int]]):
        super().__init__(file, encoding="utf-8")
        self.storages: dict[str, Storage] = {}
        self._places = places

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch._utils" and name in ("_rebuild_tensor_v2", "_rebuild_tensor"):
            return _rebuild_tensor
        if module == "torch._utils" and name == "_rebuild_parameter":
            return _rebuild_parameter
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        raise pickle.UnpicklingError(
            f"it asks for {module}.{name}, which is no part of a state dict and is not run. If you trust the file, "
            "open it with torch and save the model as safetensors"
        )

    def persistent_load(self, pid: Any) -> Storage:
        kind, dtype, key, _, size, *_ = pid
        if kind != "storage" or not isinstance(dtype, np.dtype):
            raise pickle.UnpicklingError(f"it holds a persistent object of an unknown kind, {kind!r}")
        return self.storages.setdefault(str(key), Storage(dtype, str(key), int(size), self._places))


def _rebuild_tensor(
    storage: Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any
) -> StoredTensor:
    return StoredTensor(storage, int(offset), tuple(map(int, shape)), tuple(map(int, strides)))


def _rebuild_parameter(tensor: StoredTensor, *_: Any) -> StoredTensor:
    return tensor
