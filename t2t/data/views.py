"""One row of a batch as people look at it: which token is what, and who may read whom. NumPy in, NumPy out.

    strips     the sequences of a row, each token with its mark: masked, replaced, kept, sentinel, padding ...
    attention  the masks of the row, as a model's attention has them

A mark is told from what the model gets, tokens, targets and weights, not from how the task made them: it shows what is
there. Windows of local attention are a model's own and are not in these masks.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from t2t.data.vocabularies import SpecialTokens
from t2t.functional import masks
from t2t.types import Batch


class Mark(enum.IntEnum):
    """What a token is."""

    PADDING = 0
    TEXT = 1
    SPECIAL = 2
    """A special token of no other kind, such as bos and eos."""
    SENTINEL = 3
    MODE = 4
    """The name of a mode of UL2's."""
    MASKED = 5
    """The mask, in place of a token."""
    REPLACED = 6
    """Another token than the target at its place."""
    KEPT = 7
    """To be predicted, and left as it is."""
    PREDICTED = 8
    """To be predicted from others, in a permuted order."""


NAMES: Mapping[Mark, str] = {mark: mark.name.lower() for mark in Mark}

CHOSEN = (Mark.MASKED, Mark.REPLACED, Mark.KEPT, Mark.PREDICTED)
"""Marks of what an objective has chosen among the tokens of a text."""


@dataclass(frozen=True, kw_only=True)
class Strip:
    """A sequence of a row.

    Attributes:
        name: such as "encoder inputs".
        tokens: ids.
        marks: what each of them is.
        weights: of the loss at each place; None = none is predicted from here.
        segments: number of each token's example, 0 = padding.
        types: sentence types, None = there are none.
        languages: None = there are none.
        expected: ids that are predicted at the places, -1 = nothing; None = nowhere anything.
    """

    name: str
    tokens: Int[np.ndarray, " T"]
    marks: Int[np.ndarray, " T"]
    segments: Int[np.ndarray, " T"]
    weights: Float[np.ndarray, " T"] | None = None
    types: Int[np.ndarray, " T"] | None = None
    languages: Int[np.ndarray, " T"] | None = None
    expected: Int[np.ndarray, " T"] | None = None


def mark_tokens(
    tokens: Int[np.ndarray, " T"],
    *,
    segments: Int[np.ndarray, " T"],
    special: SpecialTokens,
    expected: Int[np.ndarray, " T"] | None = None,
    chosen: Bool[np.ndarray, " T"] | None = None,
    permuted: bool = False,
) -> Int[np.ndarray, " T"]:
    """What each token is, as numbers of `Mark`.

    Args:
        tokens: ids.
        segments: 0 = padding.
        special: the special tokens of the vocabulary.
        expected: what is predicted at each place, -1 = nothing is known of it.
        chosen: where the loss falls on what is expected; None = nowhere.
        permuted: whether what is chosen is predicted in a permuted order, and seen by others.
    """
    marks = np.full(tokens.shape, Mark.TEXT, np.int64)
    marks[np.isin(tokens, special.special_ids)] = Mark.SPECIAL
    marks[np.isin(tokens, list(special.modes.values()))] = Mark.MODE
    is_mask = tokens == (-1 if special.mask_id is None else special.mask_id)
    marks[is_mask] = Mark.MASKED
    marks[np.isin(tokens, special.sentinels)] = Mark.SENTINEL
    if expected is not None:
        known = expected >= 0
        marks[is_mask & known & (expected == tokens)] = Mark.SPECIAL  # a mask that the text itself holds
        marks[known & (expected != tokens) & (marks != Mark.MASKED) & (marks != Mark.SENTINEL)] = Mark.REPLACED
        if chosen is not None:
            marks[chosen & (expected == tokens)] = Mark.PREDICTED if permuted else Mark.KEPT
    marks[segments == 0] = Mark.PADDING
    return marks


def strips(batch: Batch, row: int, special: SpecialTokens) -> list[Strip]:
    """The sequences of a row: inputs and targets of the encoder, or of the decoder, or of both."""
    arrays = {name: np.asarray(value[row]) for name, value in batch.items()}
    made = []
    if "encoder_input_tokens" in arrays:
        made += _encoder_strips(arrays, special)
    if "decoder_input_tokens" in arrays:
        made += _decoder_strips(arrays, special)
    return made


def _encoder_strips(arrays: Mapping[str, np.ndarray], special: SpecialTokens) -> Iterator[Strip]:
    tokens, segments = arrays["encoder_input_tokens"], arrays["encoder_segment_ids"]
    targets, weights = arrays.get("encoder_target_tokens"), arrays.get("encoder_loss_weights")
    about = {
        "segments": segments,
        "types": arrays.get("encoder_token_types"),
        "languages": arrays.get("encoder_language_ids"),
    }
    if targets is None or weights is None:
        expected = _aligned(arrays) if "decoder_target_tokens" in arrays else None
        marks = mark_tokens(tokens, segments=segments, special=special, expected=expected)
        yield Strip(name="encoder inputs", tokens=tokens, marks=marks, expected=expected, **about)
        return
    marks = mark_tokens(
        tokens,
        segments=segments,
        special=special,
        expected=targets,
        chosen=weights != 0,
        permuted="permutation_mask" in arrays,
    )
    yield Strip(name="encoder inputs", tokens=tokens, marks=marks, weights=weights, expected=targets, **about)
    marks = mark_tokens(targets, segments=segments, special=special)
    yield Strip(name="encoder targets", tokens=targets, marks=marks, weights=weights, **about)


def _decoder_strips(arrays: Mapping[str, np.ndarray], special: SpecialTokens) -> Iterator[Strip]:
    segments = arrays["decoder_segment_ids"]
    for name, weights in (("input", None), ("target", arrays["decoder_loss_weights"])):
        tokens = arrays[f"decoder_{name}_tokens"]
        marks = mark_tokens(tokens, segments=segments, special=special)
        yield Strip(name=f"decoder {name}s", tokens=tokens, marks=marks, segments=segments, weights=weights)


def _aligned(arrays: Mapping[str, np.ndarray]) -> Int[np.ndarray, " T"]:
    """What the decoder predicts of the text at each place of the encoder, if its inputs are that text with some tokens
    replaced: as long, the same at most places, and with other tokens than it; -1 for all other examples.
    """  # noqa: D205
    inputs, segments = arrays["encoder_input_tokens"], arrays["encoder_segment_ids"]
    targets, owners = arrays["decoder_target_tokens"], arrays["decoder_segment_ids"]
    expected = np.full(inputs.shape, -1, np.int64)
    for number in range(1, int(segments.max(initial=0)) + 1):
        places = np.flatnonzero(segments == number)
        text, noised = targets[owners == number], inputs[places]
        if len(text) == len(noised) and 2 * np.count_nonzero(text == noised) > len(text):
            if not np.array_equal(np.sort(text), np.sort(noised)):  # else it is a permutation
                expected[places] = text
    return expected


def attention(batch: Batch, row: int) -> dict[str, Bool[np.ndarray, "T S"]]:
    """Who may read whom in a row, by name, True where a position (the first axis) may read another.

    Padding, which reads nothing and is read by none, is left out.
    """
    arrays = {name: jnp.asarray(value[row : row + 1]) for name, value in batch.items()}
    encoder, decoder = arrays.get("encoder_segment_ids"), arrays.get("decoder_segment_ids")
    found = {}
    if encoder is not None and "permutation_mask" in arrays:
        forbidden, every = arrays["permutation_mask"], jnp.arange(encoder.shape[1])[None]
        found["content stream"] = _cropped(masks.permutation_mask(forbidden, encoder), encoder, encoder)
        found["query stream"] = _cropped(masks.query_mask(forbidden, every, encoder), encoder, encoder)
    elif encoder is not None:
        found["encoder"] = _cropped(masks.encoder_mask(encoder), encoder, encoder)
    if decoder is not None:
        prefix = arrays.get("decoder_causal_attention")
        mask = masks.decoder_mask(decoder.shape[1], segment_ids=decoder, prefix=prefix)
        found["decoder"] = _cropped(mask, decoder, decoder)
    if encoder is not None and decoder is not None:
        mask = masks.cross_mask(decoder, encoder, length=decoder.shape[1], key_length=encoder.shape[1])
        found["decoder reading encoder"] = _cropped(mask, decoder, encoder)
    return found


def _cropped(
    mask: Bool[Array, "1 T S"], readers: Int[Array, "1 T"], read: Int[Array, "1 S"]
) -> Bool[np.ndarray, "t s"]:
    """Without the padding behind the last example."""
    return np.asarray(mask)[0, : _end(np.asarray(readers[0])), : _end(np.asarray(read[0]))]


def _end(segments: Int[np.ndarray, " T"]) -> int:
    return int(np.flatnonzero(segments).max(initial=-1)) + 1


def shrink(mask: Bool[np.ndarray, "T S"], size: int) -> Bool[np.ndarray, "t s"]:
    """A mask of at most `size` rows and columns: each is True where half of what it stands for is, or more.

    >>> shrink(np.tri(4, dtype=bool), 2).astype(int).tolist()
    [[1, 0], [1, 1]]
    """
    step = max(1, -(-max(mask.shape, default=1) // size))
    if step == 1 or not mask.size:
        return mask
    sums = mask.astype(np.int64)
    counts = np.ones(mask.shape, np.int64)
    for axis in (0, 1):
        starts = np.arange(0, mask.shape[axis], step)
        sums, counts = (np.add.reduceat(values, starts, axis=axis) for values in (sums, counts))
    return 2 * sums >= counts
