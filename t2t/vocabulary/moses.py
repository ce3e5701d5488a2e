"""Words of a text as the Moses toolkit cuts them for English: what XLM's tokenizer does before its byte-pair encoding.

Punctuation of other scripts is written in ASCII, quotes and spaces around punctuation are made alike, and what is not
printed vanishes. Then every character that is neither letter nor digit becomes a word, but for points and commas within
abbreviations and numbers, hyphens, and apostrophes, which begin a word ("don 't").

Reference: the Moses toolkit, scripts/tokenizer: replace-unicode-punctuation.perl, normalize-punctuation.perl (language
en, penn), remove-non-printing-char.perl and tokenizer.perl (language en, without escapes), as sacremoses 0.1 has them.

Differs: the letters DOTMULTI in a text stay as they are (there, they mark several points in a row, and become points).
"""

import re
import unicodedata

from t2t.vocabulary.moses_characters import DIGITS, LETTERS, NUMBERS

_ASCII_PUNCTUATION = str.maketrans(
    {
        **dict.fromkeys("，、", ","),
        **dict.fromkeys("”“《》」「", '"'),
        **dict.fromkeys("∶：", ":"),
        "？": "?",
        "！": "!",
        "；": ";",
        "（": "(",
        "）": ")",
        "【": "[",
        "】": "]",
        "〈": "<",
        "〉": ">",
        "％": "%",
        "～": "~",
        "━": "-",
        "’": "'",
        "…": "...",
        **{chr(ord("０") + digit): str(digit) for digit in range(10)},
    }
)
_FULL_STOPS = re.compile(r"[。．]\s*")

_SPACE = "\N{NO-BREAK SPACE}"
_NORMALIZED = [
    (re.compile(pattern.replace("_", _SPACE)), replacement.replace("_", _SPACE))
    for pattern, replacement in (
        # Brackets: a space outside, none inside or before punctuation.
        (r"\r", ""),
        (r"\(", " ("),
        (r"\)", ") "),
        (r" +", " "),
        (r"\) ([.!:?;,])", r")\1"),
        (r"\( ", "("),
        (r" \)", ")"),
        (r"(\d) %", r"\1%"),
        (r" ([:;])", r"\1"),
        # Quotes and dashes.
        (r"`", "'"),
        (r"''", ' " '),
        (r"„", '"'),
        (r"–", "-"),
        (r"—", " - "),
        (r" +", " "),
        (r"[´‘‚]", "'"),
        (r"''", '"'),
        (r"_«_", '"'),
        (r"«_?", '"'),
        (r"_»_", '"'),
        (r"_?»", '"'),
        # Spaces that do not break a line.
        (r"_%", "%"),
        (r"nº_", "nº "),
        (r"_:", ":"),
        (r"_(ºC|cm)", r" \1"),
        (r"_([?!;])", r"\1"),
        (r",_", ", "),
        (r" +", " "),
        (r'"([,.]+)', r'\1"'),
        (r"(\d)_(\d)", r"\1.\2"),
    )
]

_POINTS = re.compile(r"\.\.+")
_POINT = "\ue000"
"""Stands for one of several points in a row; characters of private use were taken out before."""
_SPLITS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # A comma between two numbers stays.
        (f"([^{NUMBERS}]),", r"\1 , "),
        (f",([^{NUMBERS}])", r" , \1"),
        (f"([{NUMBERS}]),$", r"\1 , "),
        # An apostrophe begins a word between letters and before the s of years; elsewhere it is a word.
        (f"([^{LETTERS}])'([^{LETTERS}])", r"\1 ' \2"),
        (f"([^{LETTERS}{NUMBERS}])'([{LETTERS}])", r"\1 ' \2"),
        (f"([{LETTERS}])'([^{LETTERS}])", r"\1 ' \2"),
        (f"([{LETTERS}])'([{LETTERS}])", r"\1 '\2"),
        (f"([{NUMBERS}])'(s)", r"\1 '\2"),
    )
]
_OTHER = re.compile(f"([^{LETTERS}{DIGITS}\\s.'`,-])")
_LETTER = re.compile(f"[{LETTERS}]")
_LAST_QUOTE = re.compile(r"\.' ?$")

_ABBREVIATIONS = frozenset(
    "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z Adj Adm Adv Asst Bart Bldg Brig Bros Capt Cmdr Col Comdr Con "
    "Corp Cpl DR Dr Drs Ens Gen Gov Hon Hr Hosp Insp Lt MM MR MRS MS Maj Messrs Mlle Mme Mr Mrs Ms Msgr Op Ord Pfc Ph "
    "Prof Pvt Rep Reps Res Rev Rt Sen Sens Sfc Sgt Sr St Supt Surg v vs i.e rev e.g Rs Nos Nr Jan Feb Mar Apr Jun Jul "
    "Aug Sep Oct Nov Dec".split()
)
_BEFORE_NUMBERS = frozenset(("No", "Art", "pp"))
"""Those that are abbreviations before a number alone."""


def words(text: str) -> list[str]:
    """The words of a text.

    >>> words("Mr. O'Neill paid $3,000.50, didn't he?")
    ['Mr.', 'O', "'Neill", 'paid', '$', '3,000.50', ',', 'didn', "'t", 'he', '?']
    """
    text = _FULL_STOPS.sub(". ", text.translate(_ASCII_PUNCTUATION))
    for pattern, replacement in _NORMALIZED:
        text = pattern.sub(replacement, text)
    return _cut("".join(char for char in text.strip() if not unicodedata.category(char).startswith("C")))


def _cut(text: str) -> list[str]:
    text = _OTHER.sub(r" \1 ", " ".join(text.split()))
    text = _POINTS.sub(lambda points: f" {_POINT * len(points[0])} ", text).rstrip()
    for pattern, replacement in _SPLITS:
        text = pattern.sub(replacement, text)
    text = _LAST_QUOTE.sub(" . ' ", " ".join(_points_apart(text.split())))
    return text.replace(_POINT, ".").split()


def _points_apart(parts: list[str]) -> list[str]:
    """The parts, with the point at the end of each a part of its own unless it belongs to an abbreviation."""
    cut = []
    for part, following in zip(parts, [*parts, ""][1:], strict=True):
        before = part.removesuffix(".")
        ends_here = (
            len(before) == len(part) - 1
            and before
            and not ("." in before and _LETTER.search(before))
            and before not in _ABBREVIATIONS
            and not _is_small(following[:1])
            and not (before in _BEFORE_NUMBERS and following[:1] in tuple("0123456789"))
        )
        cut.extend((before, ".") if ends_here else (part,))
    return cut


def _is_small(char: str) -> bool:
    """Whether a character is a small letter; Georgian has none."""
    return char.islower() and not "\u10d0" <= char <= "\u10ff"
