"""GPT-J: causal decoders with rotary positions, whose attention and feed-forward read the same normed input.

    gpt-j-6b

Reference: Wang and Komatsuzaki, GPT-J-6B: A 6 Billion Parameter Autoregressive Language Model (2021), and the released
code of kingoflolz/mesh-transformer-jax.

Differs: all kernels but that of the output start with deviation 0.02, as in transformers.
"""

import functools
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.families import gpt2, labels
from t2t.hf import config_map
from t2t.hf.table import LINEAR, LINEAR_2, MATRIX, VECTOR, Entry, Ignored, Table, linear_entries, norm_entries
from t2t.models.decoder import DecoderConfig
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import Activation, FeedForwardConfig
from t2t.nn.heads import LanguageModelHead
from t2t.nn.norm import LayerNorm
from t2t.nn.positions.rotary import Rotary
from t2t.nn.stack import StackConfig

_INITIALIZER = {"initializer_std": 0.02}
_TASKS = ("sequence", "span")
_MAX_POSITIONS = 2048
"""The length of training of the published model, for which transformers makes its sines; no parameter depends on it."""


def gptj(
    *,
    num_layers: int,
    d_model: int,
    num_heads: int,
    d_ff: int | None = None,
    vocab_size: int = 50400,
    rotary_dim: int = 64,
    activation: Activation = "gelu_tanh",
    tied: bool = False,
    trained_positions: int | None = None,
    dropout: float = 0.0,
    embed_dropout: float = 0.0,
    attention_dropout: float = 0.0,
    eps: float = 1e-5,
) -> DecoderConfig:
    """A GPT-J of any size; `d_ff` None is four times the width."""
    norm = LayerNorm(eps=eps)
    block = BlockConfig(
        norm=norm,
        norm_position="parallel",
        feed_forward_norm=False,
        attention=AttentionConfig(
            num_heads=num_heads, head_dim=d_model // num_heads, dropout=attention_dropout, **_INITIALIZER
        ),
        feed_forward=FeedForwardConfig(
            d_ff=4 * d_model if d_ff is None else d_ff, activation=activation, use_bias=True, **_INITIALIZER
        ),
        dropout=dropout,
    )
    return DecoderConfig(
        embed=EmbedConfig(vocab_size=vocab_size, dim=d_model, dropout=embed_dropout, **_INITIALIZER),
        stack=StackConfig(
            num_layers=num_layers,
            d_model=d_model,
            pattern=(block,),
            position=Rotary(dim=rotary_dim, interleaved=True, trained_positions=trained_positions),
            final_norm=norm,
        ),
        head=LanguageModelHead(tied=tied, use_bias=True, initializer_std=None if tied else 0.02),
    )


def with_head(config: DecoderConfig, head: heads.Head | None) -> DecoderConfig:
    """The model with the head asked for; that of its pretraining is its language model head."""
    own = LanguageModelHead(tied=False, use_bias=True, **_INITIALIZER)
    return labels.decoder_with_head(config, head, family="GPT-J", language_model=own, tasks=_TASKS)


def _preset(*, head: heads.Head | None = None, **sizes: int) -> DecoderConfig:
    return with_head(gptj(**sizes), head)


PRESETS = {"gpt-j-6b": functools.partial(_preset, num_layers=28, d_model=4096, num_heads=16)}

_BLOCK = "{base}h.{i}"

TABLE = Table(
    base="transformer.",
    entries=(
        Entry("embed/embedding", "{base}wte.weight", MATRIX, copies=("lm_head.weight",)),
        *norm_entries("decoder/{i}/attention_norm", f"{_BLOCK}.ln_1"),
        Entry("decoder/{i}/attention/query/kernel", f"{_BLOCK}.attn.q_proj.weight", LINEAR),
        Entry("decoder/{i}/attention/key/kernel", f"{_BLOCK}.attn.k_proj.weight", LINEAR),
        Entry("decoder/{i}/attention/value/kernel", f"{_BLOCK}.attn.v_proj.weight", LINEAR),
        Entry("decoder/{i}/attention/out/kernel", f"{_BLOCK}.attn.out_proj.weight", LINEAR_2),
        *linear_entries("decoder/{i}/feed_forward/up", f"{_BLOCK}.mlp.fc_in"),
        *linear_entries("decoder/{i}/feed_forward/down", f"{_BLOCK}.mlp.fc_out"),
        *norm_entries("decoder/final_norm", "{base}ln_f"),
        Entry("head/kernel", "lm_head.weight", LINEAR),
        Entry("head/bias", "lm_head.bias", VECTOR),
        *labels.DECODER_ENTRIES,
    ),
    ignored=(
        *gpt2.IGNORED,
        Ignored("*embed_positions", "sines and cosines of the rotary positions, held as a buffer"),
    ),
)

ATTRIBUTES = config_map.Attributes(
    read={
        **labels.READ,
        "vocab_size": 50400,
        "n_positions": _MAX_POSITIONS,
        "n_embd": 4096,
        "n_layer": 28,
        "n_head": 16,
        "n_inner": None,
        "rotary_dim": 64,
        "activation_function": "gelu_new",
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": False,
    },
    fixed={"rotary": (True,), "scale_attn_weights": (True,)},
    ignored=gpt2.SUMMARY_ATTRIBUTES,
)


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> DecoderConfig:
    """The config of a GPT-J's config.json."""
    del names
    config = gptj(
        num_layers=values["n_layer"],
        d_model=values["n_embd"],
        num_heads=values["n_head"],
        d_ff=values["n_inner"],
        vocab_size=values["vocab_size"],
        rotary_dim=values["rotary_dim"],
        activation=config_map.activation(values["activation_function"]),
        tied=values["tie_word_embeddings"],
        trained_positions=config_map.trained_positions(values["n_positions"], usual=_MAX_POSITIONS),
        dropout=float(values["resid_pdrop"]),
        embed_dropout=float(values["embd_pdrop"]),
        attention_dropout=float(values["attn_pdrop"]),
        eps=values["layer_norm_epsilon"],
    )
    return with_head(config, labels.request(values))


def _to_hf(config: Any) -> dict[str, Any]:
    gpt2.check_causal(config)
    block, position = config.stack.blocks[0], config.stack.position
    if not isinstance(position, Rotary):
        raise config_map.InexpressibleError("it has no rotary positions that all layers share")
    d_ff = block.feed_forward.d_ff
    return {
        "vocab_size": config.vocab_size,
        "n_positions": position.trained_positions or _MAX_POSITIONS,
        "n_embd": config.d_model,
        "n_layer": config.stack.num_layers,
        "n_head": block.attention.num_heads,
        "n_inner": None if d_ff == 4 * config.d_model else d_ff,
        "rotary_dim": position.dim or block.attention.head_dim,
        "activation_function": config_map.ACTIVATIONS[block.feed_forward.activation],
        "resid_pdrop": float(block.dropout),
        "embd_pdrop": float(config.embed.dropout),
        "attn_pdrop": float(block.attention.dropout),
        "layer_norm_epsilon": float(block.norm.eps),
        "initializer_range": float(config.embed.initializer_std),
        "tie_word_embeddings": getattr(config.head, "tied", False),
        **labels.attributes(config),
        "use_cache": True,
    }


FAMILY = config_map.Family(
    model_type="gptj",
    refused={"GPTJModel": labels.NO_OUTPUT},
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=functools.partial(
        labels.decoder_architecture, prefix="GPTJ", language_model="GPTJForCausalLM", endings={"tokens": ""}
    ),
    with_head=with_head,
    starts=("start",),
)
