"""ALBERT: a BERT whose layers share their parameters and whose tables are narrower than the model.

    albert-base-v2, albert-large-v2, albert-xlarge-v2, albert-xxlarge-v2
    albert-base-v1, albert-large-v1, albert-xlarge-v1, albert-xxlarge-v1

The second version was trained without dropout, on more text and longer; the first with it, but for the largest size.
Of two sentences in pretraining ALBERT says whether they stand in their order (next_sentence = 0) or are swapped.

Reference: Lan et al., ALBERT: A Lite BERT for Self-supervised Learning of Language Representations, arXiv:1909.11942,
and the released code and checkpoints of google-research/albert, whose xlarge has 16 heads.
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
from t2t.nn.stack import SharedLayers

_CLASSIFIER_DROPOUT = 0.1
"""Before the classifiers of labels and of the order of sentences; `classifier_dropout_prob` of the released configs."""


def albert(*, embed_dim: int, num_groups: int = 1, **sizes: Any) -> EncoderConfig:
    """An ALBERT of any size, without a head but with the pooler: the sizes of `bert.bert`."""
    return _sharing(bert.bert(embed_dim=embed_dim, **sizes), num_groups)


def _sharing(config: EncoderConfig, num_groups: int) -> EncoderConfig:
    stack = dataclasses.replace(config.stack, sharing=SharedLayers(groups=num_groups))
    return dataclasses.replace(config, stack=stack)


def with_head(config: EncoderConfig, head: heads.Head | None) -> EncoderConfig:
    """The model with the head asked for: that of masked words, with the classifier of their order for PRETRAINING."""
    if head is None:
        return dataclasses.replace(config, head=None, pooler=True)
    if not isinstance(head, heads.Pretraining | heads.MaskedLM):
        plain = {"dropout": _CLASSIFIER_DROPOUT, **bert.INITIALIZER}
        pooled = {"pooling": "pooler", **plain}
        forms = {"sequence": pooled, "choice": pooled, "tokens": plain, "span": {**plain, "dropout": 0.0}}
        scores = labels.make(head, family="ALBERT", **forms)
        return dataclasses.replace(config, head=scores, pooler=scores.reads_pooled)
    block = config.stack.blocks[0]
    has_order = head == heads.PRETRAINING
    masked = MaskedLanguageModelHead(
        activation=block.feed_forward.activation,
        norm=block.norm,
        dim=config.embed.dim,
        next_sentence=has_order,
        dropout=_CLASSIFIER_DROPOUT if has_order else 0.0,
        **bert.INITIALIZER,
    )
    return dataclasses.replace(config, head=masked, pooler=has_order)


def _preset(*, head: heads.Head | None = None, dropout: float = 0.0, **sizes: Any) -> EncoderConfig:
    """A published size."""
    more = {"dropout": dropout, "attention_dropout": dropout, "activation": "gelu_tanh", "vocab_size": 30000}
    return with_head(albert(embed_dim=128, **sizes, **more), head)


_SIZES = {
    "base": {"num_layers": 12, "d_model": 768, "num_heads": 12, "d_ff": 3072},
    "large": {"num_layers": 24, "d_model": 1024, "num_heads": 16, "d_ff": 4096},
    "xlarge": {"num_layers": 24, "d_model": 2048, "num_heads": 16, "d_ff": 8192},
    "xxlarge": {"num_layers": 12, "d_model": 4096, "num_heads": 64, "d_ff": 16384},
}

PRESETS = {
    **{f"albert-{size}-v2": functools.partial(_preset, **sizes) for size, sizes in _SIZES.items()},
    **{
        f"albert-{size}-v1": functools.partial(_preset, dropout=0.0 if size == "xxlarge" else 0.1, **sizes)
        for size, sizes in _SIZES.items()
    },
}

_LAYER = "{base}encoder.albert_layer_groups.{i}.albert_layers.0"

TABLE = Table(
    base="albert.",
    entries=(
        *bert.embed_entries("predictions.decoder"),
        *linear_entries("embed/projection", "{base}encoder.embedding_hidden_mapping_in"),
        *linear_entries("encoder/{i}/attention/query", f"{_LAYER}.attention.query"),
        *linear_entries("encoder/{i}/attention/key", f"{_LAYER}.attention.key"),
        *linear_entries("encoder/{i}/attention/value", f"{_LAYER}.attention.value"),
        *linear_entries("encoder/{i}/attention/out", f"{_LAYER}.attention.dense", inputs=2),
        *norm_entries("encoder/{i}/attention_norm", f"{_LAYER}.attention.LayerNorm"),
        *linear_entries("encoder/{i}/feed_forward/up", f"{_LAYER}.ffn"),
        *linear_entries("encoder/{i}/feed_forward/down", f"{_LAYER}.ffn_output"),
        *norm_entries("encoder/{i}/feed_forward_norm", f"{_LAYER}.full_layer_layer_norm"),
        *linear_entries("pooler", "{base}pooler"),
        *linear_entries("head/transform", "predictions.dense"),
        *norm_entries("head/norm", "predictions.LayerNorm"),
        *bert.decoder_entries("predictions"),
        *linear_entries("head/next_sentence", "sop_classifier.classifier"),
        *linear_entries("head/classifier", "classifier"),
        *linear_entries("head/span", "qa_outputs"),
    ),
    ignored=bert.BUFFERS,
)

ATTRIBUTES = config_map.Attributes(
    read={
        **bert.ATTRIBUTES.read,
        "vocab_size": 30000,
        "embedding_size": 128,
        "hidden_size": 4096,
        "num_hidden_groups": 1,
        "num_attention_heads": 64,
        "intermediate_size": 16384,
        "hidden_act": "gelu_new",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "classifier_dropout_prob": _CLASSIFIER_DROPOUT,
    },
    fixed={
        "inner_group_num": (1,),
        "position_embedding_type": ("absolute", None),
        "is_decoder": (False,),
    },
    # No code reads the last five, which released files have.
    ignored=frozenset({
        "initializer_range", "down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks",
        "layers_to_keep",
    }),
)  # fmt: skip


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> EncoderConfig:
    """The config of an ALBERT's config.json; which heads it has is read from the names of its tensors."""
    config = _sharing(bert.encoder_from_hf(values, embed_dim=values["embedding_size"]), values["num_hidden_groups"])
    if "predictions.dense.weight" in names:
        has_order = "sop_classifier.classifier.weight" in names
        config = head_from_hf(with_head(config, heads.PRETRAINING if has_order else heads.MaskedLM()), values)
    elif (request := labels.request(values)) is not None:
        config = head_from_hf(with_head(config, request), values)
    return dataclasses.replace(config, pooler="pooler.weight" in names)


def head_from_hf(config: EncoderConfig, values: Mapping[str, Any]) -> EncoderConfig:
    """The model whose head is as the attributes of config.json say."""
    changed = {}
    if isinstance(config.head, MaskedLanguageModelHead):
        changed["tied"] = values["tie_word_embeddings"]
    if _has_classifier(config):
        dropout = values["classifier_dropout_prob"]
        changed["dropout"] = float(values["hidden_dropout_prob"] if dropout is None else dropout)
    return dataclasses.replace(config, head=dataclasses.replace(config.head, **changed)) if changed else config


def _has_classifier(config: EncoderConfig) -> bool:
    """Whether its head drops what a classifier reads."""
    head = config.head
    return config.has_next_sentence or (isinstance(head, ClassificationHead) and head.task != "span")


def _kept(config: EncoderConfig) -> frozenset[str]:
    return frozenset() if _has_classifier(config) else frozenset({"classifier_dropout_prob"})


def _to_hf(config: Any) -> dict[str, Any]:
    attributes = bert.to_hf(config)
    for name in ("is_decoder", "add_cross_attention", "use_cache"):
        del attributes[name]
    if config.stack.sharing is None:
        raise config_map.InexpressibleError("its layers share no parameters")
    return {
        **attributes,
        "embedding_size": config.embed.dim,
        "num_hidden_groups": config.stack.sharing.groups,
        "inner_group_num": 1,
        "classifier_dropout_prob": float(config.head.dropout) if _has_classifier(config) else _CLASSIFIER_DROPOUT,
    }


def _architecture(config: EncoderConfig) -> str:
    """The name of transformers' class. That of masked words may have a pooler besides, as the published files have."""
    if config.head is None:
        if config.pooler:
            return "AlbertModel"
        raise config_map.InexpressibleError("it has no pooler, which AlbertModel has")
    if isinstance(config.head, ClassificationHead):
        return labels.architecture(config.head, prefix="Albert")
    return "AlbertForPreTraining" if config.head.next_sentence else "AlbertForMaskedLM"


FAMILY = config_map.Family(
    model_type="albert",
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=_architecture,
    with_head=with_head,
    head_from_hf=head_from_hf,
    kept=_kept,
    published_ids={"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3},
    starts=("bos",),
    ends=("eos",),
    input_names=("input_ids", "token_type_ids", "attention_mask"),
)
