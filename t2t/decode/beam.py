"""Beam search with a cache: the likeliest texts, by the rules of the T5 code base.

Each row keeps K unfinished texts (live) and the K best finished ones. At every step the 2K best continuations of the
live texts are found; those that end compete for a finished place by log-probability / length penalty, the K best others
live on. The search ends when no live text can still beat the worst finished one.

Reference: Wu et al. 2016, Google's Neural Machine Translation System, equation 14 (arXiv 1609.08144); the conventions
are those of `t5x/decoding.py`.
Differs: results come best first.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from t2t.decode.decoding import Decoding, allowed_tokens, cache_length
from t2t.functional.attention import MASKED_SCORE
from t2t.models.base import Network
from t2t.nn.cache import Cache
from t2t.types import Batch


@functools.partial(jax.tree_util.register_dataclass, data_fields=("tokens", "scores"), meta_fields=())
@dataclasses.dataclass(frozen=True)
class Beams:
    """Texts [B, K, max_tokens] (pad_id after the end), best first, and their scores [B, K].

    The score of a finished text is its log-probability / length penalty; a row without any finished text holds its live
    ones with their plain log-probabilities.
    """

    tokens: Int[Array, "B K T"]
    scores: Float[Array, "B K"]


def length_penalty(length: Float[Array, "*n"] | Int[Array, "*n"] | int, *, alpha: float) -> Float[Array, "*n"]:
    """((5 + length) / 6)^alpha, where length counts the end token.

    Example:
        >>> float(length_penalty(7, alpha=1.0))
        2.0
    """
    return ((5.0 + jnp.asarray(length, jnp.float32)) / 6.0) ** alpha


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=("step", "live_tokens", "live_scores", "tokens", "scores", "finished", "cache"),
    meta_fields=(),
)
@dataclasses.dataclass(frozen=True)
class _Search:
    """State of the search: the live texts with their log-probabilities, the finished ones with their scores."""

    step: Array
    live_tokens: Array  # [B, K, T]
    live_scores: Array  # [B, K]
    tokens: Array  # [B, K, T]
    scores: Array  # [B, K]
    finished: Array  # [B, K], whether the place is taken
    cache: Cache  # of B * K rows, without the last token of each live text


@functools.partial(jax.jit, static_argnames=("network", "decoding"))
def beam_search(network: Network, params, batch: Batch, *, decoding: Decoding) -> Beams:
    """The likeliest continuations of each row of a batch made by `prompts.generation_batch`.

    Args:
        network: a decoder, prefix-LM or encoder-decoder.
        params: its parameters.
        batch: prompts; the last column of `decoder_input_tokens` is real in every row.
        decoding: lengths, end token, beams and length penalty.
    """
    unstacked = network.unstack(params)
    num_rows, prompt_length = batch["decoder_input_tokens"].shape
    num_beams = decoding.beams
    hidden, cache = network.prefill(unstacked, batch, length=cache_length(prompt_length, decoding))
    every_row = jnp.repeat(jnp.arange(num_rows), num_beams)

    def unfinished(search: _Search) -> Array:
        best_live = search.live_scores[:, 0] / length_penalty(decoding.max_tokens, alpha=decoding.length_penalty)
        worst_finished = jnp.where(search.finished, search.scores, MASKED_SCORE).min(axis=1)
        return (search.step < decoding.max_tokens) & jnp.any(worst_finished <= best_live)

    def choose(search: _Search, hidden: Array) -> _Search:
        log_probabilities = jax.nn.log_softmax(network.logits(params, hidden[:, -1]))
        allowed = allowed_tokens(log_probabilities.shape[-1], search.step, decoding)
        scores = jnp.where(allowed, log_probabilities, MASKED_SCORE).reshape(num_rows, num_beams, -1)
        search, parents = _choose(search, scores, decoding)
        rows = (jnp.arange(num_rows)[:, None] * num_beams + parents).reshape(-1)
        return dataclasses.replace(search, step=search.step + 1, cache=search.cache.gather(rows))

    def advance(search: _Search) -> _Search:
        last = jax.lax.dynamic_index_in_dim(search.live_tokens, search.step - 1, axis=2).reshape(-1, 1)
        hidden, cache = network.extend(unstacked, last, search.cache)
        return choose(dataclasses.replace(search, cache=cache), hidden)

    empty = jnp.full((num_rows, num_beams, decoding.max_tokens), decoding.pad_id, jnp.int32)
    only_first = jnp.where(jnp.arange(num_beams) == 0, 0.0, MASKED_SCORE)
    search = _Search(
        step=jnp.int32(0),
        live_tokens=empty,
        live_scores=jnp.tile(only_first[None], (num_rows, 1)),
        tokens=empty,
        scores=jnp.full((num_rows, num_beams), MASKED_SCORE),
        finished=jnp.zeros((num_rows, num_beams), bool),
        cache=cache.gather(every_row),
    )
    search = jax.lax.while_loop(unfinished, advance, choose(search, hidden[every_row]))
    any_finished = search.finished.any(axis=1)
    return Beams(
        tokens=jnp.where(any_finished[:, None, None], search.tokens, search.live_tokens),
        scores=jnp.where(any_finished[:, None], search.scores, search.live_scores),
    )


def _choose(search: _Search, scores: Float[Array, "B K V"], decoding: Decoding) -> tuple[_Search, Int[Array, "B K"]]:
    """One step of the search: the texts after it, and from which live text each new live one continues."""
    num_beams, vocab_size = scores.shape[1:]
    totals = (search.live_scores[..., None] + scores).reshape(scores.shape[0], -1)
    totals, flat = jax.lax.top_k(totals, 2 * num_beams)
    parents, tokens = flat // vocab_size, (flat % vocab_size).astype(jnp.int32)
    texts = _take(search.live_tokens, parents).at[:, :, search.step].set(tokens)
    ends = jnp.zeros_like(tokens, bool) if decoding.eos_id is None else tokens == decoding.eos_id

    live_scores, living = jax.lax.top_k(jnp.where(ends, MASKED_SCORE, totals), num_beams)
    penalized = totals / length_penalty(search.step + 1, alpha=decoding.length_penalty)
    all_scores = jnp.concatenate([search.scores, jnp.where(ends, penalized, MASKED_SCORE)], axis=1)
    best_scores, kept = jax.lax.top_k(all_scores, num_beams)
    search = dataclasses.replace(
        search,
        live_tokens=_take(texts, living),
        live_scores=live_scores,
        tokens=_take(jnp.concatenate([search.tokens, texts], axis=1), kept),
        scores=best_scores,
        finished=_take(jnp.concatenate([search.finished, ends], axis=1), kept),
    )
    return search, _take(parents, living)


def _take(texts: Array, indices: Int[Array, "B K"]) -> Array:
    """Row by row, the entries of axis 1 at the indices."""
    return jnp.take_along_axis(texts, indices.reshape(*indices.shape, *[1] * (texts.ndim - 2)), axis=1)
