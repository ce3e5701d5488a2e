"""Where sentences end among tokens: a table of a vocabulary's pieces, and the rule that reads a text by it."""

import functools

import numpy as np
from jaxtyping import Bool

from t2t.data.corruption import Mask, Tokens
from t2t.vocabulary import Vocabulary

MARKS = ".!?…。！？．؟۔।"
"""Characters that end a sentence."""

CLOSERS = "\"')]}»”’」』"
"""Characters that may follow the mark in its piece."""


@functools.lru_cache(maxsize=16)
def sentence_ends(vocabulary: Vocabulary, marks: str = MARKS) -> Bool[np.ndarray, " V"]:
    """[size], True for pieces that are marks of the end of a sentence, closing quotes and brackets after them included.

    Args:
        vocabulary: says what its pieces are as text.
        marks: the characters; "." alone is what fairseq takes for BART.

    Raises:
        ValueError: no piece of the vocabulary is one.
    """
    texts = vocabulary.decode_batch([[token] for token in range(vocabulary.size)])
    allowed = set(marks + CLOSERS)
    table = np.array([bool(set(text.strip()) & set(marks)) and set(text.strip()) <= allowed for text in texts])
    if not table.any():
        raise ValueError(
            f"no piece of {vocabulary!r} is one of the marks {marks!r} that end a sentence: name the marks it has, "
            "or leave sentences where they are (permute_sentences=0)"
        )
    table.setflags(write=False)
    return table


def find_ends(tokens: Tokens, *, table: Bool[np.ndarray, " V"], starts: Mask) -> Mask:
    """True at the last token of each sentence: a mark of `table` before the start of a word that is no mark.

    So "os.path" and "3.14" end no sentence where the vocabulary says that their parts are one word, and "..." or "?!"
    end one only once.

    Args:
        tokens: texts, [..., T].
        table: the marks among the pieces of the vocabulary.
        starts: True at the first token of each word.

    Example:
        >>> table = np.array([False, False, True])
        >>> starts = np.array([1, 1, 0, 0, 1, 1, 1], bool)
        >>> find_ends(np.array([0, 2, 1, 2, 2, 0, 2]), table=table, starts=starts).astype(int)
        array([0, 0, 0, 0, 1, 0, 1])

    Differs: fairseq ends a sentence at the first of several full stops, and at any full stop inside a word.
    """
    is_mark = table[tokens]
    ends = is_mark.copy()
    ends[..., :-1] &= ~is_mark[..., 1:] & starts[..., 1:]
    return ends
