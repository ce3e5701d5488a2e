"""Where words begin among tokens, told by the marks that each kind of vocabulary writes into its pieces.

    WordPiece              ##         continues a word; every other piece begins one
    SentencePiece          ▁          begins a word, as do punctuation and characters of scripts without spaces
    byte-level BPE         Ġ          (the byte of a space, or of another white space) begins a word
    BPE with </w>          </w>       ends a word (GPT, XLM)
    bytes                  a space    (or another white space) begins a word
    whole words            -          every token is one

A rule of one piece says whether it begins a word, or ends one. Special tokens are words of their own.
"""

import dataclasses
import re
import unicodedata
from collections.abc import Callable, Collection, Sequence

import numpy as np
from jaxtyping import Bool, Int

PieceRule = Callable[[str], bool]
"""Of the text of a piece, whether it begins (or ends) a word."""

BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")
"""How a vocabulary writes a byte that is no character of its own."""

BYTE_LEVEL_SPACES = frozenset(chr(256 + byte) for byte in b"\t\n\v\f\r ")
"""White space in the alphabet of byte-level BPE, where the bytes below 33 stand 256 code points higher."""

WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]"
)
"""A character of a script that puts no spaces between words: CJK and kana, Thai, Lao, Tibetan, Myanmar, Khmer."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class WordMarks:
    """Which tokens begin a word, and after which tokens the next one does, both by id."""

    begins: Bool[np.ndarray, " V"]
    ends: Bool[np.ndarray, " V"]

    def starts(self, tokens: Int[np.ndarray, "*B T"]) -> Bool[np.ndarray, "*B T"]:
        """True at the first token of each word; that of a text always is one, also where text was cut inside a word."""
        starts = self.begins[tokens]
        starts[..., :1] = True
        starts[..., 1:] |= self.ends[tokens[..., :-1]]
        return starts


def mark_words(
    pieces: Sequence[str],
    special_ids: Collection[int],
    *,
    begins: PieceRule | None = None,
    ends: PieceRule | None = None,
) -> WordMarks:
    """The marks of a vocabulary by the rules of its kind; without a rule no piece of text begins, or ends, a word.

    Example:
        >>> marks = mark_words(["[CLS]", "un", "##known", "word"], [0], begins=begins_word_piece)
        >>> marks.starts(np.array([0, 1, 2, 3])).tolist()
        [True, True, False, True]
    """
    tables = [np.array([rule is not None and rule(piece) for piece in pieces], bool) for rule in (begins, ends)]
    for table in tables:
        table[list(special_ids)] = True
    return WordMarks(begins=tables[0], ends=tables[1])


def begins_word_piece(piece: str) -> bool:
    """The rule of WordPiece: all but ##pieces."""
    return not piece.startswith("##")


def begins_byte_level(piece: str) -> bool:
    """The rule of byte-level BPE: pieces that begin with white space, Ġ mostly.

    Reference: "RoBERTa", arXiv:1907.11692 (fairseq's whole-word masks over GPT-2's BPE).

    Differs: line ends and tabs begin a word as spaces do.
    """
    return piece[:1] in BYTE_LEVEL_SPACES


def begins_byte(piece: str) -> bool:
    """The rule of single bytes: white space, so that a word has the space before it, as in byte-level BPE."""
    match = BYTE_PIECE.fullmatch(piece)
    return (chr(int(match[1], 16)) if match else piece) in " \t\n\v\f\r"


def begins_sentence_piece(piece: str) -> bool:
    """The rule of SentencePiece: ▁, punctuation and symbols, and any character of a script without spaces.

    Example:
        >>> [begins_sentence_piece(piece) for piece in ("▁Gr", "öße", "19", ".", "日", "<0xC3>", "<0xE6>")]
        [True, False, False, True, True, False, True]

    Reference: "ALBERT: A Lite BERT for Self-supervised Learning of Language Representations", arXiv:1909.11942
    (create_pretraining_data.py).

    Differs: ALBERT lets every character that is no English letter begin a word, so that "Größe" and "2019" come apart;
    here letters of scripts with spaces, digits, and the bytes of both continue one.
    """
    if match := BYTE_PIECE.fullmatch(piece):
        byte = int(match[1], 16)
        # 0x80-0xBF are inside a character, 0xC2-0xDF begin one of a script with spaces, higher ones mostly not.
        return byte > 0xDF or (byte < 0x80 and not chr(byte).isalnum())
    return not piece or unicodedata.category(piece[0])[0] not in "LMN" or WITHOUT_SPACES.search(piece) is not None
