"""GPT-Neo: causal decoders as GPT-2's, in which every other layer reads the last 256 positions alone.

    gpt-neo-125m, gpt-neo-1.3b, gpt-neo-2.7b

Reference: Black et al., GPT-Neo: Large Scale Autoregressive Language Modeling with Mesh-Tensorflow (2021),
doi:10.5281/zenodo.5297715. The attention has no factor before the softmax, as in the released code.

Differs: all kernels start with deviation 0.02, as in transformers.
"""

import functools
from collections.abc import Mapping, Sequence
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
from t2t.nn.stack import StackConfig, shortest_pattern

_INITIALIZER = {"initializer_std": 0.02}


def gpt_neo(
    *,
    num_layers: int,
    d_model: int,
    num_heads: int,
    d_ff: int | None = None,
    vocab_size: int = 50257,
    max_positions: int = 2048,
    layer_types: Sequence[str] = ("global", "local"),
    window_size: int = 256,
    activation: Activation = "gelu_tanh",
    tied: bool = True,
    dropout: float = 0.0,
    embed_dropout: float = 0.0,
    attention_dropout: float = 0.0,
    eps: float = 1e-5,
) -> DecoderConfig:
    """A GPT-Neo of any size; `d_ff` None is four times the width, `layer_types` are repeated through the depth.

    A local layer reads `window_size` positions, its own among them.
    """
    norm = LayerNorm(eps=eps)

    def block(kind: str) -> BlockConfig:
        return BlockConfig(
            norm=norm,
            norm_position="pre",
            attention=AttentionConfig(
                num_heads=num_heads,
                head_dim=d_model // num_heads,
                out_bias=True,
                window=window_size - 1 if kind == "local" else None,
                scale=1.0,
                dropout=attention_dropout,
                **_INITIALIZER,
            ),
            feed_forward=FeedForwardConfig(
                d_ff=4 * d_model if d_ff is None else d_ff, activation=activation, use_bias=True, **_INITIALIZER
            ),
            dropout=dropout,
        )

    blocks = tuple(block(layer_types[i % len(layer_types)]) for i in range(num_layers))
    return DecoderConfig(
        embed=EmbedConfig(
            vocab_size=vocab_size,
            dim=d_model,
            position=LearnedPositions(max_positions=max_positions),
            dropout=embed_dropout,
            **_INITIALIZER,
        ),
        stack=StackConfig(num_layers=num_layers, d_model=d_model, final_norm=norm, **shortest_pattern(blocks)),
        head=LanguageModelHead(tied=tied),
    )


def with_head(config: DecoderConfig, head: heads.Head | None) -> DecoderConfig:
    """The model with the head asked for; that of its pretraining is its language model head."""
    return labels.decoder_with_head(config, head, family="GPT-Neo", language_model=LanguageModelHead())


def _preset(*, head: heads.Head | None = None, **sizes: int) -> DecoderConfig:
    return with_head(gpt_neo(**sizes), head)


PRESETS = {
    "gpt-neo-125m": functools.partial(_preset, num_layers=12, d_model=768, num_heads=12),
    "gpt-neo-1.3b": functools.partial(_preset, num_layers=24, d_model=2048, num_heads=16),
    "gpt-neo-2.7b": functools.partial(_preset, num_layers=32, d_model=2560, num_heads=20),
}

_BLOCK = "{base}h.{i}"

TABLE = Table(
    base="transformer.",
    entries=(
        Entry("embed/embedding", "{base}wte.weight", MATRIX, copies=("lm_head.weight",)),
        Entry("embed/positions", "{base}wpe.weight", MATRIX),
        *norm_entries("decoder/{i}/attention_norm", f"{_BLOCK}.ln_1"),
        Entry("decoder/{i}/attention/query/kernel", f"{_BLOCK}.attn.attention.q_proj.weight", LINEAR),
        Entry("decoder/{i}/attention/key/kernel", f"{_BLOCK}.attn.attention.k_proj.weight", LINEAR),
        Entry("decoder/{i}/attention/value/kernel", f"{_BLOCK}.attn.attention.v_proj.weight", LINEAR),
        *linear_entries("decoder/{i}/attention/out", f"{_BLOCK}.attn.attention.out_proj", inputs=2),
        *norm_entries("decoder/{i}/feed_forward_norm", f"{_BLOCK}.ln_2"),
        *linear_entries("decoder/{i}/feed_forward/up", f"{_BLOCK}.mlp.c_fc"),
        *linear_entries("decoder/{i}/feed_forward/down", f"{_BLOCK}.mlp.c_proj"),
        *norm_entries("decoder/final_norm", "{base}ln_f"),
        Entry("head/kernel", "lm_head.weight", LINEAR),
        *labels.DECODER_ENTRIES,
    ),
    ignored=(
        Ignored("*.attn.attention.bias", "the mask, which files of the Hub hold as a buffer"),
        Ignored("*.attn.attention.masked_bias", "the score of masked positions, held as a buffer"),
    ),
)

ATTRIBUTES = config_map.Attributes(
    read={
        **labels.READ,
        "vocab_size": 50257,
        "max_position_embeddings": 2048,
        "hidden_size": 2048,
        "num_layers": 24,
        "num_heads": 16,
        "intermediate_size": None,
        "attention_types": [[["global", "local"], 12]],
        "window_size": 256,
        "activation_function": "gelu_new",
        "resid_dropout": 0.0,
        "embed_dropout": 0.0,
        "attention_dropout": 0.0,
        "layer_norm_epsilon": 1e-5,
        "classifier_dropout": None,
        "tie_word_embeddings": True,
    },
    ignored=gpt2.SUMMARY_ATTRIBUTES | {"attention_layers"},  # which is attention_types, written out
)


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> DecoderConfig:
    """The config of a GPT-Neo's config.json."""
    del names
    kinds = [kind for part, times in values["attention_types"] for _ in range(times) for kind in part]
    if len(kinds) != values["num_layers"] or set(kinds) - {"global", "local"}:
        raise ValueError(
            f"attention_types is {values['attention_types']!r}: it must name 'global' or 'local' for each of the "
            f"num_layers = {values['num_layers']}"
        )
    config = gpt_neo(
        num_layers=values["num_layers"],
        d_model=values["hidden_size"],
        num_heads=values["num_heads"],
        d_ff=values["intermediate_size"],
        vocab_size=values["vocab_size"],
        max_positions=values["max_position_embeddings"],
        layer_types=kinds,
        window_size=values["window_size"],
        activation=config_map.activation(values["activation_function"]),
        tied=values["tie_word_embeddings"],
        dropout=float(values["resid_dropout"]),
        embed_dropout=float(values["embed_dropout"]),
        attention_dropout=float(values["attention_dropout"]),
        eps=values["layer_norm_epsilon"],
    )
    return labels.DECODER_FIELDS.read(with_head(config, labels.request(values)), values)


def _to_hf(config: Any) -> dict[str, Any]:
    gpt2.check_causal(config)
    block, embed = config.stack.blocks[0], config.embed
    if embed.position is None:
        raise config_map.InexpressibleError("it has no table of absolute positions")
    windows = [block.attention.window for block in config.stack.blocks]
    window = next((window for window in windows if window is not None), 255)
    d_ff = block.feed_forward.d_ff
    return {
        "vocab_size": config.vocab_size,
        "max_position_embeddings": embed.position.max_positions,
        "hidden_size": config.d_model,
        "num_layers": config.stack.num_layers,
        "num_heads": block.attention.num_heads,
        "intermediate_size": None if d_ff == 4 * config.d_model else d_ff,
        "attention_types": [[["global" if window is None else "local"], 1] for window in windows],
        "window_size": window + 1,
        "activation_function": config_map.ACTIVATIONS[block.feed_forward.activation],
        "resid_dropout": float(block.dropout),
        "embed_dropout": float(embed.dropout),
        "attention_dropout": float(block.attention.dropout),
        "layer_norm_epsilon": float(block.norm.eps),
        "initializer_range": float(embed.initializer_std),
        "tie_word_embeddings": getattr(config.head, "tied", True),
        **labels.attributes(config),
        **labels.DECODER_FIELDS.written(config),
        "use_cache": True,
    }


FAMILY = config_map.Family(
    model_type="gpt_neo",
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=functools.partial(labels.decoder_architecture, prefix="GPTNeo", language_model="GPTNeoForCausalLM"),
    with_head=with_head,
    head_from_hf=labels.DECODER_FIELDS.read,
    kept=labels.DECODER_FIELDS.unused,
    starts=("start",),
)
