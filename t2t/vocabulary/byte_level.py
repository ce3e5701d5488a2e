"""The vocabulary that needs no file: UTF-8 bytes, as in ByT5."""

import re
from collections.abc import Sequence

from t2t.vocabulary import base, reading, words

_SPECIAL = re.compile(rf"(<mask>|<extra_id_\d+>|{'|'.join(map(re.escape, base.MODES))})")


class ByteVocabulary(base.Vocabulary):
    """UTF-8 bytes: pad 0, eos 1, unk 2, byte b = b + 3, then mask, modes and sentinels, <extra_id_0> the highest id.

    Example:
        >>> ByteVocabulary(sentinels=2, mask=False).encode("a<extra_id_0>")
        [100, 260]

    Reference: "ByT5: Towards a Token-Free Future with Pre-trained Byte-to-Byte Models", arXiv:2105.13626.

    Differs: the published ByT5 models have no sentinels of their own, they were trained with the last bytes (258
    downward) in their place. transformers' ByT5Tokenizer numbers sentinels upwards behind the last byte, as `ascending`
    does.
    """

    kind = "bytes"
    _OFFSET = 3
    pad_id, eos_id, unk_id = 0, 1, 2

    def __init__(self, *, sentinels: int = 100, mask: bool = True, modes: bool = False, ascending: bool = False):
        """A byte vocabulary.

        Args:
            sentinels: how many.
            mask: whether there is a mask token.
            modes: whether there are UL2's mode tokens.
            ascending: <extra_id_0> is the first of the sentinels, not the last.
        """
        if sentinels < 0:
            raise ValueError(f"sentinels={sentinels} must not be negative")
        if sentinels >= reading.MAX_IDS:
            raise ValueError(f"sentinels={sentinels} is too many: a vocabulary has at most {reading.MAX_IDS} ids")
        first = self._OFFSET + 256
        self.mask_id = first if mask else None
        names = base.MODES if modes else ()
        self.size = first + mask + len(names) + sentinels
        upwards = range(self.size - sentinels, self.size)
        self.sentinels = tuple(upwards if ascending else reversed(upwards))
        self._ascending = ascending
        self._names = {base.MASK: self.mask_id} if mask else {}
        self._names |= {name: first + mask + i for i, name in enumerate(names)}
        self._names |= {base.sentinel_name(k): token for k, token in enumerate(self.sentinels)}
        self._texts = {token: name.encode() for name, token in self._names.items()}

    def _encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> list[int]:
        ids = []
        for i, part in enumerate(_SPECIAL.split(text) if "<" in text or "[" in text else [text]):
            if i % 2 and part in self._names:
                ids.append(self._names[part])
            else:
                ids.extend(byte + self._OFFSET for byte in part.encode("utf-8", errors="replace"))
        return ids

    def _decode(self, ids: list[int]) -> str:
        texts = (self._texts.get(i) or bytes([i - self._OFFSET]) for i in ids if i >= self._OFFSET)
        return b"".join(texts).decode("utf-8", errors="ignore")

    def pieces(self) -> list[str]:
        """The byte or name of every id; bytes that are not ASCII as <0xE2>."""
        printable = [chr(b) if 32 <= b < 127 else f"<0x{b:02X}>" for b in range(256)]
        return ["<pad>", "</s>", "<unk>", *printable, *(self._texts[i].decode() for i in range(259, self.size))]

    def _word_rules(self) -> dict[str, words.PieceRule]:
        return {"begins": words.begins_byte}

    def _other_special_ids(self) -> set[int]:
        return {self._names[name] for name in base.MODES if name in self._names}

    def _settings(self) -> dict:
        settings = {"sentinels": len(self.sentinels), "mask": self.mask_id is not None}
        settings |= {"ascending": True} if self._ascending else {}
        return settings | ({"modes": True} if self.modes else {})

    def _files(self) -> dict[str, bytes]:
        return {}

    def _arguments(self) -> tuple:
        return ()
