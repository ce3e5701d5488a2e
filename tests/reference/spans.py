"""Slow, obvious versions of what is done to spans of noise."""

import itertools
from collections.abc import Sequence


def join_last_spans(mask: Sequence[bool], sentinels: int) -> list[bool]:
    """The mask with its runs from the last sentinel on sorted: clean ones first, then those of noise."""
    runs = [(value, len(list(run))) for value, run in itertools.groupby(map(bool, mask))]
    numbers = [sum(value is side for value, _ in runs) for side in (True, False)]
    if max(numbers, default=0) <= sentinels:
        return [bool(value) for value in mask]
    out, spans, rest = [], 0, {False: 0, True: 0}
    for value, length in runs:
        if spans >= sentinels - 1:
            rest[value] += length
        else:
            out += [value] * length
            spans += value
    return out + [False] * rest[False] + [True] * rest[True]
