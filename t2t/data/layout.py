"""Where tokens stand in the rows of a batch: vectorised over all examples of a batch at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Num

from t2t.types import Batch

Example = Mapping[str, Num[np.ndarray, "..."]]
"""One example of a task: arrays by feature name, without padding."""

Row = Sequence[Example]
"""The examples that share one row of the batch."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """Where the tokens of the examples, laid end to end, go in the flattened rows of one side of a batch."""

    shape: tuple[int, int]
    sizes: np.ndarray  # tokens of each example
    numbers: np.ndarray  # k of each example: the k-th of its row, from 1
    firsts: np.ndarray  # index of each example's first token, among all tokens
    within: np.ndarray  # of each token: its position within its example
    places: np.ndarray  # of each token: its index in the flattened rows

    @classmethod
    def of(cls, rows: Sequence[Row], sizes: Sequence[int], width: int) -> "Side":
        """The layout of rows of `width` tokens whose examples, in order, have these sizes.

        Raises:
            ValueError: a row holds more than fits.
        """
        counts = np.array([len(row) for row in rows], np.int64)
        sizes_N = np.array(sizes, np.int64)
        ends_N = np.cumsum(sizes_N)
        firsts_N = ends_N - sizes_N
        row_N = np.repeat(np.arange(len(rows)), counts)
        first_example_N = np.repeat(np.cumsum(counts) - counts, counts)  # of each example's row
        start_N = firsts_N - firsts_N[first_example_N]
        too_long = start_N + sizes_N > width
        if too_long.any():
            raise ValueError(f"Row {int(row_N[too_long][0])} holds more than its {width} tokens; trim examples first.")
        within = np.arange(sizes_N.sum()) - np.repeat(firsts_N, sizes_N)
        return cls(
            shape=(len(rows), width),
            sizes=sizes_N,
            numbers=np.arange(len(sizes_N)) - first_example_N + 1,
            firsts=firsts_N,
            within=within.astype(np.int32),
            places=np.repeat(row_N * width + start_N, sizes_N) + within,
        )

    def fill(self, values: np.ndarray | float, fill: float, dtype: type = np.int32) -> np.ndarray:
        """The rows with `values` (one per token) in place and `fill` everywhere else."""
        rows = np.full(self.shape, fill, dtype)
        rows.reshape(-1)[self.places] = values
        return rows

    def segment_ids(self) -> np.ndarray:
        """0 = padding, k = k-th example of the row."""
        return self.fill(np.repeat(self.numbers, self.sizes), 0)

    def shift_right(self, tokens: np.ndarray, start_id: int | Sequence[int]) -> np.ndarray:
        """Tokens one place later within each example, `start_id` (or that of each that is not empty) at its first."""
        shifted = np.empty_like(tokens)
        shifted[1:] = tokens[:-1]
        shifted[self.firsts[self.sizes > 0]] = start_id
        return shifted


def gather_places(targets: np.ndarray, weights: np.ndarray, limit: int) -> Batch:
    """The features of masked language modelling at K = `limit` places, those where `weights` is not 0.

    A row with more keeps K at even distances; `weights` is set to 0 at the others.
    """
    rows, places = np.nonzero(weights)
    counts = np.bincount(rows, minlength=len(weights))
    ranks = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
    # Slot k takes the place of rank floor(k n / limit): every place if there are at most `limit`.
    n = np.maximum(counts, limit)[rows]
    slots = -(-ranks * limit // n)
    fits = (slots * n // limit == ranks) & (slots < limit)
    weights[rows[~fits], places[~fits]] = 0.0
    rows, places, slots = rows[fits], places[fits], slots[fits]
    shape = (len(targets), limit)
    positions, gathered, kept = np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.zeros(shape, np.float32)
    positions[rows, slots] = places
    gathered[rows, slots] = targets[rows, places]
    kept[rows, slots] = weights[rows, places]
    return {
        "encoder_predict_positions": positions,
        "encoder_predict_targets": gathered,
        "encoder_predict_weights": kept,
    }


OF_TOKENS = ("targets", "weights", "token_types", "language_ids", "positions")
"""Features of an encoder's example that are arrays as long as its inputs."""


def of_tokens(examples: Sequence[Example], name: str, default: int) -> np.ndarray:
    """A number for each token of the examples: the feature's array, its one number for all of them, or the default.

    >>> of_tokens([{"inputs": np.arange(2), "types": np.array([4, 5])}, {"inputs": np.arange(1)}], "types", 0)
    array([4, 5, 0])
    """
    parts = []
    for example in examples:
        values = example[name] if name in example else default
        parts.append(values if np.ndim(values) else np.full(len(example["inputs"]), values))
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)


def ids_of(examples: Sequence[Example], name: str, default: int, number: int) -> np.ndarray:
    """`of_tokens` of ids of which a model has `number`.

    Raises:
        ValueError: an id that the model has no embedding of.
    """
    ids = of_tokens(examples, name, default)
    if ids.size and (ids.max() >= number or ids.min() < min(default, 0)):
        raise ValueError(
            f"An example has '{name}' from {ids.min()} to {ids.max()}, but the model has {number}, numbered from 0: "
            "choose a model with more, or number them differently."
        )
    return ids


def positions_of(examples: Sequence[Example], side: Side) -> np.ndarray:
    """The position of each token: those an example gives, else 0, 1, 2, ..."""
    if not any("positions" in example for example in examples):
        return side.within
    return np.concatenate([x["positions"] if "positions" in x else np.arange(len(x["inputs"])) for x in examples])


def labels_of(rows: Sequence[Row]) -> np.ndarray:
    """The `next_sentence_labels` of each row's only example, -1 where there is none.

    Raises:
        ValueError: a row holds several.
    """
    if crowded := [len(row) for row in rows if len(row) > 1]:
        raise ValueError(f"{crowded[0]} examples with next_sentence_labels share a row, which has room for one label.")
    return np.array([row[0]["next_sentence_labels"] if row else -1 for row in rows], np.int32)
