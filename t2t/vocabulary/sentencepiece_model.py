"""SentencePiece models, with T5's sentinels and a mask as pieces of the model."""

import os
import re
from collections.abc import Sequence
from typing import Any

from t2t.vocabulary import base, words

T5_SENTINELS = 100
NAME = re.compile(r"▁?(?:<[^<>]+>|\[[^\[\]]+\])")
"""What a special token looks like."""
_GLUED = re.compile(rf"(?<=\S)(?:<mask>|<extra_id_\d+>|{'|'.join(map(re.escape, base.MODES))})")
"""A special token right behind something else."""


def threads() -> int:
    """How many threads encode: T2T_THREADS, else the cores this process may use."""
    if os.environ.get("T2T_THREADS", "").isdecimal():
        return max(1, int(os.environ["T2T_THREADS"]))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


CLEANING = {
    "quotes": [
        {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
        {"type": "Replace", "pattern": {"String": "''"}, "content": '"'},
    ],
    "accents": [{"type": "NFKD"}, {"type": "StripAccents"}],
    "lowercase": [{"type": "Lowercase"}],
}
"""What may be done to text before a model reads it, in this order, as the tokenizers library writes it down."""


class SentencePieceVocabulary(base.Vocabulary):
    """A SentencePiece model, held as the bytes of its file.

    Sentinels, mask and modes are pieces of the model (user-defined, with the space before them, as seqio adds them):
    any program that opens the file gives the same ids. Ids of text equal those of
    `seqio.SentencePieceVocabulary(extra_ids=...)`. The arguments say what published models do besides.

    Differs: seqio recognises a sentinel only after a space; here "jel<extra_id_0>" works too, read as after a space.

    Attributes:
        model: bytes of the file.
        effective_model: bytes of the model that gives the ids: with the pieces and scores that the arguments change.
    """

    kind = "sentencepiece"
    FILE = "sentencepiece.model"

    def __init__(
        self,
        model: bytes,
        *,
        fairseq: bool = False,
        clean: Sequence[str] = (),
        mask: str | None = None,
        appended: Sequence[str] = (),
        splits_numbers: bool = False,
    ):
        """A vocabulary from the bytes of a model file.

        Args:
            model: the serialised model, sentinels and mask included.
            fairseq: ids as XLM-R and mBART number them: <s> 0, <pad> 1, </s> 2, <unk> 3, then piece + 1.
            clean: what is done to text first: "quotes" (`` and '' become "), "accents" (stripped), "lowercase".
            mask: name of a mask that is a word of its own, wherever it stands: the text after it begins anew.
            appended: names of special tokens that follow the pieces of the file, such as language codes.
            splits_numbers: no piece ends in a digit and a comma, as ALBERT and XLNet read "9,000".
        """
        import sentencepiece

        if unknown := set(clean) - set(CLEANING):
            raise ValueError(f"clean has {sorted(unknown)}; possible are {list(CLEANING)}")
        self.model = model
        self.fairseq = fairseq
        self.clean = tuple(step for step in CLEANING if step in clean)
        self.mask = mask
        self.appended = tuple(appended)
        self.splits_numbers = splits_numbers
        self.effective_model = _effective(model, mask=mask, appended=self.appended, splits_numbers=splits_numbers)
        self._cleaner = cleaner(self.clean)
        self._pieces, special = _read(self.effective_model)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=self.effective_model)
        self.size = len(self._pieces) + fairseq
        self._to_id = [3, 0, 2, *range(4, self.size)] if fairseq else None
        self._special = {self._pieces[i]: self._to_id[i] if fairseq else i for i in special}
        for role, token in base.roles(self._special, base.framing_names(self._special)).items():
            setattr(self, role, token)
        if fairseq:
            self.pad_id = 1
        self.sentinels = base.sentinel_ids(self._special)

    def _encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        texts = [self._prepare(text) for text in texts]
        rows = self._processor.encode(texts, num_threads=min(threads(), max(1, len(texts) // 16)))
        return [[self._to_id[i] for i in row] for row in rows] if self.fairseq else rows

    def _prepare(self, text: str) -> str:
        if not text.isascii():
            text = text.encode("utf-8", errors="replace").decode()
        if self.mask and self.mask in text:
            text = f" {self.mask} ".join(self._cleaned(part) for part in text.split(self.mask))
        else:
            text = self._cleaned(text)
        if "<" in text or "[" in text:
            text = _GLUED.sub(self._spaced, text)
        return text

    def _cleaned(self, text: str) -> str:
        return self._cleaner.normalize_str(text) if self._cleaner else text

    def _spaced(self, match: re.Match) -> str:
        return f" {match[0]}" if f"▁{match[0]}" in self._special else match[0]

    def _decode(self, ids: list[int]) -> str:
        if self.fairseq:
            back = {token: i for i, token in enumerate(self._to_id)}
            ids = [back[i] for i in ids if i in back]
        return self._processor.decode(ids)

    def pieces(self) -> list[str]:
        """The piece of every id; ▁ stands for a space."""
        if not self.fairseq:
            return list(self._pieces)
        return ["<s>", "<pad>", "</s>", "<unk>", *self._pieces[3:]]

    def _word_rules(self) -> dict[str, words.PieceRule]:
        return {"begins": words.begins_sentence_piece}

    def _other_special_ids(self) -> set[int]:
        return set(self._special.values())

    def _settings(self) -> dict:
        settings = {
            "fairseq": self.fairseq,
            "clean": list(self.clean),
            "mask": self.mask,
            "appended": list(self.appended),
            "splits_numbers": self.splits_numbers,
        }
        return {name: value for name, value in settings.items() if value}

    def _files(self) -> dict[str, bytes]:
        return {self.FILE: self.model}

    def _arguments(self) -> tuple:
        return (self.model,)


def cleaner(steps: Sequence[str]) -> Any:
    """The normalizer of the tokenizers library that does the steps; None for none."""
    if not steps:
        return None
    from tokenizers import normalizers

    parts = {"NFKD": normalizers.NFKD, "StripAccents": normalizers.StripAccents, "Lowercase": normalizers.Lowercase}
    return normalizers.Sequence(
        [
            normalizers.Replace(part["pattern"]["String"], part["content"])
            if part["type"] == "Replace"
            else parts[part["type"]]()
            for step in steps
            for part in CLEANING[step]
        ]
    )


def _effective(model: bytes, *, mask: str | None, appended: Sequence[str], splits_numbers: bool) -> bytes:
    """The model with appended pieces, the mask as a piece that text can hold, and no scores for "9,"."""
    if not (mask or appended or splits_numbers):
        return model
    proto = _parse(model)
    kinds = type(proto.pieces[0])
    for name in appended:
        proto.pieces.add(piece=name, score=0.0, type=kinds.CONTROL)
    for piece in proto.pieces:
        if mask and piece.piece in (mask, f"▁{mask}"):
            piece.piece, piece.type, piece.score = f"▁{mask}", kinds.USER_DEFINED, 0.0
        if splits_numbers and piece.type == kinds.NORMAL and re.search(r"\d,\Z", piece.piece):
            piece.score -= 100.0
    return proto.SerializeToString(deterministic=True)


def _parse(model: bytes):
    from google.protobuf import message
    from sentencepiece import sentencepiece_model_pb2

    try:
        proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    except message.DecodeError as error:
        raise ValueError(
            "not a SentencePiece model: the file is damaged (copy or download it again) or of another kind"
        ) from error
    if not proto.pieces:
        raise ValueError("not a SentencePiece model: it has no pieces; copy or download it again")
    return proto


def _read(model: bytes) -> tuple[list[str], list[int]]:
    """All pieces of a model, and the indices of those that are not text.

    These are the unknown, the control and the user-defined pieces, but of the last only names in brackets: ALBERT's
    model has "(" and "." as user-defined pieces, which no other piece may hold.
    """
    pieces = _parse(model).pieces
    return [piece.piece for piece in pieces], [i for i, piece in enumerate(pieces) if is_special(piece)]


def is_special(piece: Any) -> bool:
    """Whether a piece of a model's protocol buffer stands for no text."""
    kinds = type(piece)
    named = piece.type == kinds.USER_DEFINED and NAME.fullmatch(piece.piece) is not None
    return named or piece.type in (kinds.UNKNOWN, kinds.CONTROL)


def pieces(model: bytes) -> list[str]:
    """All pieces of a model."""
    return _read(model)[0]


def special_pieces(model: bytes) -> dict[str, int]:
    """The pieces of a model that are not text, with their indices."""
    pieces, special = _read(model)
    return {pieces[i]: i for i in special}


def is_t5_layout(model: bytes) -> bool:
    """Whether a SentencePiece model has T5's special ids: pad 0, eos 1, unk 2 and no bos."""
    pieces, special = _read(model)
    return pieces[:3] == ["<pad>", "</s>", "<unk>"] and "<s>" not in (pieces[i] for i in special)


def has_capitals(model: bytes) -> bool:
    """Whether the pieces of a model that are text know capital letters."""
    pieces, special = _read(model)
    names = {pieces[i] for i in special}
    return any(piece != piece.lower() for piece in pieces if piece not in names)


def with_pieces(model: bytes, *, sentinels: int | None, mask: bool = False, modes: bool = False) -> bytes:
    """A SentencePiece model with modes, mask and sentinels appended, <extra_id_0> last; those it holds stay so.

    Args:
        model: the serialised model.
        sentinels: how many there should be; None means T5's 100 for a model of T5's layout and none for others.
        mask: whether there should be a mask token.
        modes: whether there should be UL2's mode tokens.
    """
    proto = _parse(model)
    held = {proto.pieces[i].piece: i for i in _read(model)[1]}
    user_defined = type(proto.pieces[0]).USER_DEFINED
    names = {name.removeprefix("▁") for name in held}
    for name in (name for name in base.MODES if modes and name not in names):
        proto.pieces.add(piece=f"▁{name}", score=0.0, type=user_defined)
    if mask and base.roles(held)["mask_id"] is None:
        proto.pieces.add(piece=f"▁{base.MASK}", score=0.0, type=user_defined)
    inside = len(base.sentinel_ids(held))
    if sentinels is None:
        sentinels = inside or (T5_SENTINELS if is_t5_layout(model) else 0)
    if inside and sentinels != inside:
        raise ValueError(f"the SentencePiece model holds {inside} sentinels, so sentinels={sentinels} is not possible")
    for k in reversed(range(0 if inside else sentinels)):
        proto.pieces.add(piece=f"▁{base.sentinel_name(k)}", score=0.0, type=user_defined)
    return proto.SerializeToString(deterministic=True)
