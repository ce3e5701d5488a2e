"""The special ids that config.json names: those of the vocabulary, or else of the files that a model comes from."""

from collections.abc import Mapping
from typing import Any

from t2t import vocabulary as vocabularies
from t2t.hf import config_map
from t2t.models.decoder import DecoderConfig
from t2t.models.encoder import EncoderConfig
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.classification import ClassificationHead

_ROLES = {"cls": "bos", "sep": "eos"}
"""Special tokens that transformers names otherwise than the vocabulary."""


def attributes(
    config: Any,
    family: config_map.Family,
    vocabulary: vocabularies.Vocabulary | None,
    *,
    padding: int | None,
    start_id: int | None,
    origin: Mapping[str, Any],
) -> dict[str, Any]:
    """Attributes of config.json that name special ids.

    Args:
        config: of the model.
        family: that expresses it.
        vocabulary: whose ids they are; without one they are those of `origin`, or else of the published models.
        padding: the id that fills rows of the vocabulary.
        start_id: token that starts the decoder of an encoder-decoder; None = that of the vocabulary.
        origin: what is known from the files that the model comes from (`load.HuggingFaceCheckpoint.origin`).
    """
    named: dict[str, Any] = _of_roles(config, family, vocabulary)
    named |= origin.get("special", {}) if vocabulary is None else {"pad_token_id": padding}
    if start_id is not None and isinstance(config, EncoderDecoderConfig):
        named["decoder_start_token_id"] = start_id
    return named


def _of_roles(
    config: Any, family: config_map.Family, vocabulary: vocabularies.Vocabulary | None
) -> dict[str, int | None]:
    published = family.published_ids or {}
    if vocabulary is None and published:
        fitting = {name: token if token < config.vocab_size else None for name, token in published.items()}
        return {name: token for name, token in fitting.items() if token is not None or name.endswith("_token_id")}
    if isinstance(config, EncoderConfig):
        roles = {name: name.partition("_")[0] for name in published}
        named = {name: getattr(vocabulary, f"{_ROLES.get(role, role)}_id") for name, role in roles.items()}
        # Null, not left out, where that would mean the published number; names in _index cannot be null.
        named = {name: token for name, token in named.items() if token is not None or name.endswith("_token_id")}
        return {**named, "pad_token_id": 0 if vocabulary is None else vocabulary.pad_id}
    if vocabulary is None and isinstance(config, EncoderDecoderConfig):
        return {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    if vocabulary is None:
        # A head that reads the last token finds it by the padding, which our batches fill with 0.
        pad = 0 if isinstance(config.head, ClassificationHead) else None
        return {"pad_token_id": pad, "bos_token_id": None, "eos_token_id": None}
    start = "decoder_start_token_id" if isinstance(config, EncoderDecoderConfig) else "bos_token_id"
    ids = {"pad_token_id": vocabulary.pad_id, "eos_token_id": vocabulary.eos_id, start: vocabulary.start_id}
    # Attributes whose absence means transformers' own numbers.
    others = {"bos_token_id": vocabulary.bos_id, "forced_eos_token_id": vocabulary.eos_id}
    return {**{name: others[name] for name in others if name in (published or {})}, **ids}


def check_padding(of_model: Mapping[str, Any], vocabulary: vocabularies.Vocabulary | None) -> None:
    """Refuse a vocabulary whose padding is not the one that a family's positions depend on.

    Raises:
        ValueError: it has another padding.
    """
    expected = of_model.get("pad_token_id")
    if vocabulary is not None and expected is not None and vocabulary.pad_id != expected:
        raise ValueError(
            f"the vocabulary has pad_id {vocabulary.pad_id}, but transformers finds the positions of this model by"
            f" counting the ids that are not {expected}. Train with LearnedPositions(offset=pad_id + 1), or with a"
            f" vocabulary whose padding is {expected}."
        )


def padding(config: Any, vocabulary: vocabularies.Vocabulary | None, *, ends_prompts: bool) -> int | None:
    """The id that fills rows. A class that finds the last token of a text by it needs one that ends no text."""
    if vocabulary is None:
        return None
    if not isinstance(config, DecoderConfig) or not isinstance(config.head, ClassificationHead):
        return vocabulary.pad_id
    last = vocabulary.eos_id if ends_prompts else None
    possible = (vocabulary.pad_id, vocabulary.eos_id, vocabulary.bos_id)
    return next((token for token in possible if token not in (None, last)), None)
