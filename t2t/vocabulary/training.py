"""Training a SentencePiece vocabulary on one's own text."""

import io
import re
from collections.abc import Iterable
from typing import Any, Literal

from t2t.vocabulary import base, sentencepiece_model

NUM_THREADS = 4
"""Fixed, because SentencePiece sums expectations per thread: another number gives slightly other scores."""

MIN_COVERAGE = 0.98
"""The least character_coverage that SentencePiece accepts."""

_MASK = "[MASK]"
_PLAIN: dict[str, Any] = {
    "number": 3,
    "names": "pad, eos, unk",
    "settings": {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
}
_FRAMED: dict[str, Any] = {
    "number": 5,
    "names": "pad, unk, [CLS], [SEP], [MASK]",
    "settings": {
        "pad_id": 0, "unk_id": 1, "bos_id": 2, "bos_piece": "[CLS]", "eos_id": 3, "eos_piece": "[SEP]",
        "control_symbols": [_MASK],
    },
}  # fmt: skip
"""The special tokens of both layouts, as SentencePiece is told of them."""


def train_sentencepiece(
    lines: Iterable[str],
    *,
    size: int,
    sentinels: int | None = None,
    mask: bool = True,
    modes: bool = False,
    framed: bool = False,
    lowercase: bool = True,
    model_type: Literal["unigram", "bpe"] = "unigram",
    byte_fallback: bool = False,
    character_coverage: float = 0.9995,
) -> sentencepiece_model.SentencePieceVocabulary:
    """A vocabulary with pad 0, eos 1, unk 2, no bos, as T5's; the same lines give the same bytes.

    One for encoders (`framed`) has what stands around their texts instead, as ALBERT's: <pad> 0, <unk> 1, [CLS] 2,
    [SEP] 3, [MASK] 4, all of them control symbols of the model, without which transformers' class cannot read it. Its
    text loses its accents, and `` and '' become quotation marks.

    Args:
        lines: texts, of any length; newlines inside count as spaces.
        size: number of ids in all, special tokens and sentinels included.
        sentinels: number of <extra_id_k>; <extra_id_0> gets the highest id, as in T5; None is 100, or 0 where framed.
        mask: whether there is a mask token (the id below the sentinels); a framed one always has it.
        modes: whether there are UL2's mode tokens [NLU], [NLG] and [S2S] (the ids below the mask); not where framed.
        framed: whether it has [CLS] and [SEP].
        lowercase: of a framed one: put text in lower case.
        model_type: unigram language model (as T5) or byte-pair encoding.
        byte_fallback: spell characters outside the vocabulary as bytes (256 more ids) instead of unk.
        character_coverage: fraction in [0.98, 1] (SentencePiece's bounds) of the characters of the text that get an id
            of their own.

    Raises:
        ValueError: the text is empty, or holds too little or too much for `size`; the message says what is possible.
            Settings that do not go together.
    """
    import sentencepiece

    sentinels = (0 if framed else 100) if sentinels is None else sentinels
    _check(size, sentinels, character_coverage)
    _check_layout(mask=mask, modes=modes, framed=framed, lowercase=lowercase)
    is_appended = mask and not framed
    extras = sentinels + is_appended + modes * len(base.MODES)
    special = _FRAMED if framed else _PLAIN
    if size <= extras + special["number"]:
        ids = f"{special['number']} ids {special['names']}"
        raise ValueError(f"size={size} must exceed the {_named(extras, modes)} and the {ids}")
    clean = ["quotes", "accents", *(["lowercase"] if lowercase else [])] if framed else []
    if framed:
        cleaned = sentencepiece_model.cleaner(clean)
        lines = (cleaned.normalize_str(line) for line in lines)
    model = io.BytesIO()
    sentencepiece.set_random_generator_seed(0)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            vocab_size=size - extras,
            model_type=model_type,
            byte_fallback=byte_fallback,
            character_coverage=character_coverage,
            max_sentence_length=2**30,
            num_threads=NUM_THREADS,
            minloglevel=2,
            **special["settings"],
        )
    except RuntimeError as error:
        raise ValueError(_explain(str(error), size=size, extras=extras, modes=modes)) from error
    exact = _with_exact_scores(model.getvalue())
    whole = sentencepiece_model.with_pieces(exact, sentinels=sentinels, mask=is_appended, modes=modes)
    if not framed:
        return sentencepiece_model.SentencePieceVocabulary(whole)
    return sentencepiece_model.SentencePieceVocabulary(whole, clean=clean, mask=_MASK, splits_numbers=True)


def _check(size: int, sentinels: int, character_coverage: float) -> None:
    """Refuses settings that SentencePiece does not have."""
    if sentinels < 0:
        raise ValueError(f"sentinels={sentinels}: give 0 or more")
    if not MIN_COVERAGE <= character_coverage <= 1:
        raise ValueError(f"character_coverage={character_coverage}: give a fraction in [{MIN_COVERAGE}, 1]")
    if size >= 2**31:
        raise ValueError(f"size={size}: ids are 32-bit integers")


def _check_layout(*, mask: bool, modes: bool, framed: bool, lowercase: bool) -> None:
    """Refuses what goes not together."""
    if framed and modes:
        raise ValueError("modes=True: a framed vocabulary has no mode tokens, which are for models that generate")
    if framed and not mask:
        raise ValueError("mask=False: a framed vocabulary always has [MASK], by which its readers know it")
    if not framed and not lowercase:
        raise ValueError("lowercase=False: only a framed vocabulary reads its text in lower case; leave it out")


def _with_exact_scores(model: bytes) -> bytes:
    """The model with every score rounded to a multiple of 1/256, so that sums of scores are exact in any precision.

    Equally good segmentations ("####" as ## # # or # ## #) then tie everywhere. With other scores the tie is broken by
    rounding, which differs between SentencePiece (float32) and the tokenizers library (float64) that reads our exports.
    """
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    for piece in proto.pieces:
        piece.score = round(piece.score * 256) / 256
    return proto.SerializeToString(deterministic=True)


def _named(extras: int, modes: bool) -> str:
    return f"{extras} sentinels, mask and mode tokens" if modes else f"{extras} sentinels and mask"


def _explain(message: str, *, size: int, extras: int, modes: bool) -> str:
    """SentencePiece's error in terms of `size`."""
    if match := re.search(r"too high .*<= (\d+)", message):
        return (
            f"size={size} is too large for this text: the largest possible is {int(match[1]) + extras} "
            f"({match[1]} pieces and {_named(extras, modes)}). Give a smaller size or more text."
        )
    if match := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return (
            f"size={size} is too small for this text: its characters alone need {int(match[1]) + extras} ids, "
            f"{_named(extras, modes)} included. Give a larger size or a smaller character_coverage."
        )
    if "sentences_.empty()" in message or "all_chars_count" in message:
        return "there is no text to train a vocabulary on: every line is empty"
    return f"SentencePiece could not train a vocabulary of size {size}: {message}"
