"""Slow, obvious versions of BART's noises and of T5's grid: token by token, one text at a time."""

import math
from collections.abc import Sequence


def words_of(starts: Sequence[bool], is_text: Sequence[bool]) -> list[list[int]]:
    """The places of the tokens of each word."""
    words: list[list[int]] = []
    for place, (start, text) in enumerate(zip(starts, is_text, strict=True)):
        if text and start:
            words.append([place])
        elif text:
            words[-1].append(place)
    return words


def infill(
    tokens: Sequence[int],
    order: Sequence[int],
    *,
    starts: Sequence[bool],
    is_text: Sequence[bool],
    lengths: Sequence[int],
    mask: int,
    replace_length: int,
) -> list[int]:
    """Spans of the given lengths begun at the first words of `order`, walked one word at a time."""
    words = words_of(starts, is_text)
    heads, others = set(), set()
    for head, length in zip(order, lengths, strict=False):
        heads.add(head)
        word = head
        for _ in range(length - 1):
            is_last = word + 1 == len(words)
            if is_last or words[word + 1][0] != words[word][-1] + 1:  # a special token is between
                break
            word += 1
            others.add(word)
    out = []
    number = {place: word for word, places in enumerate(words) for place in places}
    for place, token in enumerate(tokens):
        word = number.get(place)
        if word not in heads | others:
            out.append(token)
        elif replace_length == -1 or (replace_length == 1 and word in heads - others and place == words[word][0]):
            out.append(mask)
    return out


def poisson_lengths(draws: Sequence[int], words: int) -> list[int]:
    """Lengths one after the other until they make up the words, the last trimmed."""
    lengths = []
    for draw in draws:
        if sum(lengths) >= words:
            break
        lengths.append(min(draw, words - sum(lengths)))
    return lengths


def sentences(tokens: Sequence[int], ends: Sequence[bool], fixed: Sequence[bool]) -> list[list[list[int]]]:
    """Documents of sentences; each fixed token is a document of its own."""
    documents: list[list[list[int]]] = [[]]
    is_open = False
    for token, end, stays in zip(tokens, ends, fixed, strict=True):
        if stays:
            documents += [[[token]], []]
            is_open = False
            continue
        if not is_open:
            documents[-1].append([])
        documents[-1][-1].append(token)
        is_open = not end
    return [document for document in documents if document]


def num_permuted(number: int, rate: float) -> int:
    """How many of so many sentences change places."""
    return math.ceil(number * rate - 1e-9)


def spans(mask: Sequence[bool]) -> list[tuple[bool, list[int]]]:
    """Runs of noise and of clean tokens: whether it is noise, and its places."""
    runs: list[tuple[bool, list[int]]] = []
    for place, noise in enumerate(mask):
        if not runs or runs[-1][0] != noise:
            runs.append((noise, []))
        runs[-1][1].append(place)
    return runs


def without(
    tokens: Sequence[int], mask: Sequence[bool], kind: str, *, mark: int, sentinels: Sequence[int], noise: bool
) -> list[int]:
    """The text with its noise (or its clean tokens) dropped, or each run of it a sentinel."""
    out, used = [], 0
    for is_noise, places in spans(mask):
        if is_noise != noise:
            out += [tokens[place] for place in places]
        elif kind == "sentinel":
            out.append(mark)
        elif kind == "sentinels":
            out.append(sentinels[used])
            used += 1
    return out


def split_at(tokens: Sequence[int], mark: int) -> list[list[int]]:
    """What stands before, between and after the marks."""
    parts: list[list[int]] = [[]]
    for token in tokens:
        if token == mark:
            parts.append([])
        else:
            parts[-1].append(int(token))
    return parts


def join_at_marks(inputs: Sequence[int], targets: Sequence[int], mark: int) -> list[int]:
    """The text whose spans of noise are a mark in the inputs, and whose clean spans are one in the targets."""
    outer, inner = split_at(inputs, mark), split_at(targets, mark)
    if inner[0]:
        outer, inner = inner, outer
    text = list(outer[0])
    for k in range(1, max(len(outer), len(inner))):
        for side in (inner, outer):
            text += side[k] if k < len(side) else []
    return text


def is_subsequence(part: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether the part is the whole with tokens left out."""
    rest = iter(whole)
    return all(token in rest for token in part)
