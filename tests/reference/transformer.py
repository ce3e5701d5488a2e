"""A transformer in NumPy loops, float64: slow, and plain enough to be checked by eye against the papers."""

import math

import numpy as np


def layer_norm(x, scale, bias=None, *, eps):
    out = np.zeros_like(x)
    for index in np.ndindex(x.shape[:-1]):
        mean = sum(x[index]) / len(x[index])
        variance = sum((value - mean) ** 2 for value in x[index]) / len(x[index])
        out[index] = (x[index] - mean) / math.sqrt(variance + eps) * scale
        if bias is not None:
            out[index] += bias
    return out


def rms_norm(x, scale, *, eps):
    out = np.zeros_like(x)
    for index in np.ndindex(x.shape[:-1]):
        mean_square = sum(value**2 for value in x[index]) / len(x[index])
        out[index] = x[index] / math.sqrt(mean_square + eps) * scale
    return out


def gelu(x):
    return np.vectorize(lambda value: value * 0.5 * (1 + math.erf(value / math.sqrt(2))))(x)


def gelu_tanh(x):
    def one(value):
        return 0.5 * value * (1 + math.tanh(math.sqrt(2 / math.pi) * (value + 0.044715 * value**3)))

    return np.vectorize(one)(x)


def relu(x):
    return np.where(x > 0, x, 0.0)


def silu(x):
    return x / (1 + np.exp(-x))


ACTIVATIONS = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu}


def attention(x, read, params, *, scale, allowed=None, bias=None):
    """Attention of x [B, T, D] to read [B, S, D]; allowed [B, T, S], bias [N, T, S]."""
    num_rows, length, _ = x.shape
    key_length = read.shape[1]
    num_heads, num_kv_heads = params["query"]["kernel"].shape[1], params["key"]["kernel"].shape[1]
    out = np.zeros(x.shape)
    for b in range(num_rows):
        for n in range(num_heads):
            g = n // (num_heads // num_kv_heads)
            query = _head(x[b], params["query"], n)
            key, value = _head(read[b], params["key"], g), _head(read[b], params["value"], g)
            for t in range(length):
                readable = [s for s in range(key_length) if allowed is None or allowed[b, t, s]]
                if not readable:
                    # Our convention for padding: uniform weights over everything.
                    mixed = value.mean(axis=0)
                else:
                    scores = [scale * (query[t] @ key[s]) + (0 if bias is None else bias[n, t, s]) for s in readable]
                    exponentials = [math.exp(score - max(scores)) for score in scores]
                    mixed = sum(e * value[s] for e, s in zip(exponentials, readable, strict=True)) / sum(exponentials)
                out[b, t] += mixed @ params["out"]["kernel"][n]
        out[b] += params["out"].get("bias", 0)
    return out


def _head(x, params, head):
    bias = params["bias"][head] if "bias" in params else 0
    return x @ params["kernel"][:, head] + bias


def feed_forward(x, params, *, activation):
    up = x @ params["up"]["kernel"] + params["up"].get("bias", 0)
    if "gate" in params:
        inner = ACTIVATIONS[activation](x @ params["gate"]["kernel"] + params["gate"].get("bias", 0)) * up
    else:
        inner = ACTIVATIONS[activation](up)
    return inner @ params["down"]["kernel"] + params["down"].get("bias", 0)


def block(x, params, *, norm, norm_position, scale, activation, allowed=None, bias=None, memory=None, readable=None):
    """One block. `norm(x, params)` normalises; `memory` is what cross-attention reads, `readable` its mask."""
    sublayers = {
        "attention": lambda y: attention(y, y, params["attention"], scale=scale, allowed=allowed, bias=bias),
        "feed_forward": lambda y: feed_forward(y, params["feed_forward"], activation=activation),
    }
    if memory is not None:
        sublayers = {
            "attention": sublayers["attention"],
            "cross_attention": lambda y: attention(y, memory, params["cross_attention"], scale=scale, allowed=readable),
            "feed_forward": sublayers["feed_forward"],
        }
    if norm_position == "parallel":
        normed = norm(x, params["attention_norm"])
        other = norm(x, params["feed_forward_norm"]) if "feed_forward_norm" in params else normed
        return x + sublayers["attention"](normed) + sublayers["feed_forward"](other)
    for name, sublayer in sublayers.items():
        if f"{name}_norm" not in params:
            x = x + sublayer(x)
        elif norm_position == "pre":
            x = x + sublayer(norm(x, params[f"{name}_norm"]))
        elif norm_position == "post":
            x = norm(x + sublayer(x), params[f"{name}_norm"])
        else:
            x = x + norm(sublayer(norm(x, params[f"{name}_norm"])), params[f"{name}_out_norm"])
    return x


def rotate(x, angles, *, interleaved):
    """Turns pairs of values of x [..., T, H] by angles [T, R / 2], the first R of every head, as complex numbers."""
    out = np.array(x, np.float64)
    half = angles.shape[1]
    for t, pair in np.ndindex(angles.shape):
        one, two = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + half)
        turned = (x[..., t, one] + 1j * x[..., t, two]) * np.exp(1j * angles[t, pair])
        out[..., t, one], out[..., t, two] = turned.real, turned.imag
    return out


def relative_bias(table, *, length, key_length, bidirectional, max_distance):
    """T5's bias [N, T, S] from its table [buckets, N], bucket by bucket."""
    num_buckets, num_heads = table.shape
    out = np.zeros((num_heads, length, key_length))
    for t in range(length):
        for s in range(key_length):
            out[:, t, s] = table[
                bucket(s - t, num_buckets=num_buckets, bidirectional=bidirectional, max_distance=max_distance)
            ]
    return out


def bucket(relative, *, num_buckets, bidirectional, max_distance):
    """T5's bucket of key minus query, with a logarithm for one number at a time."""
    offset = 0
    if bidirectional:
        num_buckets //= 2
        offset = num_buckets if relative > 0 else 0
        distance = abs(relative)
    else:
        distance = max(-relative, 0)
    exact = num_buckets // 2
    if distance < exact:
        return offset + distance
    share = math.log(distance / exact + 2.0**-23) / math.log(max_distance / exact)
    return offset + min(exact + int(share * (num_buckets - exact)), num_buckets - 1)
