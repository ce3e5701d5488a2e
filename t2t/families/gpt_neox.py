"""GPT-NeoX and Pythia: causal decoders with rotary positions on a quarter of each head and two sublayers in parallel.

    gpt-neox-20b
    pythia-70m, pythia-160m, pythia-410m, pythia-1b, pythia-1.4b, pythia-2.8b, pythia-6.9b, pythia-12b

Reference: Black et al., GPT-NeoX-20B: An Open-Source Autoregressive Language Model, arXiv:2204.06745, sections 2.1 and
2.1.3 (initial values); Biderman et al., Pythia, arXiv:2304.01373, table 1.
"""

import functools
import math
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
    Ignored,
    Layout,
    Table,
    linear_entries,
    norm_entries,
)
from t2t.models.decoder import DecoderConfig
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import Activation, FeedForwardConfig
from t2t.nn.heads import LanguageModelHead
from t2t.nn.norm import LayerNorm
from t2t.nn.positions.rotary import Rotary
from t2t.nn.stack import StackConfig

_MAX_POSITIONS = 2048
"""The length of training of the published models, which transformers wants to know; no parameter depends on it."""


def gpt_neox(
    *,
    num_layers: int,
    d_model: int,
    num_heads: int,
    d_ff: int | None = None,
    vocab_size: int = 50432,
    rotary_dim: int | None = None,
    theta: float = 10_000.0,
    parallel: bool = True,
    attention_bias: bool = True,
    activation: Activation = "gelu",
    tied: bool = False,
    trained_positions: int | None = None,
    dropout: float = 0.0,
    attention_dropout: float = 0.0,
    eps: float = 1e-5,
) -> DecoderConfig:
    """A GPT-NeoX of any size; `d_ff` None is four times the width, `rotary_dim` None a quarter of each head."""
    norm = LayerNorm(eps=eps)
    head_dim = d_model // num_heads
    rotary_dim = head_dim // 4 if rotary_dim is None else rotary_dim
    stds = {"initializer_std": (2 / (5 * d_model)) ** 0.5, "out_initializer_std": 2 / (num_layers * d_model**0.5)}
    block = BlockConfig(
        norm=norm,
        norm_position="parallel" if parallel else "pre",
        attention=AttentionConfig(
            num_heads=num_heads, head_dim=head_dim, use_bias=attention_bias, dropout=attention_dropout, **stds
        ),
        feed_forward=FeedForwardConfig(
            d_ff=4 * d_model if d_ff is None else d_ff, activation=activation, use_bias=True, **stds
        ),
        dropout=dropout,
    )
    return DecoderConfig(
        embed=EmbedConfig(vocab_size=vocab_size, dim=d_model, dropout=dropout, initializer_std=stds["initializer_std"]),
        stack=StackConfig(
            num_layers=num_layers,
            d_model=d_model,
            pattern=(block,),
            position=Rotary(
                theta=theta,
                dim=None if rotary_dim == head_dim else rotary_dim,
                trained_positions=trained_positions,
            ),
            final_norm=norm,
        ),
        head=LanguageModelHead(tied=tied, initializer_std=None if tied else stds["initializer_std"]),
    )


def with_head(config: DecoderConfig, head: heads.Head | None) -> DecoderConfig:
    """The model with the head asked for; that of its pretraining is its language model head."""
    own = LanguageModelHead(tied=False, initializer_std=config.embed.initializer_std)
    return labels.decoder_with_head(config, head, family="GPT-NeoX", language_model=own)


def _preset(*, head: heads.Head | None = None, **sizes: Any) -> DecoderConfig:
    return with_head(gpt_neox(**sizes), head)


_PYTHIA = functools.partial(_preset, vocab_size=50304)

PRESETS = {
    "gpt-neox-20b": functools.partial(_preset, num_layers=44, d_model=6144, num_heads=64, activation="gelu_tanh"),
    "pythia-70m": functools.partial(_PYTHIA, num_layers=6, d_model=512, num_heads=8),
    "pythia-160m": functools.partial(_PYTHIA, num_layers=12, d_model=768, num_heads=12),
    "pythia-410m": functools.partial(_PYTHIA, num_layers=24, d_model=1024, num_heads=16),
    "pythia-1b": functools.partial(_PYTHIA, num_layers=16, d_model=2048, num_heads=8),
    "pythia-1.4b": functools.partial(_PYTHIA, num_layers=24, d_model=2048, num_heads=16),
    "pythia-2.8b": functools.partial(_PYTHIA, num_layers=32, d_model=2560, num_heads=32),
    "pythia-6.9b": functools.partial(_preset, num_layers=32, d_model=4096, num_heads=32),
    "pythia-12b": functools.partial(_preset, num_layers=36, d_model=5120, num_heads=40, vocab_size=50688),
}

_LAYER = "{base}layers.{i}"


def _joined(part: str, theirs: str, layout: Layout) -> Entry:
    ours = tuple(f"decoder/{{i}}/attention/{name}/{part}" for name in ("query", "key", "value"))
    return Entry(ours, f"{_LAYER}.attention.query_key_value.{theirs}", layout)


TABLE = Table(
    base="gpt_neox.",
    entries=(
        Entry("embed/embedding", "{base}embed_in.weight", MATRIX, copies=("embed_out.weight", "lm_head.weight")),
        *norm_entries("decoder/{i}/attention_norm", f"{_LAYER}.input_layernorm"),
        _joined("kernel", "weight", LINEAR_BY_HEADS),
        _joined("bias", "bias", VECTOR_BY_HEADS),
        *linear_entries("decoder/{i}/attention/out", f"{_LAYER}.attention.dense", inputs=2),
        *norm_entries("decoder/{i}/feed_forward_norm", f"{_LAYER}.post_attention_layernorm"),
        *linear_entries("decoder/{i}/feed_forward/up", f"{_LAYER}.mlp.dense_h_to_4h"),
        *linear_entries("decoder/{i}/feed_forward/down", f"{_LAYER}.mlp.dense_4h_to_h"),
        *norm_entries("decoder/final_norm", "{base}final_layer_norm"),
        # transformers 4 and the Hub have the first name, which 5 reads too; the second is that of 5's class.
        Entry("head/kernel", "embed_out.weight", LINEAR, copies=("lm_head.weight",)),
        *labels.DECODER_ENTRIES,
    ),
    ignored=(
        Ignored("*.attention.bias", "the causal mask, which files of the Hub hold as a buffer"),
        Ignored("*.attention.masked_bias", "the score of masked positions, held as a buffer"),
        Ignored("*.rotary_emb.inv_freq", "the rates of the rotary positions, held as a buffer"),
    ),
)

ATTRIBUTES = config_map.Attributes(
    read={
        **labels.READ,
        "vocab_size": 50432,
        "hidden_size": 6144,
        "num_hidden_layers": 44,
        "num_attention_heads": 64,
        "intermediate_size": 24576,
        "hidden_act": "gelu",
        # Versions of transformers from 5 on read the first, older ones the other two.
        "rope_parameters": None,
        "rotary_pct": 0.25,
        "rotary_emb_base": 10_000.0,
        "max_position_embeddings": _MAX_POSITIONS,
        "use_parallel_residual": True,
        "attention_bias": True,
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
        "layer_norm_eps": 1e-5,
        "classifier_dropout": None,
        "tie_word_embeddings": False,
    },
    fixed={"rope_scaling": (None,), "is_decoder": (False,)},
    ignored=frozenset({
        "initializer_range",
        # Of files of the Hub; the first four stand elsewhere under another name, and no code reads them.
        "attention_probs_dropout_prob", "hidden_dropout_prob", "rope_theta", "partial_rotary_factor",
    }),
)  # fmt: skip


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> DecoderConfig:
    """The config of a GPT-NeoX's config.json."""
    del names
    given = values["rope_parameters"] or {}
    others = set(given) - {"rope_theta", "rope_type", "partial_rotary_factor"}
    if others or given.get("rope_type", "default") != "default":
        raise ValueError(f"rope_parameters is {given!r}; t2t does plain rotary positions alone")
    head_dim = values["hidden_size"] // values["num_attention_heads"]
    config = gpt_neox(
        num_layers=values["num_hidden_layers"],
        d_model=values["hidden_size"],
        num_heads=values["num_attention_heads"],
        d_ff=values["intermediate_size"],
        vocab_size=values["vocab_size"],
        rotary_dim=int(head_dim * given.get("partial_rotary_factor", values["rotary_pct"])),
        theta=float(given.get("rope_theta", values["rotary_emb_base"])),
        parallel=values["use_parallel_residual"],
        attention_bias=values["attention_bias"],
        activation=config_map.activation(values["hidden_act"]),
        tied=values["tie_word_embeddings"],
        trained_positions=config_map.trained_positions(values["max_position_embeddings"], usual=_MAX_POSITIONS),
        dropout=float(values["hidden_dropout"]),
        attention_dropout=float(values["attention_dropout"]),
        eps=values["layer_norm_eps"],
    )
    return labels.DECODER_FIELDS.read(with_head(config, labels.request(values)), values)


def _to_hf(config: Any) -> dict[str, Any]:
    gpt2.check_causal(config)
    block, position = config.stack.blocks[0], config.stack.position
    if not isinstance(position, Rotary):
        raise config_map.InexpressibleError("it has no rotary positions that all layers share")
    head_dim = block.attention.head_dim
    share = 1.0 if position.dim is None else position.dim / head_dim
    if position.dim is not None and int(head_dim * share) < position.dim:
        share = math.nextafter(share, 1.0)  # transformers rounds the product down
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.stack.num_layers,
        "num_attention_heads": block.attention.num_heads,
        "intermediate_size": block.feed_forward.d_ff,
        "hidden_act": config_map.ACTIVATIONS[block.feed_forward.activation],
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": float(position.theta),
            "partial_rotary_factor": share,
        },
        "rotary_pct": share,
        "rotary_emb_base": float(position.theta),
        "max_position_embeddings": position.trained_positions or _MAX_POSITIONS,
        "use_parallel_residual": block.norm_position == "parallel",
        "attention_bias": block.attention.use_bias,
        "hidden_dropout": float(block.dropout),
        "attention_dropout": float(block.attention.dropout),
        "layer_norm_eps": float(block.norm.eps),
        "initializer_range": float(config.embed.initializer_std),
        "tie_word_embeddings": getattr(config.head, "tied", False),
        **labels.attributes(config),
        **labels.DECODER_FIELDS.written(config),
        "use_cache": True,
    }


FAMILY = config_map.Family(
    model_type="gpt_neox",
    refused={"GPTNeoXModel": labels.NO_OUTPUT},
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=functools.partial(labels.decoder_architecture, prefix="GPTNeoX", language_model="GPTNeoXForCausalLM"),
    with_head=with_head,
    head_from_hf=labels.DECODER_FIELDS.read,
    kept=labels.DECODER_FIELDS.unused,
    starts=("start",),
)
