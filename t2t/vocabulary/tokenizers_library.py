"""Vocabularies of the tokenizers library: tokenizer.json, and the older files that are read into one."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from t2t.vocabulary import base, reading, words

END_OF_WORD = "</w>"
"""Ends the pieces that end a word in BPE that is not byte-level, such as GPT's."""


class TokenizerVocabulary(base.Vocabulary):
    """A tokenizer of the tokenizers library, held as the text of its tokenizer.json."""

    kind = "tokenizers"
    FILE = "tokenizer.json"

    def __init__(self, definition: str, *, names: dict[str, str] | None = None):
        """A vocabulary from the text of a tokenizer.json.

        Args:
            definition: the JSON text.
            names: names of special tokens by role (pad, bos, eos, unk, mask), where the usual ones do not hold.
        """
        import tokenizers

        self.definition = definition
        self.names = {role: name for role, name in (names or {}).items() if name}
        if unknown := set(self.names) - set(base.ROLE_NAMES):
            raise ValueError(f"names has roles {sorted(unknown)}; possible are {sorted(base.ROLE_NAMES)}")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(definition)
        except Exception as error:  # the library raises nothing more precise
            raise ValueError(
                f"the tokenizers library cannot read the definition: {error}; if it is a file's, copy or download that "
                "again"
            ) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._ids = self._tokenizer.get_vocab(with_added_tokens=True)
        if not self._ids:
            raise ValueError("the definition has no pieces")
        reading.check_ids("the definition", self._ids)
        self.size = max(self._ids.values()) + 1
        for role, token in base.roles(self._ids, self.names).items():
            setattr(self, role, token)
        self.sentinels = base.sentinel_ids(self._ids)

    def _encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        texts = [t if t.isascii() else t.encode("utf-8", errors="replace").decode() for t in texts]
        return [row.ids for row in self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def _decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=False)

    def pieces(self) -> list[str]:
        """The token of every id; '' where a number is not taken."""
        pieces = [""] * self.size
        for piece, token in self._ids.items():
            pieces[token] = piece
        return pieces

    def _word_rules(self) -> dict[str, words.PieceRule]:
        return word_rules(json.loads(self.definition))

    def _other_special_ids(self) -> set[int]:
        return {token for token, added in self._tokenizer.get_added_tokens_decoder().items() if added.special}

    def _settings(self) -> dict:
        return {"names": self.names}

    def _files(self) -> dict[str, bytes]:
        return {self.FILE: self.definition.encode()}

    def _arguments(self) -> tuple:
        return (self.definition,)


def word_rules(definition: dict[str, Any]) -> dict[str, words.PieceRule]:
    """How the pieces of a tokenizer.json mark words, as rules of `words.mark_words` by name.

    Raises:
        ValueError: nothing in it says how.
    """
    model = definition["model"]
    unnamed = "BPE" if "merges" in model else "Unigram" if isinstance(model["vocab"], list) else "WordPiece"
    kind = model.get("type") or unnamed
    if kind == "WordLevel":
        return {"begins": lambda piece: True}
    if suffix := model.get("end_of_word_suffix"):
        return {"ends": lambda piece: piece.endswith(suffix)}
    if prefix := model.get("continuing_subword_prefix"):
        return {"begins": lambda piece: not piece.startswith(prefix)}
    if kind == "BPE" and '"ByteLevel"' in json.dumps([definition.get("pre_tokenizer"), definition.get("decoder")]):
        return {"begins": words.begins_byte_level}
    if kind == "Unigram" or any(piece.startswith("▁") for piece in model["vocab"]):
        return {"begins": words.begins_sentence_piece}
    raise ValueError(
        f"this vocabulary ({kind}) marks neither where words begin (##, ▁, Ġ) nor where they end ({END_OF_WORD}), so "
        "whole words cannot be told: choose single tokens, or take a vocabulary with marks"
    )


def wordpiece_definition(path: Path, names: dict[str, str], config: dict[str, Any]) -> str:
    """The tokenizer.json text of BERT's vocab.txt.

    Args:
        path: the file.
        names: names of special tokens by role.
        config: tokenizer_config.json; text is put in lower case if it says so, or says nothing and no piece of the
            file has a capital.
    """
    pieces = reading.read_text(path).split("\n")
    vocab = {piece.rstrip("\r"): i for i, piece in enumerate(pieces) if piece}
    if base.roles(vocab, names)["unk_id"] is None:
        raise ValueError(
            f"{path} is no WordPiece vocabulary: it has no token for unknown words. Copy or download it again, or name "
            "that token in tokenizer_config.json (unk_token)"
        )
    strip_accents = config.get("strip_accents")
    return wordpiece(
        vocab,
        _special_tokens(vocab, names),
        lowercase=bool(config.get("do_lower_case", not any(p != p.lower() for p in vocab if not p.startswith("[")))),
        strip_accents=None if strip_accents is None else bool(strip_accents),
        space_chinese=bool(config.get("tokenize_chinese_chars", True)),
        unknown=names.get("unk"),
    )


def wordpiece(
    vocab: dict[str, int],
    special: Sequence[str],
    *,
    lowercase: bool,
    strip_accents: bool | None = None,
    space_chinese: bool = True,
    unknown: str | None = None,
) -> str:
    """The tokenizer.json text of word pieces, with BERT's way to cut text into words.

    Args:
        vocab: ids of the pieces, special tokens included.
        special: those of them that are special.
        lowercase: put text in lower case.
        strip_accents: leave accents out; None does as `lowercase`.
        space_chinese: every Chinese character is a word.
        unknown: the piece for what the vocabulary cannot write; None is the usual one.
    """
    import tokenizers
    from tokenizers import decoders, models, normalizers, pre_tokenizers

    if unknown not in vocab:
        unknown = next(name for name in base.ROLE_NAMES["unk"] if name in vocab)
    tokenizer = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token=unknown, max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=space_chinese, strip_accents=strip_accents, lowercase=lowercase
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    tokenizer.add_special_tokens(list(special))
    return tokenizer.to_str()


def bpe_definition(directory: Path, names: dict[str, str], config: dict[str, Any]) -> str:
    """The tokenizer.json text of a vocab.json and merges.txt: those of GPT-2, RoBERTa and DeBERTa, or of GPT.

    Args:
        directory: holds the files.
        names: names of special tokens by role.
        config: tokenizer_config.json; byte-level BPE puts a space before the text if it says so (add_prefix_space).
    """
    for name in ("vocab.json", "merges.txt"):
        if not (directory / name).exists():
            raise FileNotFoundError(f"BPE needs vocab.json and merges.txt; {directory / name} is missing")
    vocab = reading.read_object(directory / "vocab.json")
    reading.check_ids(directory / "vocab.json", vocab)
    lines = reading.read_text(directory / "merges.txt").split("\n")
    merges = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
    if odd := next((pair for pair in merges if len(pair) != 2 or not {*pair, "".join(pair)} <= vocab.keys()), None):
        raise ValueError(
            f"{directory / 'merges.txt'} has the line {' '.join(odd)!r:.100}; expected are two pieces of vocab.json "
            "that make a third: copy or download both files again"
        )
    special = _special_tokens(vocab, names)
    if not any(piece.endswith(END_OF_WORD) for piece in vocab):
        # The mask of RoBERTa and DeBERTa takes the space before it: "a <mask>" is two tokens.
        mask = config.get("mask_token")
        takes_space = mask.get("lstrip", True) if isinstance(mask, dict) else True
        return byte_level_bpe(
            vocab,
            merges,
            special,
            mask=base.name_of_role(vocab, "mask", names) if takes_space else None,
            add_prefix_space=bool(config.get("add_prefix_space", False)),
        )
    if special != ["<unk>"]:
        raise ValueError(
            f"{directory / 'vocab.json'} has pieces that end in {END_OF_WORD} and the special tokens {special}. GPT's "
            "has <unk> alone, XLM's <s>, </s>, <pad>, <unk> and <special1>; other models with such pieces (CLIP) cut "
            "words in other ways: put the model's tokenizer.json in the directory, which says how"
        )
    return _gpt_bpe(vocab, merges)


def byte_level_bpe(
    vocab: dict[str, int],
    merges: Sequence[tuple[str, ...]],
    special: Sequence[str],
    *,
    mask: str | None = None,
    add_prefix_space: bool = False,
) -> str:
    """The tokenizer.json text of byte-level BPE, as GPT-2 and RoBERTa have it.

    Args:
        vocab: ids of the pieces, special tokens included.
        merges: pairs of pieces, the first made first.
        special: the special tokens.
        mask: the one of them that takes the space before it.
        add_prefix_space: the first word of a text is read as after a space.
    """
    import tokenizers
    from tokenizers import AddedToken, decoders, models, pre_tokenizers

    tokenizer = tokenizers.Tokenizer(models.BPE(vocab, list(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, lstrip=name == mask, normalized=False) for name in special])
    return tokenizer.to_str()


def with_added_tokens(definition: str, added: dict[str, int], *, special: Collection[str] = ()) -> str:
    """A tokenizer.json text with the tokens of an added_tokens.json, which follow those of the vocabulary.

    As in transformers those that are not special are looked for as text is: in lower case where it is.
    """
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_str(definition)
    for name, token in sorted(added.items(), key=lambda item: item[1]):
        is_special = name in special
        tokenizer.add_tokens([tokenizers.AddedToken(name, normalized=not is_special, special=is_special)])
        if tokenizer.token_to_id(name) != token:
            raise ValueError(f"added_tokens.json has {name!r} as {token}; it would be {tokenizer.token_to_id(name)}")
    return tokenizer.to_str()


def _gpt_bpe(vocab: dict[str, int], merges: list[tuple[str, ...]]) -> str:
    """Of GPT, as in transformers: text in lower case and without accents, cut into words as BERT cuts it.

    Differs: the released code of openai/finetune-transformer-lm cuts text by spaCy, after ftfy.
    """
    import tokenizers
    from tokenizers import decoders, models, normalizers, pre_tokenizers

    model = models.BPE(vocab, merges, unk_token="<unk>", end_of_word_suffix=END_OF_WORD)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder(suffix=END_OF_WORD)
    tokenizer.add_special_tokens(["<unk>"])
    return tokenizer.to_str()


def _special_tokens(vocab: dict[str, int], names: dict[str, str]) -> list[str]:
    chosen = set(base.roles(vocab, names).values())
    return [piece for piece, token in vocab.items() if token in chosen]
