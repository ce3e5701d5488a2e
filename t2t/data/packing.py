"""Which examples share a row: each goes to the first row with room for it, of a number of rows that are open.

An example takes something of each capacity of a row, such as 512 tokens of inputs and 114 of targets. With one open row
examples are appended in order, and a row is closed by the first that does not fit: rows end with a gap of half an
example on average, and more where several capacities run out at different times. Open rows let later examples fill the
gaps. When an example fits into none, all are closed together and it begins the next ones.

    sizes in rows of 10    6 5 4 3 2
    one open row           [6] [5 4] [3 2]      67 % filled
    two                    [6 4] [5 3 2]        100 %
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

Sizes = Int[np.ndarray, "N C"]
"""What each example takes of each capacity."""


class OpenRows:
    """Rows that take examples; an example goes to the first with room for it.

    Args:
        capacity: of each row.
        limit: rows that may be opened; None is any number.
    """

    def __init__(self, capacity: Sequence[int], limit: int | None = None) -> None:
        self._capacity = np.array(capacity, np.int64)
        self._limit = limit
        self._room = np.empty((limit or 64, len(capacity)), np.int64)
        self._first = 0  # rows before it are full
        self.count = 0

    @property
    def is_full(self) -> bool:
        """Whether no further example that takes anything has room."""
        return self.count == self._limit and self._first == self.count

    def put(self, size: Sequence[int] | np.ndarray) -> int | None:
        """The number of the row that the example goes to, from 0; None if none has room, and no other may be opened.

        Raises:
            ValueError: the example is larger than a row.
        """
        fits = (self._room[self._first : self.count] >= size).all(1)
        row = self._first + int(fits.argmax()) if fits.any() else self.count
        if row == self.count:
            if row == self._limit:
                return None
            self._open(size)
        self._room[row] -= size
        while self._first < self.count and not self._room[self._first].any():
            self._first += 1
        return row

    def _open(self, size: Sequence[int] | np.ndarray) -> None:
        if (self._capacity < size).any():
            raise ValueError(
                f"An example takes {np.asarray(size).tolist()}, more than the {self._capacity.tolist()} of a row; "
                "trim it."
            )
        if self.count == len(self._room):
            self._room = np.concatenate([self._room, np.empty_like(self._room)])
        self._room[self.count] = self._capacity
        self.count += 1


def first_fit(sizes: Sizes, capacity: Sequence[int], *, open_rows: int | None = None) -> Int[np.ndarray, " N"]:
    """The row of each example; rows are numbered as they are opened.

    >>> sizes = np.array([[6], [5], [4], [3], [2]])
    >>> first_fit(sizes, [10]), first_fit(sizes, [10], open_rows=1)
    (array([0, 1, 0, 1, 1]), array([0, 1, 1, 2, 2]))

    Args:
        sizes: of the examples, in their order.
        capacity: of a row.
        open_rows: rows that are open at a time, as in a run (`data.open_rows`); None never closes one.

    Raises:
        ValueError: an example that no row holds.
    """
    numbers = np.zeros(len(sizes), np.int64)
    before, rows = 0, OpenRows(capacity, open_rows)
    for number, size in enumerate(sizes):
        row = rows.put(size)
        if row is None:
            before, rows = before + rows.count, OpenRows(capacity, open_rows)
            row = rows.put(size)
        numbers[number] = before + row
    return numbers


def filled(sizes: Sizes, rows: Int[np.ndarray, " N"], capacity: Sequence[int]) -> float:
    """The share of all capacities of the rows that examples take, in [0, 1]: one less the share of padding.

    >>> filled(np.array([[6], [5], [4], [3], [2]]), np.array([0, 1, 1, 2, 2]), [10])
    0.6666666666666666
    """
    return float(sizes.sum() / ((int(rows.max()) + 1) * sum(capacity))) if len(rows) else 0.0
