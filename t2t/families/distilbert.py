"""DistilBERT: half the layers of BERT, distilled from it; no sentence types and no pooler.

    distilbert-base-uncased, distilbert-base-cased, distilbert-base-multilingual-cased

Reference: Sanh et al., DistilBERT, a distilled version of BERT: smaller, faster, cheaper and lighter, arXiv:1910.01108,
and the released code in transformers.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.families import bert, labels
from t2t.hf import config_map
from t2t.hf.table import LINEAR, MATRIX, VECTOR, Entry, Table, linear_entries, norm_entries
from t2t.models.encoder import EncoderConfig
from t2t.nn.classification import ClassificationHead
from t2t.nn.heads import MaskedLanguageModelHead

_INITIALIZER = {"initializer_std": 0.02, "initializer": "normal"}
"""transformers' for what is not taken from the teacher."""
_EPS = 1e-12
_DROPOUT = {"seq_classif_dropout": 0.2, "qa_dropout": 0.1}
"""Before the classifiers of texts and choices, and of answers."""
HEAD_FIELDS = labels.HeadFields({
    "sequence": {"seq_classif_dropout": "dropout"},
    "choice": {"seq_classif_dropout": "dropout"},
    "span": {"qa_dropout": "dropout"},
})  # fmt: skip


def distilbert(**sizes: Any) -> EncoderConfig:
    """A DistilBERT of any size, without a head: the sizes of `bert.bert`."""
    config = bert.bert(**sizes, num_types=0, eps=_EPS, initializer=_INITIALIZER)
    return dataclasses.replace(config, pooler=False)


def with_head(config: EncoderConfig, head: heads.Head | None) -> EncoderConfig:
    """The model with the head asked for; that of pretraining is the one of masked words."""
    if head is None:
        return dataclasses.replace(config, head=None)
    block = config.stack.blocks[0]
    if isinstance(head, heads.Pretraining | heads.MaskedLM):
        activation = block.feed_forward.activation
        masked = MaskedLanguageModelHead(activation=activation, norm=block.norm, **_INITIALIZER)
        return dataclasses.replace(config, head=masked)
    first = {"pooling": "first", "activation": "relu", "dropout": _DROPOUT["seq_classif_dropout"], **_INITIALIZER}
    scores = labels.make(
        head,
        family="DistilBERT",
        sequence=first,
        choice=first,
        tokens={"dropout": block.dropout, **_INITIALIZER},
        span={"dropout": _DROPOUT["qa_dropout"], **_INITIALIZER},
    )
    return dataclasses.replace(config, head=scores)


def _preset(*, vocab_size: int, head: heads.Head | None = None) -> EncoderConfig:
    sizes = {"num_layers": 6, "d_model": 768, "num_heads": 12, "d_ff": 3072}
    return with_head(distilbert(vocab_size=vocab_size, **sizes), head)


PRESETS = {
    "distilbert-base-uncased": functools.partial(_preset, vocab_size=30522),
    "distilbert-base-cased": functools.partial(_preset, vocab_size=28996),
    "distilbert-base-multilingual-cased": functools.partial(_preset, vocab_size=119547),
}

_LAYER = "{base}transformer.layer.{i}"

TABLE = Table(
    base="distilbert.",
    entries=(
        Entry("embed/embedding", "{base}embeddings.word_embeddings.weight", MATRIX, copies=("vocab_projector.weight",)),
        Entry("embed/positions", "{base}embeddings.position_embeddings.weight", MATRIX),
        *norm_entries("embed/norm", "{base}embeddings.LayerNorm"),
        *linear_entries("encoder/{i}/attention/query", f"{_LAYER}.attention.q_lin"),
        *linear_entries("encoder/{i}/attention/key", f"{_LAYER}.attention.k_lin"),
        *linear_entries("encoder/{i}/attention/value", f"{_LAYER}.attention.v_lin"),
        *linear_entries("encoder/{i}/attention/out", f"{_LAYER}.attention.out_lin", inputs=2),
        *norm_entries("encoder/{i}/attention_norm", f"{_LAYER}.sa_layer_norm"),
        *linear_entries("encoder/{i}/feed_forward/up", f"{_LAYER}.ffn.lin1"),
        *linear_entries("encoder/{i}/feed_forward/down", f"{_LAYER}.ffn.lin2"),
        *norm_entries("encoder/{i}/feed_forward_norm", f"{_LAYER}.output_layer_norm"),
        *linear_entries("head/transform", "vocab_transform"),
        *norm_entries("head/norm", "vocab_layer_norm"),
        Entry("head/kernel", "vocab_projector.weight", LINEAR),
        Entry("head/bias", "vocab_projector.bias", VECTOR),
        *linear_entries("head/dense", "pre_classifier"),
        *linear_entries("head/classifier", "classifier"),
        *linear_entries("head/span", "qa_outputs"),
    ),
    ignored=bert.BUFFERS,
)

_NAMES = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "vocab_size": "vocab_size",
    "max_position_embeddings": "max_position_embeddings",
    "tie_word_embeddings": "tie_word_embeddings",
}
"""BERT's names of attributes -> DistilBERT's."""

ATTRIBUTES = config_map.Attributes(
    read={
        **labels.READ,
        **{theirs: bert.ATTRIBUTES.read[name] for name, theirs in _NAMES.items()},
        "n_layers": 6,
        **_DROPOUT,
    },
    # How positions begin, which a file of trained ones does not need; and a flag that no code reads.
    ignored=frozenset({"initializer_range", "sinusoidal_pos_embds", "tie_weights_"}),
)


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> EncoderConfig:
    """The config of a DistilBERT's config.json."""
    given = {name: values[theirs] for name, theirs in _NAMES.items()} | {"layer_norm_eps": _EPS, "type_vocab_size": 0}
    config = bert.encoder_from_hf(given, initializer=_INITIALIZER)
    config = dataclasses.replace(config, pooler=False)
    if "vocab_transform.weight" in names:
        config = with_head(config, heads.MaskedLM())
        head = dataclasses.replace(config.head, tied=values["tie_word_embeddings"])
        return dataclasses.replace(config, head=head)
    if (request := labels.request(values)) is None:
        return config
    return HEAD_FIELDS.read(with_head(config, request), values)


def _to_hf(config: Any) -> dict[str, Any]:
    attributes = bert.encoder_attributes(config)
    if config.embed.num_types:
        raise config_map.InexpressibleError("it has a table of sentence types")
    return {
        **{theirs: attributes[name] for name, theirs in _NAMES.items()},
        "initializer_range": attributes["initializer_range"],
        "sinusoidal_pos_embds": False,
        **_DROPOUT,
        **HEAD_FIELDS.written(config),
        **labels.attributes(config),
    }


def _architecture(config: EncoderConfig) -> str:
    if config.pooler:
        raise config_map.InexpressibleError("it has a pooler")
    if config.head is None:
        return "DistilBertModel"
    if isinstance(config.head, ClassificationHead):
        return labels.architecture(config.head, prefix="DistilBert")
    return "DistilBertForMaskedLM"


FAMILY = config_map.Family(
    model_type="distilbert",
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=_architecture,
    with_head=with_head,
    head_from_hf=HEAD_FIELDS.read,
    kept=HEAD_FIELDS.unused,
    starts=("bos",),
    ends=("eos",),
)
