"""SentencePiece models and bytes as tokenizers of the tokenizers library that give the same ids.

Three things are in the way of a SentencePiece model:

- SentencePiece adds one space before the text, the library before the text and after every special token. Metaspace
  with `prepend_scheme="first"` does it once, and sentinels take the space before them (`lstrip`), as the pieces
  "▁<extra_id_0>" of SentencePiece do.
- The library applies a model's character map to whole grapheme clusters and drops what follows in the cluster: a
  full-width A with an accent loses the accent, decomposed Vietnamese half of its marks. Where the map is NFKC with few
  exceptions, as all of T5's kind are, the text goes through the library's NFKC first, and the exceptions are carried
  past it. Not so where the vocabulary knows marks of Arabic, Hebrew and the like: NFKC sorts them and the map does not.
- Trailing spaces are cut by a regular expression, because the library's Strip also cuts characters that SentencePiece
  keeps (U+0085).

Differs: a letter with several accents in an order that is not canonical may get other ids, and so may characters that
are younger than the map (only the first 32 exceptions are carried past NFKC). Scores that
are no multiples of 1/256 may break ties between equally good segmentations ("####") in another way, because the library
adds them in double precision and SentencePiece in single; our own vocabularies have only such scores. A text that
begins with two grave accents, which an uncased vocabulary reads as a quotation mark, has no space before it.
"""

import base64
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

from t2t import vocabulary as vocabularies
from t2t.vocabulary import sentencepiece_model

_SPACE = "▁"
_STAND_INS = [chr(c) for c in range(0xFDD0, 0xFDF0)]
"""Code points that no text contains: exceptions to NFKC travel as these."""
_MOST_EXCEPTIONS = 500
"""Of some 10,000 characters that NFKC changes, how many a map may leave or change otherwise and still count as NFKC."""


def model_proto(model: bytes = b"") -> Any:
    """The contents of a SentencePiece model; without bytes an empty one."""
    from sentencepiece import sentencepiece_model_pb2

    return sentencepiece_model_pb2.ModelProto.FromString(model)


def from_sentencepiece(vocabulary: vocabularies.SentencePieceVocabulary) -> dict[str, Any]:
    """A tokenizer of the tokenizers library that gives the ids of a SentencePiece model.

    Raises:
        ValueError: a model of another kind than unigram and BPE, or one with pieces that are never used.
    """
    proto = model_proto(vocabulary.effective_model)
    kinds = type(proto.pieces[0])
    if any(piece.type == kinds.UNUSED for piece in proto.pieces):
        raise ValueError("the SentencePiece model has unused pieces, which the tokenizers library cannot leave out")
    unigram = proto.trainer_spec.model_type == proto.trainer_spec.UNIGRAM
    if not unigram and proto.trainer_spec.model_type != proto.trainer_spec.BPE:
        raise ValueError("only unigram and BPE models of SentencePiece have a counterpart in the tokenizers library")
    scores = {piece.piece: piece.score for piece in proto.pieces}
    # What a user defined is one piece always: the best score does that in a unigram model, a token of its own in BPE.
    special = {
        piece.piece
        for piece in proto.pieces
        if sentencepiece_model.is_special(piece) or (piece.type == kinds.USER_DEFINED and not unigram)
    }
    added, vocab = [], []
    for token, piece in enumerate(vocabulary.pieces()):
        is_special = piece in special or piece not in scores
        name = piece.removeprefix(_SPACE) if is_special else piece
        vocab.append((name, scores.get(piece, 0.0)))
        if is_special:
            added.append(added_token(token, name, takes_space=name != piece))
    fallback = proto.trainer_spec.byte_fallback
    metaspace = {"type": "Metaspace", "replacement": _SPACE, "prepend_scheme": "first", "split": True}
    if vocabulary.mask:
        metaspace["prepend_scheme"] = "always"
    if not proto.normalizer_spec.add_dummy_prefix:
        metaspace["prepend_scheme"] = "never"
    decoders = [{"type": "ByteFallback"}, {"type": "Fuse"}] if fallback else []
    cleaning = [step for name in vocabulary.clean for step in sentencepiece_model.CLEANING[name]]
    if unigram:
        model = _unigram(vocab, vocabulary.unk_id, fallback)
    else:
        model = _bpe(vocab, {token["content"] for token in added}, vocabulary.unk_id, fallback)
    return definition(
        model,
        added,
        normalizer={"type": "Sequence", "normalizers": [*cleaning, *_normalizers(proto.normalizer_spec, scores)]},
        splitter=metaspace,
        decoder={"type": "Sequence", "decoders": [*decoders, metaspace]} if decoders else metaspace,
    )


def _unigram(vocab: list[tuple[str, float]], unknown: int, fallback: bool) -> dict[str, Any]:
    return {"type": "Unigram", "unk_id": unknown, "vocab": [list(entry) for entry in vocab], "byte_fallback": fallback}


def _bpe(vocab: list[tuple[str, float]], special: set[str], unknown: int, fallback: bool) -> dict[str, Any]:
    """The BPE model whose merges make the pieces of SentencePiece's, the best score first."""
    ids = {piece: token for token, (piece, _) in enumerate(vocab)}
    merges = []
    for piece, score in vocab:
        if piece in special:
            continue
        halves = [(piece[:i], piece[i:]) for i in range(1, len(piece))]
        known = sorted((ids[left], ids[right]) for left, right in halves if left in ids and right in ids)
        merges += [(-score, left, right) for left, right in known]
    merges.sort(key=lambda merge: merge[0])  # stable: equal scores stay in the order of their piece
    pairs = [[vocab[left][0], vocab[right][0]] for _, left, right in merges]
    return _bpe_model(ids, pairs, unknown=vocab[unknown][0], fallback=fallback)


def _bpe_model(ids: dict[str, int], merges: list[list[str]], *, unknown: str | None, fallback: bool) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": unknown is not None,
        "byte_fallback": fallback,
        "ignore_merges": False,
        "vocab": ids,
        "merges": merges,
    }


def _normalizers(spec: Any, pieces: Iterable[str]) -> list[dict[str, Any]]:
    """What SentencePiece does to a text before it looks for pieces."""
    steps: list[dict[str, Any]] = []
    if spec.precompiled_charsmap:
        charsmap = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(spec.precompiled_charsmap).decode()}
        exceptions = None if _has_other_marks(pieces) else _exceptions(spec)
        if exceptions is None:
            steps = [charsmap]
        else:
            kept = list(zip(exceptions, _STAND_INS, strict=False))
            steps = [
                *(_replace(char, stand_in) for char, stand_in in kept),
                {"type": "NFKC"},
                *(_replace(stand_in, char) for char, stand_in in kept),
                charsmap,
            ]
    if spec.remove_extra_whitespaces:
        steps += [
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
            {"type": "Replace", "pattern": {"Regex": " +\\z"}, "content": ""},
        ]
    return steps


def _replace(old: str, new: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


def _has_other_marks(pieces: Iterable[str]) -> bool:
    """Whether pieces hold combining marks besides the accents of the Latin alphabet."""
    return any(unicodedata.combining(char) and not 0x300 <= ord(char) < 0x370 for char in set("".join(pieces)))


def _exceptions(spec: Any) -> list[str] | None:
    """Characters that a character map treats otherwise than NFKC before it would; None if it is no kind of NFKC."""
    mapped = _character_map(spec)
    found = []
    for code in range(0xA0, 0x110000):
        char = chr(code)
        composed = unicodedata.normalize("NFKC", char)
        if composed != char and not 0xD800 <= code < 0xE000 and mapped(char) != mapped(composed):
            found.append(char)
            if len(found) > _MOST_EXCEPTIONS:
                return None
    return found


def _character_map(spec: Any) -> Callable[[str], str]:
    """The character map of a SentencePiece model as a function of short texts."""
    import sentencepiece

    proto = model_proto()
    proto.normalizer_spec.CopyFrom(spec)
    proto.normalizer_spec.add_dummy_prefix = False
    proto.normalizer_spec.remove_extra_whitespaces = False
    proto.pieces.add(piece=_SPACE)
    proto.pieces.add(piece="<unk>", type=type(proto.pieces[0]).UNKNOWN)
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    return processor.normalize


def from_bytes(vocabulary: vocabularies.Vocabulary) -> dict[str, Any]:
    """A byte-level BPE without merges: every byte is its own token."""
    pieces = vocabulary.pieces()
    special = {pieces[token]: token for token in vocabulary.special_ids}
    first = vocabulary.encode("\0")[0]
    letters = {letter: first + byte for byte, letter in enumerate(_byte_letters())}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return definition(
        _bpe_model(special | letters, [], unknown=None, fallback=False),
        [added_token(token, piece) for piece, token in special.items()],
        normalizer=None,
        splitter=byte_level,
        decoder=byte_level,
    )


def _byte_letters() -> list[str]:
    """The printable character by which GPT-2's byte-level tokenizers write each byte."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def definition(model: dict, added: list[dict], *, normalizer: dict | None, splitter: dict, decoder: dict) -> dict:
    """The content of a tokenizer.json without a post-processor."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": sorted(added, key=lambda token: token["id"]),
        "normalizer": normalizer,
        "pre_tokenizer": splitter,
        "post_processor": None,
        "decoder": decoder,
        "model": model,
    }


def added_token(token: int, content: str, *, takes_space: bool = False) -> dict[str, Any]:
    """A special token of a tokenizer.json; one that `takes_space` swallows the white space before it."""
    return {
        "id": token,
        "content": content,
        "single_word": False,
        "lstrip": takes_space,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
