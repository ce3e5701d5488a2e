"""Choosing the next token from logits: greedy, temperature, top-k and nucleus sampling."""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int, Key

from t2t.functional.attention import MASKED_SCORE


def keep_top_k(logits: Float[Array, "B V"], *, k: int) -> Bool[Array, "B V"]:
    """The k most probable tokens of each row; ties with the k-th are all kept.

    Example:
        >>> keep_top_k(jnp.array([[0.1, 3.0, 2.0]]), k=2).tolist()
        [[False, True, True]]

    Raises:
        ValueError: if k is not at least 1.
    """
    if k < 1:
        raise ValueError(f"top_k={k}: give the number of tokens to sample from, at least 1, or None for all of them")
    smallest_kept = jax.lax.top_k(logits, min(k, logits.shape[-1]))[0][:, -1:]
    return logits >= smallest_kept


def keep_top_p(logits: Float[Array, "B V"], *, p: float) -> Bool[Array, "B V"]:
    """The smallest set of most probable tokens whose probability reaches p; the most probable token is always in it.

    A token is kept when the tokens more probable than it hold less than p together.

    Example:
        >>> keep_top_p(jnp.log(jnp.array([[0.5, 0.3, 0.2]])), p=0.6).tolist()
        [[True, True, False]]

    Raises:
        ValueError: if p is not in (0, 1].

    Reference: Holtzman et al. 2020, The Curious Case of Neural Text Degeneration, section 3.1 (arXiv 1904.09751).
    """
    if not 0 < p <= 1:
        raise ValueError(f"top_p={p}: give a probability in (0, 1], or None for all tokens")
    order = jnp.argsort(-logits, axis=-1)
    probabilities = jax.nn.softmax(jnp.take_along_axis(logits, order, axis=-1), axis=-1)
    before = jnp.cumsum(probabilities, axis=-1) - probabilities
    rank = jnp.argsort(order, axis=-1)
    return jnp.take_along_axis(before < p, rank, axis=-1)


def sample(
    logits: Float[Array, "B V"],
    *,
    key: Key[Array, ""] | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Int[Array, " B"]:
    """One token for each row: the most probable one at temperature 0, otherwise drawn from the truncated distribution.

    The temperature is applied first, then top-k, then top-p on what top-k left, as transformers does.

    Args:
        logits: unnormalised log-probabilities.
        key: source of randomness; needed unless the temperature is 0.
        temperature: 0 = greedy; 1 = the model's distribution; larger = flatter.
        top_k: sample among the k most probable tokens.
        top_p: sample among the most probable tokens that reach this probability together.

    Raises:
        ValueError: for a negative temperature, or a positive one without a key.
    """
    if temperature < 0:
        raise ValueError(f"temperature={temperature}: give 0 (greedy) or a positive number")
    if temperature == 0:
        return jnp.argmax(logits, axis=-1).astype(jnp.int32)
    if key is None:
        raise ValueError(f"temperature={temperature} draws at random: give a key")
    logits = logits / temperature
    if top_k is not None:
        logits = jnp.where(keep_top_k(logits, k=top_k), logits, MASKED_SCORE)
    if top_p is not None:
        logits = jnp.where(keep_top_p(logits, p=top_p), logits, MASKED_SCORE)
    return jax.random.categorical(key, logits, axis=-1).astype(jnp.int32)
