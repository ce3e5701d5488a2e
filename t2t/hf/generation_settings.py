"""generation_config.json: how a model generates unless it is told otherwise.

Reference: transformers 5.24 and 4.57, `GenerationConfig`, which reads the file, or where there is none the attributes
of config.json of the same names.
"""

import dataclasses
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from t2t.errors import UsageError
from t2t.vocabulary import reading

log = logging.getLogger(__name__)

FILE = "generation_config.json"

_USUAL: Mapping[str, Any] = {
    "max_length": 20,
    "min_length": 0,
    "num_beams": 1,
    "do_sample": False,
    "temperature": 1.0,
    "top_k": 50,
    "top_p": 1.0,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "length_penalty": 1.0,
    "early_stopping": False,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "num_return_sequences": 1,
    "remove_invalid_values": False,
    "renormalize_logits": False,
    **dict.fromkeys((
        "max_new_tokens", "min_new_tokens", "min_p", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens",
        "exponential_decay_length_penalty", "forced_bos_token_id", "forced_eos_token_id",
    )),
}  # fmt: skip

SETTINGS = frozenset(_USUAL)
"""What may be asked of generation_config.json besides special tokens that the vocabulary tells."""

_SAMPLING = frozenset({"temperature", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff"})
_OF_BEAMS = frozenset({"length_penalty", "early_stopping"})
_SPECIAL = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "forced_eos_token_id")
_UNSAID = frozenset({
    "_from_model_config", "transformers_version", "use_cache", "cache_implementation", "output_attentions",
    "output_hidden_states", "output_scores", "output_logits", "return_dict_in_generate", "num_beam_groups",
    "diversity_penalty", *_SPECIAL,
})  # fmt: skip
"""What such files hold that is no setting of a model, stands elsewhere, or that transformers 5 does no longer."""


@dataclasses.dataclass(frozen=True)
class _Rule:
    """What a setting that is not null may be: in words, and as a function of its value."""

    words: str
    holds: Callable[[Any], bool]


def _is_whole(value: Any, least: int = 0) -> bool:
    return type(value) is int and least <= value < 2**31


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e30  # neither infinite nor NaN


def _are_tokens(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_whole, value))


def _is_decay(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and _is_whole(value[0]) and _is_number(value[1])


def _within(low: float, high: float) -> _Rule:
    return _Rule(f"a number from {low:g} to {high:g}", lambda value: _is_number(value) and low <= value <= high)


_TRUTH = _Rule("true or false", lambda value: isinstance(value, bool))
_COUNT = _Rule("an integer, 0 or more", _is_whole)
_SOME = _Rule("an integer, 1 or more", lambda value: _is_whole(value, 1))
_NUMBER = _Rule("a number", _is_number)
_POSITIVE = _Rule("a positive number", lambda value: _is_number(value) and value > 0)
_TOKEN = _Rule("a token's id, an integer", _is_whole)
_TOKENS = _Rule("a list of tokens' ids, integers", _are_tokens)

_RULES: Mapping[str, _Rule] = {
    **dict.fromkeys((
        "max_length", "min_length", "min_new_tokens", "top_k", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
    ), _COUNT),
    **dict.fromkeys(("max_new_tokens", "num_beams", "num_return_sequences"), _SOME),
    **dict.fromkeys(("do_sample", "remove_invalid_values", "renormalize_logits"), _TRUTH),
    **dict.fromkeys(("top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff"), _within(0, 1)),
    **dict.fromkeys(("repetition_penalty", "encoder_repetition_penalty"), _POSITIVE),
    **dict.fromkeys(("suppress_tokens", "begin_suppress_tokens"), _TOKENS),
    "temperature": _Rule("a number, 0 or more", lambda value: _is_number(value) and value >= 0),
    "length_penalty": _NUMBER,
    "early_stopping": _Rule('true, false or "never"', lambda value: isinstance(value, bool) or value == "never"),
    "bad_words_ids": _Rule(
        "a list of lists of tokens' ids",
        lambda value: isinstance(value, list | tuple) and all(map(_are_tokens, value)),
    ),
    "exponential_decay_length_penalty": _Rule("a list of an integer and a number", _is_decay),
    "forced_bos_token_id": _TOKEN,
    "forced_eos_token_id": _Rule(
        "a token's id or a list of them", lambda value: _is_whole(value) or _are_tokens(value)
    ),
}  # fmt: skip
"""What each setting may be besides null, which is the usual value."""


def misfits(settings: Mapping[str, Any]) -> list[str]:
    """What settings hold that they cannot: each one with its value and what is possible.

    Example:
        >>> misfits({"num_beams": 0, "do_sample": None, "top_k": 5})
        ['num_beams is 0; it must be an integer, 1 or more']
    """
    return [
        f"{name} is {json.dumps(settings[name], default=repr)}; it must be {rule.words}"
        for name, rule in _RULES.items()
        if settings.get(name) is not None and not rule.holds(settings[name])
    ]


def generates(architecture: str) -> bool:
    """Whether a class of transformers generates text.

    >>> generates("BartForConditionalGeneration"), generates("BertForMaskedLM")
    (True, False)
    """
    return architecture.endswith(("ForConditionalGeneration", "ForCausalLM", "LMHeadModel"))


def read(directory: Path, config_json: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a Hugging Face directory that are others than the usual ones and have an effect.

    Args:
        directory: of the files.
        config_json: its parsed config.json.

    Raises:
        UsageError: generation_config.json is no JSON object; a setting holds what it cannot.
    """
    file = directory / FILE
    said = reading.read_object(file) if file.exists() else dict(config_json)
    if file.exists():
        if unknown := sorted(name for name, value in said.items() if value and name not in SETTINGS | _UNSAID):
            log.warning("%s: the settings %s are not carried over", file, ", ".join(unknown))
        said = {"forced_eos_token_id": None, **said}
    elif config_json.get("force_bos_token_to_be_generated"):  # of transformers 2 and 3
        said.setdefault("forced_bos_token_id", config_json.get("bos_token_id", 0))
    wrong, first, rows = misfits(said), said.get("forced_bos_token_id"), config_json.get("vocab_size")
    if _is_whole(first) and _is_whole(rows) and first >= rows:
        wrong.append(f"forced_bos_token_id is {first}; it must be less than vocab_size, {rows}")
    if wrong:
        raise UsageError(f"{file if file.exists() else directory / 'config.json'}: {'; '.join(wrong)}")
    found = {name: said[name] for name in SETTINGS & said.keys() if said[name] != _USUAL[name]}
    found = {name: value for name, value in found.items() if value is not None}
    if not found.get("do_sample"):
        found = {name: value for name, value in found.items() if name not in _SAMPLING}
    beams = found.get("num_beams", 1)
    if found.get("num_return_sequences", 1) > beams and (beams > 1 or not found.get("do_sample")):
        found.pop("num_return_sequences", None)
    if beams == 1:
        found = {name: value for name, value in found.items() if name not in _OF_BEAMS}
    forced = {name: said[name] for name in ("forced_bos_token_id", "forced_eos_token_id") if name in said}
    return {"forced_bos_token_id": None, **forced, **found}


def content(
    config_json: Mapping[str, Any],
    *,
    architecture: str,
    settings: Mapping[str, Any],
    version: str,
) -> dict[str, Any]:
    """The content of generation_config.json.

    Args:
        config_json: of the model.
        architecture: of its class, which generates.
        settings: of `SETTINGS`; None leaves a special token out that config.json names.
        version: of transformers.

    Raises:
        UsageError: a setting holds what it cannot.
        ValueError: the class generates no text; settings that are unknown, do not go together, or have no effect.
    """
    if not generates(architecture):
        raise ValueError(f"{architecture} does not generate text, so it has no settings {sorted(settings)}")
    if unknown := sorted(set(settings) - SETTINGS):
        raise ValueError(f"generation has {', '.join(unknown)}; possible are {', '.join(sorted(SETTINGS))}")
    if wrong := misfits(settings):
        raise UsageError(f"generation cannot be as asked: {'; '.join(wrong)}")
    _check({name: value for name, value in settings.items() if value is not None})
    special = {name: config_json.get(name) for name in _SPECIAL}
    said = {name: value for name, value in {**special, **settings}.items() if value is not None}
    return {"transformers_version": version, **said}


def _check(settings: Mapping[str, Any]) -> None:
    """Refuses what transformers refuses to save again: `GenerationConfig.validate(strict=True)` of 5.24 and 4.57."""
    beams, samples = settings.get("num_beams", 1), settings.get("do_sample", False)
    if beams == 1 and (idle := sorted(name for name in _OF_BEAMS & set(settings) if settings[name] != _USUAL[name])):
        raise ValueError(
            f"generation has {', '.join(idle)} without num_beams above 1, which transformers refuses to save"
        )
    if not samples and (idle := sorted(_SAMPLING & set(settings))):
        raise ValueError(f"generation has {', '.join(idle)} without do_sample=True, which has no effect")
    number = settings.get("num_return_sequences", 1)
    if number > beams and (beams > 1 or not samples):
        raise ValueError(
            f"generation has num_return_sequences={number} with num_beams={beams}: there are as many texts as beams, "
            "and more where do_sample=True draws them with one beam"
        )
