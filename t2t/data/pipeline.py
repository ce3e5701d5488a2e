"""The training stream: from tasks to packed, host-local, resumable batches.

A global batch has `rows` lanes. Lane r reads the positions r, r + rows, r + 2 rows, ... of the stream (see
`t2t.data.mixing`) and packs their examples greedily into its own rows: an example is appended if every feature fits,
else the row is closed and the example begins the next. So the whole state of a lane is the position where its next row
starts. With more `open_rows` than one an example goes to the first of them with room, which fills rows better where
examples differ in length (`t2t.data.windows`). A host computes the lanes whose rows its devices hold: step s gives the
same global batch, row for row, on any number of hosts, and a run may resume on another number.
"""

import collections
import logging
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2t.data import mixing
from t2t.data.contiguous import ContiguousOrder
from t2t.data.examples import TaskExamples, load_examples
from t2t.data.features import Converter, Example
from t2t.data.mixtures import Spec, flat_rates, leaf_tasks
from t2t.data.store import Progress
from t2t.data.windows import MAX_EMPTY, READ_TOGETHER, Windows
from t2t.errors import UsageError
from t2t.types import Batch
from t2t.vocabulary import Vocabulary

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Stream:
    """The endless sequence of examples of a mixture, trimmed to fit, with random access."""

    tasks: Sequence[TaskExamples]
    order: mixing.Order | ContiguousOrder
    converter: Converter

    @classmethod
    def of(
        cls,
        tasks: Sequence[TaskExamples],
        rates: Sequence[float],
        converter: Converter,
        *,
        seed: int,
        contiguous: int | None = None,
    ) -> "Stream":
        """The stream of these tasks at these rates, its order drawn from a seed.

        With `contiguous`, the rows of the global batch, it has the order of the texts, for models that remember: see
        `t2t.data.contiguous`.

        Raises:
            ValueError: a task lacks features that the converter reads, or has inputs that it does not.
        """
        for task in tasks:
            converter.check_task(task.name, task.features)
        if contiguous is not None:
            backward = tuple(
                task.corruption is not None and task.corruption.corruption.reads_backwards for task in tasks
            )
            sizes = tuple(map(len, tasks))
            order = ContiguousOrder(sizes=sizes, rates=tuple(rates), backward=backward, rows=contiguous)
            return cls(tasks=tuple(tasks), order=order, converter=converter)
        order = mixing.Order(
            sizes=tuple(map(len, tasks)),
            rates=tuple(rates),
            seeds=tuple(mixing.derive_seed(seed, "task", task.name) for task in tasks),
            seed=mixing.derive_seed(seed, "mixture"),
        )
        return cls(tasks=tuple(tasks), order=order, converter=converter)

    def read(self, positions: Sequence[int]) -> tuple[list[Example], int]:
        """The examples at these positions, and how many of their tokens did not fit."""
        groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for place, position in enumerate(positions):
            draw = self.order.locate(position)
            groups.setdefault((draw.task, draw.epoch), []).append((place, draw.index))
        examples: list[Example] = [{}] * len(positions)
        num_trimmed = 0
        for (task, epoch), chosen in groups.items():
            made = self.tasks[task].examples([index for _, index in chosen], epoch=epoch)
            for (place, _), example in zip(chosen, made, strict=True):
                examples[place], cut = self.converter.trim(example)
                num_trimmed += cut
        return examples, num_trimmed


def load_stream(
    train: Spec,
    *,
    split: str = "train",
    vocabulary: Vocabulary | None,
    converter: Converter,
    seed: int,
    contiguous: int | None = None,
    cache_dir: str | pathlib.Path | None = None,
    progress: Progress | None = None,
) -> Stream:
    """The training examples of a task, a mixture, or {name: rate}, read into memory. See `load_examples`.

    With `contiguous`, the rows of the global batch, each of them reads on in one text.

    Raises:
        ValueError: names, splits, rates or sources that do not work.
    """
    tasks = [
        load_examples(
            task,
            split,
            vocabulary=vocabulary,
            lengths=converter.lengths,
            seed=mixing.derive_seed(seed, "corruption", task.name),
            cache_dir=cache_dir,
            progress=progress,
        )
        for task in leaf_tasks(train)
    ]
    counts = {task.name: len(task) for task in tasks}
    rates = flat_rates(train, counts)
    if len(rates) > 1:
        logger.info("Mixture:\n%s", mixing.rate_table(rates, counts))
    used = [task for task in tasks if task.name in rates]
    return Stream.of(used, [rates[task.name] for task in used], converter, seed=seed, contiguous=contiguous)


class TrainPipeline:
    """Iterator of the host's part of each global batch, without end. `state()` and `restore()` as the module says.

    Args:
        stream: the examples in their order.
        rows: rows of the global batch.
        packing: whether examples share rows; else every row holds one.
        open_rows: rows that a lane keeps open; an example goes to the first with room for it. 1 packs in order.
        lanes: the rows of the global batch that this host makes, in order; None for all.
        trace: whether batches carry `lane` and `position` (int64 [R]): the lane of each row and the position of its
            first example; with one open row its next examples stand `rows` positions apart. For the host only.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        rows: int,
        packing: bool = True,
        open_rows: int = 1,
        lanes: Sequence[int] | None = None,
        trace: bool = False,
    ) -> None:
        self._lanes = tuple(range(rows) if lanes is None else lanes)
        if not self._lanes or not all(0 <= lane < rows for lane in self._lanes):
            raise ValueError(f"lanes={lanes}: give one or more of the {rows} rows of the global batch.")
        if open_rows < 1 or (open_rows > 1 and not packing):
            raise ValueError(f"open_rows={open_rows} must be 1, or more with packing, which is {packing}.")
        self.stream = stream
        self.rows = rows
        self.num_trimmed = 0  # tokens cut off so far, read ahead ones included; tells the user, is no part of the state
        self._packing = packing
        self._trace = trace
        self._next = {lane: lane for lane in self._lanes}
        # Examples read ahead of time, the first of each lane the one at its position: many together are read faster.
        self._ahead: dict[int, collections.deque[Example]] = {lane: collections.deque() for lane in self._lanes}
        self._read_ahead = max(1, READ_TOGETHER // len(self._lanes))
        self._open_rows = open_rows
        self._windows: Windows | None = None
        if open_rows > 1:
            self._windows = Windows(
                self._lanes, rows=rows, open_rows=open_rows, read=self._read, converter=stream.converter
            )

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        if self._windows is None:
            firsts = list(self._next.values())
            rows = self._next_rows()
        else:
            rows, firsts = self._windows.next_rows()
        batch = self.stream.converter.convert(rows)
        if self._trace:
            position = np.array(firsts, np.int64)
            batch = {**batch, "lane": np.array(self._lanes, np.int64), "position": position}
        return batch

    def state(self) -> dict[str, Any]:
        """Where the next batch starts, as JSON: a position a lane, -1 in lanes of other hosts (`merge_states`)."""
        own = {"positions": self._next} if self._windows is None else self._windows.state()
        lanes = {name: [values.get(lane, -1) for lane in range(self.rows)] for name, values in own.items()}
        return {**lanes, **self._identity()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where a state of this stream stood, on any number of hosts.

        Raises:
            UsageError: the state belongs to other data.
            ValueError: the state lacks lanes of this host.
        """
        identity = self._identity()
        for name in (*identity, "open_rows"):
            if state.get(name) != identity.get(name):
                raise UsageError(
                    f"The data changed since the checkpoint: {name} was {state.get(name)} and is {identity.get(name)}. "
                    "Give back the old data to resume, or start a new run from this checkpoint with --init."
                )
        positions = state["positions"]
        absent = [lane for lane in self._lanes if positions[lane] < 0]
        if absent:
            raise ValueError(
                f"The checkpoint lacks the position of lanes {absent}: merge the states of all hosts first."
            )
        if self._windows is not None:
            names = ("positions", "taken")
            self._windows.restore({name: {lane: int(state[name][lane]) for lane in self._lanes} for name in names})
        self._next = {lane: int(positions[lane]) for lane in self._lanes}
        self._ahead = {lane: collections.deque() for lane in self._lanes}

    def _identity(self) -> dict[str, Any]:
        order = self.stream.order
        return {
            "rows": self.rows,
            "packing": self._packing,
            "seed": order.seed,
            "examples": {task.name: len(task) for task in self.stream.tasks},
            "checksums": {task.name: task.store.checksum for task in self.stream.tasks},
            "rates": {task.name: rate for task, rate in zip(self.stream.tasks, order.rates, strict=True)},
            **({"open_rows": self._open_rows} if self._open_rows > 1 else {}),
        }

    def _next_rows(self) -> list[list[Example]]:
        rows: dict[int, list[Example]] = {lane: [] for lane in self._lanes}
        rooms = dict.fromkeys(self._lanes, self.stream.converter.capacity)
        num_empty = 0
        unfinished = list(self._lanes)
        while unfinished:
            self._fill([lane for lane in unfinished if not self._ahead[lane]])
            for lane in unfinished.copy():
                example = self._ahead[lane][0]
                sizes = self.stream.converter.sizes(example)
                room = tuple(have - need for have, need in zip(rooms[lane], sizes, strict=True))
                if min(room) < 0:
                    unfinished.remove(lane)
                    continue
                self._ahead[lane].popleft()
                self._next[lane] += self.rows
                if not any(sizes):
                    num_empty += 1
                    continue
                rows[lane].append(example)
                rooms[lane] = room
                num_empty = 0
                if not self._packing or not any(room):
                    unfinished.remove(lane)
            if num_empty > MAX_EMPTY:
                counts = self._identity()["examples"]
                raise ValueError(f"{num_empty} examples in succession are empty, of {counts}: nothing to train on.")
        return list(rows.values())

    def _fill(self, lanes: Sequence[int]) -> None:
        positions = [self._next[lane] + k * self.rows for lane in lanes for k in range(self._read_ahead)]
        examples = self._read(positions)
        for place, lane in enumerate(lanes):
            self._ahead[lane].extend(examples[place * self._read_ahead : (place + 1) * self._read_ahead])

    def _read(self, positions: Sequence[int]) -> list[Example]:
        examples, cut = self.stream.read(positions)
        if cut and not self.num_trimmed:
            logger.warning("Some examples are longer than lengths=%s and are cut.", dict(self.stream.converter.lengths))
        self.num_trimmed += cut
        return examples


def merge_states(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The states of all hosts after one step as the state of the whole stream, for any number of hosts to restore."""
    names = [name for name in ("positions", "taken") if name in states[0]]
    lanes = {name: [max(lane) for lane in zip(*(state[name] for state in states), strict=True)] for name in names}
    return {**states[0], **lanes}
