"""Units, similar texts and leaks, the slow obvious way: sets of tuples of strings, every pair looked at."""

import itertools
import unicodedata


def without_spaces(char: str) -> bool:
    """Thai to Tibetan, Myanmar, Khmer, and everything of CJK."""
    ranges = [
        (0x0E00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9D),
        (0x20000, 0x3FFFF),
    ]  # fmt: skip
    return any(low <= ord(char) <= high for low, high in ranges)


def split_units(text: str) -> list[str]:
    """The units of a text as strings, character by character."""
    units, word = [], ""
    for char in unicodedata.normalize("NFKC", text).casefold():
        category = unicodedata.category(char)
        if category == "Cf" or 0xFE00 <= ord(char) <= 0xFE0F:
            continue
        is_letter = category[0] in "LMN"
        if is_letter and not without_spaces(char):
            word += char
            continue
        units += [word] if word else []
        units += [char] if is_letter else []
        word = ""
    return units + ([word] if word else [])


def ngrams(text: str, n: int) -> set[tuple[str, ...]]:
    """The distinct n-grams; of a shorter text one of all its units."""
    units = split_units(text)
    if len(units) < n:
        return {tuple(units)} if units else set()
    return {tuple(units[i : i + n]) for i in range(len(units) - n + 1)}


def jaccard(a: set, b: set) -> float:
    return len(a & b) / len(a | b) if a | b else 0.0


def similar_pairs(texts: list[str], *, n: int, similarity: float) -> set[tuple[int, int]]:
    """All pairs of texts that are so similar."""
    sets = [ngrams(text, n) for text in texts]
    pairs = itertools.combinations(range(len(texts)), 2)
    return {(i, j) for i, j in pairs if sets[i] and jaccard(sets[i], sets[j]) >= similarity}


def first_of_clusters(size: int, pairs: set[tuple[int, int]]) -> list[int]:
    """The first text that each is connected to by pairs."""
    firsts = list(range(size))
    for _ in range(size):
        for i, j in pairs:
            firsts[i] = firsts[j] = min(firsts[i], firsts[j])
    return firsts


def coverage(texts: list[str], evaluation: str, *, n: int) -> tuple[float, list[float]]:
    """The share of an evaluation document's n-grams in all texts together, and in each."""
    units = split_units(evaluation)
    wanted = ngrams(evaluation, n)
    size = min(n, len(units))
    found = [{gram for gram in windows(text, size) if gram in wanted} for text in texts]
    return len(set().union(*found)) / len(wanted), [len(grams) / len(wanted) for grams in found]


def windows(text: str, size: int) -> set[tuple[str, ...]]:
    """All runs of exactly so many units."""
    units = split_units(text)
    return {tuple(units[i : i + size]) for i in range(len(units) - size + 1)}
