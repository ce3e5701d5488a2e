"""Slow, obvious versions of how tokens, words, n-grams and spans are chosen: sets of places, one text at a time."""

import itertools
from collections.abc import Sequence

Word = list[int]
"""The places of its tokens."""


def words(candidates: Sequence[bool], starts: Sequence[bool]) -> list[Word]:
    """The words among the candidates; what is no candidate ends one."""
    found: list[Word] = []
    inside = False
    for place, (is_candidate, is_start) in enumerate(zip(candidates, starts, strict=True)):
        if is_candidate and inside and not is_start:
            found[-1].append(place)
        elif is_candidate:
            found.append([place])
        inside = is_candidate
    return found


def together(found: list[Word], first: int, longest: int) -> list[Word]:
    """The first word, the first two, ... of neighbours from one on, at most so many."""
    taken = list(found[first])
    groups = [list(taken)]
    for word in found[first + 1 : first + longest]:
        if word[0] != taken[-1] + 1:
            break
        taken += word
        groups.append(list(taken))
    return groups


def draw(law: Sequence[float], u: float) -> int:
    """1, 2, ... with these probabilities."""
    for number, total in enumerate(itertools.accumulate(law), start=1):
        if u < total / sum(law):
            return number
    return len(law)


def choose_words(found: list[Word], u: Sequence[float], *, limit: int) -> list[Word]:
    """BERT's walk: words in random order, those that would exceed the limit skipped."""
    chosen: list[Word] = []
    for word in sorted(found, key=lambda word: u[word[0]]):
        if sum(map(len, chosen)) + len(word) <= limit:
            chosen.append(word)
    return chosen


def choose_ngrams(
    found: list[Word], u: Sequence[float], draws: Sequence[float], *, law: Sequence[float], limit: int
) -> list[Word]:
    """ALBERT's walk, with the words that are chosen already skipped."""
    chosen: list[Word] = []
    covered: set[int] = set()
    for i in sorted(range(len(found)), key=lambda i: u[found[i][0]]):
        if covered.intersection(found[i]):
            continue
        groups = together(found, i, len(law))
        number = draw(law[: len(groups)], draws[found[i][0]])
        fitting = [group for group in groups[:number] if len(covered) + len(group) <= limit]
        if fitting and not covered.intersection(fitting[-1]):
            chosen.append(fitting[-1])
            covered.update(fitting[-1])
    return chosen


def choose_spans(
    found: list[Word], u: Sequence[float], draws: Sequence[float], *, law: Sequence[float], limit: int
) -> list[Word]:
    """SpanBERT's walk over words: word by word until the length, the limit or a chosen word."""
    chosen: list[Word] = []
    covered: set[int] = set()
    for i in sorted(range(len(found)), key=lambda i: u[found[i][0]]):
        span: Word = []
        groups = together(found, i, len(law))
        for group in groups[: draw(law, draws[found[i][0]])]:
            if covered.intersection(group) or len(covered) + len(group) > limit:
                break
            span = group
        if span:
            chosen.append(span)
            covered.update(span)
    return chosen


def labels(length: int, chosen: list[Word]) -> list[int]:
    """k at the places of the k-th, 0 elsewhere."""
    out = [0] * length
    for k, places in enumerate(chosen, start=1):
        for place in places:
            out[place] = k
    return out


def inclusion(weights: Sequence[float], number: int) -> list[float]:
    """Probability that each of the weighted items is among `number` drawn one by one without replacement."""
    if not number:
        return [0.0] * len(weights)
    out = [0.0] * len(weights)
    for i, weight in enumerate(weights):
        probability = weight / sum(weights)
        out[i] += probability
        rest = [w for j, w in enumerate(weights) if j != i]
        for j, later in zip([j for j in range(len(weights)) if j != i], inclusion(rest, number - 1), strict=True):
            out[j] += probability * later
    return out
