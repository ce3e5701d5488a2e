"""DeBERTa's second and third version: distances in logarithmic buckets, read by the projections of the contents.

    deberta-v2-xlarge, deberta-v2-xxlarge           with a convolution beside the first block; masked words
    deberta-v3-xsmall, deberta-v3-small, deberta-v3-base, deberta-v3-large      replaced tokens

Reference: He et al., DeBERTa, arXiv:2006.03654, of whose released code version 2 is a part; He et al., DeBERTaV3:
Improving DeBERTa using ELECTRA-Style Pre-Training with Gradient-Disentangled Embedding Sharing, arXiv:2111.09543.

Differs: as DeBERTa's first version. The head of replaced tokens has the names of the published files,
`mask_predictions`, which no class of transformers reads: a model with it is written as one without a head, with these
tensors besides. Such files hold a head of masked words as well, which is left out.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.families import deberta, deberta_shape, labels
from t2t.hf import config_map
from t2t.hf.table import CONVOLUTION, VECTOR, Entry, Ignored, Table, linear_entries, norm_entries
from t2t.models.encoder import EncoderConfig
from t2t.nn.classification import ClassificationHead
from t2t.nn.convolved_block import ConvolvedBlockConfig

TASKS = (*deberta.TASKS, "choice")


def with_head(config: EncoderConfig, head: heads.Head | None) -> EncoderConfig:
    """The model with the head asked for.

    PRETRAINING is the head of masked words for models with a convolution, the second version, and that of replaced
    tokens for others.
    """
    if head is None:
        return dataclasses.replace(config, head=None)
    if isinstance(head, heads.EnhancedMaskedLM):
        return deberta_shape.masked_words(config, max_positions=deberta_shape.longest(config))
    block = config.stack.blocks[0]
    if isinstance(head, heads.MaskedLM) or (head == heads.PRETRAINING and isinstance(block, ConvolvedBlockConfig)):
        return deberta_shape.masked_words(config)
    if head != heads.PRETRAINING:
        return deberta_shape.with_labels(config, head, tasks=TASKS)
    replaced = ClassificationHead(
        task="replaced",
        num_labels=1,
        first_norm=block.norm,
        activation=block.feed_forward.activation,
        **deberta_shape.INITIALIZER,
    )
    return dataclasses.replace(config, head=replaced)


def convolved(config: EncoderConfig, *, kernel_size: int = 3, activation: str = "gelu") -> EncoderConfig:
    """The model with a convolution beside its first block."""
    stack = config.stack
    (block,) = stack.pattern
    fields = {field.name: getattr(block, field.name) for field in dataclasses.fields(block)}
    first = ConvolvedBlockConfig(kernel_size=kernel_size, activation=activation, **deberta_shape.INITIALIZER, **fields)
    return dataclasses.replace(config, stack=dataclasses.replace(stack, prefix=(first,)))


def _preset(
    *,
    num_layers: int,
    d_model: int,
    d_ff: int,
    has_convolution: bool = False,
    head: heads.Head | None = None,
) -> EncoderConfig:
    """A published size: 64 values per head, 256 buckets of distances up to 512."""
    config = deberta_shape.deberta(
        num_layers=num_layers,
        d_model=d_model,
        num_heads=d_model // 64,
        d_ff=d_ff,
        vocab_size=128100,
        num_buckets=256,
        norms_distances=True,
        shares_projections=True,
        key_bias=True,
    )
    return with_head(convolved(config) if has_convolution else config, head)


_SECOND = functools.partial(_preset, d_model=1536, d_ff=6144, has_convolution=True)

PRESETS = {
    "deberta-v2-xlarge": functools.partial(_SECOND, num_layers=24),
    "deberta-v2-xxlarge": functools.partial(_SECOND, num_layers=48),
    "deberta-v3-xsmall": functools.partial(_preset, num_layers=12, d_model=384, d_ff=1536),
    "deberta-v3-small": functools.partial(_preset, num_layers=6, d_model=768, d_ff=3072),
    "deberta-v3-base": functools.partial(_preset, num_layers=12, d_model=768, d_ff=3072),
    "deberta-v3-large": functools.partial(_preset, num_layers=24, d_model=1024, d_ff=4096),
}

_SELF = f"{deberta.LAYER}.attention.self"
_REPLACED = {"needs": "head/first_norm/scale"}

TABLE = Table(
    base="deberta.",
    entries=(
        *deberta.ENTRIES,
        *norm_entries("encoder/position/norm", "{base}encoder.LayerNorm"),
        *deberta.dense("encoder/{i}/attention/query", f"{_SELF}.query_proj"),
        *deberta.dense("encoder/{i}/attention/key", f"{_SELF}.key_proj"),
        *deberta.dense("encoder/{i}/attention/value", f"{_SELF}.value_proj"),
        *deberta.dense("encoder/{i}/attention/position_key", f"{_SELF}.pos_key_proj"),
        *deberta.dense("encoder/{i}/attention/position_query", f"{_SELF}.pos_query_proj"),
        Entry("encoder/prefix_0/convolution/kernel", "{base}encoder.conv.conv.weight", CONVOLUTION),
        Entry("encoder/prefix_0/convolution/bias", "{base}encoder.conv.conv.bias", VECTOR),
        *norm_entries("encoder/prefix_0/convolution_norm", "{base}encoder.conv.LayerNorm"),
        *norm_entries("head/first_norm", "mask_predictions.LayerNorm"),
        *linear_entries("head/dense", "mask_predictions.dense", **_REPLACED),
        *linear_entries("head/classifier", "mask_predictions.classifier", **_REPLACED),
    ),
    ignored=(
        *deberta.IGNORED,
        Ignored("mask_predictions.*", "the head of replaced tokens, in a model with another head", if_unused=True),
        Ignored("lm_predictions.*", "a head of masked words beside that of replaced tokens", if_unused=True),
    ),
)

ATTRIBUTES = config_map.Attributes(
    read={
        **deberta.READ,
        "vocab_size": 128100,
        "hidden_size": 1536,
        "num_hidden_layers": 24,
        "num_attention_heads": 24,
        "intermediate_size": 6144,
        "position_buckets": -1,
        "norm_rel_ebd": "none",
        "share_att_key": False,
        "attention_head_size": None,
        "conv_kernel_size": 0,
        "conv_act": "tanh",
    },
    fixed={"conv_groups": (1,)},
    ignored=deberta.WITHOUT_EFFECT,
)


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> EncoderConfig:
    """The config of a config.json of version 2 or 3."""
    head_size = values["hidden_size"] // values["num_attention_heads"]
    if values["attention_head_size"] not in (None, head_size):
        raise ValueError(
            f"config.json has attention_head_size={values['attention_head_size']}; possible is hidden_size by "
            f"num_attention_heads, {head_size}"
        )
    if values["norm_rel_ebd"].lower() not in ("none", "layer_norm"):
        raise ValueError(f"config.json has norm_rel_ebd={values['norm_rel_ebd']!r}; possible are none and layer_norm")
    is_relative = values["relative_attention"]
    config = deberta_shape.deberta(
        **deberta.sizes(values),
        num_buckets=values["position_buckets"] if is_relative and values["position_buckets"] > 0 else None,
        norms_distances=values["norm_rel_ebd"].lower() == "layer_norm",
        shares_projections=is_relative and values["share_att_key"],
        key_bias=True,
    )
    if values["conv_kernel_size"] > 0:
        activation = deberta.head_activation(values["conv_act"])
        config = convolved(config, kernel_size=values["conv_kernel_size"], activation=activation)
    is_masked = any(name.startswith("cls.predictions.") for name in names)
    if "mask_predictions.dense.weight" in names and not is_masked and labels.request(values) is None:
        plain = dataclasses.replace(config, stack=dataclasses.replace(config.stack, prefix=()))
        return dataclasses.replace(config, head=with_head(plain, heads.PRETRAINING).head)
    return deberta.headed(config, values, names, make=with_head)


def _to_hf(config: Any) -> dict[str, Any]:
    found = deberta.attributes(config)
    first, position = config.stack.blocks[0], config.stack.position
    buckets = None if position is None else position.num_buckets
    is_convolved = isinstance(first, ConvolvedBlockConfig)
    return {
        **found,
        "attention_head_size": first.attention.head_dim,
        "position_buckets": -1 if buckets is None else buckets,
        "norm_rel_ebd": "none" if position is None or position.norm is None else "layer_norm",
        "share_att_key": first.attention.shares_projections,
        "conv_kernel_size": first.kernel_size if is_convolved else 0,
        "conv_act": {"tanh": "tanh", **config_map.ACTIVATIONS}[first.activation if is_convolved else "tanh"],
    }


def _finds_replaced(config: EncoderConfig) -> bool:
    return isinstance(config.head, ClassificationHead) and config.head.task == "replaced"


def _architecture(config: EncoderConfig) -> str:
    return "DebertaV2Model" if _finds_replaced(config) else deberta.architecture(config, prefix="DebertaV2")


def _unread(config: EncoderConfig) -> tuple[str, ...]:
    return ("mask_predictions.*",) if _finds_replaced(config) else deberta.unread(config)


FAMILY = config_map.Family(
    model_type="deberta-v2",
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=_architecture,
    with_head=with_head,
    head_from_hf=deberta.head_from_hf,
    kept=deberta.kept,
    unread=_unread,
    starts=("bos",),
    ends=("eos",),
    input_names=("input_ids", "token_type_ids", "attention_mask"),
)
