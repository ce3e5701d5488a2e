"""Slow, obvious versions of the corruptions: loops and enumerations, one example at a time."""

import itertools
from collections.abc import Iterator, Sequence


def span_lengths(inputs_length: int, density: float, mean: float) -> tuple[int, int]:
    """(raw tokens, targets length) by trying every number of raw tokens."""
    fitting = []
    for tokens in range(inputs_length - 1, 10 * inputs_length + 10):
        noise = round(tokens * density)
        spans = round(noise / mean)
        if (tokens - noise) + spans + 1 > inputs_length:
            break
        fitting.append((tokens, noise + spans + 1, tokens - noise + spans + 1))
    tokens, targets, inputs = fitting[-1]
    if density == 0.5 and targets > inputs:
        return tokens - 1, targets - 1
    return tokens, targets


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write `total` as an ordered sum of `parts` positive integers."""
    for cuts in itertools.combinations(range(1, total), parts - 1):
        ends = (0, *cuts, total)
        yield tuple(b - a for a, b in itertools.pairwise(ends))


def span_masks(length: int, noise: int, spans: int) -> set[tuple[bool, ...]]:
    """All masks of alternating clean and noise parts that begin clean and end in noise."""
    masks = set()
    for clean_parts in compositions(length - noise, spans):
        for noise_parts in compositions(noise, spans):
            mask = []
            for clean_part, noise_part in zip(clean_parts, noise_parts, strict=True):
                mask += [False] * clean_part + [True] * noise_part
            masks.add(tuple(mask))
    return masks


def spans_to_unique_sentinels(tokens: Sequence[int], mask: Sequence[bool], sentinels: Sequence[int]) -> list[int]:
    """Tokens with each run of noise replaced by the next sentinel."""
    out, used, before = [], 0, False
    for token, noise in zip(tokens, mask, strict=True):
        if not noise:
            out.append(token)
        elif not before:
            out.append(sentinels[used])
            used += 1
        before = noise
    return out


def invert_span_corruption(inputs: Sequence[int], targets: Sequence[int], sentinels: Sequence[int]) -> list[int]:
    """The text that span corruption took apart, without its EOS and padding; a final sentinel may stay."""
    outer, inner = _split(inputs, sentinels), _split(targets, sentinels)
    if inner[0]:  # the text begins with noise: the first part of the targets has no sentinel before it
        outer, inner = inner, outer
    text = list(outer[0])
    for k in range(1, max(len(outer), len(inner))):
        for side in (inner, outer):
            text += side[k] if k < len(side) else []
    return text


def _split(tokens: Sequence[int], sentinels: Sequence[int]) -> list[list[int]]:
    """What stands before, between and after the sentinels, which come in their order."""
    rest, parts = [int(token) for token in tokens], []
    for sentinel in sentinels:
        if sentinel not in rest:
            break
        place = rest.index(sentinel)
        parts.append(rest[:place])
        rest = rest[place + 1 :]
    return [*parts, rest]


def mask_tokens(
    tokens: Sequence[int],
    u: Sequence[Sequence[float]],
    *,
    candidates: Sequence[bool],
    mask_id: int,
    replacements: Sequence[int],
    rate: float,
    mask: float,
    random: float,
    limit: int | None,
) -> tuple[list[int], list[bool]]:
    """BERT's corruption of one text; `limit` candidates of the smallest uniforms, or (None) all below the rate."""
    places = [i for i in range(len(tokens)) if candidates[i]]
    if limit is None:
        chosen = [i for i in places if u[0][i] < rate]
    else:
        chosen = sorted(places, key=lambda i: u[0][i])[:limit]
    out = list(tokens)
    for i in chosen:
        if u[1][i] < mask:
            out[i] = mask_id
        elif u[1][i] < mask + random:
            out[i] = replacements[int(u[2][i] * len(replacements))]
    return out, [i in chosen for i in range(len(tokens))]
