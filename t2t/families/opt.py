"""OPT: causal decoders as GPT-3's, with ReLU and learned positions that begin in the third row of their table.

    opt-125m, opt-1.3b, opt-2.7b, opt-6.7b, opt-13b, opt-30b, opt-66b, opt-175b

Reference: Zhang et al., OPT: Open Pre-trained Transformer Language Models, arXiv:2205.01068, table 1 and section 2.2
(initial values).

Differs: opt-350m is not here. Its token table is narrower than the model, with a dense layer without bias on the way
in and another before the output, which no other model has.
"""

import functools
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.families import gpt2, labels
from t2t.hf import config_map
from t2t.hf.table import LINEAR, MATRIX, Entry, Ignored, Table, linear_entries, norm_entries
from t2t.models.decoder import DecoderConfig
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import Activation, FeedForwardConfig
from t2t.nn.heads import LanguageModelHead
from t2t.nn.norm import LayerNorm
from t2t.nn.positions.absolute import LearnedPositions
from t2t.nn.stack import StackConfig

_INITIALIZER_STD = 0.006
_TASKS = ("sequence", "span")


def opt(
    *,
    num_layers: int,
    d_model: int,
    num_heads: int,
    d_ff: int | None = None,
    vocab_size: int = 50272,
    max_positions: int = 2048,
    activation: Activation = "relu",
    norm_first: bool = True,
    final_norm: bool = True,
    use_bias: bool = True,
    tied: bool = True,
    dropout: float = 0.1,
    attention_dropout: float = 0.0,
) -> DecoderConfig:
    """An OPT of any size; `d_ff` None is four times the width. With `norm_first` False there is no final norm."""
    norm = LayerNorm(eps=1e-5)
    stds = {"initializer_std": _INITIALIZER_STD, "out_initializer_std": _INITIALIZER_STD * (2 * num_layers) ** -0.5}
    block = BlockConfig(
        norm=norm,
        norm_position="pre" if norm_first else "post",
        attention=AttentionConfig(
            num_heads=num_heads, head_dim=d_model // num_heads, use_bias=use_bias, dropout=attention_dropout, **stds
        ),
        feed_forward=FeedForwardConfig(
            d_ff=4 * d_model if d_ff is None else d_ff, activation=activation, use_bias=use_bias, **stds
        ),
        dropout=dropout,
    )
    return DecoderConfig(
        embed=EmbedConfig(
            vocab_size=vocab_size,
            dim=d_model,
            position=LearnedPositions(max_positions=max_positions, offset=2),
            initializer_std=_INITIALIZER_STD,
        ),
        stack=StackConfig(
            num_layers=num_layers,
            d_model=d_model,
            pattern=(block,),
            final_norm=norm if norm_first and final_norm else None,
        ),
        head=LanguageModelHead(tied=tied),
    )


def with_head(config: DecoderConfig, head: heads.Head | None) -> DecoderConfig:
    """The model with the head asked for; that of its pretraining is its language model head."""
    return labels.decoder_with_head(config, head, family="OPT", language_model=LanguageModelHead(), tasks=_TASKS)


def _preset(*, head: heads.Head | None = None, **sizes: int) -> DecoderConfig:
    return with_head(opt(**sizes), head)


PRESETS = {
    "opt-125m": functools.partial(_preset, num_layers=12, d_model=768, num_heads=12),
    "opt-1.3b": functools.partial(_preset, num_layers=24, d_model=2048, num_heads=32),
    "opt-2.7b": functools.partial(_preset, num_layers=32, d_model=2560, num_heads=32),
    "opt-6.7b": functools.partial(_preset, num_layers=32, d_model=4096, num_heads=32),
    "opt-13b": functools.partial(_preset, num_layers=40, d_model=5120, num_heads=40),
    "opt-30b": functools.partial(_preset, num_layers=48, d_model=7168, num_heads=56),
    "opt-66b": functools.partial(_preset, num_layers=64, d_model=9216, num_heads=72),
    "opt-175b": functools.partial(_preset, num_layers=96, d_model=12288, num_heads=96),
}

_LAYER = "{base}decoder.layers.{i}"

TABLE = Table(
    base="model.",
    entries=(
        Entry("embed/embedding", "{base}decoder.embed_tokens.weight", MATRIX, copies=("lm_head.weight",)),
        Entry("embed/positions", "{base}decoder.embed_positions.weight", MATRIX),
        *norm_entries("decoder/{i}/attention_norm", f"{_LAYER}.self_attn_layer_norm"),
        *linear_entries("decoder/{i}/attention/query", f"{_LAYER}.self_attn.q_proj"),
        *linear_entries("decoder/{i}/attention/key", f"{_LAYER}.self_attn.k_proj"),
        *linear_entries("decoder/{i}/attention/value", f"{_LAYER}.self_attn.v_proj"),
        *linear_entries("decoder/{i}/attention/out", f"{_LAYER}.self_attn.out_proj", inputs=2),
        *norm_entries("decoder/{i}/feed_forward_norm", f"{_LAYER}.final_layer_norm"),
        *linear_entries("decoder/{i}/feed_forward/up", f"{_LAYER}.fc1"),
        *linear_entries("decoder/{i}/feed_forward/down", f"{_LAYER}.fc2"),
        *norm_entries("decoder/final_norm", "{base}decoder.final_layer_norm"),
        Entry("head/kernel", "lm_head.weight", LINEAR),
        *labels.DECODER_ENTRIES,
    ),
    ignored=(Ignored("*decoder.version", "a number that old files hold"),),
)

ATTRIBUTES = config_map.Attributes(
    read={
        **labels.READ,
        "vocab_size": 50272,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "ffn_dim": 3072,
        "word_embed_proj_dim": None,
        "max_position_embeddings": 2048,
        "do_layer_norm_before": True,
        "_remove_final_layer_norm": False,
        "enable_bias": True,
        "activation_function": "relu",
        "dropout": 0.1,
        "attention_dropout": 0.0,
        "tie_word_embeddings": True,
    },
    fixed={"layer_norm_elementwise_affine": (True,)},
    ignored=frozenset({"init_std", "layerdrop", "activation_dropout"}),  # no code reads the last
)


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> DecoderConfig:
    """The config of an OPT's config.json."""
    del names
    if values["word_embed_proj_dim"] not in (None, values["hidden_size"]):
        raise ValueError(
            f"word_embed_proj_dim is {values['word_embed_proj_dim']} and hidden_size {values['hidden_size']}: t2t has "
            "no OPT whose token table is narrower than the model (opt-350m)"
        )
    config = opt(
        num_layers=values["num_hidden_layers"],
        d_model=values["hidden_size"],
        num_heads=values["num_attention_heads"],
        d_ff=values["ffn_dim"],
        vocab_size=values["vocab_size"],
        max_positions=values["max_position_embeddings"],
        activation=config_map.activation(values["activation_function"]),
        norm_first=values["do_layer_norm_before"],
        final_norm=not values["_remove_final_layer_norm"],
        use_bias=values["enable_bias"],
        tied=values["tie_word_embeddings"],
        dropout=float(values["dropout"]),
        attention_dropout=float(values["attention_dropout"]),
    )
    return with_head(config, labels.request(values))


def _to_hf(config: Any) -> dict[str, Any]:
    gpt2.check_causal(config)
    block, embed = config.stack.blocks[0], config.embed
    if embed.position is None:
        raise config_map.InexpressibleError("it has no table of absolute positions")
    norm_first = block.norm_position == "pre"
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.stack.num_layers,
        "num_attention_heads": block.attention.num_heads,
        "ffn_dim": block.feed_forward.d_ff,
        "word_embed_proj_dim": config.d_model,
        "max_position_embeddings": embed.position.max_positions,
        "do_layer_norm_before": norm_first,
        "_remove_final_layer_norm": norm_first and config.stack.final_norm is None,
        "enable_bias": block.attention.use_bias,
        "layer_norm_elementwise_affine": True,
        "activation_function": config_map.ACTIVATIONS[block.feed_forward.activation],
        "dropout": float(block.dropout),
        "attention_dropout": float(block.attention.dropout),
        "init_std": float(embed.initializer_std),
        "tie_word_embeddings": getattr(config.head, "tied", True),
        **labels.attributes(config),
        "use_cache": True,
    }


FAMILY = config_map.Family(
    model_type="opt",
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=functools.partial(
        labels.decoder_architecture, prefix="OPT", language_model="OPTForCausalLM", endings={"tokens": ""}
    ),
    with_head=with_head,
    starts=("start",),
    between=("start",),
)
