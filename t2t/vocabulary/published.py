"""What the tokenizers of published SentencePiece models do that their files do not say."""

import re
from pathlib import Path
from typing import Any

from t2t.vocabulary import base, reading, sentencepiece_model

FAIRSEQ_FILES = ("sentencepiece.bpe.model",)

_LANGUAGES_25 = (
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX "
    "ro_RO ru_RU si_LK tr_TR vi_VN zh_CN"
)
_LANGUAGES_50 = (
    f"{_LANGUAGES_25} af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX "
    "sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI"
)
LANGUAGES = {"MBartTokenizer": _LANGUAGES_25.split(), "MBart50Tokenizer": _LANGUAGES_50.split()}
"""Codes that follow the pieces of a fairseq model, by the class of transformers that its repository names."""


def read(path: Path, *, sentinels: int | None, config: dict[str, Any]) -> sentencepiece_model.SentencePieceVocabulary:
    """The vocabulary of a SentencePiece model of a repository.

    Args:
        path: the file; its name tells fairseq's models, the pieces tell those of ALBERT, XLNet and DeBERTa-v2 and v3.
        sentinels: as for `Vocabulary.load`.
        config: the content of tokenizer_config.json, which may say how many sentinels T5's tokenizer adds (extra_ids).
    """
    model = reading.read_bytes(path)
    special = sentencepiece_model.special_pieces(model)
    if path.name in FAIRSEQ_FILES:
        codes = _languages(path, len(sentencepiece_model.pieces(model)), config)
        return sentencepiece_model.SentencePieceVocabulary(
            model, fairseq=True, mask=base.MASK, appended=(*codes, base.MASK)
        )
    if mask := _cleaned_mask(special):
        lowercase = config.get("do_lower_case", not sentencepiece_model.has_capitals(model))
        clean = ["quotes", *([] if config.get("keep_accents") else ["accents"]), *(["lowercase"] if lowercase else [])]
        return sentencepiece_model.SentencePieceVocabulary(model, clean=clean, mask=mask, splits_numbers=True)
    if list(special)[:4] == ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]:
        if config.get("split_by_punct"):
            raise ValueError(f"{path} is to be read with split_by_punct, which t2t does not do")
        mask = "[MASK]"
        return sentencepiece_model.SentencePieceVocabulary(
            model,
            clean=["lowercase"] if config.get("do_lower_case") else [],
            mask=mask,
            appended=() if {mask, f"▁{mask}"} & set(special) else (mask,),
        )
    if sentinels is None and not base.sentinel_ids(special):
        sentinels = config.get("extra_ids")
    return sentencepiece_model.SentencePieceVocabulary(sentencepiece_model.with_pieces(model, sentinels=sentinels))


def _cleaned_mask(special: dict[str, int]) -> str | None:
    """The mask of a model of ALBERT or XLNet; None for other models."""
    if special.get("<pad>") == 0 and {"[CLS]", "[SEP]", "[MASK]"} <= set(special):
        return "[MASK]"
    return "<mask>" if {"<cls>", "<sep>", "<mask>", "<eod>"} <= set(special) else None


def _languages(path: Path, num_pieces: int, config: dict[str, Any]) -> list[str]:
    """Language codes of mBART, which tokenizer_config.json tells by its class, config.json by the number of ids."""
    name = re.sub("Fast\\Z", "", config.get("tokenizer_class") or "")
    if name in LANGUAGES:
        return LANGUAGES[name]
    model_config = path.parent / "config.json"
    size = reading.read_object(model_config).get("vocab_size") if model_config.exists() else None
    reading.check(model_config, "vocab_size", size, (int, type(None)))
    return next((codes for codes in LANGUAGES.values() if size == num_pieces + len(codes) + 2), [])
