"""Lanes with several open rows, of which each example takes the first with room; see `t2t.data.packing`.

A window is the rows that are closed together. So the state of a lane is the position where its window begins, and how
many of the window's rows were taken. The first windows of the lanes have different sizes, that not all lanes need a new
one in the same step.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from t2t.data import packing
from t2t.data.features import Converter, Example

MAX_EMPTY = 10_000
"""Examples without any token that a lane skips in a row before it gives up."""

READ_TOGETHER = 64
"""Examples that are read at a time, where more than one is."""

State = dict[str, dict[int, int]]
"""By lane: `positions`, where its window begins, and `taken`, how many of the window's rows were taken."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """The rows that a lane closes together, in the order in which they were opened."""

    rows: Sequence[Sequence[Example]]
    firsts: Sequence[int]
    """Position of the first example of each row."""
    end: int
    """Position where the next window begins."""


class Windows:
    """The rows of lanes, one of each at a time.

    Args:
        lanes: those of this host.
        rows: rows of the global batch; a lane reads each `rows`-th position.
        open_rows: rows of a window.
        read: gives the examples at positions, cut to fit.
        converter: says what an example takes of a row.
    """

    def __init__(
        self,
        lanes: Sequence[int],
        *,
        rows: int,
        open_rows: int,
        read: Callable[[Sequence[int]], list[Example]],
        converter: Converter,
    ) -> None:
        self._rows = rows
        self._open_rows = open_rows
        self._read = read
        self._converter = converter
        self.restore({"positions": {lane: lane for lane in lanes}, "taken": dict.fromkeys(lanes, 0)})

    def next_rows(self) -> tuple[list[Sequence[Example]], list[int]]:
        """The next row of each lane, and the position of its first example.

        Raises:
            ValueError: a lane has nothing but empty examples.
        """
        rows, firsts = [], []
        for lane, taken in self._taken.items():
            if lane not in self._windows:
                self._windows[lane] = self._pack(lane)
            window = self._windows[lane]
            rows.append(window.rows[taken])
            firsts.append(window.firsts[taken])
            self._taken[lane] = taken + 1
            if self._taken[lane] == len(window.rows):
                self._begins[lane], self._taken[lane] = window.end, 0
                del self._windows[lane]
        return rows, firsts

    def state(self) -> State:
        """Where the next rows start."""
        return {"positions": dict(self._begins), "taken": dict(self._taken)}

    def restore(self, state: Mapping[str, Mapping[int, int]]) -> None:
        """Go on from a state."""
        self._begins = dict(state["positions"])
        self._taken = dict(state["taken"])
        self._windows: dict[int, Window] = {}
        # Examples read ahead of time, the first of each lane the one where its next window begins.
        self._ahead: dict[int, collections.deque[Example]] = {lane: collections.deque() for lane in self._begins}

    def _pack(self, lane: int) -> Window:
        position, ahead = self._begins[lane], self._ahead[lane]
        limit = 1 + lane % self._open_rows if position == lane else self._open_rows
        open_rows = packing.OpenRows(self._converter.capacity, limit)
        rows: list[list[Example]] = []
        firsts: list[int] = []
        num_empty = 0
        while not open_rows.is_full:
            if not ahead:
                ahead.extend(self._read(range(position, position + READ_TOGETHER * self._rows, self._rows)))
            size = self._converter.sizes(ahead[0])
            if any(size):
                row = open_rows.put(size)
                if row is None:
                    break
                if row == len(rows):
                    rows.append([])
                    firsts.append(position)
                rows[row].append(ahead[0])
            num_empty = 0 if any(size) else num_empty + 1
            if num_empty > MAX_EMPTY:
                raise ValueError(f"{num_empty} examples in succession are empty: nothing to train on.")
            ahead.popleft()
            position += self._rows
        return Window(rows=rows, firsts=firsts, end=position)
