"""BERT: bidirectional encoders with the norm after each residual, pretrained on masked words and next sentences.

    bert-base-uncased, bert-base-cased, bert-large-uncased, bert-large-cased
    bert-base-multilingual-cased, bert-base-multilingual-uncased
    bert-l{2,4,6,8,10,12}-h{128,256,512,768}        the 24 smaller ones; bert-tiny, -mini, -small, -medium are l2-h128,
                                                    l4-h256, l4-h512, l8-h512
    tinybert-4, tinybert-6                          students of bert-base-uncased, 312 and 768 wide

Reference: Devlin et al., BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding,
arXiv:1810.04805; Turc et al., Well-Read Students Learn Better, arXiv:1908.08962, for the smaller sizes; Jiao et al.,
TinyBERT: Distilling BERT for Natural Language Understanding, arXiv:1909.10351.

Differs: the activation is the exact GELU, as in transformers; Google's TensorFlow code has its tanh approximation, up
to 5e-4 away.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.families import labels
from t2t.hf import config_map
from t2t.hf.table import LINEAR, MATRIX, VECTOR, Entry, Ignored, Table, linear_entries, norm_entries
from t2t.models.encoder import EncoderConfig
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.classification import ClassificationHead
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import Activation, FeedForwardConfig
from t2t.nn.heads import MaskedLanguageModelHead
from t2t.nn.norm import LayerNorm
from t2t.nn.positions.absolute import LearnedPositions
from t2t.nn.stack import StackConfig

INITIALIZER = {"initializer_std": 0.02, "initializer": "truncated_normal"}
"""Appendix A.2 of the paper and modeling.py of google-research/bert."""


def bert(
    *,
    num_layers: int,
    d_model: int,
    num_heads: int,
    d_ff: int,
    vocab_size: int,
    max_positions: int = 512,
    position_offset: int = 0,
    num_types: int = 2,
    embed_dim: int | None = None,
    activation: Activation = "gelu",
    dropout: float = 0.1,
    attention_dropout: float = 0.1,
    eps: float = 1e-12,
    initializer: Mapping[str, Any] = INITIALIZER,
) -> EncoderConfig:
    """A BERT of any size, without a head but with the pooler.

    With `embed_dim` the embeddings have that width, and a dense layer widens them.
    """
    norm = LayerNorm(eps=eps)
    block = BlockConfig(
        norm=norm,
        norm_position="post",
        attention=AttentionConfig(
            num_heads=num_heads,
            head_dim=d_model // num_heads,
            use_bias=True,
            dropout=attention_dropout,
            **initializer,
        ),
        feed_forward=FeedForwardConfig(d_ff=d_ff, activation=activation, use_bias=True, **initializer),
        dropout=dropout,
    )
    return EncoderConfig(
        embed=EmbedConfig(
            vocab_size=vocab_size,
            dim=d_model if embed_dim is None else embed_dim,
            d_model=None if embed_dim is None else d_model,
            num_types=num_types,
            position=LearnedPositions(max_positions=max_positions, offset=position_offset),
            norm=norm,
            dropout=dropout,
            **initializer,
        ),
        stack=StackConfig(num_layers=num_layers, d_model=d_model, pattern=(block,)),
        pooler=True,
    )


def with_head(config: EncoderConfig, head: heads.Head | None) -> EncoderConfig:
    """The model with the head asked for: that of masked words, with the next-sentence classifier for PRETRAINING."""
    if head is None:
        return dataclasses.replace(config, head=None, pooler=True)
    block = config.stack.blocks[0]
    if not isinstance(head, heads.Pretraining | heads.MaskedLM):
        plain = {"dropout": block.dropout, **INITIALIZER}
        pooled = {"pooling": "pooler", **plain}
        undropped = {"dropout": 0.0, **INITIALIZER}
        forms = {"sequence": pooled, "choice": pooled, "tokens": plain, "span": undropped}
        scores = labels.make(head, family="BERT", next={"pooling": "pooler", **undropped}, **forms)
        return dataclasses.replace(config, head=scores, pooler=scores.reads_pooled)
    masked = MaskedLanguageModelHead(
        activation=block.feed_forward.activation,
        norm=block.norm,
        next_sentence=head == heads.PRETRAINING,
        **INITIALIZER,
    )
    return dataclasses.replace(config, head=masked, pooler=masked.next_sentence)


def _preset(*, num_layers: int, d_model: int, vocab_size: int = 30522, head: heads.Head | None = None) -> EncoderConfig:
    """A published size: 64 values per head, a feed-forward four times as wide as the model."""
    sizes = {"num_layers": num_layers, "d_model": d_model, "num_heads": d_model // 64, "d_ff": 4 * d_model}
    return with_head(bert(vocab_size=vocab_size, **sizes), head)


def _tinybert(*, head: heads.Head | None = None, **sizes: int) -> EncoderConfig:
    """A student of the paper's section 4.1."""
    return with_head(bert(num_heads=12, vocab_size=30522, **sizes), head)


_BASE = functools.partial(_preset, num_layers=12, d_model=768)
_LARGE = functools.partial(_preset, num_layers=24, d_model=1024)

PRESETS = {
    "bert-base-uncased": _BASE,
    "bert-base-cased": functools.partial(_BASE, vocab_size=28996),
    "bert-large-uncased": _LARGE,
    "bert-large-cased": functools.partial(_LARGE, vocab_size=28996),
    "bert-base-multilingual-cased": functools.partial(_BASE, vocab_size=119547),
    "bert-base-multilingual-uncased": functools.partial(_BASE, vocab_size=105879),
    "bert-tiny": functools.partial(_preset, num_layers=2, d_model=128),
    "bert-mini": functools.partial(_preset, num_layers=4, d_model=256),
    "bert-small": functools.partial(_preset, num_layers=4, d_model=512),
    "bert-medium": functools.partial(_preset, num_layers=8, d_model=512),
    **{
        f"bert-l{num_layers}-h{d_model}": functools.partial(_preset, num_layers=num_layers, d_model=d_model)
        for num_layers in (2, 4, 6, 8, 10, 12)
        for d_model in (128, 256, 512, 768)
    },
    "tinybert-4": functools.partial(_tinybert, num_layers=4, d_model=312, d_ff=1200),
    "tinybert-6": functools.partial(_tinybert, num_layers=6, d_model=768, d_ff=3072),
}


_LAYER = "{base}encoder.layer.{i}"

LAYERS = (
    *linear_entries("encoder/{i}/attention/query", f"{_LAYER}.attention.self.query"),
    *linear_entries("encoder/{i}/attention/key", f"{_LAYER}.attention.self.key"),
    *linear_entries("encoder/{i}/attention/value", f"{_LAYER}.attention.self.value"),
    *linear_entries("encoder/{i}/attention/out", f"{_LAYER}.attention.output.dense", inputs=2),
    *norm_entries("encoder/{i}/attention_norm", f"{_LAYER}.attention.output.LayerNorm"),
    *linear_entries("encoder/{i}/feed_forward/up", f"{_LAYER}.intermediate.dense"),
    *linear_entries("encoder/{i}/feed_forward/down", f"{_LAYER}.output.dense"),
    *norm_entries("encoder/{i}/feed_forward_norm", f"{_LAYER}.output.LayerNorm"),
)
"""The tensors of the layers, as BERT and all that follow it in transformers name them."""


def embed_entries(decoder: str) -> tuple[Entry, ...]:
    """The tensors of the embeddings; `decoder` names the kernel that a tied head of masked words has in old files."""
    return (
        Entry("embed/embedding", "{base}embeddings.word_embeddings.weight", MATRIX, copies=(f"{decoder}.weight",)),
        Entry("embed/positions", "{base}embeddings.position_embeddings.weight", MATRIX),
        Entry("embed/types", "{base}embeddings.token_type_embeddings.weight", MATRIX),
        *norm_entries("embed/norm", "{base}embeddings.LayerNorm"),
    )


def decoder_entries(head: str) -> tuple[Entry, ...]:
    """The kernel of a head of masked words that is not tied, and the bias, which transformers' classes hold twice."""
    return (
        Entry("head/kernel", f"{head}.decoder.weight", LINEAR),
        Entry("head/bias", f"{head}.bias", VECTOR, copies=(f"{head}.decoder.bias",), unless="head/kernel"),
        # Of an untied model transformers 4 reads the first name (the second, of some families) and 5 the second, which
        # alone it trains and saves with meaning: both are written, and the second counts where they differ.
        Entry(
            "head/bias",
            f"{head}.decoder.bias",
            VECTOR,
            copies=(f"{head}.bias",),
            copies_with="head/kernel",
            copies_may_differ=True,
            needs="head/kernel",
        ),
    )


BUFFERS = (
    Ignored("*embeddings.position_ids", "a buffer holding 0, 1, 2, ... that old files contain"),
    Ignored("*embeddings.token_type_ids", "a buffer of zeros that old files contain"),
)

TABLE = Table(
    base="bert.",
    entries=(
        *embed_entries("cls.predictions.decoder"),
        *LAYERS,
        *linear_entries("pooler", "{base}pooler.dense"),
        *linear_entries("head/transform", "cls.predictions.transform.dense"),
        *norm_entries("head/norm", "cls.predictions.transform.LayerNorm"),
        *decoder_entries("cls.predictions"),
        *linear_entries("head/next_sentence", "cls.seq_relationship"),
        *linear_entries("head/classifier", "classifier"),
        *linear_entries("head/span", "qa_outputs"),
    ),
    ignored=(*BUFFERS, Ignored("fit_dense*", "TinyBERT's projections to the width of its teacher, for distillation")),
)

_CLASSIFIER = {"classifier_dropout": "dropout"}
HEAD_FIELDS = labels.HeadFields({"sequence": _CLASSIFIER, "choice": _CLASSIFIER, "tokens": _CLASSIFIER})

ATTRIBUTES = config_map.Attributes(
    read={
        **labels.READ,
        "vocab_size": 30522,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
        "classifier_dropout": None,
        "tie_word_embeddings": True,
    },
    fixed={"position_embedding_type": ("absolute", None), "is_decoder": (False,), "add_cross_attention": (False,)},
    # No code reads these: the pooler_* of the multilingual files, and the last line of TinyBERT's.
    ignored=frozenset({
        "initializer_range", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
        "pooler_size_per_head", "pooler_type",
        "cell", "emb_size", "pre_trained", "structure", "training",
    }),
)  # fmt: skip


def encoder_from_hf(values: Mapping[str, Any], **form: Any) -> EncoderConfig:
    """The encoder that the attributes mean, in a form that is given as to `bert`."""
    return bert(
        num_layers=values["num_hidden_layers"],
        d_model=values["hidden_size"],
        num_heads=values["num_attention_heads"],
        d_ff=values["intermediate_size"],
        vocab_size=values["vocab_size"],
        max_positions=values["max_position_embeddings"],
        num_types=values["type_vocab_size"],
        activation=config_map.activation(values["hidden_act"]),
        dropout=float(values["hidden_dropout_prob"]),
        attention_dropout=float(values["attention_probs_dropout_prob"]),
        eps=values["layer_norm_eps"],
        **form,
    )


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> EncoderConfig:
    """The config of a BERT's config.json; which heads it has is read from the names of its tensors."""
    config = encoder_from_hf(values)
    if any(name.startswith("cls.predictions.") for name in names):
        next_sentence = "cls.seq_relationship.weight" in names
        config = with_head(config, heads.PRETRAINING if next_sentence else heads.MaskedLM())
        head = dataclasses.replace(config.head, tied=values["tie_word_embeddings"])
        config = dataclasses.replace(config, head=head)
    elif "cls.seq_relationship.weight" in names:
        config = with_head(config, heads.NextSentence())
    elif (request := labels.request(values)) is not None:
        config = HEAD_FIELDS.read(with_head(config, request), values)
    return dataclasses.replace(config, pooler="pooler.dense.weight" in names)


def encoder_attributes(config: Any) -> dict[str, Any]:
    """The attributes of config.json of an encoder with or without sentence types.

    Raises:
        InexpressibleError: no encoder of this form is so.
    """
    if not isinstance(config, EncoderConfig):
        raise config_map.InexpressibleError("it is no encoder")
    block, embed = config.stack.blocks[0], config.embed
    if embed.position is None:
        raise config_map.InexpressibleError("it has no table of absolute positions")
    if not isinstance(config.head, MaskedLanguageModelHead | ClassificationHead | None):
        raise config_map.InexpressibleError(f"its head is {type(config.head).__name__}, not that of masked words")
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.stack.num_layers,
        "num_attention_heads": block.attention.num_heads,
        "intermediate_size": block.feed_forward.d_ff,
        "hidden_act": config_map.ACTIVATIONS[block.feed_forward.activation],
        "hidden_dropout_prob": float(block.dropout),
        "attention_probs_dropout_prob": float(block.attention.dropout),
        "max_position_embeddings": embed.position.max_positions,
        "type_vocab_size": embed.num_types,
        "layer_norm_eps": float(block.norm.eps),
        "initializer_range": float(embed.initializer_std),
        "is_decoder": False,
        "add_cross_attention": False,
        "tie_word_embeddings": getattr(config.head, "tied", True),
        **labels.attributes(config),
        "use_cache": True,
    }


def to_hf(config: Any) -> dict[str, Any]:
    """The attributes of config.json, but for those of heads alone.

    Raises:
        InexpressibleError: no BERT is so.
    """
    attributes = encoder_attributes(config)
    if not config.embed.num_types:
        raise config_map.InexpressibleError("it has no table of sentence types")
    return attributes


def _to_hf(config: Any) -> dict[str, Any]:
    return {**to_hf(config), **HEAD_FIELDS.written(config)}


def _architecture(config: EncoderConfig) -> str:
    if isinstance(config.head, ClassificationHead):
        return labels.architecture(config.head, prefix="Bert", endings={"next": "ForNextSentencePrediction"})
    has = (config.head is not None, getattr(config.head, "next_sentence", False), config.pooler)
    names = {
        (False, False, True): "BertModel",
        (True, False, False): "BertForMaskedLM",
        (True, True, True): "BertForPreTraining",
    }
    if has not in names:
        raise config_map.InexpressibleError(
            "no class of transformers has exactly its parts; BertModel has a pooler and no head, BertForMaskedLM the "
            "head of masked words alone, BertForPreTraining both and the next-sentence classifier"
        )
    return names[has]


FAMILY = config_map.Family(
    model_type="bert",
    refused={"BertLMHeadModel": labels.CAUSAL},
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
    input_names=("input_ids", "token_type_ids", "attention_mask"),
)
