"""Byte-pair encoding of the words that the Moses toolkit cuts: the vocabulary of XLM."""

import functools
import json
import re
import unicodedata
from collections.abc import Sequence

from t2t.vocabulary import base, moses, reading, words

END_OF_WORD = "</w>"
MASK = "<special1>"
CLASS = "XLMTokenizer"
"""The tokenizer of transformers that gives the same ids."""
_SPECIAL = ("<s>", "</s>", "<pad>", "<unk>", *(f"<special{k}>" for k in range(10)))


class MosesVocabulary(base.Vocabulary):
    """A vocab.json and a merges.txt for words that `moses.words` cuts, in lower case and without accents if it says so.

    Special tokens: <s> begins a text, </s> ends it, <pad>, <unk>, and <special0> to <special9>, of which <special1> is
    the mask; written in a text they are recognised.

    Reference: "Cross-lingual Language Model Pretraining", arXiv:1901.07291, and its code, facebookresearch/XLM, whose
    tools/tokenize.sh and tools/lowercase_and_remove_accent.py come before fastBPE; transformers' XLMTokenizer.

    Differs: text of every language is cut as English is, as transformers does where no language is named; the released
    code cuts Chinese, Japanese and Thai by programs of their own. Text is put in lower case after it is cut, as in the
    released code and transformers 5; transformers 4 does so before, which matters where a capital follows a point.
    """

    kind = "moses_bpe"
    VOCAB_FILE, MERGES_FILE = "vocab.json", "merges.txt"

    def __init__(self, vocab: str, merges: str, *, lowercase: bool = True, names: dict[str, str] | None = None):
        """A vocabulary from the texts of its files.

        Args:
            vocab: JSON, {piece: id}; pieces that end a word end in </w>.
            merges: a pair of pieces in every line, the first made first; what follows a pair (a count) is left out.
            lowercase: put text in lower case and leave accents out.
            names: names of special tokens by role, where the usual ones do not hold.

        Raises:
            ValueError: vocab is no such JSON, or has no token for what it cannot write.
        """
        self.vocab, self.merges, self.lowercase = vocab, merges, lowercase
        self.names = {role: name for role, name in (names or {}).items() if name}
        self._ids = json.loads(vocab)
        if not isinstance(self._ids, dict):
            raise ValueError("vocab is no JSON object of pieces and ids")
        reading.check_ids("vocab", self._ids)
        self.size = max(self._ids.values(), default=-1) + 1
        for role, token in base.roles(self._ids, {"mask": MASK, **self.names}).items():
            setattr(self, role, token)
        if self.unk_id is None:
            raise ValueError("vocab has no <unk>")
        special = (name for name in (*_SPECIAL, *self.names.values()) if name in self._ids)
        self._special = {name: self._ids[name] for name in special}
        longest_first = sorted(self._special, key=len, reverse=True)
        self._special_in_text = re.compile(f"({'|'.join(map(re.escape, longest_first))})")
        # The last line counts only where a line end follows it, and the last of two equal pairs.
        pairs = (tuple(line.split()[:2]) for line in merges.split("\n")[:-1])
        self._ranks = {pair: rank for rank, pair in enumerate(pairs)}
        self._pieces = [""] * self.size
        for piece, token in self._ids.items():
            self._pieces[token] = piece
        self._ids_of_word = functools.lru_cache(maxsize=2**17)(self._encode_word)

    def _encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for part in self._special_in_text.split(text):
            if part in self._special:
                ids.append(self._special[part])
            else:
                ids.extend(token for word in self._words(part) for token in self._ids_of_word(word))
        return ids

    def _words(self, text: str) -> list[str]:
        words = moses.words(text)
        if not self.lowercase:
            return words
        cut = unicodedata.normalize("NFD", " ".join(words).lower())
        return [word for word in "".join(c for c in cut if unicodedata.category(c) != "Mn").lower().split(" ") if word]

    def _encode_word(self, word: str) -> tuple[int, ...]:
        pieces = [*word[:-1], word[-1] + END_OF_WORD]
        while len(pieces) > 1:
            known = [pair for pair in zip(pieces, pieces[1:], strict=False) if pair in self._ranks]
            if not known:
                break
            pieces = _joined(pieces, *min(known, key=self._ranks.__getitem__))
        return tuple(self._ids.get(piece, self.unk_id) for piece in pieces)

    def _decode(self, ids: list[int]) -> str:
        special = set(self._special.values())
        text = "".join(f" {self._pieces[i]} " if i in special else self._pieces[i] for i in ids)
        return " ".join(text.replace(END_OF_WORD, " ").split())

    def pieces(self) -> list[str]:
        """The piece of every id; '' where a number is not taken."""
        return list(self._pieces)

    def _word_rules(self) -> dict[str, words.PieceRule]:
        return {"ends": lambda piece: piece.endswith(END_OF_WORD)}

    def _other_special_ids(self) -> set[int]:
        return set(self._special.values())

    def _settings(self) -> dict:
        return {"lowercase": self.lowercase, "names": self.names}

    def _files(self) -> dict[str, bytes]:
        return {self.VOCAB_FILE: self.vocab.encode(), self.MERGES_FILE: self.merges.encode()}

    def _arguments(self) -> tuple:
        return (self.vocab, self.merges)


def _joined(pieces: list[str], first: str, second: str) -> list[str]:
    """The pieces with every such pair made one, from the left."""
    joined: list[str] = []
    place = 0
    while place < len(pieces):
        is_pair = pieces[place : place + 2] == [first, second]
        joined.append(first + second if is_pair else pieces[place])
        place += 1 + is_pair
    return joined


def is_one(vocab: dict[str, int]) -> bool:
    """Whether the pieces of a vocab.json are of this kind: XLM's special tokens, and words whose end is marked."""
    return {"<s>", "</s>", "<pad>", "<unk>", MASK} <= vocab.keys() and any(p.endswith(END_OF_WORD) for p in vocab)
