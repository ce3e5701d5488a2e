"""The tokens of a sequence as pieces of text that a terminal or a page can show, each with what it is."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from t2t.commands.printing import printable
from t2t.vocabulary import ByteVocabulary
from t2t.vocabulary.words import BYTE_PIECE


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One token, or several bytes of which all is equal but themselves.

    Attributes:
        text: as it may be shown.
        first: position of the first token.
        last: position of the last.
        mark: name of what it is, as `t2t.data.views.NAMES` has it.
        example: number of its example in the row.
        has_loss: whether its prediction counts.
        type: its sentence type, None = there are none.
        language: None = there are none.
        expected: the text that is predicted instead of it; empty where that is no other.
    """

    text: str
    first: int
    last: int
    mark: str
    example: int
    has_loss: bool = False
    type: int | None = None
    language: int | None = None
    expected: str = ""


class Speller:
    """Makes pieces of strips.

    Args:
        vocabulary: of the tokens.
    """

    def __init__(self, vocabulary: Any):
        self._names = vocabulary.pieces()
        self._joins = isinstance(vocabulary, ByteVocabulary)
        self.space = "" if self._joins else " "
        """What stands between pieces."""

    def pieces(self, strip: Any) -> list[Piece]:
        """The pieces of a `t2t.data.views.Strip`, without its padding."""
        return list(self._pieces(strip))

    def _pieces(self, strip: Any) -> Iterator[Piece]:
        from t2t.data import views

        for about, group in itertools.groupby(_tokens(strip), key=lambda token: token[1:]):
            mark, example, has_loss, kind, language, is_other = about
            if mark == views.Mark.PADDING:
                continue
            places = [token[0] for token in group]
            alone = not self._joins or mark in (views.Mark.SPECIAL, views.Mark.SENTINEL, views.Mark.MODE)
            for run in [[place] for place in places] if alone else [places]:
                yield Piece(
                    text=self.spell(strip.tokens[run].tolist()),
                    first=run[0],
                    last=run[-1],
                    mark=views.NAMES[views.Mark(mark)],
                    example=example,
                    has_loss=has_loss,
                    type=kind,
                    language=language,
                    expected=self.spell(strip.expected[run].tolist()) if is_other else "",
                )

    def spell(self, tokens: Sequence[int]) -> str:
        """The names of tokens; bytes as what they mean, where they are whole characters."""
        data = b""
        for token in tokens:
            name = self._names[token] if 0 <= token < len(self._names) else f"<{token}>"
            match = BYTE_PIECE.fullmatch(name)
            data += bytes([int(match[1], 16)]) if match else name.encode("utf-8", "backslashreplace")
        return printable(data.decode("utf-8", "backslashreplace"))


def _tokens(strip: Any) -> Iterator[tuple[int, int, int, bool, int | None, int | None, bool]]:
    """Of each token: place, mark, example, whether it has loss, type, language, whether another is predicted."""
    number = len(strip.tokens)
    has_loss = [False] * number if strip.weights is None else (strip.weights != 0).tolist()
    none: list[int | None] = [None] * number
    other = [False] * number
    if strip.expected is not None:
        other = ((strip.expected >= 0) & (strip.expected != strip.tokens)).tolist()
    yield from zip(
        range(number),
        strip.marks.tolist(),
        strip.segments.tolist(),
        has_loss,
        none if strip.types is None else strip.types.tolist(),
        none if strip.languages is None else strip.languages.tolist(),
        other,
        strict=True,
    )
