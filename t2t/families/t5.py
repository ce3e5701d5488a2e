"""T5 and T5 1.1: encoder-decoders with relative positions, pretrained to restore spans of text.

    t5-small ... t5-11b          T5 1.0: ReLU, output tied to the embedding and scaled by d_model**-0.5, dropout 0.1
    t5-v1_1-small ... -xxl       T5 1.1: gated GELU, an output of its own, pretrained without dropout

All have 32,128 embedding rows: 32,000 pieces, 100 sentinels, the rest unused.

Reference: Raffel et al., Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer,
arXiv:1910.10683; released_checkpoints.md of google-research/text-to-text-transfer-transformer for 1.1.

Differs: presets of 1.1 have dropout 0, the value of pretraining; the authors recommend 0.1 for fine-tuning, which is
also what the published config.json says (`families.with_dropout(config, 0.1)`). Every value is dropped by itself, as in
transformers; the authors' code drops one choice for all positions of a row.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.hf import config_map
from t2t.hf.table import LINEAR, LINEAR_2, MATRIX, VECTOR, Entry, Ignored, Table
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import Activation, FeedForwardConfig
from t2t.nn.heads import LanguageModelHead
from t2t.nn.norm import RMSNorm
from t2t.nn.positions.t5_bias import T5Bias
from t2t.nn.stack import StackConfig


def t5(
    *,
    num_layers: int,
    d_model: int,
    num_heads: int,
    d_ff: int,
    head_dim: int = 64,
    num_decoder_layers: int | None = None,
    activation: Activation = "relu",
    gated: bool = False,
    tied: bool = True,
    dropout: float = 0.1,
    vocab_size: int = 32128,
    num_buckets: int = 32,
    max_distance: int = 128,
    eps: float = 1e-6,
) -> EncoderDecoderConfig:
    """A T5 of any size; `tied` models scale their logits by d_model**-0.5, as 1.0 does."""
    attention = AttentionConfig(num_heads=num_heads, head_dim=head_dim, scale=1.0, dropout=dropout)
    block = BlockConfig(
        norm=RMSNorm(eps=eps),
        norm_position="pre",
        attention=attention,
        feed_forward=FeedForwardConfig(d_ff=d_ff, activation=activation, gated=gated, dropout=dropout),
        dropout=dropout,
    )

    def stack(layers: int, *, is_decoder: bool) -> StackConfig:
        position = T5Bias(num_buckets=num_buckets, max_distance=max_distance, bidirectional=not is_decoder)
        pattern = (dataclasses.replace(block, cross_attention=attention) if is_decoder else block,)
        return StackConfig(
            num_layers=layers,
            d_model=d_model,
            pattern=pattern,
            position=position,
            dropout=dropout,
            final_norm=RMSNorm(eps=eps),
        )

    return EncoderDecoderConfig(
        embed=EmbedConfig(vocab_size=vocab_size, dim=d_model, dropout=dropout, initializer_std=1.0),
        encoder=stack(num_layers, is_decoder=False),
        decoder=stack(num_layers if num_decoder_layers is None else num_decoder_layers, is_decoder=True),
        head=LanguageModelHead(tied=tied, scale_by_width=tied),
    )


def _preset(*, head: heads.Head | None = None, **sizes: Any) -> EncoderDecoderConfig:
    return with_head(t5(**sizes), head)


_T5_1_1 = functools.partial(_preset, activation="gelu_tanh", gated=True, tied=False, dropout=0.0)

PRESETS = {
    "t5-small": functools.partial(_preset, num_layers=6, d_model=512, num_heads=8, d_ff=2048),
    "t5-base": functools.partial(_preset, num_layers=12, d_model=768, num_heads=12, d_ff=3072),
    "t5-large": functools.partial(_preset, num_layers=24, d_model=1024, num_heads=16, d_ff=4096),
    "t5-3b": functools.partial(_preset, num_layers=24, d_model=1024, num_heads=32, head_dim=128, d_ff=16384),
    "t5-11b": functools.partial(_preset, num_layers=24, d_model=1024, num_heads=128, head_dim=128, d_ff=65536),
    "t5-v1_1-small": functools.partial(_T5_1_1, num_layers=8, d_model=512, num_heads=6, d_ff=1024),
    "t5-v1_1-base": functools.partial(_T5_1_1, num_layers=12, d_model=768, num_heads=12, d_ff=2048),
    "t5-v1_1-large": functools.partial(_T5_1_1, num_layers=24, d_model=1024, num_heads=16, d_ff=2816),
    "t5-v1_1-xl": functools.partial(_T5_1_1, num_layers=24, d_model=2048, num_heads=32, d_ff=5120),
    "t5-v1_1-xxl": functools.partial(_T5_1_1, num_layers=24, d_model=4096, num_heads=64, d_ff=10240),
}


def with_head(config: EncoderDecoderConfig, head: heads.Head | None) -> EncoderDecoderConfig:
    """The model with the head asked for: its language model head is always there and is that of pretraining."""
    if head not in (None, heads.PRETRAINING):
        raise ValueError(f"T5 has no head {head}; possible are None and PRETRAINING, both its language model head")
    return config


def _attention(ours: str, theirs: str) -> tuple[Entry, ...]:
    return (
        *(Entry(f"{ours}/{name}/kernel", f"{theirs}.{name[0]}.weight", LINEAR) for name in ("query", "key", "value")),
        Entry(f"{ours}/out/kernel", f"{theirs}.o.weight", LINEAR_2),
    )


def _feed_forward(side: str, theirs: str) -> tuple[Entry, ...]:
    ours, dense = f"{side}/{{i}}/feed_forward", f"{theirs}.DenseReluDense"
    gate = f"{ours}/gate/kernel"
    return (
        Entry(f"{side}/{{i}}/feed_forward_norm/scale", f"{theirs}.layer_norm.weight", VECTOR),
        Entry(f"{ours}/up/kernel", f"{dense}.wi.weight", LINEAR, unless=gate),
        Entry(gate, f"{dense}.wi_0.weight", LINEAR),
        Entry(f"{ours}/up/kernel", f"{dense}.wi_1.weight", LINEAR, needs=gate),
        Entry(f"{ours}/down/kernel", f"{dense}.wo.weight", LINEAR),
    )


def _side(side: str, *, feed_forward: int) -> tuple[Entry, ...]:
    ours, theirs = f"{side}/{{i}}", f"{side}.block.{{i}}.layer"
    bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    return (
        Entry(f"{side}/position/embedding", bias, MATRIX),
        Entry(f"{ours}/attention_norm/scale", f"{theirs}.0.layer_norm.weight", VECTOR),
        *_attention(f"{ours}/attention", f"{theirs}.0.SelfAttention"),
        Entry(f"{ours}/cross_attention_norm/scale", f"{theirs}.1.layer_norm.weight", VECTOR),
        *_attention(f"{ours}/cross_attention", f"{theirs}.1.EncDecAttention"),
        *_feed_forward(side, f"{theirs}.{feed_forward}"),
        Entry(f"{side}/final_norm/scale", f"{side}.final_layer_norm.weight", VECTOR),
    )


TABLE = Table(
    entries=(
        Entry(
            "embed/embedding",
            "shared.weight",
            MATRIX,
            copies=("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"),
        ),
        *_side("encoder", feed_forward=1),
        *_side("decoder", feed_forward=2),
        Entry("head/kernel", "lm_head.weight", LINEAR),
    ),
    ignored=(
        Ignored(
            "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
            "files of transformers 2 hold a bias for cross-attention; T5 has none and never reads it",
        ),
    ),
)

ATTRIBUTES = config_map.Attributes(
    read={
        "vocab_size": 32128,
        "d_model": 512,
        "d_kv": 64,
        "d_ff": 2048,
        "num_layers": 6,
        "num_decoder_layers": None,
        "num_heads": 8,
        "relative_attention_num_buckets": 32,
        "relative_attention_max_distance": 128,
        "dropout_rate": 0.1,
        "layer_norm_epsilon": 1e-6,
        "feed_forward_proj": "relu",
        "dense_act_fn": None,
        "is_gated_act": None,
        "tie_word_embeddings": True,
        "scale_decoder_outputs": None,
    },
    fixed={"is_decoder": (False,), "is_encoder_decoder": (True,)},
    ignored=frozenset({"initializer_factor", "n_positions"}),
)

_PROJECTIONS: Mapping[str, tuple[Activation, bool]] = {
    "relu": ("relu", False),
    "gelu": ("gelu", False),
    "gelu_new": ("gelu_tanh", False),
    "silu": ("silu", False),
    "gated-relu": ("relu", True),
    "gated-gelu": ("gelu_tanh", True),  # sic: transformers reads gelu as gelu_new where it is gated
    "gated-silu": ("silu", True),
}
"""feed_forward_proj of config.json -> activation, gated."""


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> EncoderDecoderConfig:
    """The config of a T5's config.json.

    Which output a T5 has is said by three things, because transformers 5 sets `tie_word_embeddings` to true whatever
    was asked for, and instead adds `scale_decoder_outputs`: an output of its own is one that is not scaled and whose
    tensor is there.
    """
    projection = values["feed_forward_proj"]
    if projection not in _PROJECTIONS:
        raise ValueError(f"feed_forward_proj is {projection!r}; possible are {', '.join(_PROJECTIONS)}")
    activation, gated = _PROJECTIONS[projection]
    said = values["dense_act_fn"], values["is_gated_act"]
    if said[0] not in (None, config_map.ACTIVATIONS[activation]) or said[1] not in (None, gated):
        raise ValueError(f"feed_forward_proj is {projection!r}, but dense_act_fn and is_gated_act are {said}")
    tied, scaled = values["tie_word_embeddings"], values["scale_decoder_outputs"]
    if not tied and scaled:
        raise ValueError(
            "tie_word_embeddings is false and scale_decoder_outputs true, which transformers 4 and 5 read differently"
        )
    own_head = not tied or (scaled is False and "lm_head.weight" in names)
    config = t5(
        num_layers=values["num_layers"],
        num_decoder_layers=values["num_decoder_layers"],
        d_model=values["d_model"],
        num_heads=values["num_heads"],
        head_dim=values["d_kv"],
        d_ff=values["d_ff"],
        activation=activation,
        gated=gated,
        tied=not own_head,
        dropout=float(values["dropout_rate"]),
        vocab_size=values["vocab_size"],
        num_buckets=values["relative_attention_num_buckets"],
        max_distance=values["relative_attention_max_distance"],
        eps=values["layer_norm_epsilon"],
    )
    scaled = not own_head and scaled is not False
    return dataclasses.replace(config, head=dataclasses.replace(config.head, scale_by_width=scaled))


def _to_hf(config: Any) -> dict[str, Any]:
    if not isinstance(config, EncoderDecoderConfig):
        raise config_map.InexpressibleError("it is no encoder-decoder")
    block, position = config.encoder.blocks[0], config.encoder.position
    if not isinstance(position, T5Bias):
        raise config_map.InexpressibleError("its encoder has no T5 bias shared by all layers")
    form = (block.feed_forward.activation, block.feed_forward.gated)
    projection = next((name for name, known in _PROJECTIONS.items() if known == form), None)
    if projection is None:
        raise config_map.InexpressibleError(f"no feed_forward_proj means activation and gated = {form}")
    if config.head.tied != config.head.scale_by_width:
        raise config_map.InexpressibleError(
            "its output is tied but not scaled, or scaled but not tied, which transformers 4 and 5 read differently"
        )
    return {
        "vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "d_kv": block.attention.head_dim,
        "d_ff": block.feed_forward.d_ff,
        "num_layers": config.encoder.num_layers,
        "num_decoder_layers": config.decoder.num_layers,
        "num_heads": block.attention.num_heads,
        "relative_attention_num_buckets": position.num_buckets,
        "relative_attention_max_distance": position.max_distance,
        "dropout_rate": float(block.dropout),
        "layer_norm_epsilon": float(block.norm.eps),
        "feed_forward_proj": projection,
        "dense_act_fn": config_map.ACTIVATIONS[form[0]],
        "is_gated_act": form[1],
        "is_encoder_decoder": True,
        "tie_word_embeddings": config.head.tied,
        "scale_decoder_outputs": config.head.scale_by_width,
        "initializer_factor": 1.0,
        "use_cache": True,
    }


FAMILY = config_map.Family(
    model_type="t5",
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=lambda config: "T5ForConditionalGeneration",
    with_head=with_head,
    ends=("eos",),
)
