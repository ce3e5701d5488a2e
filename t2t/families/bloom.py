"""BLOOM: causal decoders whose scores fall with distance (ALiBi), with a norm after the embeddings.

    bloom-560m, bloom-1b1, bloom-1b7, bloom-3b, bloom-7b1, bloom

Reference: BigScience Workshop, BLOOM: A 176B-Parameter Open-Access Multilingual Language Model, arXiv:2211.05100,
section 3.2 and table 3.

Differs: output projections start at 0.02 / sqrt(2 * num_layers), as in Megatron-LM, with which BLOOM was trained; all
other kernels at 0.02, as in transformers.
"""

import functools
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.families import gpt2, labels
from t2t.hf import config_map
from t2t.hf.table import (
    LINEAR,
    LINEAR_BY_HEADS,
    MATRIX,
    VECTOR_BY_HEADS,
    Entry,
    Layout,
    Table,
    linear_entries,
    norm_entries,
)
from t2t.models.decoder import DecoderConfig
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import FeedForwardConfig
from t2t.nn.heads import LanguageModelHead
from t2t.nn.norm import LayerNorm
from t2t.nn.positions.alibi import ALiBi
from t2t.nn.stack import StackConfig

_INITIALIZER_STD = 0.02


def bloom(
    *,
    num_layers: int,
    d_model: int,
    num_heads: int,
    vocab_size: int = 250880,
    tied: bool = True,
    dropout: float = 0.0,
    attention_dropout: float = 0.0,
    eps: float = 1e-5,
) -> DecoderConfig:
    """A BLOOM of any size; its feed-forward is always four times as wide as the model."""
    norm = LayerNorm(eps=eps)
    stds = {"initializer_std": _INITIALIZER_STD, "out_initializer_std": _INITIALIZER_STD * (2 * num_layers) ** -0.5}
    block = BlockConfig(
        norm=norm,
        norm_position="pre",
        attention=AttentionConfig(
            num_heads=num_heads, head_dim=d_model // num_heads, use_bias=True, dropout=attention_dropout, **stds
        ),
        feed_forward=FeedForwardConfig(d_ff=4 * d_model, activation="gelu_tanh", use_bias=True, **stds),
        dropout=dropout,
    )
    return DecoderConfig(
        embed=EmbedConfig(vocab_size=vocab_size, dim=d_model, norm=norm, initializer_std=_INITIALIZER_STD),
        stack=StackConfig(num_layers=num_layers, d_model=d_model, pattern=(block,), position=ALiBi(), final_norm=norm),
        head=LanguageModelHead(tied=tied),
    )


def with_head(config: DecoderConfig, head: heads.Head | None) -> DecoderConfig:
    """The model with the head asked for; that of its pretraining is its language model head."""
    dropout = config.stack.blocks[0].dropout
    own = LanguageModelHead()
    return labels.decoder_with_head(config, head, family="BLOOM", language_model=own, tokens_dropout=dropout)


def _preset(*, head: heads.Head | None = None, **sizes: int) -> DecoderConfig:
    return with_head(bloom(**sizes), head)


PRESETS = {
    "bloom-560m": functools.partial(_preset, num_layers=24, d_model=1024, num_heads=16),
    "bloom-1b1": functools.partial(_preset, num_layers=24, d_model=1536, num_heads=16),
    "bloom-1b7": functools.partial(_preset, num_layers=24, d_model=2048, num_heads=16),
    "bloom-3b": functools.partial(_preset, num_layers=30, d_model=2560, num_heads=32),
    "bloom-7b1": functools.partial(_preset, num_layers=30, d_model=4096, num_heads=32),
    "bloom": functools.partial(_preset, num_layers=70, d_model=14336, num_heads=112),
}

_BLOCK = "{base}h.{i}"


def _joined(part: str, theirs: str, layout: Layout) -> Entry:
    ours = tuple(f"decoder/{{i}}/attention/{name}/{part}" for name in ("query", "key", "value"))
    return Entry(ours, f"{_BLOCK}.self_attention.query_key_value.{theirs}", layout)


TABLE = Table(
    base="transformer.",
    entries=(
        Entry("embed/embedding", "{base}word_embeddings.weight", MATRIX, copies=("lm_head.weight",)),
        *norm_entries("embed/norm", "{base}word_embeddings_layernorm"),
        *norm_entries("decoder/{i}/attention_norm", f"{_BLOCK}.input_layernorm"),
        _joined("kernel", "weight", LINEAR_BY_HEADS),
        _joined("bias", "bias", VECTOR_BY_HEADS),
        *linear_entries("decoder/{i}/attention/out", f"{_BLOCK}.self_attention.dense", inputs=2),
        *norm_entries("decoder/{i}/feed_forward_norm", f"{_BLOCK}.post_attention_layernorm"),
        *linear_entries("decoder/{i}/feed_forward/up", f"{_BLOCK}.mlp.dense_h_to_4h"),
        *linear_entries("decoder/{i}/feed_forward/down", f"{_BLOCK}.mlp.dense_4h_to_h"),
        *norm_entries("decoder/final_norm", "{base}ln_f"),
        Entry("head/kernel", "lm_head.weight", LINEAR),
        *labels.DECODER_ENTRIES,
    ),
)

ATTRIBUTES = config_map.Attributes(
    read={
        **labels.READ,
        "vocab_size": 250880,
        "hidden_size": 64,
        "n_embed": None,  # of files of the Hub: hidden_size
        "n_layer": 2,
        "num_hidden_layers": None,
        "n_head": 8,
        "num_attention_heads": None,
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
        "layer_norm_epsilon": 1e-5,
        "classifier_dropout": None,
        "tie_word_embeddings": True,
    },
    fixed={
        "apply_residual_connection_post_layernorm": (False,),
        "slow_but_exact": (False,),
        "n_inner": (None,),
        "skip_bias_add_qkv": (False,),
    },
    # How Megatron-DeepSpeed trained it, and the length: ALiBi has no table of positions.
    ignored=frozenset({
        "initializer_range", "pretraining_tp", "attention_softmax_in_fp32", "bias_dropout_fusion", "skip_bias_add",
        "masked_softmax_fusion", "offset_alibi", "seq_length", "unk_token_id",
    }),
)  # fmt: skip


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> DecoderConfig:
    """The config of a BLOOM's config.json."""
    del names

    def first(*aliases: str) -> int:
        return next(values[name] for name in aliases if values.get(name) is not None)

    config = bloom(
        num_layers=first("num_hidden_layers", "n_layer"),
        d_model=first("n_embed", "hidden_size"),
        num_heads=first("num_attention_heads", "n_head"),
        vocab_size=values["vocab_size"],
        tied=values["tie_word_embeddings"],
        dropout=float(values["hidden_dropout"]),
        attention_dropout=float(values["attention_dropout"]),
        eps=values["layer_norm_epsilon"],
    )
    return labels.DECODER_FIELDS.read(with_head(config, labels.request(values)), values)


def _to_hf(config: Any) -> dict[str, Any]:
    gpt2.check_causal(config)
    block = config.stack.blocks[0]
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "n_layer": config.stack.num_layers,
        "n_head": block.attention.num_heads,
        "hidden_dropout": float(block.dropout),
        "attention_dropout": float(block.attention.dropout),
        "layer_norm_epsilon": float(block.norm.eps),
        "initializer_range": float(config.embed.initializer_std),
        "apply_residual_connection_post_layernorm": False,
        "slow_but_exact": False,
        "tie_word_embeddings": getattr(config.head, "tied", True),
        **labels.attributes(config),
        **labels.DECODER_FIELDS.written(config),
        "use_cache": True,
    }


FAMILY = config_map.Family(
    model_type="bloom",
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=functools.partial(labels.decoder_architecture, prefix="Bloom", language_model="BloomForCausalLM"),
    with_head=with_head,
    head_from_hf=labels.DECODER_FIELDS.read,
    kept=labels.DECODER_FIELDS.unused,
    starts=("start",),
)
