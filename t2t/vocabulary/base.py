"""What all kinds of vocabulary share, and the usual names of special tokens."""

import abc
import functools
import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, SupportsInt

from t2t.vocabulary import words

CONFIG_FILE = "vocabulary.json"
MASK = "<mask>"
LANGUAGE = re.compile(r"[a-z]{2}_[A-Z]{2}")
SENTINEL = re.compile(r"▁?<extra_id_(\d+)>")
MODES = ("[NLU]", "[NLG]", "[S2S]")
"""Names of the tokens that tell a model of UL2's kind how its input was made: UL2's R-, X- and S-denoisers."""

ROLE_NAMES = {
    "pad": ("<pad>", "[PAD]", "[pad]"),
    "bos": ("<s>", "[CLS]", "[cls]", "<|endoftext|>"),
    "eos": ("</s>", "[SEP]", "[sep]", "<|endoftext|>"),
    "unk": ("<unk>", "[UNK]", "[unk]"),
    "mask": ("<mask>", "▁<mask>", "[MASK]", "▁[MASK]", "[mask]"),
}
"""Names under which published vocabularies keep a special token, the most common first."""


def sentinel_name(index: int) -> str:
    """The text of the index-th sentinel, as T5 writes it.

    >>> sentinel_name(0)
    '<extra_id_0>'
    """
    return f"<extra_id_{index}>"


class Vocabulary(abc.ABC):
    """Text to ids and back. Ids that a vocabulary lacks are None, its sentinels () when it has none.

    Attributes:
        size: number of ids, sentinels and mask included; all ids lie in [0, size).
        pad_id, bos_id, eos_id, unk_id, mask_id: special ids. bos is what a sequence starts with (BERT: [CLS]), eos what
            it ends with (BERT: [SEP]).
        sentinels: ids of <extra_id_0>, <extra_id_1>, ... in this order.
        start_id: the id a decoder starts with: the one chosen by `starting_with`, else bos, else padding as in T5, else
            eos as in GPT-2; None where there is none.
    """

    kind: ClassVar[str]
    size: int
    pad_id: int | None = None
    bos_id: int | None = None
    eos_id: int | None = None
    unk_id: int | None = None
    mask_id: int | None = None
    sentinels: tuple[int, ...] = ()
    _chosen_start: int | None = None

    @abc.abstractmethod
    def _encode_batch(self, texts: Sequence[str]) -> list[list[int]]: ...

    @abc.abstractmethod
    def _decode(self, ids: list[int]) -> str: ...

    @abc.abstractmethod
    def _files(self) -> dict[str, bytes]: ...

    @abc.abstractmethod
    def _arguments(self) -> tuple:
        """What the constructor needs besides the settings."""

    @abc.abstractmethod
    def pieces(self) -> list[str]:
        """The piece of text (or name) of every id."""

    def _settings(self) -> dict:
        return {}

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, without bos or eos; special tokens written in the text are recognised.

        The code of a language (mBART: "Salut. ro_RO") is recognised at the end of a text.
        """
        if not self.languages:
            return self._encode_batch(texts)
        parts = [self.split_language(text) for text in texts]
        rows = self._encode_batch([text for text, _ in parts])
        return [row if token is None else [*row, token] for row, (_, token) in zip(rows, parts, strict=True)]

    @functools.cached_property
    def languages(self) -> dict[str, int]:
        """The codes of languages among the special tokens (mBART), with their ids."""
        pieces = self.pieces()
        return {pieces[token]: token for token in self.special_ids if LANGUAGE.fullmatch(pieces[token])}

    @functools.cached_property
    def modes(self) -> dict[str, int]:
        """The tokens that name a mode (`MODES`) among the special tokens, with their ids; {} where there are none."""
        pieces = self.pieces()
        special = {pieces[token].removeprefix("▁"): token for token in self.special_ids}
        return {name: special[name] for name in MODES if name in special}

    def split_language(self, text: str) -> tuple[str, int | None]:
        """A text without the code of its language at its end, and the id of the code; None where there is none."""
        before, _, last = text.rstrip().rpartition(" ")
        return (before.rstrip(), self.languages[last]) if last in self.languages else (text, None)

    def encode(self, text: str) -> list[int]:
        """Ids of one text, without bos or eos."""
        return self.encode_batch([text])[0]

    def decode(self, ids: Iterable[SupportsInt], *, skip_sentinels: bool = False) -> str:
        """The text of ids up to the first eos, without padding and the leading bos.

        Args:
            ids: those outside the vocabulary (padded embedding rows) read as unknown, or vanish if there is no unk.
            skip_sentinels: leave out <extra_id_k> too.
        """
        ids = [int(i) for i in ids]
        if ids and self.bos_id is not None and ids[0] == self.bos_id:
            del ids[0]
        if self.eos_id in ids:
            ids = ids[: ids.index(self.eos_id)]
        dropped = set(self.sentinels) if skip_sentinels else set()
        if self.pad_id is not None:
            dropped.add(self.pad_id)
        known = (i if 0 <= i < self.size else self.unk_id for i in ids if i not in dropped)
        return self._decode([i for i in known if i is not None])

    def decode_batch(self, rows: Iterable[Iterable[SupportsInt]], *, skip_sentinels: bool = False) -> list[str]:
        """The text of each row of ids."""
        return [self.decode(row, skip_sentinels=skip_sentinels) for row in rows]

    @functools.cached_property
    def special_ids(self) -> tuple[int, ...]:
        """Sorted ids of all special tokens: pad, bos, eos, unk, mask, the sentinels, and whatever else is not text."""
        named = (self.pad_id, self.bos_id, self.eos_id, self.unk_id, self.mask_id)
        return tuple(sorted({i for i in named if i is not None} | set(self.sentinels) | self._other_special_ids()))

    @property
    def start_id(self) -> int | None:
        """The id a decoder starts with."""
        ids = (self._chosen_start, self.bos_id, self.pad_id, self.eos_id)
        return next((token for token in ids if token is not None), None)

    def starting_with(self, start_id: int | None) -> "Vocabulary":
        """The same vocabulary whose decoders start with another id (BART: eos, not bos); saved and loaded with it.

        Args:
            start_id: None = the usual one.

        Raises:
            ValueError: it is no id of the vocabulary.
        """
        if start_id is not None and not 0 <= start_id < self.size:
            raise ValueError(f"start_id {start_id} is no id of {self!r}: they go from 0 to {self.size - 1}")
        other = type(self)(*self._arguments(), **self._settings())
        if start_id is not None and start_id != other.start_id:
            other._chosen_start = start_id
        return other

    def __reduce__(self):
        """Pickled as what makes it again."""
        make = functools.partial(type(self), **self._settings())
        return make, self._arguments(), {"_chosen_start": self._chosen_start}

    @functools.cached_property
    def word_marks(self) -> words.WordMarks:
        """Where words begin among tokens, by the marks in the pieces.

        Raises:
            ValueError: the vocabulary does not say how it marks words.
        """
        return words.mark_words(self.pieces(), self.special_ids, **self._word_rules())

    @abc.abstractmethod
    def _word_rules(self) -> dict[str, words.PieceRule]:
        """Rules of `words.mark_words` by name."""

    def _other_special_ids(self) -> set[int]:
        return set()

    def _description(self) -> bytes:
        description = {"kind": self.kind, **self._settings(), "size": self.size}
        if self._chosen_start is not None:
            description["start_id"] = self._chosen_start
        return (json.dumps(description, indent=2, ensure_ascii=False) + "\n").encode()

    @functools.cached_property
    def fingerprint(self) -> str:
        """A SHA-256 of everything that decides ids: equal fingerprints mean equal vocabularies."""
        digest = hashlib.sha256(self._description())
        for name, content in sorted(self._files().items()):
            digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
        return digest.hexdigest()

    def save(self, directory: str | os.PathLike) -> None:
        """Write vocabulary.json and the files it needs into a directory, made if missing."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in {CONFIG_FILE: self._description(), **self._files()}.items():
            (directory / name).write_bytes(content)

    @staticmethod
    def load(path: str | os.PathLike, *, sentinels: int | None = None) -> "Vocabulary":
        """The vocabulary of a directory (ours or Hugging Face's) or of a single file.

        Args:
            path: a directory, or a SentencePiece model, tokenizer.json, vocab.txt, vocab.json (merges.txt beside it).
            sentinels: how many <extra_id_k> to add to a bare SentencePiece model that holds none. None adds T5's 100 to
                a model with T5's ids (pad 0, eos 1, unk 2, no bos), as T5's tasks do, and none to others. Models that
                hold their sentinels (ours, mT5's) never get more.
        """
        from t2t.vocabulary import files

        return files.load(Path(path), sentinels=sentinels)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, fingerprint={self.fingerprint[:12]!r})"


def name_of_role(ids_by_piece: dict[str, int], role: str, names: dict[str, str] | None = None) -> str | None:
    """The special token that a vocabulary has for a role: of an explicit name, else of the usual names."""
    candidates = ([names[role]] if names and names.get(role) else []) + list(ROLE_NAMES[role])
    return next((name for name in candidates if name in ids_by_piece), None)


def roles(ids_by_piece: dict[str, int], names: dict[str, str] | None = None) -> dict[str, int | None]:
    """The special ids {"pad_id": ...} a vocabulary holds, by explicit name of the role, else by the usual names."""
    found = {role: name_of_role(ids_by_piece, role, names) for role in ROLE_NAMES}
    return {f"{role}_id": None if name is None else ids_by_piece[name] for role, name in found.items()}


def framing_names(names: Iterable[str | None]) -> dict[str, str]:
    """The names of bos and eos where the usual ones stand around no text: XLNet's, which has <s> and </s> too."""
    return {"bos": "<cls>", "eos": "<sep>"} if {"<cls>", "<sep>"} <= set(names) else {}


def sentinel_ids(ids_by_piece: dict[str, int]) -> tuple[int, ...]:
    """Ids of <extra_id_0>, <extra_id_1>, ... as far as a vocabulary holds them without a gap.

    >>> sentinel_ids({"<extra_id_0>": 9, "<extra_id_1>": 8, "<extra_id_3>": 6, "<extra_id_4>": 5})
    (9, 8)
    """
    numbered = {}
    for piece, token in ids_by_piece.items():
        if match := SENTINEL.fullmatch(piece):
            numbered[int(match[1])] = token
    return tuple(numbered[k] for k in itertools.takewhile(numbered.__contains__, itertools.count()))
