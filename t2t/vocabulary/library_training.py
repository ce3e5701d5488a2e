"""Training word pieces and byte-level BPE on one's own text, by the tokenizers library.

The same lines give the same vocabulary in every process. The library alone does not promise it: it meets words in the
order of a hash table and numbers the characters inside words in that order, and breaks ties between characters that are
equally rare in it. So the characters are counted and ordered here.
"""

import collections
import json
from collections.abc import Iterable, Sequence
from typing import Any

from t2t.vocabulary import base, tokenizers_library

WORD_PIECE_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
BYTE_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
END_OF_TEXT = "<|endoftext|>"
_INSIDE = "##"


def train_wordpiece(
    lines: Iterable[str],
    *,
    size: int,
    sentinels: int = 0,
    modes: bool = False,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    space_chinese: bool = True,
    character_coverage: float = 0.9995,
) -> tokenizers_library.TokenizerVocabulary:
    """Word pieces, as BERT's, with [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4.

    Every word of known characters has ids of pieces; only unknown characters (and words of more than 100) are [UNK].

    Args:
        lines: texts, of any length.
        size: number of ids in all, special tokens and sentinels included.
        sentinels: number of <extra_id_k>; <extra_id_0> gets the highest id.
        modes: whether there are UL2's mode tokens [NLU], [NLG] and [S2S] (the ids below the sentinels).
        lowercase: put text in lower case, as uncased models do.
        strip_accents: leave accents out; None does as `lowercase`.
        space_chinese: every Chinese character is a word of its own.
        character_coverage: fraction in (0, 1] of the characters of the text that get an id of their own.

    Raises:
        ValueError: the text is empty, or holds too little or too much for `size`; the message says what is possible.
    """
    import tokenizers
    from tokenizers import trainers

    lines = list(lines)
    how: dict[str, Any] = {
        "lowercase": lowercase, "strip_accents": strip_accents, "space_chinese": space_chinese
    }  # fmt: skip
    blank = tokenizers.Tokenizer.from_str(
        tokenizers_library.wordpiece({name: i for i, name in enumerate(WORD_PIECE_SPECIAL)}, WORD_PIECE_SPECIAL, **how)
    )
    alphabet, inside = _alphabet(lines, blank, coverage=character_coverage)
    first = [*WORD_PIECE_SPECIAL, *alphabet, *inside]
    last = _last(sentinels, modes=modes)
    _check_room(size, needed=len(first) + len(last), sentinels=sentinels)
    trainer = trainers.WordPieceTrainer(
        vocab_size=size - len(last),
        # Named beforehand, because these get their ids in the given order.
        special_tokens=first,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        continuing_subword_prefix=_INSIDE,
        show_progress=False,
    )
    blank.train_from_iterator(lines, trainer)
    pieces = json.loads(blank.to_str())["model"]["vocab"]
    _check_size(size, largest=len(pieces) + len(last))
    names = sorted(pieces, key=pieces.__getitem__) + last
    vocab = {name: i for i, name in enumerate(names)}
    special = [*WORD_PIECE_SPECIAL, *last]
    return tokenizers_library.TokenizerVocabulary(tokenizers_library.wordpiece(vocab, special, **how))


def train_byte_bpe(
    lines: Iterable[str],
    *,
    size: int,
    sentinels: int = 0,
    mask: bool = True,
    modes: bool = False,
    end_of_text: bool = False,
    add_prefix_space: bool = False,
) -> tokenizers_library.TokenizerVocabulary:
    """Byte-level BPE: every text has ids, none of them unknown, and comes back from them.

    The special tokens are those of RoBERTa, <s> 0, <pad> 1, </s> 2, <unk> 3 and <mask> after the pieces, or GPT-2's
    <|endoftext|> after the pieces. <unk> is there for programs that expect it and stands for nothing.

    Args:
        lines: texts, of any length.
        size: number of ids in all, special tokens and sentinels included.
        sentinels: number of <extra_id_k>; <extra_id_0> gets the highest id.
        mask: whether there is a mask token.
        modes: whether there are UL2's mode tokens [NLU], [NLG] and [S2S] (the ids below the sentinels).
        end_of_text: have <|endoftext|> instead of <s>, <pad>, </s> and <unk>.
        add_prefix_space: read the first word of a text as after a space.

    Raises:
        ValueError: the text holds too little for `size`, or `size` has no room for the 256 bytes.
    """
    import tokenizers
    from tokenizers import models, pre_tokenizers, trainers

    first = [] if end_of_text else list(BYTE_SPECIAL)
    last = [END_OF_TEXT] * end_of_text + [base.MASK] * mask + _last(sentinels, modes=modes)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    extras = len(first) + len(last)
    _check_room(size, needed=len(alphabet) + extras, sentinels=sentinels)
    learner = tokenizers.Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    trainer = trainers.BpeTrainer(vocab_size=size - extras, initial_alphabet=alphabet, show_progress=False)
    learner.train_from_iterator(lines, trainer)
    model = json.loads(learner.to_str())["model"]
    _check_size(size, largest=len(model["vocab"]) + extras)
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    vocab = {name: i for i, name in enumerate([*first, *pieces, *last])}
    merges = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in model["merges"]]
    return tokenizers_library.TokenizerVocabulary(
        tokenizers_library.byte_level_bpe(
            vocab, merges, [*first, *last], mask=base.MASK if mask else None, add_prefix_space=add_prefix_space
        )
    )


def _last(sentinels: int, *, modes: bool) -> list[str]:
    return [*(base.MODES if modes else ()), *(base.sentinel_name(k) for k in reversed(range(sentinels)))]


def _alphabet(lines: Sequence[str], tokenizer: Any, *, coverage: float) -> tuple[list[str], list[str]]:
    """The characters that cover so much of the text, and those of them that stand inside words (as "##x"), sorted."""
    counts: collections.Counter[str] = collections.Counter()
    inside: collections.Counter[str] = collections.Counter()
    for line in lines:
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(line)):
            counts.update(word)
            inside.update(word[1:])
    if not counts:
        raise ValueError("there is no text to train a vocabulary on: every line is empty")
    wanted = coverage * counts.total()
    alphabet: set[str] = set()
    for char, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if wanted <= 0:
            break
        alphabet.add(char)
        wanted -= count
    return sorted(alphabet), [f"{_INSIDE}{char}" for char in sorted(alphabet & set(inside))]


def _check_room(size: int, *, needed: int, sentinels: int) -> None:
    if size < needed:
        raise ValueError(
            f"size={size} is too small: single characters or bytes and special tokens alone need {needed} ids, "
            f"{sentinels} sentinels included. Give a larger size."
        )


def _check_size(size: int, *, largest: int) -> None:
    if largest < size:
        raise ValueError(
            f"size={size} is too large for this text: the largest possible is {largest}. "
            "Give a smaller size or more text."
        )
