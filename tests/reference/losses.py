"""Losses in float64 NumPy, one token at a time."""

import numpy as np


def cross_entropy(logits, targets, weights, *, label_smoothing: float = 0.0) -> dict[str, float]:
    """The sums of `t2t.functional.losses.cross_entropy`."""
    sums = {"cross_entropy": 0.0, "squared_log_normalizer": 0.0, "correct": 0.0, "weight": 0.0}
    vocab_size = logits.shape[-1]
    for index in np.ndindex(targets.shape):
        scores, target, weight = logits[index].astype(np.float64), int(targets[index]), float(weights[index])
        log_normalizer = np.log(np.exp(scores).sum())
        log_probabilities = scores - log_normalizer
        wanted = np.full(vocab_size, label_smoothing / (vocab_size - 1))
        wanted[target] = 1 - label_smoothing
        entropy = -sum(p * np.log(p) for p in wanted if p > 0)
        sums["cross_entropy"] += weight * (-(wanted * log_probabilities).sum() - entropy)
        sums["squared_log_normalizer"] += weight * log_normalizer**2
        sums["correct"] += weight * (scores[target] == scores.max())
        sums["weight"] += weight
    return sums
