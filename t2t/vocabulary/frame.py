"""What an encoder-decoder reads around the tokens of a text, besides the end token, which tasks append."""

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True, kw_only=True)
class Frame:
    """Special tokens of inputs and targets, as the family was pretrained; T5 has none.

    BART reads `<s> text </s>` on both sides. mBART reads `text </s> code`: a task's text ends with the code of its
    language, which changes places with the end token, and a decoder starts with the code of its target. (Lewis et al.,
    arXiv:1910.13461, and Liu et al., arXiv:2001.08210, section 2.2, as transformers' tokenizers do it.)

    Attributes:
        bos_id: before every text; None = nothing.
        eos_id: what tasks append.
        language_ids: codes of languages.
    """

    bos_id: int | None = None
    eos_id: int | None = None
    language_ids: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return self.bos_id is not None or bool(self.language_ids)

    def fit(self, tokens: Sequence[int], *, limit: int | None = None) -> tuple[list[int], int]:
        """The tokens in their frame, and how many at the end of the text were left out to stay within a limit.

        >>> Frame(bos_id=0, eos_id=2).fit([7, 8, 9, 2], limit=4)
        ([0, 7, 8, 2], 1)
        >>> Frame(eos_id=2, language_ids=frozenset({50})).fit([7, 8, 50, 2])
        ([7, 8, 2, 50], 0)
        """
        text, last = list(tokens), []
        if text and text[-1] == self.eos_id:
            last.append(text.pop())
        if text and text[-1] in self.language_ids:
            last.append(text.pop())
        first = [] if self.bos_id is None or text[:1] == [self.bos_id] else [self.bos_id]
        room = len(text) if limit is None else max(limit - len(first) - len(last), 0)
        return [*first, *text[:room], *last][:limit], max(len(text) - room, 0)

    def start_id(self, last: int | None, *, usual: int | None) -> int | None:
        """What the decoder of a target starts with whose last token in its frame is known: its language, or the usual.

        >>> Frame(eos_id=2, language_ids=frozenset({50})).start_id(50, usual=None)
        50
        """
        return last if last in self.language_ids else usual
