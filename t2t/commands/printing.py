"""Texts of anybody as a terminal or a page may show them."""

JOINERS = "\u200c\u200d"
"""What scripts such as Persian and Hindi, and emoji, need inside of words, and what moves nothing."""


def printable(text: str) -> str:
    r"""The text with everything written out that would move the cursor, turn the direction, or not be seen.

    >>> printable("tab\t, end\n, \x1b[31m, \u202e")
    'tab\\t, end\\n, \\x1b[31m, \\u202e'
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in JOINERS else char.encode("unicode_escape").decode() for char in text
    )
