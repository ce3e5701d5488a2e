"""Small vocabularies of every kind, with a mask, trained once a process."""

import functools
import pydoc_data.topics

from t2t import vocabulary as vocabularies

LINES = tuple("\n".join(text for _, text in sorted(pydoc_data.topics.topics.items())[:12]).splitlines())
KINDS = ("word pieces", "sentence pieces", "byte pairs", "bytes")


@functools.cache
def trained(kind: str) -> vocabularies.Vocabulary:
    """The vocabulary of a kind, on a dozen pages of the Python language reference."""
    if kind == "word pieces":
        return vocabularies.train_wordpiece(LINES, size=700)
    if kind == "sentence pieces":
        return vocabularies.train_sentencepiece(LINES, size=600, sentinels=10)
    return vocabularies.train_byte_bpe(LINES, size=700) if kind == "byte pairs" else vocabularies.ByteVocabulary()
