"""DeBERTa: encoders whose attention reads contents and distances from separate vectors.

    deberta-base, deberta-large

Reference: He et al., DeBERTa: Decoding-enhanced BERT with Disentangled Attention, arXiv:2006.03654.

Differs: the head of masked words reads the last hidden states, as in transformers, unless EnhancedMaskedLM is asked
for: the paper's mask decoder (`t2t/nn/mask_decoder.py`), with which the published models were trained and whose table
of positions their files hold. No class of transformers computes it: an export of it opens as a model without a head,
with its tensors besides and `enhanced_mask_decoder: true` in config.json. Published files hold the head of masked words
as `lm_predictions.lm_head`, which transformers reads where config.json has `legacy: false`; t2t reads it under either
name and writes the other one, `cls.predictions`, with `legacy: true`.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.families import labels
from t2t.families.deberta_shape import deberta, longest, masked_words, with_labels
from t2t.hf import config_map
from t2t.hf.table import (
    LINEAR,
    LINEAR_2,
    LINEAR_BY_HEADS,
    MATRIX,
    VECTOR,
    Entry,
    Ignored,
    Table,
    linear_entries,
    norm_entries,
)
from t2t.models.encoder import EncoderConfig
from t2t.nn.classification import ClassificationHead
from t2t.nn.disentangled import TERMS, DisentangledAttentionConfig, Term
from t2t.nn.positions.relative import RelativeEmbeddings

TASKS = ("sequence", "tokens", "span")


def with_head(config: EncoderConfig, head: heads.Head | None) -> EncoderConfig:
    """The model with the head asked for; PRETRAINING is that of masked words without the mask decoder."""
    if head is None:
        return dataclasses.replace(config, head=None)
    if isinstance(head, heads.EnhancedMaskedLM):
        return masked_words(config, max_positions=longest(config))
    if isinstance(head, heads.Pretraining | heads.MaskedLM):
        return masked_words(config)
    return with_labels(config, head, tasks=TASKS)


def _preset(*, num_layers: int, d_model: int, head: heads.Head | None = None) -> EncoderConfig:
    sizes = {"num_layers": num_layers, "d_model": d_model, "num_heads": d_model // 64, "d_ff": 4 * d_model}
    return with_head(deberta(vocab_size=50265, **sizes), head)


PRESETS = {
    "deberta-base": functools.partial(_preset, num_layers=12, d_model=768),
    "deberta-large": functools.partial(_preset, num_layers=24, d_model=1024),
}


LAYER = "{base}encoder.layer.{i}"


def dense(ours: str, theirs: str, *, inputs: int = 1, copy: str | None = None) -> tuple[Entry, Entry]:
    """The tensors of one linear layer, which checkpoints may hold under the name `copy`, too."""
    layout = LINEAR if inputs == 1 else LINEAR_2
    copies = [() if copy is None else (f"{copy}.{kind}",) for kind in ("weight", "bias")]
    return (
        Entry(f"{ours}/kernel", f"{theirs}.weight", layout, copies=copies[0]),
        Entry(f"{ours}/bias", f"{theirs}.bias", VECTOR, copies=copies[1]),
    )


def _masked_norm(ours: str, theirs: str) -> Entry:
    old = f"lm_predictions.lm_head.LayerNorm.{theirs}"
    return Entry(f"head/norm/{ours}", f"cls.predictions.transform.LayerNorm.{theirs}", VECTOR, copies=(old,))


ENTRIES = (
    Entry(
        "embed/embedding",
        "{base}embeddings.word_embeddings.weight",
        MATRIX,
        copies=("cls.predictions.decoder.weight",),
    ),
    Entry("embed/positions", "{base}embeddings.position_embeddings.weight", MATRIX),
    Entry("embed/types", "{base}embeddings.token_type_embeddings.weight", MATRIX),
    Entry("embed/projection/kernel", "{base}embeddings.embed_proj.weight", LINEAR),
    *norm_entries("embed/norm", "{base}embeddings.LayerNorm"),
    Entry("encoder/position/positions", "{base}encoder.rel_embeddings.weight", MATRIX),
    *dense("encoder/{i}/attention/out", f"{LAYER}.attention.output.dense", inputs=2),
    *norm_entries("encoder/{i}/attention_norm", f"{LAYER}.attention.output.LayerNorm"),
    *dense("encoder/{i}/feed_forward/up", f"{LAYER}.intermediate.dense"),
    *dense("encoder/{i}/feed_forward/down", f"{LAYER}.output.dense"),
    *norm_entries("encoder/{i}/feed_forward_norm", f"{LAYER}.output.LayerNorm"),
    *dense("head/transform", "cls.predictions.transform.dense", copy="lm_predictions.lm_head.dense"),
    _masked_norm("scale", "weight"),
    _masked_norm("bias", "bias"),
    Entry("head/kernel", "cls.predictions.decoder.weight", LINEAR),
    Entry(
        "head/bias",
        "cls.predictions.bias",
        VECTOR,
        copies=("cls.predictions.decoder.bias", "lm_predictions.lm_head.bias"),
        unless="head/kernel",
    ),
    # As in BERT: of an untied model transformers 4 reads the first name and 5 the second, which counts.
    Entry(
        "head/bias",
        "cls.predictions.decoder.bias",
        VECTOR,
        copies=("cls.predictions.bias",),
        copies_with="head/kernel",
        copies_may_differ=True,
        needs="head/kernel",
    ),
    *linear_entries("head/dense", "pooler.dense", unless="head/first_norm/scale"),
    *linear_entries("head/classifier", "classifier", unless="head/first_norm/scale"),
    *linear_entries("head/span", "qa_outputs"),
    Entry("head/mask_decoder/positions", "{base}embeddings.position_embeddings.weight", MATRIX),
)
"""What all versions have."""

IGNORED = (
    Ignored("*embeddings.position_ids", "a buffer holding 0, 1, 2, ... that old files contain"),
    Ignored(
        "*embeddings.position_embeddings.weight",
        "absolute positions that only the mask decoder reads, of models without it",
        if_unused=True,
    ),
)

TABLE = Table(
    base="deberta.",
    entries=(
        *ENTRIES,
        Entry(
            tuple(f"encoder/{{i}}/attention/{part}/kernel" for part in ("query", "key", "value")),
            f"{LAYER}.attention.self.in_proj.weight",
            LINEAR_BY_HEADS,
        ),
        Entry("encoder/{i}/attention/query/bias", f"{LAYER}.attention.self.q_bias", VECTOR),
        Entry("encoder/{i}/attention/value/bias", f"{LAYER}.attention.self.v_bias", VECTOR),
        Entry("encoder/{i}/attention/position_key/kernel", f"{LAYER}.attention.self.pos_proj.weight", LINEAR),
        *dense("encoder/{i}/attention/position_query", f"{LAYER}.attention.self.pos_q_proj"),
    ),
    ignored=IGNORED,
)

READ = {
    **labels.READ,
    "vocab_size": 50265,
    "hidden_size": 768,
    "embedding_size": None,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 0,
    "layer_norm_eps": 1e-7,
    "relative_attention": False,
    "max_relative_positions": -1,
    "pos_att_type": None,
    "position_biased_input": True,
    "pooler_hidden_size": None,
    "pooler_hidden_act": "gelu",
    "pooler_dropout": 0.0,
    "cls_dropout": None,
    "tie_word_embeddings": True,
    "enhanced_mask_decoder": False,
}
"""Attributes that all versions have, with transformers' values for the first."""

WITHOUT_EFFECT = frozenset({"initializer_range", "padding_idx", "legacy"})
"""Attributes about training, and `legacy`: which of two names the head of masked words has, both of which are read."""

_CLASSIFIER = labels.HeadFields({task: {"cls_dropout": "dropout"} for task in ("sequence", "choice")})

ATTRIBUTES = config_map.Attributes(
    read=READ, fixed={"talking_head": (False, None)}, ignored=WITHOUT_EFFECT | {"attention_head_size"}
)


def terms(values: Mapping[str, Any]) -> tuple[Term, ...]:
    """The scores of distances that a config.json means.

    Raises:
        ValueError: for those of contents with contents would be scaled without having distances beside them, and for
            kinds that there are not.
    """
    given = values["pos_att_type"] or []
    given = [name.strip() for name in given.lower().split("|")] if isinstance(given, str) else given
    if bool(given) != values["relative_attention"] or len(set(given)) < len(given) or not set(given) <= set(TERMS):
        raise ValueError(
            f"config.json has pos_att_type={values['pos_att_type']!r} and relative_attention="
            f"{values['relative_attention']!r}; t2t has relative_attention=true with some of {', '.join(TERMS)}, and "
            "relative_attention=false with none"
        )
    return tuple(term for term in TERMS if term in given)


def head_activation(name: str) -> str:
    """Our name of an activation of a pooler or a convolution."""
    return name if name == "tanh" else config_map.activation(name)


def sizes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `deberta` that config.json has for every version.

    Raises:
        ValueError: a pooler of another width than the model.
    """
    d_model = values["hidden_size"]
    if values["pooler_hidden_size"] not in (None, d_model):
        raise ValueError(
            f"config.json has pooler_hidden_size={values['pooler_hidden_size']}, not hidden_size={d_model}"
        )
    length = values["max_position_embeddings"]
    return {
        "num_layers": values["num_hidden_layers"],
        "d_model": d_model,
        "num_heads": values["num_attention_heads"],
        "d_ff": values["intermediate_size"],
        "vocab_size": values["vocab_size"],
        "terms": terms(values),
        "max_distance": values["max_relative_positions"] if values["max_relative_positions"] > 0 else length,
        "max_positions": length if values["position_biased_input"] else None,
        "embedding_size": values["embedding_size"],
        "num_types": values["type_vocab_size"],
        "activation": config_map.activation(values["hidden_act"]),
        "dropout": float(values["hidden_dropout_prob"]),
        "attention_dropout": float(values["attention_probs_dropout_prob"]),
        "eps": values["layer_norm_eps"],
    }


def headed(config: EncoderConfig, values: Mapping[str, Any], names: frozenset[str], *, make: Any) -> EncoderConfig:
    """The model with the head that config.json and the names of tensors mean; `make` is the family's `with_head`."""
    is_old = any(name.startswith("lm_predictions.") for name in names)
    if is_old or any(name.startswith("cls.predictions.") for name in names):
        number = values["max_position_embeddings"] if values.get("enhanced_mask_decoder") else None
        config = masked_words(config, max_positions=number)
        tied = is_old or values["tie_word_embeddings"]
        return dataclasses.replace(config, head=dataclasses.replace(config.head, tied=tied))
    if (request := labels.request(values)) is not None:
        config = head_from_hf(make(config, request), values)
    return config


def has_pooler(config: EncoderConfig) -> bool:
    """Whether the head scores a text by a dense layer, which transformers calls its pooler."""
    return isinstance(config.head, ClassificationHead) and config.head.task in ("sequence", "choice")


def head_from_hf(config: EncoderConfig, values: Mapping[str, Any]) -> EncoderConfig:
    """The model whose head is as the attributes of config.json say.

    Differs: one rate of dropout before and after the pooler, that of the classifier; pooler_dropout, 0 in all released
    files, says whether there is one before.
    """
    config = _CLASSIFIER.read(config, values)
    changed: dict[str, Any] = {}
    if has_pooler(config):
        activation = head_activation(values["pooler_hidden_act"])
        changed = {"activation": activation, "drops_input": min(values["pooler_dropout"], config.head.dropout) > 0}
    elif config.has_mask_decoder:
        number = values["max_position_embeddings"]
        position = dataclasses.replace(config.head.mask_decoder.position, max_positions=number)
        changed = {"mask_decoder": dataclasses.replace(config.head.mask_decoder, position=position)}
    return dataclasses.replace(config, head=dataclasses.replace(config.head, **changed)) if changed else config


def kept(config: EncoderConfig) -> frozenset[str]:
    """Attributes of heads that say nothing of a model with its head."""
    return frozenset() if has_pooler(config) else _CLASSIFIER.names | {"pooler_hidden_act", "pooler_dropout"}


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> EncoderConfig:
    """The config of a DeBERTa's config.json."""
    return headed(deberta(**sizes(values)), values, names, make=with_head)


def attributes(config: Any) -> dict[str, Any]:
    """Attributes of config.json that all versions have.

    Raises:
        InexpressibleError: it is no encoder with such attention.
    """
    if not isinstance(config, EncoderConfig):
        raise config_map.InexpressibleError("it is no encoder")
    block, embed, position = config.stack.blocks[0], config.embed, config.stack.position
    if not isinstance(block.attention, DisentangledAttentionConfig):
        raise config_map.InexpressibleError("its attention is not disentangled")
    if position is not None and not isinstance(position, RelativeEmbeddings):
        raise config_map.InexpressibleError(f"it has no embedded distances but {type(position).__name__}")
    max_distance = -1 if position is None else position.max_distance
    absolute = config.head.mask_decoder.position if config.has_mask_decoder else embed.position
    head = config.head if has_pooler(config) else None
    activation = "gelu" if head is None or head.activation is None else head.activation
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "embedding_size": embed.dim,
        "num_hidden_layers": config.stack.num_layers,
        "num_attention_heads": block.attention.num_heads,
        "intermediate_size": block.feed_forward.d_ff,
        "hidden_act": config_map.ACTIVATIONS[block.feed_forward.activation],
        "hidden_dropout_prob": float(block.dropout),
        "attention_probs_dropout_prob": float(block.attention.dropout),
        "max_position_embeddings": longest(config) if absolute is None else absolute.max_positions,
        "type_vocab_size": embed.num_types,
        "layer_norm_eps": float(block.norm.eps),
        "relative_attention": position is not None,
        "max_relative_positions": max_distance,
        "pos_att_type": list(block.attention.terms),
        "position_biased_input": embed.position is not None,
        "pooler_hidden_size": config.d_model,
        "pooler_hidden_act": {"tanh": "tanh", **config_map.ACTIVATIONS}[activation],
        "pooler_dropout": float(head.dropout) if head is not None and head.drops_input else 0.0,
        "initializer_range": float(embed.initializer_std),
        "tie_word_embeddings": getattr(config.head, "tied", True),
        "legacy": True,
        **({"enhanced_mask_decoder": True} if config.has_mask_decoder else {}),
        **_CLASSIFIER.written(config),
        **labels.attributes(config),
    }


def architecture(config: EncoderConfig, *, prefix: str, endings: Mapping[str, str] | None = None) -> str:
    """The name of transformers' class.

    Raises:
        InexpressibleError: there is none.
    """
    if isinstance(config.head, ClassificationHead):
        return labels.architecture(config.head, prefix=prefix, endings=endings)
    if config.pooler:
        raise config_map.InexpressibleError("transformers' DeBERTas have no pooler with tanh")
    return f"{prefix}Model" if config.head is None or config.has_mask_decoder else f"{prefix}ForMaskedLM"


def unread(config: EncoderConfig) -> tuple[str, ...]:
    """The tensors of a mask decoder and its head."""
    return ("cls.predictions.*", "*embeddings.position_embeddings.weight") if config.has_mask_decoder else ()


def _architecture(config: EncoderConfig) -> str:
    return architecture(config, prefix="Deberta", endings={"choice": ""})


FAMILY = config_map.Family(
    model_type="deberta",
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=attributes,
    architecture=_architecture,
    with_head=with_head,
    head_from_hf=head_from_hf,
    kept=kept,
    unread=unread,
    starts=("bos",),
    ends=("eos",),
    input_names=("input_ids", "token_type_ids", "attention_mask"),
)
