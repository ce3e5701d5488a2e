"""DeBERTa's enhanced mask decoder, one step after the other, after section 3.2 of arXiv:2006.03654, in NumPy."""

import math
from typing import Any

import numpy as np

from tests.reference import disentangled


def norm(x: np.ndarray, params: dict[str, Any], *, eps: float) -> np.ndarray:
    """Layer normalisation of every row."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps) * params["scale"] + params["bias"]


def dense(x: np.ndarray, params: dict[str, Any]) -> np.ndarray:
    """A linear map."""
    return x @ params["kernel"] + params["bias"]


def gelu(x: np.ndarray) -> np.ndarray:
    """The exact one."""
    return np.vectorize(lambda value: 0.5 * value * (1 + math.erf(value / math.sqrt(2))))(x)


def decode(
    states: np.ndarray,
    *,
    positions: np.ndarray,
    table: np.ndarray,
    distances: np.ndarray,
    params: dict[str, Any],
    allowed: np.ndarray,
    eps: float,
    **settings: Any,
) -> np.ndarray:
    """What masked words are predicted from, [T, D].

    Args:
        states: [T, D] before the last layer.
        positions: [T] of the tokens in their texts.
        table: of absolute positions.
        distances: the table of distances, as layers read it.
        params: of the last layer.
        allowed: [T, T], who may read whom.
        eps: of the norms.
        settings: of `disentangled.attention`.
    """
    states = states.astype(np.float64)
    queries = np.stack([state + table[position] for state, position in zip(states, positions, strict=True)])
    for _ in range(2):
        attended = disentangled.attention(
            queries, distances, params["attention"], allowed=allowed, read=states, **settings
        )
        middle = norm(queries + attended, params["attention_norm"], eps=eps)
        inner = gelu(dense(middle, params["feed_forward"]["up"]))
        queries = norm(middle + dense(inner, params["feed_forward"]["down"]), params["feed_forward_norm"], eps=eps)
    return queries
