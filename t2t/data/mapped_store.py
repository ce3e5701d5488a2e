"""A token cache as the examples of a task: any of them, read from mapped files."""

import bisect
import functools
import itertools
import pathlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from t2t.data.shards import DTYPES, DamagedShardError, Shard, open_shard
from t2t.data.store import TokenStore
from t2t.data.text_files import CorpusError, MissingFileError

REPAIR = "make it anew with t2t cache, which keeps the shards that are whole"

MAX_MAPPED = 256
"""Shards that are mapped at once; each holds a file open."""

READ_THROUGH = 2**31
"""Bytes of a cache up to which a run reads all numbers for their checksum, some seconds."""


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """Examples that are pieces of one text, the documents of all shards end to end; only the last may be shorter."""

    feature: str
    length: int  # tokens


@dataclass(frozen=True, kw_only=True)
class MappedStore:
    """The examples of a cache in the order of its shards; `store[i]` is example i, equal to that of a `TokenStore`.

    Raises:
        MissingFileError: on access, a shard has vanished.
        CorpusError: on access, a shard is damaged.
    """

    directory: pathlib.Path
    shards: tuple[Shard, ...]
    pieces: Pieces | None = None
    """How examples are cut; None where rows are examples."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features of an example."""
        return tuple(self._dtypes)

    @property
    def texts(self) -> Mapping[str, list[str]]:
        """None: a cache holds numbers."""
        return {}

    def __len__(self) -> int:
        total = self._ends[-1] if self._ends else 0
        return total if self.pieces is None else -(-total // self.pieces.length)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        """The arrays of one example, not to be written to."""
        if not 0 <= index < len(self):
            raise IndexError(f"Example {index} of {len(self)}.")
        if self.pieces is not None:
            start = index * self.pieces.length
            return {self.pieces.feature: self._read(start, min(start + self.pieces.length, self._ends[-1]))}
        shard = bisect.bisect_right(self._ends, index)
        row = self._open(shard)[index - (self._ends[shard - 1] if shard else 0)]
        return {name: value.astype(self._dtypes[name], copy=False) for name, value in row.items()}

    def values(self, name: str) -> Iterator[np.ndarray]:
        """The values of a feature over all rows, shard by shard."""
        for number, shard in enumerate(self.shards):
            if shard.rows:
                yield self._open(number).columns[name].values.astype(self._dtypes[name], copy=False)

    @functools.cached_property
    def checksum(self) -> str:
        """That of the `TokenStore` of the same examples, so that a run goes on with either, and with other shards.

        More than `READ_THROUGH` bytes are not read for it: it is then of the hashes of the shards.
        """
        if sum(shard.size for shard in self.shards) > READ_THROUGH:
            return f"{zlib.crc32(repr((self.pieces, [shard.sha256 for shard in self.shards])).encode()):08x}"
        total = 0
        for name in sorted(self.columns):
            total = zlib.crc32(name.encode(), total)
            for part in itertools.chain(self.values(name), [self._offsets(name)]):
                total = zlib.crc32(np.ascontiguousarray(part).view(np.uint8), total)
        return f"{total:08x}"

    def _offsets(self, name: str) -> np.ndarray:
        """Where each example begins among all values of a feature, and where the last ends."""
        if self.pieces is not None:
            return np.append(np.arange(len(self)) * self.pieces.length, self._ends[-1])
        sizes = [
            np.diff(self._open(number).columns[name].offsets) for number, one in enumerate(self.shards) if one.rows
        ]
        return np.cumsum(np.concatenate([[0], *sizes]), dtype=np.int64)

    def _read(self, start: int, end: int) -> np.ndarray:
        """Tokens of the text, most often of one shard."""
        feature = self.pieces.feature
        first = bisect.bisect_right(self._ends, start)
        parts = []
        for shard in itertools.count(first):
            before = self._ends[shard - 1] if shard else 0
            stop = min(end, self._ends[shard])
            if start < stop:
                parts.append(self._open(shard).columns[feature].values[start - before : stop - before])
                start = stop
            if start >= end:
                break
        tokens = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return tokens.astype(self._dtypes[feature], copy=False)

    @functools.cached_property
    def _ends(self) -> list[int]:
        """Where each shard ends, counted in rows, or in tokens of the text."""
        feature = None if self.pieces is None else self.pieces.feature
        sizes = (shard.rows if feature is None else shard.values.get(feature, 0) for shard in self.shards)
        return list(itertools.accumulate(sizes))

    @functools.cached_property
    def _dtypes(self) -> dict[str, np.dtype]:
        """Of each feature the widest type that a shard needs."""
        found: dict[str, np.dtype] = {}
        for shard in self.shards:
            for name, dtype in shard.dtypes.items():
                found[name] = max(found.get(name, DTYPES[dtype]), DTYPES[dtype], key=lambda d: d.itemsize)
        return found

    @functools.cached_property
    def _open(self):
        return functools.lru_cache(maxsize=MAX_MAPPED)(self._open_shard)

    def _open_shard(self, number: int) -> TokenStore:
        path = self.directory / self.shards[number].file
        try:
            return open_shard(path)
        except FileNotFoundError as error:
            raise MissingFileError(f"{path}, a shard of a token cache, has vanished: {REPAIR}.") from error
        except (DamagedShardError, OSError) as error:
            raise CorpusError(f"{error}: {REPAIR}.") from error
