"""XLNet's targets, orders and masks, slow and obvious: one example, one position at a time."""

from collections.abc import Sequence


def permutation_mask(
    permutation: Sequence[int], targets: Sequence[bool], functional: Sequence[bool], reuse: int | None = None
) -> list[list[int]]:
    """1 where t may not read s, from the numbers that the tokens of each part have in its permutation.

    Tokens that are neither targets nor functional have the number -1. t may not read s iff t's number is not greater
    than s's and s is a target or functional; t's number counts one more where t is no target. With two parts the first
    reads nothing of the second, which reads all of it.
    """
    length = len(permutation)
    ordered = [targets[s] or functional[s] for s in range(length)]
    index = [permutation[s] if ordered[s] else -1 for s in range(length)]
    mask = [[0] * length for _ in range(length)]
    for t in range(length):
        for s in range(length):
            part_t, part_s = (reuse is not None and place >= reuse for place in (t, s))
            if part_t == part_s:
                own = index[t] if targets[t] else index[t] + 1
                mask[t][s] = int(own <= index[s] and ordered[s])
            else:
                mask[t][s] = int(part_s)
    return mask


def choose_targets(
    sizes: Sequence[float],
    lefts: Sequence[float],
    singles: Sequence[float],
    *,
    starts: Sequence[bool],
    candidates: Sequence[bool],
    count: int,
    longest: int,
    context: float,
    words: bool,
) -> list[bool]:
    """The walk through one text; then the candidates of the smallest `singles` until there are enough."""
    length = len(starts)
    total = sum(1 / n for n in range(1, longest + 1))
    chosen: list[int] = []
    cursor, k = 0, 0
    while cursor < length:
        u, n, below = sizes[k] * total, 1, 1.0
        while n < longest and u >= below:
            n += 1
            below += 1 / n
        around = int(n * context)
        left = int(lefts[k] * around)
        begin = cursor + left
        while begin < length and not starts[begin]:
            begin += 1
        if begin >= length:
            break
        end, seen = begin + 1, 1
        while end < length:
            seen += starts[end] if words else 1
            if seen > n:
                break
            end += 1
        chosen += [place for place in range(begin, end) if candidates[place]]
        cursor = end + around - left
        k += 1
    chosen = chosen[:count]
    free = [place for place in range(length) if candidates[place] and place not in chosen]
    chosen += sorted(free, key=lambda place: singles[place])[: count - len(chosen)]
    return [place in chosen for place in range(length)]
