"""What a family says about Hugging Face: which attributes of a config.json it reads, requires and ignores.

A config.json is read strictly: an attribute that no list names might change numbers, so it is an error, and so is one
whose value asks for something the family does not do. What is left out is left out by a decision that stands here.
"""

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from t2t.hf import table
from t2t.nn import stack

IGNORED = frozenset({
    # Where it comes from and how transformers runs it.
    "_name_or_path", "_commit_hash", "_attn_implementation_autoset", "attn_implementation", "architectures",
    "transformers_version", "torch_dtype", "dtype", "model_type", "name_or_path", "output_attentions",
    "output_hidden_states", "output_past", "return_dict", "return_dict_in_generate", "torchscript", "use_bfloat16",
    "use_cache", "gradient_checkpointing", "chunk_size_feed_forward", "tf_legacy_loss", "xla_device", "finetuning_task",
    "tokenizer_class", "prefix", "use_return_dict", "is_encoder_decoder", "auto_map",
    # Labels of heads that are read by their tensors, and dropout before such a head.
    "id2label", "label2id", "num_labels", "_num_labels", "problem_type", "classifier_dropout",
    # How to generate: the settings of generation_config.json.
    "pad_token_id", "bos_token_id", "eos_token_id", "sep_token_id", "decoder_start_token_id", "forced_bos_token_id",
    "forced_eos_token_id", "max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
    "diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty",
    "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences", "output_scores",
    "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens", "remove_invalid_values",
    "task_specific_params", "directionality", "eos_token_ids",
})  # fmt: skip
"""Attributes of any config.json that say nothing about what a model computes from ids."""

KEPT = frozenset({"task_specific_params", "prefix"})
"""Attributes of any config.json that are no part of a model, and that an export has from the files it comes from."""

FIXED: Mapping[str, tuple[Any, ...]] = {
    "quantization_config": (None,),
    "pruned_heads": ({}, None),
    "cross_attention_hidden_size": (None,),
    "tie_encoder_decoder": (False, None),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
}
"""Attributes of any config.json that must have one of these values where they are given."""

NULLABLE = frozenset({"classifier_dropout", "classifier_dropout_prob", "local_rope_theta", "mem_len", "pad_token_id"})
"""Attributes that may be null, though transformers' own value is not."""

KINDS: Mapping[str, tuple[type, ...]] = {
    "architectures": (list,),
    "classifier_dropout": (float,),
    "cls_dropout": (float,),
    "dense_act_fn": (str,),
    "id2label": (dict,),
    "is_gated_act": (bool,),
    "layer_types": (list,),
    "pos_att_type": (list, str),
    "problem_type": (str,),
    "rope_parameters": (dict,),
    "scale_decoder_outputs": (bool,),
    "summary_activation": (str,),
}
"""Types of attributes whose value in transformers is null; the others of these are integers."""

_NAMES = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


LARGEST, MOST_LAYERS = 10**9, 10_000
"""Bounds of the integers that a model may have, and of those that count layers: published ones are far below."""


class InexpressibleError(ValueError):
    """A config that a Hugging Face class cannot express, and why."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attributes:
    """The attributes of a family's config.json."""

    read: Mapping[str, Any]  # name -> transformers' value where the file has none
    fixed: Mapping[str, tuple[Any, ...]] = dataclasses.field(
        default_factory=dict
    )  # name -> values that may stand there
    ignored: frozenset[str] = frozenset()

    def misfits(self, config_json: Mapping[str, Any]) -> list[str]:
        """What the attributes hold that they cannot: each one with its value and what is expected.

        Example:
            >>> Attributes(read={"n_layer": 12, "n_inner": None}).misfits({"n_layer": "6", "n_inner": None})
            ['n_layer is "6"; it must be an integer']
        """
        found = []
        for name, default in self.read.items():
            kinds = self.kinds(name)
            null = default is None or name in NULLABLE
            if name not in config_json:
                continue
            value = config_json[name]
            if not _fits(value, kinds, null=null):
                expected = " or ".join([*(_NAMES[kind] for kind in kinds), *(["null"] if null else [])])
                found.append(f"{name} is {json.dumps(value)}; it must be {expected}")
            elif unusable := _unusable(name, value):
                found.append(unusable)
        return found

    def kinds(self, name: str) -> tuple[type, ...]:
        """Types of an attribute that is not null; none of one that the family does not read."""
        if name not in self.read:
            return ()
        default = self.read[name]
        return KINDS.get(name, (int,)) if default is None else (type(default),)

    def values(self, config_json: Mapping[str, Any], *, ignore: Sequence[str] = ()) -> dict[str, Any]:
        """The attributes the family reads, completed by transformers' defaults.

        Args:
            config_json: the parsed file.
            ignore: further attributes that the caller knows to be without effect.

        Raises:
            ValueError: attributes that are unknown or ask for what the family does not do, every one of them.
        """
        fixed = {**FIXED, **self.fixed}
        known = IGNORED | self.ignored | set(self.read) | set(fixed) | set(ignore)
        unknown = [f"{name}={config_json[name]!r}" for name in sorted(set(config_json) - known)]
        refused = [
            f"{name}={config_json[name]!r} (possible: {', '.join(map(repr, possible))})"
            for name, possible in fixed.items()
            if name not in ignore and name in config_json and config_json[name] not in possible
        ]
        if unknown or refused:
            raise ValueError(
                f"config.json of a {config_json.get('model_type')!r} model cannot be carried over: "
                + "; ".join(
                    text
                    for text in (
                        f"unknown attributes {', '.join(unknown)}: if they do not change what the model computes, "
                        "delete them in config.json, or name them: t2t.load(..., ignore_attributes=[NAME]), "
                        "t2t import --ignore-attributes NAME"
                        if unknown
                        else "",
                        f"attributes that t2t does not do: {', '.join(refused)}" if refused else "",
                    )
                    if text
                )
            )
        return {name: config_json.get(name, default) for name, default in self.read.items()}


def _unusable(name: str, value: Any) -> str | None:
    """Why a value of the right type cannot be an attribute: a number in it is not finite, or larger than memory."""
    most = MOST_LAYERS if "layer" in name else LARGEST
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, list | dict):
            left += part.values() if isinstance(part, dict) else part
        elif isinstance(part, float) and not math.isfinite(part):
            return f"{name} is {json.dumps(value)}; it must be finite"
        elif isinstance(part, int) and abs(part) > most:
            return f"{name} is {json.dumps(value)}; it must be at most {most}"
    return None


def _fits(value: Any, kinds: tuple[type, ...], *, null: bool) -> bool:
    if value is None:
        return null
    if isinstance(value, bool):
        return bool in kinds
    if isinstance(value, int):
        return int in kinds or float in kinds or (bool in kinds and value in (0, 1))
    return isinstance(value, kinds)


ACTIVATIONS: Mapping[str, str] = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "silu": "silu"}
"""Activations by our name -> transformers' name."""

_OTHER_NAMES = {"gelu_pytorch_tanh": "gelu_tanh", "gelu_fast": "gelu_tanh", "swish": "silu"}


def activation(name: str) -> str:
    """Our name of an activation that config.json names.

    Raises:
        ValueError: one that t2t does not have.

    >>> activation("gelu_new")
    'gelu_tanh'
    """
    known = {**{theirs: ours for ours, theirs in ACTIVATIONS.items()}, **_OTHER_NAMES}
    if name not in known:
        raise ValueError(f"config.json has the activation {name!r}; t2t has {', '.join(sorted(known))}")
    return known[name]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Family:
    """All that t2t knows of one family: the value `FAMILY` of its file in `t2t/families`."""

    model_type: str
    """transformers' name of the family."""
    presets: Mapping[str, Callable[..., Any]]
    """name -> function of `head` (a request of `t2t.heads`, or None) that returns the model's config."""
    table: table.Table
    """Names of tensors."""
    attributes: Attributes
    """Names in config.json."""
    from_hf: Callable[[Mapping[str, Any], frozenset[str]], Any]
    """(attributes, present names of tensors without the base prefix) -> config of the model they belong to."""
    to_hf: Callable[[Any], dict[str, Any]]
    """config -> attributes. Raises InexpressibleError; what `from_hf` of its result would show, it need not check."""
    architecture: Callable[[Any], str]
    """config -> name of transformers' class. Raises InexpressibleError where there is none."""
    with_head: Callable[[Any, Any], Any]
    """(config, request of `t2t.heads`) -> the config with that head."""
    head_from_hf: Callable[[Any, Mapping[str, Any]], Any] = lambda config, values: config
    """(config, attributes) -> the config whose head is as the attributes say, whichever head it is."""
    kept: Callable[[Any], frozenset[str]] = lambda config: frozenset()
    """config -> attributes of which nothing in that config tells, such as those of other heads than its own: an export
    has them from the files that the model comes from."""
    has_base: Callable[[Any], bool] = lambda config: config.head is not None
    """config -> whether names of tensors begin with the table's `base` in transformers' class for it."""
    zeros: Callable[[Any], Mapping[str, table.Shape]] = lambda config: {}
    """config -> shapes of tensors of zeros that transformers' class has besides the parameters, by name."""
    constants: Callable[[Any], Mapping[str, np.ndarray]] = lambda config: {}
    """config -> tensors that transformers' class keeps in its files besides the parameters, by name."""
    note: str | None = None
    """What a user of an exported model has to know."""
    unread: Callable[[Any], tuple[str, ...]] = lambda config: ()
    """config -> patterns of tensors that are written and that no class of transformers reads."""
    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Classes of transformers that are not read, and why, with what is possible."""
    published_ids: Mapping[str, int] | None = None
    """Special tokens in config.json where no vocabulary is given; None = those that most models of its kind share. Each
    is written with a vocabulary, too: of the role with which its name begins (`pad_index` like `pad_token_id`)."""
    starts: tuple[str, ...] = ()
    """Special tokens before every text, by role; "start" is what starts a decoder where a vocabulary has no bos."""
    ends: tuple[str, ...] = ()
    """Special tokens after every text, by role."""
    between: tuple[str, ...] = ()
    """Special tokens before the second text of a pair, by role; those after the first come before them."""
    closes: tuple[str, ...] = ()
    """Special tokens after those, but of the last text alone (XLNet's <cls>); "language" is mBART's code of one."""
    padding_side: str | None = None
    """Where texts are padded; None = left for models that generate from the end of the text, else right."""
    input_names: tuple[str, ...] = ("input_ids", "attention_mask")
    """What a tokenizer gives the model."""


TRAINING_ONLY = frozenset({
    "dropout", "family", "initializer", "initializer_std", "kernels", "out_initializer_std", "remat",
    "trained_positions",
})  # fmt: skip
"""Fields of configs that no forward pass without dropout depends on."""


def trained_positions(value: int, *, usual: int) -> int | None:
    """`Rotary.trained_positions` of an attribute whose value in transformers is `usual`.

    >>> trained_positions(4096, usual=2048), trained_positions(2048, usual=2048)
    (4096, None)
    """
    return None if value == usual else value


def differences(ours: Any, theirs: Any, *, path: str = "") -> list[str]:
    """Where two configs compute differently: one line per field, training-only ones left out.

    Stacks are compared block by block, however they divide their depth into prefix, pattern and suffix.
    """
    if type(ours) is not type(theirs) or not dataclasses.is_dataclass(ours):
        return [] if ours == theirs else [f"{path}: {ours!r} here, {theirs!r} there"]
    found = []
    for field in dataclasses.fields(ours):
        if field.name in TRAINING_ONLY | {"prefix", "pattern", "suffix"}:
            continue
        where = f"{path}.{field.name}" if path else field.name
        found += differences(getattr(ours, field.name), getattr(theirs, field.name), path=where)
    if isinstance(ours, stack.StackConfig):
        for depth, (mine, other) in enumerate(zip(ours.blocks, theirs.blocks, strict=False)):
            found += differences(mine, other, path=f"{path}.blocks[{depth}]")
    return found
