"""Held-out examples: every one exactly once, on any number of hosts, corrupted the same way each time."""

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from t2t.data import host_tensorflow  # noqa: F401 # isort: skip - its settings come before seqio
import seqio

from t2t.data import mixing
from t2t.data.examples import TaskExamples, load_examples
from t2t.data.features import Converter, Example
from t2t.data.store import Progress
from t2t.data.windows import READ_TOGETHER
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
    contiguous: bool = False,
    lanes: Sequence[int] | None = None,
    max_examples: int | None = None,
    trace: bool = False,
) -> Iterator[Batch]:
    """The host's part of each global batch: the rows `lanes`.

    Every host makes the same number of batches; the last is filled up with rows of padding, whose weights are 0.

    Args:
        examples: what `load_eval` read.
        converter: of the model's architecture.
        rows: rows of the global batch.
        packing: whether short examples share rows. Every host then prepares all examples, to know what fits where.
        contiguous: whether each row reads on, batch after batch, in one of as many equal stretches of the examples as
            there are rows, for models that remember; never packed.
        lanes: the rows of the global batch that this host makes, in order; None for all.
        max_examples: how many examples to read, from the first; None for all.
        trace: whether batches carry `lane` and `position` (int64 [R], host only): the row in the global batch and the
            index of its first example, -1 in rows that fill up.
    """
    lanes = range(rows) if lanes is None else lanes
    if not lanes or not all(0 <= lane < rows for lane in lanes):
        raise ValueError(f"lanes={lanes}: give one or more of the {rows} rows of the global batch.")
    converter.check_task(examples.name, examples.features)
    number = len(examples) if max_examples is None else min(max_examples, len(examples))
    if contiguous:
        batches = _contiguous(examples, converter, number, rows, lanes)
    elif packing:
        batches = _packed(examples, converter, number, rows)
    else:
        batches = _unpacked(examples, converter, number, rows, lanes)
    for batch in batches:
        yield _convert(converter, [batch[lane] if lane < len(batch) else (-1, []) for lane in lanes], lanes, trace)


def eval_examples(
    examples: TaskExamples, converter: Converter, *, max_examples: int | None = None
) -> Iterator[dict[str, Any]]:
    """Held-out examples as they are, for evaluation by generation: token arrays cut to length, and the task's texts.

    Loaded with `texts=True` they hold what the task keeps as text (`inputs_pretokenized`, `targets_pretokenized`, ...).
    """
    number = len(examples) if max_examples is None else min(max_examples, len(examples))
    for index in range(number):
        texts = {name: column[index] for name, column in examples.store.texts.items()}
        yield {**_read(examples, converter, [index])[0], **texts}


Numbered = tuple[int, list[Example]]  # a row, with the index of its first example


def _read(examples: TaskExamples, converter: Converter, indices: Sequence[int]) -> list[Example]:
    return [converter.trim(example)[0] for example in examples.examples(indices, epoch=0)]


def _unpacked(
    examples: TaskExamples, converter: Converter, number: int, rows: int, lanes: Sequence[int]
) -> Iterator[list[Numbered]]:
    """Global batches of one example a row; only the rows of `lanes` are read."""
    for start in range(0, number, rows):
        batch: list[Numbered] = [(index, []) for index in range(start, min(start + rows, number))]
        mine = [lane for lane in lanes if lane < len(batch)]
        for lane, example in zip(mine, _read(examples, converter, [start + lane for lane in mine]), strict=True):
            batch[lane][1].append(example)
        yield batch


def _contiguous(
    examples: TaskExamples, converter: Converter, number: int, rows: int, lanes: Sequence[int]
) -> Iterator[list[Numbered]]:
    """Global batches of one example a row, which follows on the one of the batch before; only `lanes` are read."""
    backward = examples.corruption is not None and examples.corruption.corruption.reads_backwards
    starts = [lane * number // rows for lane in range(rows + 1)]
    for step in range(-(-number // rows)):
        batch: list[Numbered] = [(-1, []) for _ in range(rows)]
        mine = [lane for lane in lanes if starts[lane] + step < starts[lane + 1]]
        places = [starts[lane] + step for lane in mine]
        indices = [number - 1 - place if backward else place for place in places]
        for lane, index, example in zip(mine, indices, _read(examples, converter, indices), strict=True):
            batch[lane] = (index, [example])
        yield batch


def _packed(examples: TaskExamples, converter: Converter, number: int, rows: int) -> Iterator[list[Numbered]]:
    """Global batches of greedily packed rows, in the order of the examples."""
    batch: list[Numbered] = [(0, [])]
    room = converter.capacity
    for start in range(0, number, READ_TOGETHER):
        indices = range(start, min(start + READ_TOGETHER, number))
        for index, example in zip(indices, _read(examples, converter, indices), strict=True):
            sizes = converter.sizes(example)
            if any(need > have for have, need in zip(room, sizes, strict=True)):
                if len(batch) == rows:
                    yield batch
                    batch = []
                batch.append((index, []))
                room = converter.capacity
            batch[-1][1].append(example)
            room = tuple(have - need for have, need in zip(room, sizes, strict=True))
    yield batch


def _convert(converter: Converter, rows: list[Numbered], lanes: Sequence[int], trace: bool) -> Batch:
    batch = converter.convert([row for _, row in rows])
    if not trace:
        return batch
    position = np.array([first for first, _ in rows], np.int64)
    return {**batch, "lane": np.array(lanes, np.int64), "position": position}
