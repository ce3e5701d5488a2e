"""What many rows of batches are in number: lengths, padding, and how much of a text is chosen, masked, predicted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2t.data.views import CHOSEN, NAMES, Mark, strips
from t2t.data.vocabularies import SpecialTokens
from t2t.types import Batch

SIDES = ("encoder", "decoder")


@dataclass(frozen=True, kw_only=True)
class SideNumbers:
    """One side of the rows.

    Attributes:
        positions: of all rows.
        tokens: positions that are no padding.
        with_loss: positions whose prediction counts.
        lengths: tokens of each example.
        marks: how many tokens of the inputs have each mark, and are no padding.
    """

    positions: int
    tokens: int
    with_loss: int
    lengths: Sequence[int]
    marks: Mapping[Mark, int]

    @property
    def padding(self) -> float:
        """Share of the positions."""
        return (self.positions - self.tokens) / self.positions if self.positions else 0.0

    @property
    def loss_share(self) -> float:
        """Share of the tokens whose prediction counts."""
        return self.with_loss / self.tokens if self.tokens else 0.0


@dataclass(frozen=True, kw_only=True)
class RowNumbers:
    """Some rows.

    Attributes:
        rows: how many.
        examples: in them.
        sides: encoder, decoder or both.
        chosen: share of the text that the objective has chosen; None = it chooses no tokens, or says not which.
        labels: rows with each label of a pair.
    """

    rows: int
    examples: int
    sides: Mapping[str, SideNumbers]
    chosen: float | None
    labels: Mapping[int, int]

    def to_json(self) -> dict[str, Any]:
        """As JSON takes it."""
        return {
            "rows": self.rows,
            "examples": self.examples,
            "chosen": self.chosen,
            "labels": {str(label): number for label, number in self.labels.items()},
            "sides": {
                name: {
                    "positions": side.positions,
                    "tokens": side.tokens,
                    "padding": side.padding,
                    "with_loss": side.with_loss,
                    "lengths": describe_lengths(side.lengths),
                    "marks": {NAMES[mark]: number for mark, number in side.marks.items()},
                }
                for name, side in self.sides.items()
            },
        }


def describe_lengths(lengths: Sequence[int]) -> dict[str, float]:
    """The least, the median, the mean and the greatest; {} of none.

    >>> describe_lengths([3, 1, 8])
    {'least': 1, 'median': 3.0, 'mean': 4.0, 'greatest': 8}
    """
    if not lengths:
        return {}
    return {
        "least": min(lengths),
        "median": float(np.median(lengths)),
        "mean": float(np.mean(lengths)),
        "greatest": max(lengths),
    }


def count(batches: Iterable[Batch], special: SpecialTokens) -> RowNumbers:
    """The numbers of all rows of some batches."""
    sums = {side: _Sums() for side in SIDES}
    rows = examples = noise = text = 0
    labels: dict[int, int] = {}
    for batch in batches:
        size = len(next(iter(batch.values())))
        rows += size
        for label in np.asarray(batch.get("next_sentence_labels", ())).tolist():
            labels[label] = labels.get(label, 0) + 1
        for row in range(size):
            found = strips(batch, row, special)
            examples += max(int(strip.segments.max(initial=0)) for strip in found)
            for strip in found:
                side, _, kind = strip.name.partition(" ")
                sums[side].add(strip.segments, strip.marks, strip.weights, is_input=kind == "inputs")
            own, all_text = _noise({strip.name: strip.marks for strip in found})
            noise, text = noise + own, text + all_text
    sides = {name: side.finish() for name, side in sums.items() if side.positions}
    return RowNumbers(
        rows=rows,
        examples=examples,
        sides=sides,
        chosen=noise / text if text and noise else None,
        labels=dict(sorted(labels.items())),
    )


def _noise(marks: Mapping[str, np.ndarray]) -> tuple[int, int]:
    """How many tokens of the text of a row are chosen, and how many there are.

    An encoder's inputs have the text and marks in it. Targets of a decoder are the text, or what is not in the inputs:
    that is so where they have sentinels, or are shorter than what the inputs have left of it.
    """
    inputs = np.bincount(marks.get("encoder inputs", np.zeros(0, np.int64)), minlength=len(Mark))
    chosen, left = int(inputs[list(CHOSEN)].sum()), int(inputs[Mark.TEXT])
    if "decoder targets" not in marks:
        return chosen, chosen + left
    targets = np.bincount(marks["decoder targets"], minlength=len(Mark))
    if not chosen and not inputs[Mark.SENTINEL]:
        return 0, 0
    said = int(targets[Mark.TEXT])
    return (said, said + left) if targets[Mark.SENTINEL] or said < left else (said - left, said)


class _Sums:
    """Collects the numbers of a side."""

    def __init__(self) -> None:
        self.positions = self.tokens = self.with_loss = 0
        self.lengths: list[int] = []
        self.marks = np.zeros(len(Mark), np.int64)

    def add(self, segments: np.ndarray, marks: np.ndarray, weights: np.ndarray | None, *, is_input: bool) -> None:
        if is_input:
            self.positions += len(segments)
            self.tokens += int(np.count_nonzero(segments))
            self.lengths += np.bincount(segments)[1:].tolist()
            self.marks += np.bincount(marks, minlength=len(Mark))
        else:
            self.with_loss += int(np.count_nonzero((weights != 0) & (segments != 0)))

    def finish(self) -> SideNumbers:
        found = {mark: int(self.marks[mark]) for mark in Mark if mark != Mark.PADDING and self.marks[mark]}
        return SideNumbers(
            positions=self.positions,
            tokens=self.tokens,
            with_loss=self.with_loss,
            lengths=self.lengths,
            marks=found,
        )
