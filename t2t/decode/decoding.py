"""How the next token is chosen and when a text ends: the settings of generation."""

import dataclasses
import math

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decoding:
    """How the next token is chosen and when a text ends.

    Raises:
        ValueError: for lengths or probabilities out of range.
    """

    eos_id: int | None  # token that ends a text; None = only the length ends it
    pad_id: int = 0  # token after the end
    max_tokens: int = 64  # most tokens generated, the end token included
    min_tokens: int = 0  # tokens generated before the end token may be chosen
    temperature: float = 0.0  # 0 = greedy
    top_k: int | None = None  # sample among the k most probable tokens
    top_p: float | None = None  # sample among the most probable tokens that hold this probability
    beams: int = 1  # texts that beam search keeps; 1 = no beam search
    length_penalty: float = 0.6  # alpha of beam search (`beam.length_penalty`)
    vocab_size: int | None = None  # ids from here up (padded rows of the embedding) are never generated
    first_id: int | None = None  # token that every text begins with; None = any

    def __post_init__(self):
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens={self.max_tokens}: give at least 1")
        if not 0 <= self.min_tokens <= self.max_tokens:
            raise ValueError(f"min_tokens={self.min_tokens}: give 0 to max_tokens={self.max_tokens}")
        if not 0 <= self.temperature < math.inf:
            raise ValueError(f"temperature={self.temperature}: give 0 (greedy) or a positive number")
        if not math.isfinite(self.length_penalty):
            raise ValueError(f"length_penalty={self.length_penalty}: give a finite exponent, 0 for no penalty")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k={self.top_k}: give at least 1, or None for all tokens")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p={self.top_p}: give a probability in (0, 1], or None for all tokens")
        if self.beams < 1:
            raise ValueError(f"beams={self.beams}: give at least 1 (greedy)")
        if self.beams > 1 and self.temperature > 0:
            raise ValueError(f"beams={self.beams} searches and temperature={self.temperature} samples: choose one")
        if self.temperature == 0 and (self.top_k is not None or self.top_p is not None):
            raise ValueError("top_k and top_p truncate a sampled distribution: give temperature > 0 with them")


def cache_length(prompt_length: int, decoding: Decoding) -> int:
    """How many positions are read: the prompt's and those of all generated tokens but the last, which nothing follows.

    Example:
        >>> cache_length(3, Decoding(eos_id=None, max_tokens=1))
        3
    """
    return prompt_length + decoding.max_tokens - 1


def allowed_tokens(num_rows: int, step: Array, decoding: Decoding) -> Bool[Array, "1 V"]:
    """Which ids may be chosen at a step: none beyond the vocabulary, no end before `min_tokens`, `first_id` first.

    Args:
        num_rows: rows of the embedding, V.
        step: number of tokens generated so far.
        decoding: the settings.
    """
    ids = jnp.arange(num_rows)
    allowed = ids < (num_rows if decoding.vocab_size is None else decoding.vocab_size)
    if decoding.eos_id is not None and decoding.min_tokens:
        allowed &= (ids != decoding.eos_id) | (step >= decoding.min_tokens)
    if decoding.first_id is not None:
        allowed &= (ids == decoding.first_id) | (step > 0)
    return allowed[None]
