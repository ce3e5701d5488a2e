"""Transformer-XL and XLNet in NumPy loops, float64, one pair of positions at a time, from the papers' equations."""

import math

import numpy as np

from tests.reference import transformer


def sinusoid(distance, width):
    """The embedding of a distance: sines, then cosines (arXiv:1901.02860, section 3.3)."""
    angles = [distance / 10_000 ** (2 * i / width) for i in range(width // 2)]
    return np.array([math.sin(a) for a in angles] + [math.cos(a) for a in angles])


def attention(x, read, params, *, places, allowed, scale, max_distance=None, types=None):
    """Relative attention of x [B, T, D] to read [B, S, D].

    `places` [B, T] are the readers' positions among those read, `allowed` [B, T, S]; `types` are the sentence types of
    readers and of what is read, where scores depend on them. Readers that may read nothing get zeros.
    """
    num_rows, length, width = x.shape
    num_heads = params["query"]["kernel"].shape[1]
    out = np.zeros(x.shape)
    for b in range(num_rows):
        for n in range(num_heads):
            query = x[b] @ params["query"]["kernel"][:, n]
            key, value = (read[b] @ params[name]["kernel"][:, n] for name in ("key", "value"))
            for t in range(length):
                readable = [s for s in range(read.shape[1]) if allowed[b, t, s]]
                if not readable:
                    continue
                scores = []
                for s in readable:
                    distance = int(places[b, t]) - s
                    if max_distance is not None:
                        distance = max(-max_distance, min(max_distance, distance))
                    embedded = sinusoid(distance, width) @ params["position"]["kernel"][:, n]
                    score = (query[t] + params["content_bias"][n]) @ key[s]
                    score += (query[t] + params["position_bias"][n]) @ embedded
                    if types is not None:
                        differs = int(types[0][b, t] != types[1][b, s])
                        score += (query[t] + params["type_bias"][n]) @ params["types"][differs, n]
                    scores.append(scale * score)
                exponentials = [math.exp(score - max(scores)) for score in scores]
                mixed = sum(e * value[s] for e, s in zip(exponentials, readable, strict=True)) / sum(exponentials)
                out[b, t] += mixed @ params["out"]["kernel"][n]
    return out


def decoder(embedded, layers, *, scale, eps, past=None, is_real=None, max_distance=None, window=None):
    """States of every layer of a post-norm decoder: its input, and the output of each block.

    Args:
        embedded: [B, T, D].
        layers: parameters of each block.
        scale: of the scores.
        eps: of the norms.
        past: the inputs of every block at P earlier positions, [L, B, P, D].
        is_real: which of these may be read, [B, P].
        max_distance: beyond which distances look alike.
        window: beyond which nothing is read.
    """
    num_rows, length, width = embedded.shape
    past = np.zeros((len(layers), num_rows, 0, width)) if past is None else past
    before = past.shape[2]
    is_real = np.ones((num_rows, before), bool) if is_real is None else is_real
    places = np.tile(before + np.arange(length), (num_rows, 1))
    allowed = np.zeros((num_rows, length, before + length), bool)
    for b, t, s in np.ndindex(allowed.shape):
        near = window is None or before + t - s <= window
        allowed[b, t, s] = near and (is_real[b, s] if s < before else s - before <= t)
    states = [embedded]
    for params, earlier in zip(layers, past, strict=True):
        x = states[-1]
        read = np.concatenate([earlier, x], axis=1)
        options = {"places": places, "allowed": allowed, "scale": scale, "max_distance": max_distance}
        x = x + attention(x, read, params["attention"], **options)
        x = transformer.layer_norm(x, **params["attention_norm"], eps=eps)
        x = x + transformer.feed_forward(x, params["feed_forward"], activation="relu")
        states.append(transformer.layer_norm(x, **params["feed_forward_norm"], eps=eps))
    return states


def adaptive_embedding(tokens, params, *, scale, cutoffs, divisor):
    """Embedded tokens: the row of each in its cluster's table, projected."""
    rows = []
    for token in tokens.reshape(-1):
        cluster = 0 if divisor == 1 else sum(token >= cutoff for cutoff in cutoffs)
        start = 0 if cluster == 0 else cutoffs[cluster - 1]
        own = params[f"cluster_{cluster}"]
        row = own["embedding"][token - start]
        rows.append(scale * (row @ own["kernel"] if "kernel" in own else row))
    return np.array(rows).reshape(*tokens.shape, -1)


def adaptive_log_probability(state, word, embed, head, *, cutoffs, divisor, vocab_size):
    """log p(word | state): of its cluster, and of the word within the cluster (arXiv:1609.04309)."""
    ends = [*cutoffs, vocab_size]
    cluster = sum(word >= cutoff for cutoff in cutoffs)

    def projected(i):
        if i == 0 and "projection" in head:
            return state @ head["projection"]["kernel"]
        own = embed[f"cluster_{0 if divisor == 1 else i}"]
        return state @ own["kernel"].T if "kernel" in own else state

    def score(i, token):
        start = 0 if i == 0 else cutoffs[i - 1]
        table, row = (0, token) if divisor == 1 else (i, token - start)
        own = f"cluster_{table}"
        return projected(i) @ embed[own]["embedding"][row] + head[own]["bias"][row]

    def log_normaliser(scores):
        return max(scores) + math.log(sum(math.exp(value - max(scores)) for value in scores))

    clusters = []
    if cutoffs:
        kernel, bias = head["clusters"]["kernel"], head["clusters"]["bias"]
        clusters = [projected(0) @ kernel[:, c] + bias[c] for c in range(len(cutoffs))]
    first = [score(0, token) for token in range(ends[0])] + clusters
    if cluster == 0:
        return first[word] - log_normaliser(first)
    within = [score(cluster, token) for token in range(cutoffs[cluster - 1], ends[cluster])]
    own = within[word - cutoffs[cluster - 1]] - log_normaliser(within)
    return clusters[cluster - 1] - log_normaliser(first) + own
