"""Which special tokens stand around the texts of a model: those that the tokenizers of its family write."""

import functools
from typing import Any

from t2t import families
from t2t.hf import config_map
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.vocabulary import Vocabulary
from t2t.vocabulary.frame import Frame

_USUAL_LANGUAGE = "en_XX"  # of mBART's tokenizer, where nothing else is chosen
_NUM_LANGUAGES = 25  # of mBART; mBART-50 writes the code before the text


def of(config: Any, vocabulary: Vocabulary | None) -> Frame:
    """The frame of inputs and targets of an encoder-decoder; the empty one of all other models, whose tasks say it."""
    family = _family(config) if isinstance(config, EncoderDecoderConfig) else None
    if vocabulary is None or family is None:
        return Frame()
    return Frame(
        bos_id=vocabulary.bos_id if "bos" in family.starts else None,
        eos_id=vocabulary.eos_id,
        language_ids=frozenset(_languages(vocabulary).values()) if "language" in family.closes else frozenset(),
    )


def around(family: config_map.Family, vocabulary: Vocabulary, *, start_id: int | None) -> dict[str, list[int]]:
    """The ids that tokenizers of a family write before, after and between texts, as `t2t.hf.tokenizer.write` takes."""
    ids = {
        "bos": vocabulary.bos_id,
        "eos": vocabulary.eos_id,
        "start": start_id,
        "language": _languages(vocabulary).get(_USUAL_LANGUAGE),
    }
    places = {"before": family.starts, "after": family.ends, "between": family.between, "last": family.closes}
    return {place: [ids[role] for role in roles if ids[role] is not None] for place, roles in places.items()}


def _languages(vocabulary: Vocabulary) -> dict[str, int]:
    return vocabulary.languages if len(vocabulary.languages) <= _NUM_LANGUAGES else {}


@functools.lru_cache(maxsize=16)
def _family(config: Any) -> config_map.Family | None:
    try:
        return families.expressing(config)[0]
    except config_map.InexpressibleError:
        return None
