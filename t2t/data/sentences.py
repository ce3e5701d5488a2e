r"""Documents into sentences, by a few rules: fast, the same everywhere, without a model or a library.

A sentence ends

- behind one or more of . ! ? … and the quotes and brackets that close there, if white space follows and then a capital
  letter, a letter of a script that has no capitals, a quote, or a bracket before such a letter;
- behind 。 ！ ？ । and what closes there, whatever follows;
- at the end of a line. Of text that is broken into lines (`wrapped`) only an empty line ends one.

A single full stop does not end a sentence behind one of `ABBREVIATIONS`, behind one capital letter (J. Smith), and
behind letters with full stops between them (U.S., e.g.), which errs where such a word is the last of its sentence.

White space belongs to the sentence behind it, so that the sentences of a text, put together, are the text:

    >>> split_sentences('Dr. Who left. "Where to?" she said.\nNobody knew.')
    ['Dr. Who left.', ' "Where to?" she said.', '\nNobody knew.']
"""

import re

ABBREVIATIONS = frozenset({
    "adm", "al", "approx", "capt", "cf", "col", "dr", "dra", "eq", "eqs", "fig", "figs", "fr", "gen", "gov", "hon",
    "hr", "jr", "lt", "messrs", "mlle", "mme", "mr", "mrs", "ms", "prof", "rep", "rev", "sen", "sgt", "sr", "sra", "st",
    "viz", "vol", "vols", "vs",
})  # fmt: skip
"""Words, in lower case, behind which a full stop ends no sentence."""

QUOTES = "\"'“‘„«「『"  # that open, if white space is before them
BRACKETS = "([{（¿¡"
CLOSING = "\"'”’»」』)]}）"

# Marks are looked for where no other mark is before them, so that a long row of them is read once.
_MARKS = rf"(?<![.!?…])[.!?…]+[{re.escape(CLOSING)}]*(?=\s)|[。！？।]+[{re.escape(CLOSING)}]*"
_LINES = re.compile(rf"{_MARKS}|\n")
_WRAPPED = re.compile(rf"{_MARKS}|\n(?=[^\S\n]*\n)")
_TEXT = re.compile(r"\S")
_LETTERS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # U.S, e.g, J
_LONGEST = 1 + max(map(len, ABBREVIATIONS))


def split_sentences(text: str, *, wrapped: bool = False) -> list[str]:
    """The sentences of a text, by the rules above, white space included; their concatenation is the text.

    Args:
        text: a document; one without anything but white space has no sentences.
        wrapped: lines are broken at some width, and only an empty line ends a sentence.
    """
    first = _next_sign(text, 0)  # of the sentence that is being read
    if first is None:
        return []
    ends = []
    for match in (_WRAPPED if wrapped else _LINES).finditer(text):
        end = match.start() if match[0] == "\n" else match.end()
        if first < end and _ends_sentence(text, match):
            following = _next_sign(text, end)
            if following is None:
                break
            ends.append(end)
            first = following
    return [text[begin:end] for begin, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def _next_sign(text: str, place: int) -> int | None:
    """Where the next character stands that is no white space."""
    match = _TEXT.search(text, place)
    return None if match is None else match.start()


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    marks = match[0]
    if marks[0] not in ".!?…":
        return True
    following = _next_sign(text, match.end())
    if following is None or not _begins_sentence(text, following):
        return False
    return marks.rstrip(CLOSING) != "." or not _is_abbreviated(text, match.start())


def _begins_sentence(text: str, place: int) -> bool:
    sign = text[place]
    if sign in BRACKETS:
        sign = text[place + 1 : place + 2]
    return (sign != "" and sign in QUOTES) or _is_capital(sign)


def _is_capital(sign: str) -> bool:
    """Whether a letter is a capital, or of a script without small letters."""
    return sign.isalpha() and not sign.islower()


def _is_abbreviated(text: str, stop: int) -> bool:
    """Whether the word before a full stop is written short."""
    words = text[max(stop - _LONGEST, 0) : stop].split()
    if not words or text[stop - 1].isspace():
        return False
    word = words[-1].lstrip(QUOTES + BRACKETS)
    if word.lower() in ABBREVIATIONS:
        return True
    return _LETTERS.fullmatch(word) is not None and (len(word) > 1 or _is_capital(word))
