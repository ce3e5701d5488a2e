"""The order of examples for models that remember: each lane of the batch reads on in one text, in whole.

A task's examples stand in the order of its text. Lane j of the m lanes of a task begins at the j-th of m equal
stretches and walks on, through the stretches of the other lanes too, and from the end to the beginning: example
floor(j n / m) + s, modulo n, at step s. So the memory that a row left is of the text just before the row that follows,
but for one place in n. A task whose texts are reversed is walked through from its end.

Lanes are shared out among the tasks of a mixture by their rates, whole lanes: each reads one task.
"""

import functools
import itertools
from dataclasses import dataclass

from t2t.data.mixing import Draw, share_out, whole_weights


@dataclass(frozen=True, kw_only=True)
class ContiguousOrder:
    """The stream of tasks with these numbers of examples and rates, read by `rows` lanes; `locate` reads it anywhere.

    Position p of the stream is step p // rows of lane p % rows. The epoch of a draw is how many lanes have read the
    example before, so that no example is corrupted twice in the same way.

    Raises:
        ValueError: there are fewer lanes than tasks need, or no examples.
    """

    sizes: tuple[int, ...]
    rates: tuple[float, ...]
    backward: tuple[bool, ...]
    """Which tasks are read from their last example to their first."""
    rows: int
    """Rows of the global batch."""
    seed: int = 0
    """Of nothing: the order is that of the text. A run that goes on is known by it."""

    def __post_init__(self) -> None:
        if not len(self.sizes) == len(self.rates) == len(self.backward) > 0:
            raise ValueError(f"sizes, rates and backward must be one each for every task, got {self}.")
        if min(self.sizes) < 1:
            raise ValueError(f"Every task needs at least one example, got sizes={self.sizes}.")
        idle = [task for task, count in enumerate(self._counts) if not count]
        if idle:
            raise ValueError(
                f"{self.rows} rows at rates {self.rates} leave none to {len(idle)} of {len(self.sizes)} tasks; a model "
                "with a memory reads one task in each row: take a larger batch_size, or more equal rates."
            )

    @functools.cached_property
    def _lanes(self) -> tuple[tuple[int, int], ...]:
        # Of each lane: its task, and which of the task's lanes it is.
        sums = tuple(itertools.accumulate(whole_weights(self.rates), initial=0))
        return tuple(share_out(sums, lane) for lane in range(self.rows))

    @functools.cached_property
    def _counts(self) -> tuple[int, ...]:
        tasks = [task for task, _ in self._lanes]
        return tuple(map(tasks.count, range(len(self.sizes))))

    def locate(self, position: int) -> Draw:
        """The example at a position of the stream."""
        step, lane = divmod(position, self.rows)
        task, own = self._lanes[lane]
        size, count = self.sizes[task], self._counts[task]
        place = own * size // count + step
        # The last stretch k with floor(k size / count) <= place: those between it and the own one read it before.
        stretch = -(-(place + 1) * count // size) - 1
        index = place % size
        return Draw(task, stretch - own, size - 1 - index if self.backward[task] else index)
