"""Pieces of documents for people to look at."""

import re
from collections.abc import Collection, Iterable

from t2t.data.audit.duplicates import Corpus
from t2t.data.audit.scan import KEY
from t2t.data.audit.units import normalize
from t2t.vocabulary.words import WITHOUT_SPACES

LENGTH = 400
"""Characters of an excerpt."""

_LONGEST = 200_000  # characters of a text in which a passage is looked for
_WORD = re.compile(rf"{WITHOUT_SPACES.pattern}|(?:(?!{WITHOUT_SPACES.pattern})[^\W_])+")


def read_documents(corpus: Corpus, numbers: Collection[int]) -> dict[int, str]:
    """The texts of some documents; each of their files is read up to the last of them."""
    by_file: dict[int, dict[int, int]] = {}
    for number in numbers:
        file, place = corpus.place(number)
        by_file.setdefault(file, {})[place] = number
    texts = {}
    for file, places in by_file.items():
        found = pick((row[KEY] for row in corpus.reader.rows([corpus.files[file]])), places)
        texts |= {number: found.get(place, "") for place, number in places.items()}
    return texts


def pick(texts: Iterable[str], places: Collection[int]) -> dict[int, str]:
    """The texts at some places, from 0."""
    found = {}
    for place, text in enumerate(texts):
        if len(found) == len(places):
            break
        if place in places:
            found[place] = text
    return found


def beginning(text: str) -> str:
    """The first part of a text, with an ellipsis where something is left out.

    >>> beginning("  short ")
    'short'
    """
    text = text.strip()
    return text if len(text) <= LENGTH else f"{text[:LENGTH].rstrip()} …"


def around(text: str, other: str, *, n: int) -> str:
    """What is around the first n words of `text` that stand in `other` too; its beginning where there are none.

    For people: words are those of a simple rule, which sees some texts differently than the hashes do.
    """
    words = [(normalize(match[0]), match.start()) for match in _WORD.finditer(text[:_LONGEST])]
    own = [normalize(word) for word in _WORD.findall(other[:_LONGEST])]
    n = min(n, len(own))
    runs = {tuple(own[i : i + n]) for i in range(len(own) - n + 1)} if n else set()
    for i in range(len(words) - n + 1):
        if tuple(word for word, _ in words[i : i + n]) in runs:
            start = max(0, words[i][1] - LENGTH // 4)
            return ("… " if start else "") + beginning(text[start : start + LENGTH + 1])
    return beginning(text)
