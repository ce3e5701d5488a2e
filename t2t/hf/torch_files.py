"""PyTorch's `pytorch_model.bin` without torch: state dicts of tensors, read from disk one tensor at a time.

The files are pickles. Only what describes tensors is understood; everything else that a pickle could ask for is refused
and never called. Both forms are read: the zip archive (torch since 1.6) and the sequence of pickles before it.

Reference: `torch/serialization.py` (the format), `torch/_weights_only_unpickler.py` (what a state dict may contain).
"""

import collections
import io
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from t2t import file_checks

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


class Place(NamedTuple):
    """Where in a file a row of numbers lies."""

    path: Path
    offset: int
    size: int
    """Bytes that there are."""


class Storage(NamedTuple):
    """A row of numbers in a file, which `places` tells by key."""

    dtype: np.dtype
    key: str
    size: int
    places: Mapping[str, Place]

    def values(self) -> np.ndarray:
        """The numbers, mapped from the file."""
        place = self.places[self.key]
        return np.memmap(place.path, self.dtype, mode="r", offset=place.offset, shape=(self.size,))


class StoredTensor(NamedTuple):
    """A tensor as a view of a storage. A tuple, which no pickle can change once it is made."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def code(self) -> str:
        """The type it is stored in, as safetensors names it."""
        return code_of(self.storage.dtype)

    @property
    def fault(self) -> str | None:
        """What makes it unreadable: numbers that it means and the file does not hold."""
        storage, places = self.storage, self.storage.places
        if len(self.shape) != len(self.strides) or min((*self.shape, *self.strides, self.offset), default=0) < 0:
            return f"it has shape {self.shape}, strides {self.strides} and offset {self.offset}"
        if 0 in self.shape:
            return None
        last = self.offset + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        if last >= storage.size:
            return f"with shape {self.shape} it reaches beyond its {storage.size} stored values"
        if storage.key not in places:
            return f"its numbers (storage {storage.key}) are missing"
        needed, held = storage.size * storage.dtype.itemsize, places[storage.key].size
        return f"of the {needed} bytes of its numbers {held} are there" if needed > held else None

    def read(self) -> np.ndarray:
        """The tensor, in the type it is stored in."""
        if 0 in self.shape:
            return np.empty(self.shape, self.storage.dtype)
        values = self.storage.values()
        steps = [step * values.itemsize for step in self.strides]
        return np.array(np.lib.stride_tricks.as_strided(values[self.offset :], self.shape, steps, writeable=False))


class _UnreadError(pickle.UnpicklingError):
    """The file is sound, and of a kind that is not read."""


_ANEW = "open it with torch and save the model as safetensors"


def open_file(path: Path) -> dict[str, StoredTensor]:
    """The tensors of a state dict by name; all that they mean is in the file.

    Raises:
        ValueError: the file is damaged, holds something else than a state dict, or asks to run code.
        OSError: it is not there, or may not be read.
    """
    file_checks.require(path)
    try:
        content = _open_zip(path) if zipfile.is_zipfile(path) else _open_old(path)
    except _UnreadError as error:
        raise ValueError(f"{path} cannot be read as a PyTorch state dict: {error}") from error
    except Exception as error:  # what is damaged may end in an error of any kind
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path} cannot be read as a PyTorch state dict: {reason}; {file_checks.AGAIN}") from error
    tensors = _tensors(path, content)
    for name, tensor in tensors.items():
        if fault := tensor.fault:
            raise ValueError(f"{path} is damaged: {name} cannot be read, {fault}; {file_checks.AGAIN}")
    return tensors


def _tensors(path: Path, content: Any) -> dict[str, StoredTensor]:
    """The state dict that was unpickled, alone or under its name."""
    if isinstance(content, dict) and set(content) == {"state_dict"}:
        content = content["state_dict"]
    odd = None
    if not isinstance(content, dict):
        odd = f"a {type(content).__name__}"
    else:
        content = dict(dict.items(content))  # a pickle may give its dictionary methods of its own
        for name, value in content.items():
            if not isinstance(name, str) or not isinstance(value, StoredTensor):
                odd = f"{name!r:.100} is a {type(value).__name__}"
                break
    if odd:
        raise ValueError(
            f"{path} holds something else than a state dict of tensors ({odd}). If it is a whole model or a training "
            f"run's checkpoint, {_ANEW}; else {file_checks.AGAIN}"
        )
    return content


def _open_zip(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        entries = {info.filename: info for info in archive.infolist()}
        pickled = [name for name in entries if name.endswith("/data.pkl")]
        if len(pickled) != 1:
            raise _UnreadError(
                f"it is a zip archive that torch.save did not write, with {len(pickled)} files named data.pkl; "
                f"{file_checks.AGAIN}, or unpack it if the model is in it"
            )
        root = pickled[0].removesuffix("data.pkl")
        if f"{root}byteorder" in entries and archive.read(f"{root}byteorder") != b"little":
            raise _UnreadError(f"its numbers are big-endian; {_ANEW}")
        places = _places(path, archive, f"{root}data/")
        return _Unpickler(io.BytesIO(archive.read(pickled[0])), places).load()


def _places(path: Path, archive: zipfile.ZipFile, folder: str) -> dict[str, Place]:
    """Where the files of a folder of an archive lie, none reaching into the next."""
    infos = sorted(archive.infolist(), key=lambda info: info.header_offset)
    ends = [*(info.header_offset for info in infos[1:]), archive.start_dir]
    places = {}
    with open(path, "rb") as file:
        for info, end in zip(infos, ends, strict=True):
            if info.filename.startswith(folder):
                if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                    raise _UnreadError(f"{info.filename} is compressed or encrypted; {_ANEW}")
                start = _start(file, info.header_offset)
                places[info.filename.removeprefix(folder)] = Place(
                    path, start, max(0, min(info.file_size, end - start))
                )
    return places


def _start(file: io.BufferedReader, header_offset: int) -> int:
    """Where the content of an entry of an archive begins, behind its local header."""
    file.seek(header_offset)
    header = file.read(30)
    if header[:4] != b"PK\x03\x04":
        raise zipfile.BadZipFile(f"no file begins at {header_offset}, where its list of contents names one")
    name, extra = int.from_bytes(header[26:28], "little"), int.from_bytes(header[28:30], "little")
    return header_offset + 30 + name + extra


def _open_old(path: Path) -> Any:
    places: dict[str, Place] = {}
    with open(path, "rb") as file:
        if file.read(4) == b"PK\x03\x04":
            raise zipfile.BadZipFile("it is a zip archive that ends before its list of contents")
        file.seek(0)
        if not _begins_old(file):
            raise pickle.UnpicklingError("it does not begin as a file of torch.save does")
        for _ in range(2):  # the version of the protocol, and the sizes of C's types
            _Unpickler(file, places).load()
        unpickler = _Unpickler(file, places)
        content = unpickler.load()
        keys = _Unpickler(file, places).load()
        end = path.stat().st_size
        for key in keys:
            size = int.from_bytes(file.read(8), "little") * unpickler.storages[key].dtype.itemsize
            places[key] = Place(path, file.tell(), max(0, min(size, end - file.tell())))
            file.seek(min(end, file.tell() + size))
    return content


def _begins_old(file: io.BufferedReader) -> bool:
    try:
        return _Unpickler(file, {}).load() == MAGIC
    except _UnreadError:
        raise
    except Exception:  # whatever else it is
        return False


class _Unpickler(pickle.Unpickler):
    """Understands dictionaries of tensors and calls nothing else."""

    def __init__(self, file: Any, places: Mapping[str, Place]):
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
        raise _UnreadError(
            f"it asks for {module}.{name}, which is no part of a state dict and is not run. If you trust the file, "
            f"{_ANEW}"
        )

    def persistent_load(self, pid: Any) -> Storage:
        kind, dtype, key, _, size, *view = pid
        if kind != "storage" or not isinstance(dtype, np.dtype):
            raise pickle.UnpicklingError(f"it holds a persistent object of an unknown kind, {kind!r:.100}")
        if any(part is not None for part in view):
            raise _UnreadError(f"its storages are parts of others, as before torch 0.5; {_ANEW}")
        storage = Storage(dtype, str(key), int(size), self._places)
        known = self.storages.setdefault(storage.key, storage)
        if (known.dtype, known.size) != (storage.dtype, storage.size):
            raise pickle.UnpicklingError(f"its storage {storage.key} is of two types or sizes")
        return known


def _rebuild_tensor(
    storage: Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any
) -> StoredTensor:
    if not isinstance(storage, Storage):
        raise pickle.UnpicklingError(f"a tensor of it has a {type(storage).__name__} for its numbers")
    return StoredTensor(storage, int(offset), tuple(map(int, shape)), tuple(map(int, strides)))


def _rebuild_parameter(tensor: StoredTensor, *_: Any) -> StoredTensor:
    return tensor
