"""The tensors of a Hugging Face directory, whatever kind of file holds them; each is read when it is asked for.

In this order, the first that is there: safetensors, PyTorch's `pytorch_model.bin`, Flax's `flax_model.msgpack`; each as
one file or as shards with an index; last the original checkpoints of T5. Nothing of torch or transformers is needed,
and nothing in a file is executed.
"""

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import safetensors

from t2t import file_checks
from t2t.hf import flax_files, original_t5, torch_files


@runtime_checkable
class Stored(Protocol):
    """A tensor in a file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape, without reading it."""

    @property
    def code(self) -> str:
        """The type it is stored in, as safetensors names it."""

    def read(self) -> np.ndarray:
        """The tensor, in the type it is stored in."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Format:
    """A kind of file: its name, and what opens it."""

    single: str
    open: Callable[[Path], Mapping[str, Stored]]

    @property
    def index(self) -> str:
        """Name of the file that says which shard holds which tensor."""
        return f"{self.single}.index.json"


READABLE = frozenset({"F64", "F32", "F16", "BF16"})
"""The types that parameters are read from; integers are quantised weights, which mean nothing without their scales."""


class TensorReader:
    """The tensors of a directory by name.

    Args:
        directory: holds one of the files.

    Raises:
        FileNotFoundError: there is none, or a shard is missing.
        ValueError: a file that is damaged, stands for another (Git LFS), or would run code.
    """

    def __init__(self, directory: str | os.PathLike):
        self._stored = _open(Path(directory))

    @property
    def names(self) -> frozenset[str]:
        """Names of all tensors."""
        return frozenset(self._stored)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor, without reading it."""
        return self._stored[name].shape

    def code(self, name: str) -> str:
        """The type a tensor is stored in, as safetensors names it: F32, BF16, I8, ..."""
        return self._stored[name].code

    def __call__(self, name: str) -> np.ndarray:
        """A tensor in the type it is stored in."""
        return self._stored[name].read()


def _open(directory: Path) -> dict[str, Stored]:
    for kind in FORMATS:
        # A single file counts before an index, as in transformers.
        if (directory / kind.single).exists():
            return dict(kind.open(directory / kind.single))
        if (directory / kind.index).exists():
            return _open_shards(directory, kind)
    if original_t5.holds(directory):
        return dict(original_t5.open_tensors(directory))
    for file in (directory / name for kind in FORMATS for name in (kind.single, kind.index)):
        file_checks.refuse_dangling(file)
    known = ", ".join(kind.single for kind in FORMATS)
    others = sorted(p.name for p in directory.glob("*") if p.suffix in (".bin", ".msgpack", ".h5", ".pt", ".ckpt"))
    held = f"; it holds {', '.join(others)}: save the model as safetensors first" if others else ""
    raise FileNotFoundError(f"{directory} has none of {known}, nor an index of their shards{held}")


def _open_shards(directory: Path, kind: Format) -> dict[str, Stored]:
    index = directory / kind.index
    shards = _weight_map(index)
    names = sorted(set(shards.values()))
    for name in names:
        file_checks.refuse_dangling(directory / name)
    absent = [name for name in names if not os.path.exists(directory / name)]
    if absent:
        raise FileNotFoundError(
            f"{index} names shards that are missing: {', '.join(absent)}. Copy or download them into {directory}, or "
            f"put the whole model there as {kind.single}"
        )
    opened = {name: kind.open(directory / name) for name in names}
    lacking = sorted(name for name, shard in shards.items() if name not in opened[shard])
    if lacking:
        raise ValueError(
            f"{index} and its files are not of one model; copy or download all of them again. It names tensors that "
            f"their shards do not hold: {', '.join(lacking)}"
        )
    return {name: opened[shard][name] for name, shard in shards.items()}


def _weight_map(index: Path) -> dict[str, str]:
    """Which file beside an index holds each tensor, by name."""
    file_checks.require(index)
    try:
        content = json.loads(index.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{index} is no index of shards, it is not JSON ({error}): {file_checks.AGAIN}") from error
    shards = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(shards, dict):
        raise ValueError(f"{index} is no index of shards, a JSON object with a weight_map: {file_checks.AGAIN}")
    if odd := [shard for shard in shards.values() if not _is_file_name(shard)]:
        raise ValueError(
            f"{index} names {odd[0]!r:.200}, which is no name of a file beside it: {file_checks.AGAIN}; shards lie in "
            "the folder of their index"
        )
    if not shards:
        raise ValueError(f"{index} names no tensors: {file_checks.AGAIN}")
    return shards


def _is_file_name(name: Any) -> bool:
    return isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name and "\0" not in name


@dataclasses.dataclass(frozen=True)
class _SafeTensor:
    file: Any
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.file.get_slice(self.name).get_shape())

    @property
    def code(self) -> str:
        return self.file.get_slice(self.name).get_dtype()

    def read(self) -> np.ndarray:
        return self.file.get_tensor(self.name)


def _open_safetensors(path: Path) -> dict[str, Stored]:
    file_checks.require(path)
    try:
        file = safetensors.safe_open(str(path), framework="numpy")
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(f"{path} cannot be read as safetensors: {error}; {file_checks.AGAIN}") from error
    return {name: _SafeTensor(file, name) for name in file.keys()}


FORMATS = (
    Format(single="model.safetensors", open=_open_safetensors),
    Format(single="pytorch_model.bin", open=torch_files.open_file),
    Format(single="flax_model.msgpack", open=flax_files.open_file),
)
"""The kinds of files that are read, the first that is there counts."""
