"""Which tensor of the files each parameter of a model is read from, and what is left over on either side."""

import difflib
import fnmatch
from collections.abc import Iterable, Sequence

import numpy as np

from t2t.errors import UsageError
from t2t.hf import table, tensors


class Accounts:
    """Which tensor each binding is read from, and what is left over on either side."""

    def __init__(
        self,
        names: table.Table,
        reader: tensors.TensorReader,
        present: dict[str, str],
        bindings: Sequence[table.Binding],
    ):
        self._table, self._reader = names, reader
        self._paths = {slot.path for binding in bindings for slot in binding.slots}
        self.sources: dict[str, str] = {}
        self.missing: dict[str, tuple[str, ...]] = {}  # key -> paths
        self.wrong: list[str] = []
        left = dict(present)
        for binding in bindings:
            held = [left.pop(name) for name in (binding.key, *binding.copies) if name in left]
            if not held:
                self.missing[binding.key] = tuple(slot.path for slot in binding.slots)
                continue
            self.sources[binding.key] = held[0]
            self._compare(binding, held)
        self.unused = sorted(key for name, key in left.items() if not names.ignores(name, unused=True))
        self.dropped: set[str] = set()
        self.fresh: set[str] = set()

    def _compare(self, binding: table.Binding, held: list[str]) -> None:
        """Note a shape or type that cannot be, and copies of a shared tensor that are not copies."""
        if self._reader.shape(held[0]) != binding.shape:
            self.wrong.append(f"{held[0]} has shape {self._reader.shape(held[0])}, config.json means {binding.shape}")
            return
        if self._reader.code(held[0]) not in tensors.READABLE:
            readable = ", ".join(sorted(tensors.READABLE))
            self.wrong.append(
                f"{held[0]} is stored as {self._reader.code(held[0])}; parameters are read from {readable}"
            )
            return
        copies = () if binding.copies_may_differ else held[1:]
        first = self._reader(held[0]) if copies else None
        for copy in copies:
            if not np.array_equal(first, self._reader(copy)):
                self.wrong.append(f"{copy} differs from {held[0]}, but config.json says that they are shared")

    def settle(self, *, drop: Sequence[str], fresh: Sequence[str], other_head: bool, where: str) -> None:
        """Apply what the caller asked to leave out and to initialise; raises for the rest."""
        absent = [path for paths in self.missing.values() for path in paths]
        _check_patterns(drop, self.unused, what="drop", means="tensor without a place in the model")
        _check_patterns(fresh, absent, what="fresh", means="parameter that the files lack")
        has_decoder = any(path.startswith("decoder/") for path in self._paths)
        unneeded = table.HEAD_PATHS if has_decoder else (*table.HEAD_PATHS, "decoder/", "decoder_embed/")
        self.dropped = {
            k
            for k in self.unused
            if _matches(k, drop) or (other_head and self._table.is_of(self._table.canonical(k), unneeded))
        }
        lacking = []
        for key, paths in self.missing.items():
            of_head = other_head and all(path.startswith(table.HEAD_PATHS) for path in paths)
            self.fresh |= {path for path in paths if of_head or _matches(path, fresh)}
            lacking += [f"{path} ({key})" for path in paths if path not in self.fresh]
        unused = [key for key in self.unused if key not in self.dropped]
        problems = [
            f"tensors without a place in the model: {', '.join(unused)}" if unused else "",
            f"parameters without a tensor: {', '.join(lacking)}" if lacking else "",
            f"tensors that do not fit: {'; '.join(self.wrong)}" if self.wrong else "",
        ]
        if any(problems):
            raise ValueError(
                f"{where} does not match its config.json. " + ". ".join(p for p in problems if p) + ". "
                "If another head is meant, t2t.load takes it (head=...), and so does t2t import (--head). What is to "
                "be left out or initialised all the same, name there: t2t import --drop TENSORS --fresh PARAMETERS."
            )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _check_patterns(patterns: Sequence[str], names: Sequence[str], *, what: str, means: str) -> None:
    for pattern in patterns:
        if not any(_matches(name, [pattern]) for name in names):
            raise UsageError(f"{what} {pattern!r} matches no {means}; {closest(pattern, names)}")


def closest(pattern: str, names: Iterable[str]) -> str:
    """What may have been meant by a pattern that matches none of the names."""
    found = difflib.get_close_matches(pattern, list(names), n=3, cutoff=0.5)
    shown = found or sorted(names)[:10]
    return f"{'the closest are' if found else 'there are'} {', '.join(shown) or 'none'}"
