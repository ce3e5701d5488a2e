"""Log-probabilities of given texts under a decoder, a prefix-LM or an encoder-decoder."""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from t2t.decode import prompts as prompt_batches
from t2t.decode.refusal import TextError
from t2t.models.base import Network
from t2t.models.encoder import EncoderConfig
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.classification import ClassificationHead
from t2t.types import Batch


@functools.partial(jax.jit, static_argnames="network")
def score_tokens(network: Network, params, batch: Batch) -> Float[Array, "B T"]:
    """Natural log-probability of each target token that has a weight, 0 elsewhere.

    Args:
        network: a decoder, prefix-LM or encoder-decoder.
        params: its parameters.
        batch: the keys the model reads, `decoder_target_tokens` and `decoder_loss_weights`.
    """
    logits = network.apply(params, batch).logits
    scores = jax.nn.log_softmax(logits, axis=-1)
    chosen = jnp.take_along_axis(scores, batch["decoder_target_tokens"][..., None], axis=-1)[..., 0]
    return jnp.where(batch["decoder_loss_weights"] > 0, chosen, 0.0)


def score(
    network: Network,
    params,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    *,
    start_id: int | Sequence[int] | None,
    batch_size: int = 32,
    reduction: str = "sum",
    on_batch: Callable[[int], None] = lambda done: None,
) -> np.ndarray:
    """Log-probabilities of target tokens given input tokens, in nats, float64, in the order of the pairs.

    Encoder-decoders read the input in the encoder; decoders read it before the target, and a prefix-LM sees all of it
    from everywhere. Without a `start_id` the first token of a decoder's text has nothing before it: it is not scored.

    Args:
        network: a decoder, prefix-LM or encoder-decoder.
        params: its parameters.
        pairs: (input ids, target ids) of each text; the input of a decoder may be empty.
        start_id: token that starts the decoder, or that of each pair; None where the text itself does.
        batch_size: most texts scored at once.
        reduction: "sum" over the target tokens, or their "mean".
        on_batch: called with the number of texts done after each batch.

    Raises:
        TextError: for a text without a token to score, one longer than the model's position table, and one for which
            the device has no memory.
        ValueError: for an encoder, or an unknown reduction.
    """
    if isinstance(network.config, EncoderConfig):
        raise ValueError("an encoder gives no probability to a text from left to right: score needs a decoder")
    if isinstance(network.config.head, ClassificationHead):
        raise ValueError(
            f"this model's head scores labels (task {network.config.head.task!r}), not the vocabulary: score needs a "
            "language model head (head=PRETRAINING)"
        )
    if reduction not in ("sum", "mean"):
        raise ValueError(f"reduction={reduction!r}: give 'sum' or 'mean'")
    both_sides = isinstance(network.config, EncoderDecoderConfig)
    if both_sides and start_id is None:
        raise ValueError("an encoder-decoder needs a start_id: the token its decoder begins with (T5: 0, the padding)")
    starts = start_id if isinstance(start_id, Sequence) else [start_id] * len(pairs)
    rows = [_row(inputs, targets, start, both_sides) for (inputs, targets), start in zip(pairs, starts, strict=True)]
    limit = network.config.embed.position and network.config.embed.position.max_positions
    lengths = [max(len(row["read"]), len(row["inputs"])) for row in rows]
    for number, row in enumerate(rows):
        if not any(row["weights"]):
            raise TextError(number, f"has no token to score: give at least {1 if start_id is not None else 2}")
        if limit is not None and lengths[number] > limit:
            raise TextError(number, f"has {lengths[number]} tokens, the model {limit} positions: shorten it")
    scores = np.zeros(len(rows), np.float64)
    done = 0
    for indices, length in prompt_batches.batches(
        [len(row["read"]) for row in rows], batch_size=batch_size, limit=limit
    ):
        rows_in_all = prompt_batches.num_rows(len(indices), batch_size=batch_size)
        batch = _batch([rows[i] for i in indices], network, rows_in_all=rows_in_all, length=length, limit=limit)
        with prompt_batches.explain_memory(indices, lengths):
            by_token = np.asarray(score_tokens(network, params, batch), np.float64)[: len(indices)]
        scores[indices] = by_token.sum(axis=1)
        if reduction == "mean":
            scores[indices] /= [sum(rows[i]["weights"]) for i in indices]
        done += len(indices)
        on_batch(done)
    return scores


def _row(inputs, targets, start_id: int | None, both_sides: bool) -> dict[str, list[int]]:
    """What the decoder reads and should predict for one text; `prefix` marks what is given."""
    given = [] if both_sides else list(inputs)
    text = [*given, *targets]
    read = [start_id, *text[:-1]] if start_id is not None else text[:-1]
    predicted = text if start_id is not None else text[1:]
    num_given = len(given) if start_id is not None else max(len(given) - 1, 0)
    return {
        "inputs": list(inputs) if both_sides else [],
        "read": read,
        "targets": predicted,
        "weights": [0] * num_given + [1] * (len(predicted) - num_given),
        "prefix": [1] * (len(given) + (start_id is not None)),
    }


def _batch(rows, network: Network, *, rows_in_all: int, length: int, limit: int | None) -> dict[str, np.ndarray]:
    def padded(name: str, to: int = length) -> tuple[np.ndarray, np.ndarray]:
        return prompt_batches.pad([row[name] for row in rows], rows_in_all=rows_in_all, length=to, side="right")

    tokens, segments = padded("read")
    batch = {
        "decoder_input_tokens": tokens,
        "decoder_segment_ids": segments,
        "decoder_target_tokens": padded("targets")[0],
        "decoder_loss_weights": padded("weights")[0].astype(np.float32),
    }
    if isinstance(network.config, EncoderDecoderConfig):
        longest = prompt_batches.bucket_length(max(len(row["inputs"]) for row in rows), limit=limit)
        batch["encoder_input_tokens"], batch["encoder_segment_ids"] = padded("inputs", longest)
    elif network.config.prefix_attention:
        batch["decoder_causal_attention"] = padded("prefix")[0]
    return batch
