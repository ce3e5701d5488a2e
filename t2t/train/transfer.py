"""Which parameters of one model can begin another: a comparison of two trees by path and shape, for people to read."""

import dataclasses
from collections.abc import Mapping
from typing import Any

SHOWN = 40
"""Lines of a comparison that are shown; the rest are counted."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fit:
    """What of a source fits a model, by path."""

    taken: list[str]
    """In both, with the same shape."""
    fresh: list[str]
    """In the model only."""
    unused: list[str]
    """In the source only."""
    other_shape: dict[str, tuple[tuple[int, ...], tuple[int, ...]]]
    """In both with different shapes: that of the source and that of the model."""
    shapes: dict[str, tuple[int, ...]]
    """Of everything in one of them only."""
    free: tuple[str, ...]
    """How the paths begin that need not be in both: heads."""

    @property
    def is_exact(self) -> bool:
        """Whether everything fits but what need not be in both."""
        return not self.misfits()

    def misfits(self) -> list[str]:
        """One line for each path that ought to fit and does not."""
        lines = [f"{path}: absent there, {self.shapes[path]} in this model" for path in self._bound(self.fresh)]
        lines += [f"{path}: {self.shapes[path]} there, absent in this model" for path in self._bound(self.unused)]
        return lines + [f"{path}: {left} there, {right} in this model" for path, (left, right) in self._shapes()]

    def lines(self) -> list[str]:
        """The whole comparison: a line of counts, then what begins fresh or is left out, and why."""
        count = f"{len(self.taken)} taken, {len(self.fresh) + len(self.other_shape)} fresh, {len(self.unused)} left out"
        lines = [f"~ {path}: {left} there, {right} here: fresh" for path, (left, right) in self._shapes()]
        lines += [f"+ {path} {self.shapes[path]}: not there, fresh" for path in self.fresh]
        lines += [f"- {path} {self.shapes[path]}: left out" for path in self.unused]
        more = [f"... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        return [count, *lines[:SHOWN], *more]

    def _bound(self, paths: list[str]) -> list[str]:
        return [path for path in paths if not path.startswith(self.free)]

    def _shapes(self) -> Any:
        return self.other_shape.items()


def compare(source: Mapping[str, Any], model: Mapping[str, Any], *, free: tuple[str, ...] = ()) -> Fit:
    r"""Compares arrays, or their shapes, by path.

    Args:
        source: what there is.
        model: what is wanted.
        free: how the paths begin that need not be in both.

    Example:
        >>> import numpy as np
        >>> arrays = {name: np.zeros(shape) for name, shape in {"a": 2, "b": 3, "c": 4}.items()}
        >>> print(*compare(arrays, {"a": np.zeros(2), "b": np.zeros(5), "d": np.zeros(1)}).lines(), sep="\n")
        1 taken, 2 fresh, 1 left out
        ~ b: (3,) there, (5,) here: fresh
        + d (1,): not there, fresh
        - c (4,): left out
    """
    there = {path: tuple(leaf.shape) for path, leaf in source.items()}
    wanted = {path: tuple(leaf.shape) for path, leaf in model.items()}
    both = [path for path in wanted if path in there]
    return Fit(
        taken=[path for path in both if there[path] == wanted[path]],
        fresh=[path for path in wanted if path not in there],
        unused=[path for path in there if path not in wanted],
        other_shape={path: (there[path], wanted[path]) for path in both if there[path] != wanted[path]},
        shapes={path: shape for path, shape in (there | wanted).items() if not (path in there and path in wanted)},
        free=free,
    )
