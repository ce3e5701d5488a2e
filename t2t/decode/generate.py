"""Generation of text: greedy or sampled, cached, batched, compiled once for each padded length.

The prompt is read in one pass (`Network.prefill`); then one token at a time is chosen and read (`Network.extend`) with
the layers unstacked and unrolled, until every row has ended or the longest allowed length is reached.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Key

from t2t.decode import beam
from t2t.decode import prompts as prompt_batches
from t2t.decode.decoding import Decoding, allowed_tokens, cache_length
from t2t.decode.refusal import TextError
from t2t.functional import sampling
from t2t.functional.attention import MASKED_SCORE
from t2t.models.base import Network
from t2t.models.encoder import EncoderConfig
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.classification import ClassificationHead
from t2t.types import Batch


@functools.partial(jax.tree_util.register_dataclass, data_fields=("tokens", "log_probabilities"), meta_fields=())
@dataclasses.dataclass(frozen=True)
class Generated:
    """Generated tokens [B, max_tokens] (pad_id after the end) and the log-probability of each row, in nats."""

    tokens: Int[Array, "B T"]
    log_probabilities: Float[Array, " B"]


@functools.partial(jax.jit, static_argnames=("network", "decoding"))
def generate_tokens(network: Network, params, batch: Batch, *, decoding: Decoding, key: Key[Array, ""]) -> Generated:
    """Continues each row of a batch made by `prompts.generation_batch`.

    Args:
        network: a decoder, prefix-LM or encoder-decoder.
        params: its parameters.
        batch: prompts; the last column of `decoder_input_tokens` is real in every row.
        decoding: lengths, end token and sampling.
        key: source of randomness (unused when greedy).

    Returns:
        The tokens and the sum of their log-probabilities under the untruncated distribution at temperature 1.
    """
    unstacked = network.unstack(params)
    rows, prompt_length = batch["decoder_input_tokens"].shape
    hidden, cache = network.prefill(unstacked, batch, length=cache_length(prompt_length, decoding))

    def choose(step, hidden, finished, total):
        logits = network.logits(params, hidden[:, -1])
        scores = jnp.where(allowed_tokens(logits.shape[-1], step, decoding), logits, MASKED_SCORE)
        token = sampling.sample(
            scores,
            key=jax.random.fold_in(key, step),
            temperature=decoding.temperature,
            top_k=decoding.top_k,
            top_p=decoding.top_p,
        )
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), token[:, None], axis=-1)[:, 0]
        token = jnp.where(finished, decoding.pad_id, token)
        total = total + jnp.where(finished, 0.0, chosen)
        if decoding.eos_id is not None:
            finished = finished | (token == decoding.eos_id)
        return token, finished, total

    def unfinished(carry):
        step, _, _, finished, _, _ = carry
        return (step < decoding.max_tokens) & ~jnp.all(finished)

    def advance(carry):
        step, tokens, token, finished, total, cache = carry
        hidden, cache = network.extend(unstacked, token[:, None], cache)
        token, finished, total = choose(step, hidden, finished, total)
        tokens = jax.lax.dynamic_update_slice(tokens, token[:, None], (0, step))
        return step + 1, tokens, token, finished, total, cache

    token, finished, total = choose(jnp.int32(0), hidden, jnp.zeros(rows, bool), jnp.zeros(rows, jnp.float32))
    tokens = jnp.full((rows, decoding.max_tokens), decoding.pad_id, jnp.int32).at[:, 0].set(token)
    start = (jnp.int32(1), tokens, token, finished, total, cache)
    _, tokens, _, _, total, _ = jax.lax.while_loop(unfinished, advance, start)
    return Generated(tokens, total)


def generate(
    network: Network,
    params,
    prompts: Sequence[Sequence[int]],
    *,
    decoding: Decoding,
    start_id: int | Sequence[int] | None,
    batch_size: int = 32,
    seed: int = 0,
    on_batch: Callable[[int], None] = lambda done: None,
) -> list[list[int]]:
    """Continuations of token prompts, in their order, without end token or padding.

    Prompts are grouped by length and padded to powers of two, so that few programs are compiled; what is generated
    for a prompt does not depend on its neighbours when greedy.

    Args:
        network: a decoder, prefix-LM or encoder-decoder.
        params: its parameters.
        prompts: token ids of each prompt (encoder input, or decoder prefix), without padding.
        decoding: lengths, end token and sampling.
        start_id: token that starts the decoder, or that of each prompt of an encoder-decoder (mBART's languages); None
            where the prompt itself does.
        batch_size: most prompts decoded at once.
        seed: of the sampling.
        on_batch: called with the number of prompts done after each batch.

    Raises:
        TextError: for an empty prompt of a decoder without start token, one that with `max_tokens` is longer than the
            model's position table, and one for which the device has no memory.
        ValueError: for a model without a decoder.
    """
    _check_prompts(network, prompts, decoding, start_id)
    extra = 0 if isinstance(network.config, EncoderDecoderConfig) or start_id is None else 1
    lengths = [len(prompt) + extra for prompt in prompts]
    results: list[list[int]] = [[] for _ in prompts]
    done = 0
    key = jax.random.key(seed)
    room = _room_for_prompts(network, decoding)
    for number, (indices, length) in enumerate(prompt_batches.batches(lengths, batch_size=batch_size, limit=room)):
        batch = prompt_batches.generation_batch(
            network,
            [prompts[i] for i in indices],
            start_id=start_id if start_id is None or isinstance(start_id, int) else [start_id[i] for i in indices],
            rows_in_all=prompt_batches.num_rows(len(indices), batch_size=batch_size),
            length=length,
        )
        with prompt_batches.explain_memory(indices, lengths, ways=["generate fewer tokens"]):
            if decoding.beams > 1:
                tokens = beam.beam_search(network, params, batch, decoding=decoding).tokens[:, 0]
            else:
                tokens = generate_tokens(
                    network, params, batch, decoding=decoding, key=jax.random.fold_in(key, number)
                ).tokens
            rows = np.asarray(tokens)
        for index, row in zip(indices, rows, strict=False):
            results[index] = _until_end(row.tolist(), decoding)
        done += len(indices)
        on_batch(done)
    return results


def _until_end(row: list[int], decoding: Decoding) -> list[int]:
    if decoding.eos_id is None or decoding.eos_id not in row:
        return row
    return row[: row.index(decoding.eos_id)]


def _room_for_prompts(network: Network, decoding: Decoding) -> int | None:
    """Most prompt tokens the position tables leave room for; None = no limit."""
    positions = network.config.embed.position
    if positions is None:
        return None
    if isinstance(network.config, EncoderDecoderConfig):
        return positions.max_positions
    return positions.max_positions - cache_length(0, decoding)


def _check_prompts(network: Network, prompts, decoding: Decoding, start_id: int | Sequence[int] | None) -> None:
    if isinstance(network.config, EncoderConfig):
        raise ValueError(
            "this is an encoder: it has no decoder to generate with. Generation needs a decoder, a prefix-LM or an "
            "encoder-decoder"
        )
    if isinstance(network.config.head, ClassificationHead):
        raise ValueError(
            f"this model's head scores labels (task {network.config.head.task!r}), not the vocabulary: generation "
            "needs a language model head (head=PRETRAINING)"
        )
    if isinstance(network.config, EncoderDecoderConfig) and start_id is None:
        raise ValueError("an encoder-decoder needs a start_id: the token its decoder begins with (T5: 0, the padding)")
    room = _room_for_prompts(network, decoding)
    extra = 0 if isinstance(network.config, EncoderDecoderConfig) or start_id is None else 1
    for number, prompt in enumerate(prompts):
        if not prompt and (isinstance(network.config, EncoderDecoderConfig) or start_id is None):
            raise TextError(number, "is empty: give at least one token")
        if room is not None and len(prompt) + extra > room:
            raise TextError(
                number,
                f"has {len(prompt)} tokens; the model's {network.config.embed.position.max_positions} positions leave "
                f"room for {room} beside max_tokens={decoding.max_tokens}: shorten it or lower max_tokens",
            )
