"""Feature converters: rows of task examples in, the arrays of a batch out, for each of the four architectures.

A row is a list of examples: one when rows are not packed, several when they are, none where a batch is filled up. An
example is a dict of one-dimensional arrays without padding. Lengths are explicit: nothing here looks at the value of a
token to find out whether it is padding, so a pad id of 1, no pad id, pad = EOS and a zero inside a text all work.

For every side the batch holds `*_segment_ids` (0 = padding, k = k-th example of the row, the same k on both sides also
where an example is empty on one of them) and `*_positions` (0, 1, 2, ... within each example), packed or not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Int, Num

from t2t.types import Batch

Example = Mapping[str, Num[np.ndarray, "..."]]
"""One example of a task: arrays by feature name, without padding."""

Row = Sequence[Example]
"""The examples that share one row of the batch."""


class OverlongError(ValueError):
    """A feature is longer than its length in the config, and the config asked not to cut it."""


@dataclass(frozen=True, kw_only=True)
class Converter:
    """What the four converters share: lengths, special ids and the rule for examples that are too long.

    `lengths` bounds each feature of the task, in tokens. A longer feature is cut at the right, as seqio does; its last
    token is kept at the end if it is `eos_id` (seqio drops it unless the task ends in `append_eos_after_trim`).
    `overlong="error"` refuses such examples instead.
    """

    lengths: Mapping[str, int]
    pad_id: int = 0
    eos_id: int | None = None
    overlong: Literal["trim", "error"] = "trim"

    features = ("inputs", "targets")  # features of the task this converter needs

    def __post_init__(self) -> None:
        missing = [name for name in self.features if name not in self.lengths]
        if missing:
            raise ValueError(f"lengths={dict(self.lengths)} lacks {missing}, which {type(self).__name__} needs.")
        wrong = {name: length for name, length in self.lengths.items() if length < 1}
        if wrong:
            raise ValueError(f"lengths must be positive numbers of tokens, got {wrong}.")

    @property
    def capacity(self) -> tuple[int, ...]:
        """What one row can hold, in the units of `sizes`."""
        return tuple(self.lengths[name] for name in self.features)

    def sizes(self, example: Example) -> tuple[int, ...]:
        """What an example takes of each capacity of a row."""
        return tuple(len(example[name]) for name in self.features)

    def trim(self, example: Example) -> tuple[Example, int]:
        """The example cut to `lengths`, and the number of tokens that were cut off."""
        cut = 0
        trimmed = None
        for name, limit in self.lengths.items():
            values = example[name] if name in example else ()
            if len(values) <= limit:
                continue
            self._refuse_overlong(name, len(values), limit)
            trimmed = dict(example) if trimmed is None else trimmed
            trimmed[name] = cut_right(values, limit, keep_last=_ends_with(values, self.eos_id))
            cut += len(values) - limit
        return (example if trimmed is None else trimmed), cut

    def convert(self, rows: Sequence[Row]) -> Batch:
        """The batch of these rows; an empty row is all padding, without weight."""
        raise NotImplementedError

    def _refuse_overlong(self, name: str, length: int, limit: int) -> None:
        if self.overlong == "error":
            raise OverlongError(
                f"An example has {length} tokens of '{name}' but lengths['{name}'] is {limit}. "
                "Raise the length, shorten the task's examples, or set overlong='trim' to cut them."
            )


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderFeatures(Converter):
    """`inputs` for the encoder, `targets` for the decoder (T5, BART).

    Decoder inputs are the targets shifted right by one within each example, `start_id` first.

    Example:
        inputs 5 6 1 | 7 1 and targets 8 1 | 9 9 1, packed, start_id 0, lengths 6 and 6:

            encoder_input_tokens  5 6 1 7 1 0        decoder_target_tokens 8 1 9 9 1 0
            encoder_segment_ids   1 1 1 2 2 0        decoder_input_tokens  0 8 0 9 9 0
            encoder_positions     0 1 2 0 1 0        decoder_segment_ids   1 1 2 2 2 0

    Differs: from seqio.EncDecFeatureConverter, which takes id 0 for padding in five places and writes segment ids and
    positions only when it packs.
    """

    start_id: int

    def convert(self, rows: Sequence[Row]) -> Batch:
        """See `Converter.convert`."""
        encoder = _Side.of(rows, [len(x["inputs"]) for row in rows for x in row], self.lengths["inputs"])
        decoder = _Side.of(rows, [len(x["targets"]) for row in rows for x in row], self.lengths["targets"])
        targets = _join([x["targets"] for row in rows for x in row])
        return {
            "encoder_input_tokens": encoder.fill(_join([x["inputs"] for row in rows for x in row]), self.pad_id),
            "encoder_segment_ids": encoder.segment_ids(),
            "encoder_positions": encoder.fill(encoder.within, 0),
            "decoder_target_tokens": decoder.fill(targets, self.pad_id),
            "decoder_input_tokens": decoder.fill(decoder.shift_right(targets, self.start_id), self.pad_id),
            "decoder_loss_weights": decoder.fill(1.0, 0.0, np.float32),
            "decoder_segment_ids": decoder.segment_ids(),
            "decoder_positions": decoder.fill(decoder.within, 0),
        }


@dataclass(frozen=True, kw_only=True)
class DecoderFeatures(Converter):
    """`targets` read left to right (GPT-2); with `inputs` in `lengths`, inputs and targets one after the other.

    Then a row has room for the sum of both lengths and only targets carry loss, so that a causal language model learns
    text-to-text tasks.
    """

    start_id: int

    features = ("targets",)

    @property
    def width(self) -> int:
        """Number of positions of a row."""
        return self.lengths["targets"] + (self.lengths["inputs"] if self._reads_inputs else 0)

    @property
    def capacity(self) -> tuple[int, ...]:
        """Positions of the row."""
        return (self.width,)

    def sizes(self, example: Example) -> tuple[int, ...]:
        """Positions the example takes."""
        return (len(example["targets"]) + (len(example["inputs"]) if self._reads_inputs else 0),)

    def convert(self, rows: Sequence[Row]) -> Batch:
        """See `Converter.convert`."""
        examples = [x for row in rows for x in row]
        names = ("inputs", "targets") if self._reads_inputs else ("targets",)
        side = _Side.of(rows, [self.sizes(x)[0] for x in examples], self.width)
        tokens = _join([x[name] for x in examples for name in names])
        batch = {
            "decoder_target_tokens": side.fill(tokens, self.pad_id),
            "decoder_input_tokens": side.fill(side.shift_right(tokens, self.start_id), self.pad_id),
            "decoder_loss_weights": side.fill(1.0, 0.0, np.float32),
            "decoder_segment_ids": side.segment_ids(),
            "decoder_positions": side.fill(side.within, 0),
        }
        if self._reads_inputs:
            prefix = np.repeat(np.array([len(x["inputs"]) for x in examples], np.int32), side.sizes)
            batch |= self._prefix_features(side, prefix)
        return batch

    @property
    def _reads_inputs(self) -> bool:
        return "inputs" in self.lengths

    def _prefix_features(self, side: "_Side", prefix: Int[np.ndarray, " N"]) -> Batch:
        return {"decoder_loss_weights": side.fill(side.within >= prefix, 0.0, np.float32)}


@dataclass(frozen=True, kw_only=True)
class PrefixLMFeatures(DecoderFeatures):
    """`inputs` as a fully visible prefix, then `targets` (prefix language models).

    `decoder_causal_attention` marks the positions of decoder_input_tokens that hold the start token or a token of the
    prefix: len(inputs) + 1 of them in each example. Only targets carry loss unless `loss_on_targets_only` is False.

    Example:
        inputs 5 6 and targets 7 1, start_id 0, lengths 3 and 3:

            decoder_target_tokens     5 6 7 1 0 0
            decoder_input_tokens      0 5 6 7 0 0
            decoder_causal_attention  1 1 1 0 0 0
            decoder_loss_weights      0 0 1 1 0 0
    """

    loss_on_targets_only: bool = True

    features = ("inputs", "targets")

    def _prefix_features(self, side: "_Side", prefix: Int[np.ndarray, " N"]) -> Batch:
        marks = {"decoder_causal_attention": side.fill(side.within <= prefix, 0)}
        return marks | (super()._prefix_features(side, prefix) if self.loss_on_targets_only else {})


@dataclass(frozen=True, kw_only=True)
class EncoderFeatures(Converter):
    """`inputs` read by an encoder, `targets` to be predicted at the same places where `weights` is not 0 (BERT).

    All three have one length. Without `weights` every position carries loss. With `predictions` = K the batch holds
    encoder_predict_positions, _targets and _weights [B, K] too: the places with loss, from left to right, so that a
    model projects K positions onto the vocabulary instead of all. A row with more than K such places (a single example;
    rows are packed to stay within K) keeps K of them at even distances and drops the loss of the others.

    Differs: from seqio.EncoderFeatureConverter, where the loss falls on inputs equal to `mask_id`, so that BERT's
    random and kept tokens are never learned from; and from BERT's max_predictions_per_seq, which masks at most K.
    """

    predictions: int | None = None

    features = ("inputs",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lengths.get("targets", self.length) != self.length:
            raise ValueError(f"inputs and targets of an encoder have one length, got lengths={dict(self.lengths)}.")
        if self.predictions is not None and self.predictions < 1:
            raise ValueError(f"predictions={self.predictions} must be at least 1, or None for loss at any position.")

    @property
    def length(self) -> int:
        """Number of positions of a row."""
        return self.lengths["inputs"]

    @property
    def capacity(self) -> tuple[int, ...]:
        """Positions of the row and, with `predictions`, places with loss."""
        return (self.length,) if self.predictions is None else (self.length, self.predictions)

    def sizes(self, example: Example) -> tuple[int, ...]:
        """Positions the example takes and, with `predictions`, places with loss."""
        length = len(example["inputs"])
        if self.predictions is None:
            return (length,)
        places = np.count_nonzero(example["weights"]) if "weights" in example else length
        return (length, min(int(places), self.predictions))

    def trim(self, example: Example) -> tuple[Example, int]:
        """As `Converter.trim`; inputs, targets and weights are cut at the same places."""
        inputs = example["inputs"]
        for name in ("targets", "weights"):
            if name in example and len(example[name]) != len(inputs):
                raise ValueError(f"'inputs' has {len(inputs)} tokens but '{name}' {len(example[name])}: must be equal.")
        if len(inputs) <= self.length:
            return example, 0
        self._refuse_overlong("inputs", len(inputs), self.length)
        keep_last = _ends_with(inputs, self.eos_id)
        names = [name for name in ("inputs", "targets", "weights") if name in example]
        cut = {name: cut_right(example[name], self.length, keep_last=keep_last) for name in names}
        return dict(example) | cut, len(inputs) - self.length

    def convert(self, rows: Sequence[Row]) -> Batch:
        """See `Converter.convert`."""
        examples = [x for row in rows for x in row]
        side = _Side.of(rows, [len(x["inputs"]) for x in examples], self.length)
        targets = side.fill(_join([x["targets"] for x in examples]), self.pad_id)
        ones = [x["weights"] if "weights" in x else np.ones(len(x["inputs"]), np.int32) for x in examples]
        weights = side.fill(_join(ones), 0.0, np.float32)
        batch = {
            "encoder_input_tokens": side.fill(_join([x["inputs"] for x in examples]), self.pad_id),
            "encoder_target_tokens": targets,
            "encoder_loss_weights": weights,
            "encoder_segment_ids": side.segment_ids(),
            "encoder_positions": side.fill(side.within, 0),
        }
        return batch if self.predictions is None else batch | _predictions(targets, weights, self.predictions)


def cut_right(values: Num[np.ndarray, "..."], limit: int, *, keep_last: bool) -> Num[np.ndarray, "..."]:
    """The first `limit` values, the last of them replaced by the very last value if `keep_last`.

    >>> cut_right(np.array([5, 6, 7, 1]), 3, keep_last=True)
    array([5, 6, 1])
    """
    return np.concatenate([values[: limit - 1], values[-1:]]) if keep_last else values[:limit]


@dataclass(frozen=True, kw_only=True)
class _Side:
    """Where the tokens of the examples, laid end to end, go in the flattened rows of one side of a batch."""

    shape: tuple[int, int]
    sizes: np.ndarray  # tokens of each example
    numbers: np.ndarray  # k of each example: the k-th of its row, from 1
    firsts: np.ndarray  # index of each example's first token, among all tokens
    within: np.ndarray  # of each token: its position within its example
    places: np.ndarray  # of each token: its index in the flattened rows

    @classmethod
    def of(cls, rows: Sequence[Row], sizes: Sequence[int], width: int) -> "_Side":
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
        return self.fill(np.repeat(self.numbers, self.sizes), 0)

    def shift_right(self, tokens: np.ndarray, start_id: int) -> np.ndarray:
        """Tokens one place later within each example, `start_id` at its first place."""
        shifted = np.empty_like(tokens)
        shifted[1:] = tokens[:-1]
        shifted[self.firsts[self.sizes > 0]] = start_id
        return shifted


def _join(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int32)


def _ends_with(values: np.ndarray, eos_id: int | None) -> bool:
    return eos_id is not None and int(values[-1]) == eos_id


def _predictions(targets: np.ndarray, weights: np.ndarray, limit: int) -> Batch:
    """Gather the places with loss of each row; `weights` loses the places that do not fit."""
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
