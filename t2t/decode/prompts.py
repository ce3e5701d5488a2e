"""Prompts of uneven length as batches of few static shapes, so that compiled programs are reused."""

import contextlib
from collections.abc import Iterator, Sequence

import jax
import numpy as np

from t2t.decode.refusal import TextMemoryError
from t2t.models.base import Network
from t2t.models.encoder_decoder import EncoderDecoderConfig

SMALLEST_BUCKET = 16
"""Prompts are padded to the next power of two from here up, in tokens."""


def bucket_length(length: int, *, limit: int | None = None) -> int:
    """The padded length of a prompt: the next power of two, at least `SMALLEST_BUCKET` and at most `limit`.

    Example:
        >>> bucket_length(5), bucket_length(17), bucket_length(17, limit=20)
        (16, 32, 20)
    """
    padded = SMALLEST_BUCKET
    while padded < length:
        padded *= 2
    return padded if limit is None else max(length, min(padded, limit))


def batches(lengths: Sequence[int], *, batch_size: int, limit: int | None = None) -> Iterator[tuple[list[int], int]]:
    """Groups prompts of similar length: (indices of the prompts, padded length), longest first.

    The longest batch comes first so that a shortage of memory shows at once.

    Args:
        lengths: tokens of each prompt.
        batch_size: most prompts in a batch.
        limit: longest padded length the model takes, in tokens.
    """
    by_bucket: dict[int, list[int]] = {}
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        by_bucket.setdefault(bucket_length(lengths[index], limit=limit), []).append(index)
    for padded, indices in by_bucket.items():
        for start in range(0, len(indices), batch_size):
            yield indices[start : start + batch_size], padded


def num_rows(number: int, *, batch_size: int) -> int:
    """The rows of a batch of so many texts: the next power of two, at most `batch_size`.

    Example:
        >>> num_rows(1, batch_size=64), num_rows(5, batch_size=64), num_rows(5, batch_size=6)
        (1, 8, 6)
    """
    return min(batch_size, 1 << (number - 1).bit_length())


@contextlib.contextmanager
def explain_memory(indices: Sequence[int], lengths: Sequence[int], *, ways: Sequence[str] = ()) -> Iterator[None]:
    """Where the device has no memory for a batch, says for which text that is.

    Args:
        indices: the texts of the batch.
        lengths: tokens of all texts.
        ways: what else than a shorter text or a smaller batch would help.

    Raises:
        TextMemoryError: for the longest text of the batch.
    """
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        longest = max(indices, key=lambda index: lengths[index])
        together = f" in a batch of {len(indices):,} texts" if len(indices) > 1 else ""
        smaller = ["take a smaller batch"] if len(indices) > 1 else []
        raise TextMemoryError(
            longest,
            f"has {lengths[longest]:,} tokens, for which the device has no memory{together}: "
            + ", or ".join(["shorten it", *ways, *smaller]),
        ) from error


def pad(rows: Sequence[Sequence[int]], *, rows_in_all: int, length: int, side: str) -> tuple[np.ndarray, np.ndarray]:
    """Token rows as int32 arrays (tokens, segment ids) [rows_in_all, length], padded on the `side` "left" or "right".

    Rows beyond the given ones repeat the last one, so that every row of the batch is ordinary input.

    Example:
        >>> tokens, segments = pad([[5, 6], [7]], rows_in_all=2, length=3, side="left")
        >>> tokens.tolist(), segments.tolist()
        ([[0, 5, 6], [0, 0, 7]], [[0, 1, 1], [0, 0, 1]])
    """
    tokens = np.zeros((rows_in_all, length), np.int32)
    segments = np.zeros((rows_in_all, length), np.int32)
    for r in range(rows_in_all):
        row = rows[min(r, len(rows) - 1)]
        span = slice(length - len(row), length) if side == "left" else slice(0, len(row))
        tokens[r, span] = row
        segments[r, span] = 1
    return tokens, segments


def generation_batch(
    network: Network,
    prompts: Sequence[Sequence[int]],
    *,
    start_id: int | Sequence[int] | None,
    rows_in_all: int,
    length: int,
) -> dict[str, np.ndarray]:
    """The batch from which generation starts.

    Encoder-decoders read the prompt in the encoder and start the decoder with `start_id`; decoders read `start_id`
    (where there is one) and the prompt, left-padded so that every row continues at the same index; a prefix-LM sees
    all of it from everywhere.

    Args:
        network: the model.
        prompts: token ids without padding or start token.
        start_id: first token of the decoder, or that of each prompt of an encoder-decoder; None for decoders that
            begin with the prompt itself.
        rows_in_all: rows of the batch; missing ones repeat the last prompt.
        length: padded length of a prompt, start token included for decoders.
    """
    if isinstance(network.config, EncoderDecoderConfig):
        tokens, segments = pad(prompts, rows_in_all=rows_in_all, length=length, side="right")
        starts = [start_id] * len(prompts) if isinstance(start_id, int) else list(start_id)
        start = np.array([starts[min(r, len(starts) - 1)] for r in range(rows_in_all)], np.int32)[:, None]
        return {
            "encoder_input_tokens": tokens,
            "encoder_segment_ids": segments,
            "decoder_input_tokens": start,
            "decoder_segment_ids": np.ones_like(start),
        }
    start = [] if start_id is None else [start_id]
    tokens, segments = pad(
        [[*start, *prompt] for prompt in prompts], rows_in_all=rows_in_all, length=length, side="left"
    )
    batch = {"decoder_input_tokens": tokens, "decoder_segment_ids": segments}
    if network.config.prefix_attention:
        batch["decoder_causal_attention"] = segments
    return batch
