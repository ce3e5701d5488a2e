"""Feature converters: rows of task examples in, the arrays of a batch out, for each of the four architectures.

A row is a list of examples: one when rows are not packed, several when they are, none where a batch is filled up. An
example is a dict of one-dimensional arrays without padding. Lengths are explicit: nothing here looks at the value of a
token to find out whether it is padding, so a pad id of 1, no pad id, pad = EOS and a zero inside a text all work.

For every side the batch holds `*_segment_ids` (0 = padding, k = k-th example of the row, the same k on both sides also
where an example is empty on one of them) and `*_positions` (0, 1, 2, ... within each example), packed or not.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Int, Num

from t2t.data import layout
from t2t.types import Batch
from t2t.vocabulary.frame import Frame

Example = layout.Example
Row = layout.Row


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

    features = ("inputs", "targets")  # that need a length

    def __post_init__(self) -> None:
        missing = [name for name in self.features if name not in self.lengths]
        if missing:
            raise ValueError(f"lengths={dict(self.lengths)} lacks {missing}, which {type(self).__name__} needs.")
        wrong = {name: length for name, length in self.lengths.items() if length < 1}
        if wrong:
            raise ValueError(f"lengths must be positive numbers of tokens, got {wrong}.")

    @property
    def reads(self) -> tuple[str, ...]:
        """Features every example must have."""
        return self.features

    def check_task(self, name: str, features: Collection[str]) -> None:
        """Refuse a task that does not suit the model, by the features of its examples.

        Raises:
            ValueError: a feature is missing, or `inputs` would be left unread.
        """
        missing = [feature for feature in self.reads if feature not in features]
        unread = "inputs" in features and "inputs" not in self.reads
        if missing or unread:
            what = f"lacks {missing}" if missing else "has 'inputs', which would not be read: give lengths['inputs']"
            raise ValueError(
                f"Task '{name}' has the features {sorted(features)}; {type(self).__name__} with "
                f"lengths={dict(self.lengths)} reads {list(self.reads)}: the task {what}."
            )

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
    """`inputs` for the encoder, `targets` for the decoder (T5, BART), both in the `frame` of the family.

    Decoder inputs are the targets shifted right by one within each example, `start_id` first (mBART: the language).

    Example:
        inputs 5 6 1 | 7 1 and targets 8 1 | 9 9 1, packed, start_id 0, lengths 6 and 6:

            encoder_input_tokens  5 6 1 7 1 0        decoder_target_tokens 8 1 9 9 1 0
            encoder_segment_ids   1 1 1 2 2 0        decoder_input_tokens  0 8 0 9 9 0
            encoder_positions     0 1 2 0 1 0        decoder_segment_ids   1 1 2 2 2 0

    Differs: from seqio.EncDecFeatureConverter, which takes id 0 for padding in five places and writes segment ids and
    positions only when it packs.
    """

    start_id: int
    frame: Frame = Frame()

    def trim(self, example: Example) -> tuple[Example, int]:
        """As `Converter.trim`; special tokens of the frame count, and are never cut off."""
        if not self.frame:
            return super().trim(example)
        framed, cut = dict(example), 0
        for name in self.features:
            tokens, over = self.frame.fit(example[name].tolist(), limit=self.lengths[name])
            if over:
                self._refuse_overlong(name, len(tokens) + over, self.lengths[name])
            framed[name] = np.asarray(tokens, example[name].dtype)
            cut += over
        return framed, cut

    def start_ids(self, examples: Sequence[Mapping[str, Any]]) -> list[int]:
        """What the decoder of each example starts with; examples may hold texts too."""
        ends = [int(x["targets"][-1]) if x["targets"].size else None for x in examples]
        return [self.frame.start_id(last, usual=self.start_id) for last in ends]

    def convert(self, rows: Sequence[Row]) -> Batch:
        """See `Converter.convert`."""
        encoder = layout.Side.of(rows, [len(x["inputs"]) for row in rows for x in row], self.lengths["inputs"])
        decoder = layout.Side.of(rows, [len(x["targets"]) for row in rows for x in row], self.lengths["targets"])
        targets = _join([x["targets"] for row in rows for x in row])
        starts = self.start_ids([x for row in rows for x in row if x["targets"].size])
        return {
            "encoder_input_tokens": encoder.fill(_join([x["inputs"] for row in rows for x in row]), self.pad_id),
            "encoder_segment_ids": encoder.segment_ids(),
            "encoder_positions": encoder.fill(encoder.within, 0),
            "decoder_target_tokens": decoder.fill(targets, self.pad_id),
            "decoder_input_tokens": decoder.fill(decoder.shift_right(targets, starts), self.pad_id),
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
    def reads(self) -> tuple[str, ...]:
        """Features every example must have."""
        return ("inputs", "targets") if self._reads_inputs else ("targets",)

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
        side = layout.Side.of(rows, [self.sizes(x)[0] for x in examples], self.width)
        tokens = _join([x[name] for x in examples for name in self.reads])
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

    def _prefix_features(self, side: layout.Side, prefix: Int[np.ndarray, " N"]) -> Batch:
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

    def _prefix_features(self, side: layout.Side, prefix: Int[np.ndarray, " N"]) -> Batch:
        marks = {"decoder_causal_attention": side.fill(side.within <= prefix, 0)}
        return marks | (super()._prefix_features(side, prefix) if self.loss_on_targets_only else {})


@dataclass(frozen=True, kw_only=True)
class EncoderFeatures(Converter):
    """`inputs` read by an encoder, `targets` to be predicted at the same places where `weights` is not 0 (BERT).

    All three have one length. Without `weights` every position carries loss. With `predictions` = K the batch holds
    encoder_predict_positions, _targets and _weights [B, K] too: the places with loss, from left to right, so that a
    model projects K positions onto the vocabulary instead of all. A row with more than K such places (a single example;
    rows are packed to stay within K) keeps K of them at even distances and drops the loss of the others.

    Examples may say more of each token, by arrays as long as `inputs` or by one number for all of it:

        token_types     encoder_token_types    of models with several types; 0 where a task does not say
        language_ids    encoder_language_ids   of models with embeddings of languages; -1 (none) where it does not
        positions       encoder_positions      0, 1, 2, ... where it does not

    With `next_sentence` each example has a number `next_sentence_labels`, and the batch next_sentence_labels [B]: -1 in
    rows without an example. A model reads the label off the first token of a row, so a row holds one example then.

    Differs: from seqio.EncoderFeatureConverter, where the loss falls on inputs equal to `mask_id`, so that BERT's
    random and kept tokens are never learned from; and from BERT's max_predictions_per_seq, which masks at most K.
    """

    predictions: int | None = None
    num_types: int = 0
    """Sentence types of the model."""
    num_languages: int = 0
    """Languages of the model."""
    next_sentence: bool = False
    """Whether examples are pairs with a label."""

    features = ("inputs",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lengths.get("targets", self.length) != self.length:
            raise ValueError(f"inputs and targets of an encoder have one length, got lengths={dict(self.lengths)}.")
        if self.predictions is not None and self.predictions < 1:
            raise ValueError(f"predictions={self.predictions} must be at least 1, or None for loss at any position.")

    @property
    def reads(self) -> tuple[str, ...]:
        """Features every example must have."""
        return ("inputs", "targets", *(("next_sentence_labels",) if self.next_sentence else ()))

    @property
    def length(self) -> int:
        """Number of positions of a row."""
        return self.lengths["inputs"]

    @property
    def capacity(self) -> tuple[int, ...]:
        """Positions of the row and, with `predictions`, places with loss."""
        return (self.length,) if self.predictions is None else (self.length, self.predictions)

    def sizes(self, example: Example) -> tuple[int, ...]:
        """Positions the example takes, all of a row if it has a label, and with `predictions` places with loss."""
        length = len(example["inputs"])
        room = self.length if self.next_sentence and length else length
        if self.predictions is None:
            return (room,)
        places = np.count_nonzero(example["weights"]) if "weights" in example else length
        return (room, min(int(places), self.predictions))

    def trim(self, example: Example) -> tuple[Example, int]:
        """As `Converter.trim`; all arrays are cut at the same places, but positions go on to the end."""
        inputs = example["inputs"]
        arrays = [name for name in layout.OF_TOKENS if name in example and example[name].ndim]
        for name in arrays:
            if len(example[name]) != len(inputs):
                raise ValueError(f"'inputs' has {len(inputs)} tokens but '{name}' {len(example[name])}: must be equal.")
        if len(inputs) <= self.length:
            return example, 0
        self._refuse_overlong("inputs", len(inputs), self.length)
        keep_last = _ends_with(inputs, self.eos_id)
        cut = {
            name: cut_right(example[name], self.length, keep_last=keep_last and name != "positions")
            for name in ("inputs", *arrays)
        }
        return dict(example) | cut, len(inputs) - self.length

    def convert(self, rows: Sequence[Row]) -> Batch:
        """See `Converter.convert`."""
        examples = [x for row in rows for x in row]
        side = layout.Side.of(rows, [len(x["inputs"]) for x in examples], self.length)
        targets = side.fill(_join([x["targets"] for x in examples]), self.pad_id)
        weights = side.fill(layout.of_tokens(examples, "weights", 1), 0.0, np.float32)
        batch = {
            "encoder_input_tokens": side.fill(_join([x["inputs"] for x in examples]), self.pad_id),
            "encoder_target_tokens": targets,
            "encoder_loss_weights": weights,
            "encoder_segment_ids": side.segment_ids(),
            "encoder_positions": side.fill(layout.positions_of(examples, side), 0),
        }
        if self.num_types > 1:
            batch["encoder_token_types"] = side.fill(layout.ids_of(examples, "token_types", 0, self.num_types), 0)
        if self.num_languages:
            languages = layout.ids_of(examples, "language_ids", -1, self.num_languages)
            batch["encoder_language_ids"] = side.fill(languages, -1)
        if self.next_sentence:
            batch["next_sentence_labels"] = layout.labels_of(rows)
        return batch if self.predictions is None else batch | layout.gather_places(targets, weights, self.predictions)


def cut_right(values: Num[np.ndarray, "..."], limit: int, *, keep_last: bool) -> Num[np.ndarray, "..."]:
    """The first `limit` values, the last of them replaced by the very last value if `keep_last`.

    >>> cut_right(np.array([5, 6, 7, 1]), 3, keep_last=True)
    array([5, 6, 1])
    """
    return np.concatenate([values[: limit - 1], values[-1:]]) if keep_last else values[:limit]


def _join(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int32)


def _ends_with(values: np.ndarray, eos_id: int | None) -> bool:
    return eos_id is not None and int(values[-1]) == eos_id
