"""The mathematics of denoising objectives: pure NumPy, one example [T] or a batch of equal lengths [B, T].

Randomness enters as uniforms in [0, 1), one row per example, drawn from a generator keyed by (seed, epoch, example
index): `example_rng(...).random(n)` for one example, `uniforms(...)` for a batch, the same numbers. So a batch and its
examples one by one give the same result, two epochs differ and a restart repeats.

A noise mask is boolean, True where a token is noise. T5's span corruption replaces each run of noise by a sentinel in
the inputs and each run between by the same sentinel in the targets:

    tokens   Thank you for inviting me to your party last week
    mask           0   0   1     1     0  0    0    0     1   0
    inputs   Thank you <X> me to your party <Y> week          targets   <X> for inviting <Y> last <Z>

with <Z> only because the text ends in clean tokens; masks drawn here end in noise and need no final sentinel.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

Tokens = Int[np.ndarray, "*B T"]
Mask = Bool[np.ndarray, "*B T"]
Ids = Sequence[int] | Int[np.ndarray, " K"]


def _bit_generator(seed: int, epoch: int, index: int) -> np.random.Philox:
    # The key is (seed, epoch); the index is the second word of the counter, 2**64 blocks away from its neighbours.
    return np.random.Philox(key=np.array([seed, epoch], np.uint64), counter=np.array([0, index, 0, 0], np.uint64))


def example_rng(seed: int, epoch: int, index: int) -> np.random.Generator:
    """The generator of one example in one epoch: Philox, a function of the three numbers (each in [0, 2**64)) alone."""
    return np.random.Generator(_bit_generator(seed, epoch, index))


def uniforms(seed: int, epoch: int, indices: Sequence[int] | Int[np.ndarray, " B"], number: int) -> np.ndarray:
    """`example_rng(seed, epoch, i).random(number)` for each index, [B, number], at a third of the time."""
    bits = _bit_generator(seed, epoch, 0)
    state, counter = bits.state, np.zeros(4, np.uint64)
    state["state"]["counter"] = counter
    generator = np.random.Generator(bits)
    out = np.empty((len(indices), number))
    for row, index in zip(out, indices, strict=True):
        counter[1] = index
        bits.state = state
        generator.random(out=row)
    return out


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanLengths:
    """How long the two sides of span corruption are, each with its EOS, for a number of raw tokens."""

    tokens: int
    inputs: int
    targets: int


_MOST_PER_INPUT = 1000  # raw tokens for each of the inputs


def span_lengths(inputs_length: int, *, noise_density: float, mean_noise_span_length: float) -> SpanLengths:
    """The largest number of raw tokens whose corrupted inputs fill inputs_length, as T5 computes it.

    n = round(t density), s = round(n / mean), inputs t - n + s + 1, targets n + s + 1, in float64, halves to even.

    Example:
        >>> span_lengths(512, noise_density=0.15, mean_noise_span_length=3.0)
        SpanLengths(tokens=568, inputs=512, targets=114)

    Raises:
        ValueError: no inputs, or noise that leaves next to nothing clean: over 1000 raw tokens for each of the inputs.

    Reference: random_spans_helper of "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
    Transformer", arXiv:1910.10683 (t5.data.preprocessors).
    """
    if inputs_length < 1:
        raise ValueError(f"inputs_length={inputs_length} must be positive")

    def lengths(tokens: int) -> tuple[int, int]:
        noise = round(tokens * noise_density)
        spans = round(noise / mean_noise_span_length)
        return tokens - noise + spans + 1, noise + spans + 1

    tokens = inputs_length - 1
    while lengths(tokens + 1)[0] <= inputs_length:
        tokens += 1
        if tokens > _MOST_PER_INPUT * inputs_length:
            raise ValueError(
                f"noise_density={noise_density} with mean_noise_span_length={mean_noise_span_length} leaves so little "
                f"clean that inputs of {inputs_length} tokens hold over {tokens - 1:,}: take less noise"
            )
    inputs, targets = lengths(tokens)
    if noise_density == 0.5 and targets > inputs:
        # One token less makes both sides equally long; T5 does not count again.
        tokens, targets = tokens - 1, targets - 1
    return SpanLengths(tokens=tokens, inputs=inputs, targets=targets)


def span_counts(length: int, *, noise_density: float, mean_noise_span_length: float) -> tuple[int, int]:
    """Numbers of noise tokens and of noise spans in a text, in float32, halves to even, as T5's mask counts them.

    Example:
        >>> span_counts(568, noise_density=0.15, mean_noise_span_length=3.0)
        (85, 28)

    Differs: never more spans than clean tokens, which T5 does not check (it happens above density mean / (mean + 1)).
    """
    length = max(length, 2)
    noise = int(np.rint(np.float32(length) * np.float32(noise_density)))
    noise = min(max(noise, 1), length - 1)
    spans = max(int(np.rint(np.float32(noise) / np.float32(mean_noise_span_length))), 1)
    return noise, min(spans, noise, length - noise)


def _choose(u: Float[np.ndarray, "B N"], number: int) -> Bool[np.ndarray, "B N"]:
    """Exactly `number` places of each row, uniformly among all such sets: those of the smallest uniforms."""
    if number == 0:
        return np.zeros(u.shape, bool)
    chosen = u <= np.partition(u, number - 1, axis=-1)[:, number - 1 : number]
    if np.count_nonzero(chosen) != u.shape[0] * number:  # two equal numbers at the border, once in 2**40 rows
        chosen = np.argsort(np.argsort(u, axis=-1, kind="stable"), axis=-1, kind="stable") < number
    return chosen


def _composition(u: Float[np.ndarray, "B N"], parts: int) -> Int[np.ndarray, "B K"]:
    """Sizes of `parts` non-empty parts of N + 1 items, uniformly among all compositions."""
    ends = np.zeros((len(u), parts + 1), np.int64)
    ends[:, 1:-1] = np.nonzero(_choose(u, parts - 1))[1].reshape(len(u), parts - 1) + 1
    ends[:, -1] = u.shape[1] + 1
    return ends[:, 1:] - ends[:, :-1]


def span_noise_mask(
    u: Float[np.ndarray, "*B T"], *, noise_density: float, mean_noise_span_length: float, random_roll: bool = False
) -> Mask:
    """Masks of T5's span corruption: the first token clean, the last noise, spans uniform over all compositions.

    Args:
        u: uniforms, one for each token.
        noise_density: fraction of tokens that are noise, in (0, 1).
        mean_noise_span_length: tokens per span, at least 1.
        random_roll: rotate each mask by a random offset, so that short texts are corrupted everywhere; a mask may then
            begin with noise, end clean, and have one span more.

    Reference: random_spans_noise_mask, arXiv:1910.10683.
    """
    length = u.shape[-1]
    if length < 2 or noise_density == 0:
        return np.zeros(u.shape, bool)
    noise, spans = span_counts(length, noise_density=noise_density, mean_noise_span_length=mean_noise_span_length)
    rows = u.reshape(-1, length)
    # Of T uniforms noise - 1 and T - noise - 1 make the two compositions; the last makes the roll.
    sizes = np.empty((len(rows), spans, 2), np.int64)
    sizes[:, :, 0] = _composition(rows[:, noise - 1 : length - 2], spans)
    sizes[:, :, 1] = _composition(rows[:, : noise - 1], spans)
    mask = np.repeat(np.tile([False, True], len(rows) * spans), sizes.reshape(-1)).reshape(rows.shape)
    if random_roll:
        offsets = (rows[:, -1:] * length).astype(np.int64)
        mask = np.take_along_axis(mask, (np.arange(length) - offsets) % length, axis=-1)
    return mask.reshape(u.shape)


def iid_noise_mask(u: Float[np.ndarray, "*B T"], *, noise_density: float) -> Mask:
    """Masks in which every token is noise with the same probability, independently; they may be empty."""
    return u < noise_density


def prefix_length(u: float, length: int, *, noise_density: float = 0.5) -> int:
    """A random split of a text: the prefix length, uniform over m, ..., length - 1, the rest being a fraction
    `noise_density` on average; m = round((1 - 2 density)(length - 1)), at least 1.

    Reference: random_prefix_noise_mask, arXiv:1910.10683; density 0.25 is the S-denoiser of UL2, arXiv:2205.05131.
    """  # noqa: D205
    if not 0 <= noise_density <= 0.5:
        raise ValueError(f"noise_density={noise_density} must lie in [0, 0.5]")
    longest = max(length - 1, 0)
    shortest = int(np.rint(np.float32(1 - 2 * noise_density) * np.float32(longest)))
    shortest = min(max(shortest, 1), longest)
    return shortest + int(u * (longest + 1 - shortest))


def span_starts(mask: Mask) -> Mask:
    """True at the first token of each span of noise."""
    starts = mask.copy()
    starts[..., 1:] &= ~mask[..., :-1]
    return starts


def join_last_spans(mask: Mask, *, sentinels: int) -> Mask:
    """Masks for which so many sentinels suffice on both sides: rows that need more have their last spans joined.

    From the last sentinel on all that is clean comes first and all noise after it, as one span. What stands before is
    as it was, and every row keeps its numbers of clean and of noise tokens, so that lengths do not depend on the draw.

    Example:
        >>> mask = np.array([0, 1, 0, 0, 1, 1, 0, 1, 0, 1], bool)
        >>> join_last_spans(mask, sentinels=2).astype(int)
        array([0, 1, 0, 0, 0, 0, 1, 1, 1, 1])

    Raises:
        ValueError: fewer than one sentinel.
    """
    if sentinels < 1:
        raise ValueError(f"sentinels={sentinels} must be at least 1")
    needed = [np.count_nonzero(span_starts(side), axis=-1, keepdims=True) for side in (mask, ~mask)]
    ends = mask.copy()
    ends[..., :-1] &= ~mask[..., 1:]
    ended = np.cumsum(ends, axis=-1) - ends
    rest = (ended >= sentinels - 1) & (np.maximum(*needed) > sentinels)
    noise = np.count_nonzero(mask & rest, axis=-1, keepdims=True)
    return np.where(rest, np.arange(mask.shape[-1]) >= mask.shape[-1] - noise, mask)


def _compress(tokens: Tokens, keep: Mask) -> Int[np.ndarray, "*B N"]:
    """The kept tokens of each row; rows must keep equally many."""
    if tokens.ndim == 1:
        return tokens[keep]
    counts = np.count_nonzero(keep, axis=-1)
    if counts.size and counts.min() != counts.max():
        raise ValueError(f"rows keep between {counts.min()} and {counts.max()} tokens; take them one by one")
    return tokens[keep].reshape(*tokens.shape[:-1], -1)


def spans_to_unique_sentinels(tokens: Tokens, mask: Mask, sentinels: Ids) -> Int[np.ndarray, "*B N"]:
    """Each span of noise becomes a sentinel, the k-th of a row the k-th sentinel. For targets invert the mask.

    Example:
        >>> tokens, mask = np.arange(1, 8), np.array([0, 1, 1, 0, 0, 1, 1], bool)
        >>> spans_to_unique_sentinels(tokens, mask, [99, 98])
        array([ 1, 99,  4,  5, 98])
        >>> spans_to_unique_sentinels(tokens, ~mask, [99, 98])
        array([99,  2,  3, 98,  6,  7])

    Raises:
        ValueError: a row has more spans than there are sentinels, or rows differ in length afterwards.
    """
    starts = span_starts(mask)
    rows = mask.shape[0] if mask.ndim > 1 else 1
    counts = np.count_nonzero(starts, axis=-1) if rows > 1 else np.count_nonzero(starts)
    number = int(np.max(counts, initial=0))
    if number > len(sentinels):
        raise ValueError(f"the noise has {number} spans but the vocabulary has {len(sentinels)} sentinels")
    if rows > 1 and counts.min() < number:
        raise ValueError(f"rows have between {counts.min()} and {number} spans; take them one by one")
    out = tokens.copy()
    out[starts] = np.tile(np.asarray(sentinels[:number], tokens.dtype), rows)
    return _compress(out, ~mask | starts)


def tokens_to_sentinel(tokens: Tokens, mask: Mask, sentinel: int) -> Tokens:
    """Each noise token becomes the same sentinel (MASS-style in T5's ablation)."""
    return np.where(mask, np.asarray(sentinel, tokens.dtype), tokens)
