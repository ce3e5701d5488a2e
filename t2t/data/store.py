"""Examples in memory: flat arrays with offsets, read at any index, and kept on disk between runs.

A token store holds what the deterministic part of a task gives, read and tokenised once. Nothing here knows TensorFlow.
"""

import functools
import os
import pathlib
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Progress = Callable[[str, int], None]
"""Called now and then while examples are read, with the name of their task and how many there are so far."""

REPORT_EVERY = 1000
"""Examples between two reports of progress."""

_BLOCK = 4096  # examples that are joined at once: many small arrays cost more than their tokens


@dataclass(frozen=True, kw_only=True)
class Column:
    """One feature of all examples: values end to end; example i is values[offsets[i]:offsets[i + 1]].

    Scalars of the task have one value each and come back without an axis.
    """

    values: np.ndarray
    offsets: np.ndarray
    is_scalar: bool = False

    def __post_init__(self) -> None:
        self.values.setflags(write=False)


@dataclass(frozen=True, kw_only=True)
class TokenStore:
    """The numbers of every example of one task and split, and their texts where asked for. `store[i]` is example i."""

    columns: Mapping[str, Column]
    texts: Mapping[str, list[Any]] = field(default_factory=dict)
    size: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        """The arrays of one example: views of the store, not to be written to."""
        if not 0 <= index < self.size:
            raise IndexError(f"Example {index} of {self.size}.")
        return {
            name: column.values[index, ...] if column.is_scalar else _slice(column, index)
            for name, column in self.columns.items()
        }

    def values(self, name: str) -> Iterator[np.ndarray]:
        """The values of a feature over all examples."""
        yield self.columns[name].values

    @classmethod
    def collect(
        cls,
        examples: Iterable[Mapping[str, Any]],
        *,
        name: str = "",
        texts: bool = False,
        progress: Progress | None = None,
    ) -> "TokenStore":
        """Read all examples. Integers become int32 (int64 if they must), floats float32; texts are kept if asked for.

        Raises:
            ValueError: for features that are neither numbers of at most one axis nor texts.
        """
        builders: dict[str, _ColumnBuilder] = {}
        kept: dict[str, list[Any]] = {}
        size = 0
        for size, example in enumerate(examples, start=1):
            for feature, value in example.items():
                array = np.asarray(value)
                if array.dtype.kind in "OSU":
                    if texts:
                        kept.setdefault(feature, []).append(_as_text(array.tolist()))
                elif feature in builders:
                    builders[feature].add(array)
                else:
                    builders[feature] = _ColumnBuilder(feature, array, before=size - 1)
            if progress is not None and size % REPORT_EVERY == 0:
                progress(name, size)
        if progress is not None:
            progress(name, size)
        columns = {feature: builder.finish(size) for feature, builder in builders.items()}
        return cls(columns=columns, texts=kept, size=size)

    @functools.cached_property
    def checksum(self) -> str:
        """Of all numbers, by which a run that goes on knows its data (CRC-32, a second per gigabyte)."""
        total = 0
        for name, column in sorted(self.columns.items()):
            for part in (name.encode(), column.values, column.offsets):
                total = zlib.crc32(
                    part if isinstance(part, bytes) else np.ascontiguousarray(part).view(np.uint8), total
                )
        return f"{total:08x}"

    def save(self, path: pathlib.Path) -> None:
        """Write the numbers (not the texts) to an .npz file: complete or not at all."""
        arrays: dict[str, np.ndarray] = {"size": np.array(self.size)}
        for name, column in self.columns.items():
            kind = "scalars" if column.is_scalar else "values"
            arrays |= {f"{kind}/{name}": column.values}
            arrays |= {} if column.is_scalar else {f"offsets/{name}": column.offsets}
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
        try:
            with unfinished.open("wb") as file:
                np.savez(file, **arrays)
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: pathlib.Path) -> "TokenStore":
        """The store that `save` wrote.

        Raises:
            ValueError: the file is damaged.
        """
        try:
            with path.open("rb") as stream, np.load(stream) as file:
                arrays = {name: file[name] for name in file.files}
            size = int(arrays.pop("size"))
            columns = {}
            for key, values in arrays.items():
                kind, _, name = key.partition("/")
                if kind != "offsets":
                    offsets = np.arange(size + 1) if kind == "scalars" else arrays[f"offsets/{name}"]
                    columns[name] = Column(values=values, offsets=offsets, is_scalar=kind == "scalars")
        except (zipfile.BadZipFile, KeyError, EOFError, OSError, ValueError) as error:
            raise ValueError(
                f"The token cache {path} is damaged ({error}); delete it and it will be made anew."
            ) from error
        return cls(columns=columns, size=size)


class _ColumnBuilder:
    """Collects one feature: arrays of a block at a time are joined, so that few small objects live."""

    def __init__(self, name: str, first: np.ndarray, *, before: int) -> None:
        self.name = name
        self.rank = first.ndim
        self.dtype = _stored_dtype(name, first)
        if before:
            raise ValueError(f"Feature '{name}' is missing in the first {before} examples and present in the next.")
        self.lengths: list[int] = []
        self.block: list[np.ndarray] = []
        self.blocks: list[np.ndarray] = []
        self.add(first)

    def add(self, array: np.ndarray) -> None:
        if array.ndim != self.rank:
            raise ValueError(f"Feature '{self.name}' has {array.ndim} axes in one example and {self.rank} in another.")
        self.lengths.append(array.size)
        self.block.append(array.reshape(-1))
        if len(self.block) == _BLOCK:
            self._join()

    def _join(self) -> None:
        if self.block:
            joined = np.concatenate(self.block)
            if self.dtype is np.int32 and joined.size and not -(2**31) <= joined.min() <= joined.max() < 2**31:
                self.dtype = np.int64  # no token, but an identifier of the source
            self.blocks.append(joined.astype(self.dtype))
            self.block = []

    def finish(self, size: int) -> Column:
        if len(self.lengths) != size:
            raise ValueError(f"Feature '{self.name}' is present in {len(self.lengths)} of {size} examples only.")
        self._join()
        offsets = np.zeros(size + 1, np.int64)
        np.cumsum(self.lengths, out=offsets[1:])
        return Column(values=np.concatenate(self.blocks), offsets=offsets, is_scalar=self.rank == 0)


def _stored_dtype(name: str, array: np.ndarray) -> type:
    if array.ndim > 1:
        raise ValueError(f"Feature '{name}' has {array.ndim} axes; features of a task have one (tokens) or none.")
    if array.dtype.kind in "iub":
        return np.int32
    if array.dtype.kind == "f":
        return np.float32
    raise ValueError(f"Feature '{name}' holds {array.dtype}; features of a task hold integers, floats or texts.")


def _slice(column: Column, index: int) -> np.ndarray:
    return column.values[column.offsets[index] : column.offsets[index + 1]]


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value
