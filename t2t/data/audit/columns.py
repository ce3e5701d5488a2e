"""What is kept of every document of a corpus: columns of numbers on disk, since they may be more than fit into memory.

Each file of the corpus is read by one process, which writes a part of every column. The parts are put end to end in the
order of the files, and mapped into memory: the system keeps of them what it has room for.
"""

import contextlib
import dataclasses
import pathlib
import shutil
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
from jaxtyping import Shaped


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """A column: its name, type, and numbers for each document; 0 = one, without an axis."""

    name: str
    dtype: type
    width: int = 0

    @property
    def row_size(self) -> int:
        """Bytes for each document."""
        return np.dtype(self.dtype).itemsize * max(self.width, 1)


DIGEST = Column(name="digest", dtype=np.uint64, width=2)
"""A hash of the text as it is, 128 bits."""

LENGTH = Column(name="length", dtype=np.uint32)
"""Characters."""

IS_LONG = Column(name="is_long", dtype=np.bool_)
"""Whether there are so many words in it that it may be a duplicate of a similar text."""

HOLDS_LEAK = Column(name="holds_leak", dtype=np.bool_)
"""Whether it has text of an evaluation set."""


def signature(hashes: int) -> Column:
    """The MinHash signature."""
    return Column(name="signature", dtype=np.uint16, width=hashes)


class Writer(contextlib.AbstractContextManager):
    """Writes the part of some columns that one file of the corpus has."""

    def __init__(self, directory: pathlib.Path, part: int):
        self._directory, self._part = directory, part
        self._files: dict[str, BinaryIO] = {}

    def add(self, column: Column, values: Shaped[np.ndarray, "D ..."]) -> None:
        """Appends what some documents have."""
        if column.name not in self._files:
            self._files[column.name] = part_path(self._directory, column, self._part).open("wb")
        self._files[column.name].write(np.ascontiguousarray(values, column.dtype).data)

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()


def part_path(directory: pathlib.Path, column: Column, part: int) -> pathlib.Path:
    """The file of a part."""
    return directory / f"{column.name}.{part}"


def gather(directory: pathlib.Path, column: Column, sizes: Sequence[int]) -> Shaped[np.ndarray, "D ..."]:
    """The column of all documents, mapped from a file in which its parts are put end to end; they are deleted.

    Args:
        directory: of the parts.
        column: which.
        sizes: documents of each part.
    """
    path = directory / column.name
    with path.open("wb") as whole:
        for part, size in enumerate(sizes):
            if size:
                source = part_path(directory, column, part)
                with source.open("rb") as file:
                    shutil.copyfileobj(file, whole, 2**20)
                source.unlink()
    return _mapped(path, column, sum(sizes), mode="r+")


def create(directory: pathlib.Path, column: Column, size: int) -> Shaped[np.ndarray, "D ..."]:
    """A column of so many documents that holds zeros, mapped from a file."""
    return _mapped(directory / column.name, column, size, mode="w+")


def reopen(directory: pathlib.Path, column: Column, size: int) -> Shaped[np.ndarray, "D ..."]:
    """A column that is there, to be read."""
    return _mapped(directory / column.name, column, size, mode="r")


def _mapped(path: pathlib.Path, column: Column, size: int, *, mode: str) -> Shaped[np.ndarray, "D ..."]:
    shape = (size, column.width) if column.width else (size,)
    if not size:  # an empty file cannot be mapped
        return np.zeros(shape, column.dtype)
    return np.asarray(np.memmap(path, column.dtype, mode, shape=shape))
