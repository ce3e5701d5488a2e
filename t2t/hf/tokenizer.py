"""The tokenizer files of an exported model: tokenizer.json, what transformers reads beside it, the vocabulary's own.

tokenizer.json is the truth. tokenizer_config.json names the class that reads it and no other, since the families' own
classes rebuild their tokenizer from the vocabulary alone in transformers 5 and give other ids. No tokenizer.json cuts
words as the Moses toolkit does: XLM's own class reads such a vocabulary, with sacremoses.

Differs: "</s>", "<pad>" and "<unk>" written in a text are these tokens in transformers and ordinary text in t2t.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tokenizers

from t2t import vocabulary as vocabularies
from t2t.hf import conversion
from t2t.vocabulary import moses_bpe, published, sentencepiece_model

FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "spiece.model",
    "spm.model", *published.FAIRSEQ_FILES, "vocab.txt", "vocab.json", "merges.txt",
)  # fmt: skip
"""The files that a class of transformers may read a tokenizer from."""


def write(
    directory: Path,
    vocabulary: vocabularies.Vocabulary,
    *,
    before: Sequence[int],
    after: Sequence[int],
    between: Sequence[int] = (),
    last: Sequence[int] = (),
    input_names: Sequence[str],
    max_length: int | None = None,
    padding: int | None = None,
    padding_side: str = "right",
) -> list[str]:
    """Write all tokenizer files of an exported model; returns their names.

    Args:
        directory: exists.
        vocabulary: whose ids the model was trained with.
        before: ids that come before every text, such as [CLS].
        after: ids that come after every text, such as </s>.
        between: ids that come before the second text of a pair.
        last: ids that come after those of the last text alone.
        input_names: what the tokenizer gives the model (transformers' `model_input_names`).
        max_length: most tokens the model takes; None where any number is possible.
        padding: the special token that fills rows; None = that of the vocabulary, if it has one.
        padding_side: "right", or "left" for models that generate from the end of the text.
    """
    pieces = vocabulary.pieces()
    settings = {
        "model_input_names": list(input_names),
        "padding_side": padding_side,
        "truncation_side": "right",
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_length if max_length is not None else int(1e30),
    }
    if isinstance(vocabulary, vocabularies.MosesVocabulary):
        check_frame(vocabulary, before=before, after=after, between=between, last=last)
        return _write(directory, _files_of_class(vocabulary, settings))
    special = {role: getattr(vocabulary, f"{role}_id") for role in ("pad", "bos", "eos", "unk", "mask")}
    special["pad"] = special["pad"] if padding is None else padding
    definition = tokenizer_json(vocabulary, before=before, after=after, between=between, last=last)
    names = {token["id"]: token["content"] for token in definition["added_tokens"]}
    tokens = {f"{role}_token": names.get(i, pieces[i]) for role, i in special.items() if i is not None}
    if special["bos"] in (*before, *last) and special["eos"] in after:
        tokens |= {"cls_token": tokens["bos_token"], "sep_token": tokens["eos_token"]}
    if "token_type_ids" in input_names and {"cls_token", "bos_token", "eos_token"} <= set(tokens):
        del tokens["bos_token"], tokens["eos_token"]
    additional = {"additional_special_tokens": [names[i] for i in vocabulary.sentinels]} if vocabulary.sentinels else {}
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **settings,
        **_as_read(definition),
        **tokens,
        **additional,
        **_without_extras(vocabulary),
    }
    written = {
        "tokenizer.json": _text(definition),
        "tokenizer_config.json": _text(config),
        "special_tokens_map.json": _text({**tokens, **additional}),
        **_own_files(vocabulary, definition),
    }
    return _write(directory, written)


def _write(directory: Path, written: dict[str, bytes | str]) -> list[str]:
    for name, content in written.items():
        (directory / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(written)


def check_frame(vocabulary: vocabularies.Vocabulary, **around: Sequence[int]) -> None:
    """Refuses a vocabulary whose own class of transformers writes other ids around a text than the model was given.

    Args:
        vocabulary: any.
        around: what `write` takes: before, after, between, last.

    Raises:
        ValueError: the class writes other ids.
    """
    if not isinstance(vocabulary, vocabularies.MosesVocabulary):
        return
    written = {"before": [vocabulary.bos_id], "after": [vocabulary.eos_id], "between": [], "last": []}
    given = {place: list(around.get(place, ())) for place in written}
    if given != written:
        raise ValueError(
            f"transformers reads this vocabulary by its class {moses_bpe.CLASS}, which writes the ids {written} around "
            f"a text; this model was trained with {given}. Export it without the vocabulary "
            "(dataclasses.replace(model, vocabulary=None))"
        )


def _files_of_class(vocabulary: vocabularies.MosesVocabulary, settings: dict[str, Any]) -> dict[str, bytes | str]:
    """The files of a vocabulary that no tokenizer.json can hold, since its class cuts words by a program of its own."""
    pieces = vocabulary.pieces()
    ids = {
        "bos_token": vocabulary.bos_id,
        "sep_token": vocabulary.eos_id,
        "cls_token": vocabulary.eos_id,
        **{f"{role}_token": getattr(vocabulary, f"{role}_id") for role in ("pad", "unk", "mask")},
    }
    tokens: dict[str, Any] = {name: pieces[token] for name, token in ids.items() if token is not None}
    others = sorted(set(vocabulary.special_ids) - {ids[name] for name in ids if name != "mask_token"})
    tokens["additional_special_tokens"] = [pieces[token] for token in others]
    lowercase = {"do_lowercase_and_remove_accent": vocabulary.lowercase}
    return {
        "tokenizer_config.json": _text({"tokenizer_class": moses_bpe.CLASS, **settings, **lowercase, **tokens}),
        "special_tokens_map.json": _text(tokens),
        vocabulary.VOCAB_FILE: vocabulary.vocab,
        vocabulary.MERGES_FILE: vocabulary.merges,
    }


def first_token(directory: Path) -> int | None:
    """The token that the tokenizer.json of a directory puts before every text; None where there is neither."""
    return next(iter(_around_a_text(directory)[0]), None)


def last_token(directory: Path) -> int | None:
    """The token that the tokenizer.json of a directory puts after every text; None where there is neither."""
    return next(iter(_around_a_text(directory)[1][::-1]), None)


def _around_a_text(directory: Path) -> tuple[list[int], list[int]]:
    """The special tokens before and after a text."""
    file = directory / "tokenizer.json"
    if not file.is_file():
        return [], []
    encoded = tokenizers.Tokenizer.from_file(str(file)).encode("a")
    ours = [place for place, special in enumerate(encoded.special_tokens_mask) if not special]
    return (encoded.ids[: ours[0]], encoded.ids[ours[-1] + 1 :]) if ours else ([], [])


def tokenizer_json(
    vocabulary: vocabularies.Vocabulary,
    *,
    before: Sequence[int] = (),
    after: Sequence[int] = (),
    between: Sequence[int] = (),
    last: Sequence[int] = (),
) -> dict[str, Any]:
    """The content of tokenizer.json of a vocabulary, with ids that come before, after and between texts.

    A vocabulary that is such a file and says what comes around a text keeps what it says.
    """
    if isinstance(vocabulary, vocabularies.TokenizerVocabulary):
        definition = json.loads(vocabulary.definition)
    elif isinstance(vocabulary, vocabularies.SentencePieceVocabulary):
        definition = conversion.from_sentencepiece(vocabulary)
    else:
        definition = conversion.from_bytes(vocabulary)
    own, template = definition.get("post_processor"), _template(definition, before, after, between, last)
    if own is None or template is None:
        return {**definition, "post_processor": own or template}
    if own["type"] == "ByteLevel":  # it adds nothing around a text
        return {**definition, "post_processor": {"type": "Sequence", "processors": [own, template]}}
    return definition


def _template(
    definition: dict[str, Any],
    before: Sequence[int],
    after: Sequence[int],
    between: Sequence[int],
    last: Sequence[int],
) -> dict[str, Any] | None:
    """The post-processor that puts ids around every text, and again after the second one of a pair."""
    if not before and not after and not last:
        return None
    names = {token["id"]: token["content"] for token in definition["added_tokens"]}

    def special(ids: Sequence[int], type_id: int) -> list[dict]:
        return [{"SpecialToken": {"id": names[i], "type_id": type_id}} for i in ids]

    first = [*special(before, 0), {"Sequence": {"id": "A", "type_id": 0}}, *special(after, 0)]
    second = [*special(between, 0), {"Sequence": {"id": "B", "type_id": 1}}, *special(after, 1)]
    used = {names[i]: i for i in (*before, *after, *between, *last)}
    end = special(last, 2)  # XLNet's type of it, alone with one text or behind two
    return {
        "type": "TemplateProcessing",
        "single": [*first, *end],
        "pair": [*first, *second, *end],
        "special_tokens": {name: {"id": name, "ids": [i], "tokens": [name]} for name, i in used.items()},
    }


def _without_extras(vocabulary: vocabularies.Vocabulary) -> dict[str, int]:
    """What tells readers of a model of T5's layout that none of its usual sentinels follow the pieces."""
    is_model = isinstance(vocabulary, vocabularies.SentencePieceVocabulary) and not vocabulary.fairseq
    if not is_model or vocabulary.sentinels or not sentencepiece_model.is_t5_layout(vocabulary.model):
        return {}
    return {"extra_ids": 0}


def _as_read(definition: dict[str, Any]) -> dict[str, bool | None]:
    """What readers of vocab.txt or merges.txt must be told, and transformers 4, which else sets it to its default."""
    normalizer, splitter = definition["normalizer"] or {}, definition["pre_tokenizer"] or {}
    if normalizer.get("type") == "BertNormalizer":
        return {
            "do_lower_case": normalizer["lowercase"],
            "strip_accents": normalizer["strip_accents"],
            "tokenize_chinese_chars": normalizer["handle_chinese_chars"],
        }
    return {"add_prefix_space": splitter["add_prefix_space"]} if splitter.get("type") == "ByteLevel" else {}


def _own_files(vocabulary: vocabularies.Vocabulary, definition: dict[str, Any]) -> dict[str, bytes | str]:
    """The files by which programs without the tokenizers library know the vocabulary."""
    if isinstance(vocabulary, vocabularies.SentencePieceVocabulary):
        other = published.FAIRSEQ_FILES[0] if vocabulary.fairseq else "spm.model"
        return {other if vocabulary.appended else "spiece.model": _without_sentinels(vocabulary)}
    model = definition["model"]
    if model["type"] == "WordPiece":
        return {"vocab.txt": "".join(f"{piece}\n" for piece in vocabulary.pieces())}
    if model["type"] == "BPE" and definition["pre_tokenizer"]["type"] == "ByteLevel" and model["merges"]:
        merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
        vocab = json.dumps(model["vocab"], ensure_ascii=False)
        return {"vocab.json": vocab, "merges.txt": "#version: 0.2\n" + "".join(f"{merge}\n" for merge in merges)}
    return {}


def _without_sentinels(vocabulary: vocabularies.SentencePieceVocabulary) -> bytes:
    """The SentencePiece model as T5's readers (seqio, t5x, transformers 4) expect it: they add the 100 sentinels.

    A model with another number of sentinels keeps them, and so does one of another layout.
    """
    expected = tuple(range(vocabulary.size - 1, vocabulary.size - 1 - sentencepiece_model.T5_SENTINELS, -1))
    if vocabulary.sentinels != expected or not sentencepiece_model.is_t5_layout(vocabulary.model):
        return vocabulary.model
    proto = conversion.model_proto(vocabulary.model)
    del proto.pieces[-sentencepiece_model.T5_SENTINELS :]
    return proto.SerializeToString(deterministic=True)


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
