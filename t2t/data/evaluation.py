"""Held-out examples: every one exactly once, on any number of hosts, corrupted the same way each time."""

import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import seqio

from t2t.data import mixing
from t2t.data.examples import TaskExamples, load_examples
from t2t.data.features import Converter, Example
from t2t.data.store import Progress
from t2t.types import Batch
from t2t.vocabulary import Vocabulary

EVALUATION_SEED = 0
"""Seed of the corruption of held-out examples: the same in every run, so that losses can be compared."""


def load_eval(
    task: str | seqio.Task,
    *,
    split: str = "validation",
    vocabulary: Vocabulary | None,
    lengths: Mapping[str, int],
    texts: bool = False,
    cache_dir: str | pathlib.Path | None = None,
    progress: Progress | None = None,
) -> TaskExamples:
    """A split of a task for evaluation; `texts` for `eval_examples`. See `t2t.data.examples.load_examples`."""
    name = task if isinstance(task, str) else task.name
    seed = mixing.derive_seed(EVALUATION_SEED, "evaluation", name)
    return load_examples(
        task,
        split,
        vocabulary=vocabulary,
        lengths=lengths,
        seed=seed,
        texts=texts,
        cache_dir=cache_dir,
        progress=progress,
    )


def eval_batches(
    examples: TaskExamples,
    converter: Converter,
    *,
    rows: int,
    packing: bool = False,
    host: tuple[int, int] = (0, 1),
    max_examples: int | None = None,
    trace: bool = False,
) -> Iterator[Batch]:
    """The host's part of each global batch: row r of a batch belongs to host r modulo the number of hosts.

    Every host makes the same number of batches; the last is filled up with rows of padding, whose weights are 0.

    Args:
        examples: what `load_eval` read.
        converter: of the model's architecture.
        rows: rows of the global batch, divisible by the number of hosts.
        packing: whether short examples share rows. Every host then prepares all examples, to know what fits where.
        host: index of this host and number of hosts.
        max_examples: how many examples to read, from the first; None for all.
        trace: whether batches carry `lane` and `position` (int64 [R], host only): the row in the global batch and the
            index of its first example, -1 in rows that fill up.
    """
    index, count = host
    if rows < 1 or rows % count or not 0 <= index < count:
        raise ValueError(f"rows={rows} of a global batch cannot be shared equally by hosts {host}.")
    number = len(examples) if max_examples is None else min(max_examples, len(examples))
    lanes = range(index, rows, count)
    if packing:
        plan = _packed_rows(examples, converter, number)
    else:
        plan = ((i, [i]) for i in range(number))
    mine: list[tuple[int, list[Example]]] = []
    filled = 0
    for filled, (first, row) in enumerate(plan, start=1):
        lane = (filled - 1) % rows
        if lane in lanes:
            mine.append((first, [_example(examples, converter, item) for item in row]))
        if lane == rows - 1:
            yield _batch(converter, mine, lanes, trace)
            mine = []
    if filled % rows:
        yield _batch(converter, mine, lanes, trace)


def eval_examples(
    examples: TaskExamples, converter: Converter, *, max_examples: int | None = None
) -> Iterator[dict[str, Any]]:
    """Held-out examples as they are, for evaluation by generation: token arrays cut to length, and the task's texts.

    Loaded with `texts=True` they hold what the task keeps as text (`inputs_pretokenized`, `targets_pretokenized`, ...).
    """
    number = len(examples) if max_examples is None else min(max_examples, len(examples))
    for index in range(number):
        texts = {name: column[index] for name, column in examples.store.texts.items()}
        yield {**_example(examples, converter, index), **texts}


def _example(examples: TaskExamples, converter: Converter, index: int) -> Example:
    return converter.trim(examples.example(index, epoch=0))[0]


def _packed_rows(examples: TaskExamples, converter: Converter, number: int) -> Iterator[tuple[int, list[int]]]:
    row: list[int] = []
    room = converter.capacity
    for index in range(number):
        sizes = converter.sizes(_example(examples, converter, index))
        if row and any(need > have for have, need in zip(room, sizes, strict=True)):
            yield row[0], row
            row, room = [], converter.capacity
        row.append(index)
        room = tuple(have - need for have, need in zip(room, sizes, strict=True))
    if row:
        yield row[0], row


def _batch(converter: Converter, rows: list[tuple[int, list[Example]]], lanes: range, trace: bool) -> Batch:
    filled = rows + [(-1, [])] * (len(lanes) - len(rows))
    batch = converter.convert([row for _, row in filled])
    if not trace:
        return batch
    position = np.array([first for first, _ in filled], np.int64)
    return {**batch, "lane": np.array(lanes, np.int64), "position": position}
