"""RoBERTa: BERT trained longer on more text, on masked words alone; positions count from the row after padding's id.

    roberta-base, roberta-large
    distilroberta-base                              six layers, distilled from roberta-base

Reference: Liu et al., RoBERTa: A Robustly Optimized BERT Pretraining Approach, arXiv:1907.11692, and the released code
of facebookresearch/fairseq; Sanh et al., DistilBERT, a distilled version of BERT, arXiv:1910.01108, for the distilled.

Differs: positions follow the segment ids. transformers counts the ids that are not padding's, so that there a padding
id inside a text shifts all that follows.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.families import bert, labels
from t2t.hf import config_map
from t2t.hf.table import Table, linear_entries, norm_entries
from t2t.models.encoder import EncoderConfig
from t2t.nn.classification import ClassificationHead
from t2t.nn.heads import MaskedLanguageModelHead

INITIALIZER = {"initializer_std": 0.02, "initializer": "normal"}
"""`init_bert_params` of fairseq."""

PUBLISHED_IDS = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
"""Those of fairseq."""


def roberta(**sizes: Any) -> EncoderConfig:
    """A RoBERTa of any size: the sizes of `bert.bert`, with RoBERTa's values where they differ."""
    return bert.bert(**{"position_offset": 2, "num_types": 1, "eps": 1e-5, "initializer": INITIALIZER, **sizes})


def with_head(config: EncoderConfig, head: heads.Head | None) -> EncoderConfig:
    """The model with the head asked for; that of pretraining is the one of masked words."""
    if head is None:
        return dataclasses.replace(config, head=None, pooler=True)
    block = config.stack.blocks[0]
    if isinstance(head, heads.Pretraining | heads.MaskedLM):
        # The exact GELU, whatever the layers have.
        masked = MaskedLanguageModelHead(activation="gelu", norm=block.norm, **INITIALIZER)
        return dataclasses.replace(config, head=masked, pooler=False)
    plain = {"dropout": block.dropout, **INITIALIZER}
    scores = labels.make(
        head,
        family="this family",
        sequence={"pooling": "first", "activation": "tanh", "drops_input": True, **plain},
        choice={"pooling": "pooler", **plain},
        tokens=plain,
        span={**plain, "dropout": 0.0},
    )
    return dataclasses.replace(config, head=scores, pooler=scores.reads_pooled)


def preset(
    *,
    num_layers: int,
    d_model: int,
    vocab_size: int = 50265,
    name: str | None = None,
    head: heads.Head | None = None,
) -> EncoderConfig:
    """A published size: 64 values per head, a feed-forward four times as wide as the model."""
    sizes = {"num_layers": num_layers, "d_model": d_model, "num_heads": d_model // 64, "d_ff": 4 * d_model}
    return with_head(dataclasses.replace(roberta(vocab_size=vocab_size, **sizes), family=name), head)


PRESETS = {
    "roberta-base": functools.partial(preset, num_layers=12, d_model=768),
    "roberta-large": functools.partial(preset, num_layers=24, d_model=1024),
    "distilroberta-base": functools.partial(preset, num_layers=6, d_model=768),
}

HEADS = (
    *linear_entries("pooler", "{base}pooler.dense"),
    *linear_entries("head/transform", "lm_head.dense"),
    *norm_entries("head/norm", "lm_head.layer_norm"),
    *bert.decoder_entries("lm_head"),
    *linear_entries("head/dense", "classifier.dense"),
    *linear_entries("head/classifier", "classifier.out_proj", needs="head/dense/kernel"),
    *linear_entries("head/classifier", "classifier", unless="head/dense/kernel"),
    *linear_entries("head/span", "qa_outputs"),
)
"""The tensors of the pooler and of every head."""

TABLE = Table(
    base="roberta.",
    entries=(*bert.embed_entries("lm_head.decoder"), *bert.LAYERS, *HEADS),
    ignored=bert.BUFFERS,
)

HEAD_FIELDS = labels.HeadFields({task: {"classifier_dropout": "dropout"} for task in ("sequence", "tokens")})

ATTRIBUTES = dataclasses.replace(
    bert.ATTRIBUTES,
    read={**bert.ATTRIBUTES.read, "vocab_size": 50265, "pad_token_id": 1},
    ignored=frozenset({"initializer_range"}),
)


def masked_or_labels(config: EncoderConfig, values: Mapping[str, Any], names: frozenset[str]) -> EncoderConfig:
    """The config with the heads that the names of tensors and the attributes of config.json mean."""
    if "lm_head.dense.weight" in names:
        config = with_head(config, heads.MaskedLM())
        head = dataclasses.replace(config.head, tied=values["tie_word_embeddings"])
        config = dataclasses.replace(config, head=head)
    elif (request := labels.request(values)) is not None:
        config = with_head(config, request)
    return dataclasses.replace(config, pooler="pooler.dense.weight" in names)


def from_hf(values: Mapping[str, Any], names: frozenset[str]) -> EncoderConfig:
    """The config of a RoBERTa's config.json; which heads it has is read from the names of its tensors."""
    config = _encoder_from_hf(values)
    return HEAD_FIELDS.read(masked_or_labels(config, values, names), values)


def _encoder_from_hf(values: Mapping[str, Any]) -> EncoderConfig:
    if values["pad_token_id"] is None:
        raise ValueError("pad_token_id in config.json is null, but a RoBERTa's positions count from the id after it")
    offset = values["pad_token_id"] + 1
    return bert.encoder_from_hf(
        {**values, "max_position_embeddings": values["max_position_embeddings"] - offset},
        position_offset=offset,
        initializer=INITIALIZER,
    )


def to_hf(config: Any) -> dict[str, Any]:
    """The attributes of config.json.

    Raises:
        InexpressibleError: no RoBERTa is so.
    """
    attributes = bert.to_hf(config)
    position = config.embed.position
    if position.offset == 0:
        raise config_map.InexpressibleError("its positions begin in row 0, which in RoBERTa is one of padding")
    length = {"max_position_embeddings": position.num_rows, "pad_token_id": position.offset - 1}
    return {**attributes, **length, **HEAD_FIELDS.written(config)}


def architecture(config: EncoderConfig, *, prefix: str) -> str:
    """The name of transformers' class. That of masked words may have a pooler besides, as the published files have.

    Raises:
        InexpressibleError: there is none.
    """
    if config.head is None:
        if config.pooler:
            return f"{prefix}Model"
        raise config_map.InexpressibleError(f"it has no pooler, which {prefix}Model has")
    if isinstance(config.head, ClassificationHead):
        return labels.architecture(config.head, prefix=prefix)
    if config.head.next_sentence:
        raise config_map.InexpressibleError("it has a next-sentence classifier")
    return f"{prefix}ForMaskedLM"


FAMILY = config_map.Family(
    model_type="roberta",
    refused={"RobertaForCausalLM": labels.CAUSAL},
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=from_hf,
    to_hf=to_hf,
    architecture=functools.partial(architecture, prefix="Roberta"),
    with_head=with_head,
    head_from_hf=HEAD_FIELDS.read,
    kept=HEAD_FIELDS.unused,
    published_ids=PUBLISHED_IDS,
    starts=("bos",),
    ends=("eos",),
    between=("eos",),
)
