"""Disentangled attention position by position, after algorithm 1 of arXiv:2006.03654, in NumPy."""

import math
from typing import Any

import numpy as np


def bucket(distance: int, *, num_buckets: int, max_distance: int) -> int:
    """The bucket of one distance, of which there are `num_buckets` for either sign."""
    middle = num_buckets // 2
    if abs(distance) <= middle:
        return distance
    share = math.log(abs(distance) / middle) / math.log((max_distance - 1) / middle)
    return int(math.copysign(middle + math.ceil(share * (middle - 1)), distance))


def row(distance: int, *, max_distance: int, num_buckets: int | None) -> int:
    """The row of the table for one distance: equation 3, or its form with buckets."""
    span = max_distance
    if num_buckets is not None:
        span, distance = num_buckets, bucket(distance, num_buckets=num_buckets, max_distance=max_distance)
    if distance <= -span:
        return 0
    return 2 * span - 1 if distance >= span else distance + span


def attention(
    x: np.ndarray,
    table: np.ndarray,
    params: dict[str, Any],
    *,
    allowed: np.ndarray,
    terms: tuple[str, ...] = ("c2p", "p2c"),
    max_distance: int,
    num_buckets: int | None = None,
    read: np.ndarray | None = None,
) -> np.ndarray:
    """What every position reads, [T, D], of one example [T, D]; `params` as the layer's, `allowed` [T, T].

    Keys and values are made of `read` [T, D] where it is given, and else of what looks for them.
    Of the last term, the distance is that from the one read to the reader, as in the released code.
    """
    x, table = x.astype(np.float64), table.astype(np.float64)

    def project(name: str, y: np.ndarray) -> np.ndarray:
        return np.einsum("td,dnh->tnh", y, params[name]["kernel"]) + params[name].get("bias", 0.0)

    shared = "position_key" not in params and "position_query" not in params
    query = project("query", x)
    key, value = (project(name, x if read is None else read.astype(np.float64)) for name in ("key", "value"))
    position_key = project("key" if shared else "position_key", table) if "c2p" in terms else None
    position_query = project("query" if shared else "position_query", table) if "p2c" in terms else None
    length, num_heads, head_dim = query.shape
    mixed = np.zeros_like(query)
    for n in range(num_heads):
        for t in range(length):
            scores = np.full(length, -np.inf)
            for s in range(length):
                if not allowed[t, s]:
                    continue
                at = row(t - s, max_distance=max_distance, num_buckets=num_buckets)
                score = query[t, n] @ key[s, n]
                if "c2p" in terms:
                    score += query[t, n] @ position_key[at, n]
                if "p2c" in terms:
                    score += key[s, n] @ position_query[at, n]
                scores[s] = score / math.sqrt(head_dim * (1 + len(terms)))
            if allowed[t].any():
                weights = np.exp(scores - scores.max())
                mixed[t, n] = weights / weights.sum() @ value[:, n]
            else:
                mixed[t, n] = value[:, n].mean(axis=0)
    return np.einsum("tnh,nhd->td", mixed, params["out"]["kernel"]) + params["out"].get("bias", 0.0)
