"""MPNet: RoBERTa with a relative position bias besides, pretrained on masked and permuted words.

    mpnet-base

The bias is T5's, one table for all layers. transformers has the encoder and a head of masked words; of pretraining's
permutations its class has nothing, and no more has this one.

Reference: Song et al., MPNet: Masked and Permuted Pre-training for Language Understanding, arXiv:2004.09297, and the
released code of microsoft/MPNet.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.families import bert, roberta
from t2t.hf import config_map
from t2t.hf.table import MATRIX, Entry, Table, linear_entries, norm_entries
from t2t.models.encoder import EncoderConfig
from t2t.nn.positions.t5_bias import T5Bias

_OFFSET = 2
_BIAS = T5Bias(num_buckets=32, max_distance=128, initializer_std=roberta.INITIALIZER["initializer_std"])
"""transformers' class computes 32 buckets, whatever config.json says."""


def mpnet(**sizes: Any) -> EncoderConfig:
    """An MPNet of any size, without a head but with the pooler: the sizes of `bert.bert`."""
    form = {"position_offset": _OFFSET, "num_types": 0, "initializer": roberta.INITIALIZER}
    return _with_bias(bert.bert(**{"eps": 1e-5, **sizes, **form}))


def _with_bias(config: EncoderConfig) -> EncoderConfig:
    return dataclasses.replace(config, stack=dataclasses.replace(config.stack, position=_BIAS))


def _mpnet_base(*, head: heads.Head | None = None) -> EncoderConfig:
    sizes = {"num_layers": 12, "d_model": 768, "num_heads": 12, "d_ff": 3072, "vocab_size": 30527}
    return roberta.with_head(mpnet(**sizes), head)


PRESETS = {"mpnet-base": _mpnet_base}

_LAYER = "{base}encoder.layer.{i}"

TABLE = Table(
    base="mpnet.",
    entries=(
        *bert.embed_entries("lm_head.decoder"),
        Entry("encoder/position/embedding", "{base}encoder.relative_attention_bias.weight", MATRIX),
        *linear_entries("encoder/{i}/attention/query", f"{_LAYER}.attention.attn.q"),
        *linear_entries("encoder/{i}/attention/key", f"{_LAYER}.attention.attn.k"),
        *linear_entries("encoder/{i}/attention/value", f"{_LAYER}.attention.attn.v"),
        *linear_entries("encoder/{i}/attention/out", f"{_LAYER}.attention.attn.o", inputs=2),
        *norm_entries("encoder/{i}/attention_norm", f"{_LAYER}.attention.LayerNorm"),
        *linear_entries("encoder/{i}/feed_forward/up", f"{_LAYER}.intermediate.dense"),
        *linear_entries("encoder/{i}/feed_forward/down", f"{_LAYER}.output.dense"),
        *norm_entries("encoder/{i}/feed_forward_norm", f"{_LAYER}.output.LayerNorm"),
        *roberta.HEADS,
    ),
    ignored=bert.BUFFERS,
)

ATTRIBUTES = config_map.Attributes(
    read={name: value for name, value in bert.ATTRIBUTES.read.items() if name != "type_vocab_size"}
    | {"vocab_size": 30527},
    fixed={"relative_attention_num_buckets": (_BIAS.num_buckets,)},
    ignored=frozenset({"initializer_range"}),
)


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> EncoderConfig:
    """The config of an MPNet's config.json; which heads it has is read from the names of its tensors."""
    positions = values["max_position_embeddings"] - _OFFSET
    given = {**values, "type_vocab_size": 0, "max_position_embeddings": positions}
    config = bert.encoder_from_hf(given, position_offset=_OFFSET, initializer=roberta.INITIALIZER)
    return roberta.masked_or_labels(_with_bias(config), values, names)


def _to_hf(config: Any) -> dict[str, Any]:
    attributes = bert.encoder_attributes(config)
    if config.embed.num_types:
        raise config_map.InexpressibleError("it has a table of sentence types")
    for name in ("type_vocab_size", "is_decoder", "add_cross_attention", "use_cache"):
        del attributes[name]
    return {
        **attributes,
        "max_position_embeddings": config.embed.position.num_rows,
        "relative_attention_num_buckets": _BIAS.num_buckets,
        "pad_token_id": _OFFSET - 1,
    }


FAMILY = config_map.Family(
    model_type="mpnet",
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=functools.partial(roberta.architecture, prefix="MPNet"),
    with_head=roberta.with_head,
    published_ids=roberta.PUBLISHED_IDS,
    starts=("bos",),
    ends=("eos",),
    between=("eos",),
)
