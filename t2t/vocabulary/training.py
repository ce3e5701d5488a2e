"""Training a SentencePiece vocabulary on one's own text."""

import io
import re
from collections.abc import Iterable
from typing import Literal

from t2t.vocabulary import base, sentencepiece_model

NUM_THREADS = 4
"""Fixed, because SentencePiece sums expectations per thread: another number gives slightly other scores."""

MIN_COVERAGE = 0.98
"""The least character_coverage that SentencePiece accepts."""


def train_sentencepiece(
    lines: Iterable[str],
    *,
    size: int,
    sentinels: int = 100,
    mask: bool = True,
    modes: bool = False,
    model_type: Literal["unigram", "bpe"] = "unigram",
    byte_fallback: bool = False,
    character_coverage: float = 0.9995,
) -> sentencepiece_model.SentencePieceVocabulary:
    """A vocabulary with pad 0, eos 1, unk 2, no bos; the same lines give the same bytes.

    Args:
        lines: texts, of any length; newlines inside count as spaces.
        size: number of ids in all, special tokens and sentinels included.
        sentinels: number of <extra_id_k>; <extra_id_0> gets the highest id, as in T5.
        mask: whether there is a mask token (the id below the sentinels).
        modes: whether there are UL2's mode tokens [NLU], [NLG] and [S2S] (the ids below the mask).
        model_type: unigram language model (as T5) or byte-pair encoding.
        byte_fallback: spell characters outside the vocabulary as bytes (256 more ids) instead of unk.
        character_coverage: fraction in [0.98, 1] (SentencePiece's bounds) of the characters of the text that get an id
            of their own.

    Raises:
        ValueError: the text is empty, or holds too little or too much for `size`; the message says what is possible.
    """
    import sentencepiece

    if sentinels < 0:
        raise ValueError(f"sentinels={sentinels}: give 0 or more")
    if not MIN_COVERAGE <= character_coverage <= 1:
        raise ValueError(f"character_coverage={character_coverage}: give a fraction in [{MIN_COVERAGE}, 1]")
    if size >= 2**31:
        raise ValueError(f"size={size}: ids are 32-bit integers")
    extras = sentinels + mask + modes * len(base.MODES)
    if size <= extras + 3:
        raise ValueError(f"size={size} must exceed the {_named(extras, modes)} and the 3 ids pad, eos, unk")
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
            pad_id=0,
            eos_id=1,
            unk_id=2,
            bos_id=-1,
            max_sentence_length=2**30,
            num_threads=NUM_THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ValueError(_explain(str(error), size=size, extras=extras, modes=modes)) from error
    exact = _with_exact_scores(model.getvalue())
    return sentencepiece_model.SentencePieceVocabulary(
        sentencepiece_model.with_pieces(exact, sentinels=sentinels, mask=mask, modes=modes)
    )


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
