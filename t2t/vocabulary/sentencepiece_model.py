"""SentencePiece models, with T5's sentinels and a mask as pieces of the model."""

import functools
import os
import re
import unicodedata
from collections.abc import Sequence

from t2t.vocabulary import base

T5_SENTINELS = 100


def threads() -> int:
    """How many threads encode: the cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class SentencePieceVocabulary(base.Vocabulary):
    """A SentencePiece model, held as the bytes of its file.

    The sentinels and the mask are pieces of the model (user-defined, with the space before them, as seqio adds them):
    any program that opens the file gives the same ids. Ids of text equal those of
    `seqio.SentencePieceVocabulary(extra_ids=...)`.

    Differs: seqio recognises a sentinel only after a space; here "jel<extra_id_0>" works too, read as after a space.
    """

    kind = "sentencepiece"
    FILE = "sentencepiece.model"

    def __init__(self, model: bytes, *, fairseq: bool = False, uncased: bool = False):
        """A vocabulary from the bytes of a model file.

        Args:
            model: the serialised model, sentinels and mask included.
            fairseq: ids as XLM-R and mBART number them: <s> 0, <pad> 1, </s> 2, <unk> 3, then piece + 1, <mask> last.
            uncased: write text in lower case without accents first, as ALBERT does.
        """
        import sentencepiece

        self.model = model
        self.fairseq = fairseq
        self.uncased = uncased
        self._pieces, special = _read(model)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.size = len(self._pieces) + fairseq
        self._to_id = [3, 0, 2, *range(4, self.size)] if fairseq else None
        self._special = {self._pieces[i]: self._to_id[i] if fairseq else i for i in special}
        for role, token in base.roles(self._special).items():
            setattr(self, role, token)
        if fairseq:
            self.pad_id = 1
        self.sentinels = base.sentinel_ids(self._special)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, without bos or eos, by the library's own threads."""
        texts = [self._prepare(text) for text in texts]
        rows = self._processor.encode(texts, num_threads=min(threads(), max(1, len(texts) // 16)))
        return [[self._to_id[i] for i in row] for row in rows] if self.fairseq else rows

    def _prepare(self, text: str) -> str:
        if not text.isascii():
            text = text.encode("utf-8", errors="replace").decode()
        if self.uncased:
            text = _uncase(text)
        if "<" in text:
            text = re.sub(r"(?<=\S)<(?:mask|extra_id_\d+)>", self._spaced, text)
        return text

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

    def _settings(self) -> dict:
        return {"fairseq": self.fairseq, "uncased": self.uncased}

    def _files(self) -> dict[str, bytes]:
        return {self.FILE: self.model}

    def __reduce__(self):
        return functools.partial(SentencePieceVocabulary, **self._settings()), (self.model,)


def _uncase(text: str) -> str:
    text = unicodedata.normalize("NFKD", text.replace("``", '"').replace("''", '"'))
    return "".join(c for c in text if not unicodedata.combining(c)).lower()


def _parse(model: bytes):
    from google.protobuf import message
    from sentencepiece import sentencepiece_model_pb2

    try:
        proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    except message.DecodeError as error:
        raise ValueError("not a SentencePiece model: the file is damaged or of another kind") from error
    if not proto.pieces:
        raise ValueError("not a SentencePiece model: it has no pieces")
    return proto


def _read(model: bytes) -> tuple[list[str], list[int]]:
    """All pieces of a model, and the indices of those that are not text: unknown, control and user-defined ones."""
    pieces = _parse(model).pieces
    kinds = type(pieces[0])
    special = (kinds.UNKNOWN, kinds.CONTROL, kinds.USER_DEFINED)
    return [piece.piece for piece in pieces], [i for i, piece in enumerate(pieces) if piece.type in special]


def is_t5_layout(model: bytes) -> bool:
    """Whether a SentencePiece model has T5's special ids: pad 0, eos 1, unk 2 and no bos."""
    pieces, special = _read(model)
    return pieces[:3] == ["<pad>", "</s>", "<unk>"] and "<s>" not in (pieces[i] for i in special)


def is_uncased(model: bytes) -> bool:
    """Whether a SentencePiece model with [CLS] knows no capital letter, so that text must have none."""
    pieces, special = _read(model)
    names = {pieces[i] for i in special}
    return "[CLS]" in names and not any(piece != piece.lower() for piece in pieces if piece not in names)


def with_pieces(model: bytes, *, sentinels: int | None, mask: bool = False) -> bytes:
    """A SentencePiece model with the mask and sentinels appended, <extra_id_0> last; those it holds stay as they are.

    Args:
        model: the serialised model.
        sentinels: how many there should be; None means T5's 100 for a model of T5's layout and none for others.
        mask: whether there should be a mask token.
    """
    proto = _parse(model)
    held = {proto.pieces[i].piece: i for i in _read(model)[1]}
    user_defined = type(proto.pieces[0]).USER_DEFINED
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
