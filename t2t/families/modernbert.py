"""ModernBERT: bidirectional encoders with rotary positions, most of whose layers read near by and every third all.

    modernbert-base, modernbert-large

Reference: Warner et al., Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder, arXiv:2412.13663, section 2.1
and table 4.

Differs: transformers drops each attention's output at the rate of its weights; here that is the rate of the block, the
same for the feed-forward's. The published models drop nothing.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from t2t import heads
from t2t.families import labels
from t2t.hf import config_map
from t2t.hf.table import LINEAR, MATRIX, VECTOR, Entry, Table, linear_entries, norm_entries
from t2t.models.encoder import EncoderConfig
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.classification import ClassificationHead
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import Activation, FeedForwardConfig
from t2t.nn.heads import MaskedLanguageModelHead
from t2t.nn.norm import LayerNorm
from t2t.nn.positions.rotary import Rotary
from t2t.nn.stack import StackConfig, shortest_pattern

_INITIALIZER_STD = 0.02
_GLOBAL, _LOCAL = "full_attention", "sliding_attention"
_GLOBAL_THETA, _LOCAL_THETA = 160_000.0, 10_000.0
_EVERY = 3
"""Layers 0, 3, 6, ... read everything."""
_MAX_POSITIONS = 8192


def modernbert(
    *,
    num_layers: int,
    d_model: int,
    num_heads: int,
    d_ff: int,
    vocab_size: int = 50368,
    layer_types: Sequence[str] | None = None,
    local_attention: int = 128,
    global_theta: float = _GLOBAL_THETA,
    local_theta: float = _LOCAL_THETA,
    activation: Activation = "gelu",
    norm_bias: bool = False,
    attention_bias: bool = False,
    feed_forward_bias: bool = False,
    embed_dropout: float = 0.0,
    attention_dropout: float = 0.0,
    feed_forward_dropout: float = 0.0,
    trained_positions: int | None = None,
    eps: float = 1e-5,
) -> EncoderConfig:
    """A ModernBERT of any size, without a head.

    Args:
        num_layers: of all kinds.
        d_model: width.
        num_heads: of every layer.
        d_ff: width inside the feed-forward, whose joined kernel in files is twice as wide.
        vocab_size: rows of the token table.
        layer_types: "full_attention" or "sliding_attention" for each layer; None = every third reads everything.
        local_attention: positions that a sliding layer reads, half of them on either side.
        global_theta: of the rotary positions of layers that read everything.
        local_theta: of the others.
        activation: of the gate.
        norm_bias: whether norms have one.
        attention_bias: whether the projections have one.
        feed_forward_bias: whether the feed-forward has one.
        embed_dropout: of the embeddings.
        attention_dropout: of the attention weights.
        feed_forward_dropout: of the inner values.
        trained_positions: the length of training; None = 8192.
        eps: of the norms.
    """
    norm = LayerNorm(eps=eps, use_bias=norm_bias)
    cut = {"initializer_std": _INITIALIZER_STD, "initializer": "truncated_normal"}
    initializer = {**cut, "out_initializer_std": _INITIALIZER_STD * (2 * num_layers) ** -0.5}

    def block(kind: str) -> BlockConfig:
        return BlockConfig(
            norm=norm,
            norm_position="pre",
            attention=AttentionConfig(
                num_heads=num_heads,
                head_dim=d_model // num_heads,
                use_bias=attention_bias,
                window=None if kind == _GLOBAL else local_attention // 2,
                dropout=attention_dropout,
                **initializer,
            ),
            feed_forward=FeedForwardConfig(
                d_ff=d_ff,
                activation=activation,
                gated=True,
                use_bias=feed_forward_bias,
                dropout=feed_forward_dropout,
                **initializer,
            ),
            position=Rotary(
                theta=global_theta if kind == _GLOBAL else local_theta, trained_positions=trained_positions
            ),
        )

    kinds = layer_types or [_GLOBAL if i % _EVERY == 0 else _LOCAL for i in range(num_layers)]
    first, *rest = (block(kind) for kind in kinds)
    first = dataclasses.replace(first, attention_norm=False)
    depth = {"prefix": (first,), **shortest_pattern(tuple(rest))} if rest else {"pattern": (first,)}
    return EncoderConfig(
        embed=EmbedConfig(vocab_size=vocab_size, dim=d_model, norm=norm, dropout=embed_dropout, **cut),
        stack=StackConfig(num_layers=num_layers, d_model=d_model, final_norm=norm, **depth),
    )


def with_head(config: EncoderConfig, head: heads.Head | None) -> EncoderConfig:
    """The model with the head asked for; it is pretrained with that of masked words alone.

    All heads begin with a dense layer, its activation and a norm; texts are scored by their first token.
    """
    if head is None:
        return dataclasses.replace(config, head=None)
    norm = config.embed.norm
    if isinstance(head, heads.Pretraining | heads.MaskedLM):
        masked = MaskedLanguageModelHead(
            activation="gelu",
            norm=norm,
            transform_bias=False,
            initializer_std=config.stack.blocks[0].attention.out_initializer_std,
            initializer="truncated_normal",
        )
        return dataclasses.replace(config, head=masked)
    form = {
        "activation": "gelu",
        "dense_bias": False,
        "norm": norm,
        "initializer_std": config.d_model**-0.5,
        "initializer": "truncated_normal",
    }
    forms = dict.fromkeys(("sequence", "choice", "tokens", "span"), form)
    return dataclasses.replace(config, head=labels.make(head, family="ModernBERT", **forms))


def _head_from_hf(config: EncoderConfig, values: Mapping[str, Any]) -> EncoderConfig:
    """The model whose head is as the attributes of config.json say."""
    if config.head is None:
        return config
    if values["classifier_pooling"] not in _POOLINGS:
        raise ValueError(f"classifier_pooling is {values['classifier_pooling']!r}; possible are 'cls' and 'mean'")
    changed = {"activation": config_map.activation(values["classifier_activation"])}
    if isinstance(config.head, MaskedLanguageModelHead):
        changed |= {"transform_bias": values["classifier_bias"], "tied": values["tie_word_embeddings"]}
    else:
        changed |= {"dense_bias": values["classifier_bias"], "dropout": float(values["classifier_dropout"] or 0.0)}
    if _reads_pooled(config):
        changed["pooling"] = _POOLINGS[values["classifier_pooling"]]
    return dataclasses.replace(config, head=dataclasses.replace(config.head, **changed))


def _reads_pooled(config: EncoderConfig) -> bool:
    return isinstance(config.head, ClassificationHead) and config.head.reads_one


def _kept(config: EncoderConfig) -> frozenset[str]:
    unused = set() if _reads_pooled(config) else {"classifier_pooling"}
    if not isinstance(config.head, ClassificationHead):
        unused.add("classifier_dropout")
    return frozenset(unused | (set() if config.head else {"classifier_activation", "classifier_bias"}))


def _preset(*, head: heads.Head | None = None, **sizes: int) -> EncoderConfig:
    return with_head(modernbert(**sizes), head)


PRESETS = {
    "modernbert-base": functools.partial(_preset, num_layers=22, d_model=768, num_heads=12, d_ff=1152),
    "modernbert-large": functools.partial(_preset, num_layers=28, d_model=1024, num_heads=16, d_ff=2624),
}

_LAYER = "{base}layers.{i}"


def _joined(layer: str, names: Sequence[str], theirs: str) -> tuple[Entry, Entry]:
    """A kernel that holds several of ours, one after the other, and its bias."""
    kernel, bias = (tuple(f"encoder/{{i}}/{layer}/{name}/{part}" for name in names) for part in ("kernel", "bias"))
    return Entry(kernel, f"{theirs}.weight", LINEAR), Entry(bias, f"{theirs}.bias", VECTOR)


TABLE = Table(
    base="model.",
    entries=(
        Entry("embed/embedding", "{base}embeddings.tok_embeddings.weight", MATRIX, copies=("decoder.weight",)),
        *norm_entries("embed/norm", "{base}embeddings.norm"),
        *norm_entries("encoder/{i}/attention_norm", f"{_LAYER}.attn_norm"),
        *_joined("attention", ("query", "key", "value"), f"{_LAYER}.attn.Wqkv"),
        *linear_entries("encoder/{i}/attention/out", f"{_LAYER}.attn.Wo", inputs=2),
        *norm_entries("encoder/{i}/feed_forward_norm", f"{_LAYER}.mlp_norm"),
        *_joined("feed_forward", ("gate", "up"), f"{_LAYER}.mlp.Wi"),  # the first half is activated
        *linear_entries("encoder/{i}/feed_forward/down", f"{_LAYER}.mlp.Wo"),
        *norm_entries("encoder/final_norm", "{base}final_norm"),
        *linear_entries("head/transform", "head.dense"),
        *linear_entries("head/dense", "head.dense"),
        *norm_entries("head/norm", "head.norm"),
        Entry("head/kernel", "decoder.weight", LINEAR),
        Entry("head/bias", "decoder.bias", VECTOR),
        *linear_entries("head/classifier", "classifier"),
        *linear_entries("head/span", "classifier"),
    ),
)

ATTRIBUTES = config_map.Attributes(
    read={
        **labels.READ,
        "vocab_size": 50368,
        "hidden_size": 768,
        "num_hidden_layers": 22,
        "num_attention_heads": 12,
        "intermediate_size": 1152,
        "hidden_activation": "gelu",
        "norm_eps": 1e-5,
        "norm_bias": False,
        "attention_bias": False,
        "mlp_bias": False,
        "embedding_dropout": 0.0,
        "attention_dropout": 0.0,
        "mlp_dropout": 0.0,
        "local_attention": 128,
        "max_position_embeddings": _MAX_POSITIONS,
        # Versions of transformers from 5 on read the first two, older ones the other three.
        "layer_types": None,
        "rope_parameters": None,
        "global_attn_every_n_layers": _EVERY,
        "global_rope_theta": _GLOBAL_THETA,
        "local_rope_theta": _LOCAL_THETA,
        "classifier_pooling": "cls",
        "classifier_activation": "gelu",
        "classifier_bias": False,
        "classifier_dropout": 0.0,
        "tie_word_embeddings": True,
    },
    fixed={
        "decoder_bias": (True,),
        "sparse_prediction": (False,),
        "rope_scaling": (None,),
        "position_embedding_type": ("absolute", "rope", None),  # of the first published files; no code reads it
    },
    ignored=frozenset({
        "initializer_range", "initializer_cutoff_factor", "deterministic_flash_attn", "sparse_pred_ignore_index",
        "reference_compile", "repad_logits_with_grad", "cls_token_id", "layer_norm_eps",
    }),
)  # fmt: skip
"""`max_position_embeddings` is the length of training: rotary positions have no table. `layer_norm_eps` is read by no
code, `norm_eps` is."""

_POOLINGS = {"cls": "first", "mean": "mean"}


def _theta(values: Mapping[str, Any], kind: str) -> float:
    """The rotary base of one kind of layers, which `rope_parameters` may name, or else the older attributes."""
    older = values["global_rope_theta"]
    if kind == _LOCAL and values["local_rope_theta"] is not None:
        older = values["local_rope_theta"]
    given = (values["rope_parameters"] or {}).get(kind) or {}
    others = set(given) - {"rope_theta", "rope_type"}
    if others or given.get("rope_type", "default") != "default":
        raise ValueError(f"rope_parameters is {given!r}; t2t does rotary positions with a rope_theta and nothing else")
    return float(given.get("rope_theta", older))


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> EncoderConfig:
    """The config of a ModernBERT's config.json; which heads it has is read from the names of its tensors."""
    every, number = values["global_attn_every_n_layers"], values["num_hidden_layers"]
    kinds = values["layer_types"] or [_LOCAL if i % every else _GLOBAL for i in range(number)]
    if len(kinds) != number or set(kinds) - {_GLOBAL, _LOCAL}:
        raise ValueError(f"layer_types is {kinds!r}; possible are {number} times {_GLOBAL!r} or {_LOCAL!r}")
    config = modernbert(
        num_layers=number,
        d_model=values["hidden_size"],
        num_heads=values["num_attention_heads"],
        d_ff=values["intermediate_size"],
        vocab_size=values["vocab_size"],
        layer_types=kinds,
        local_attention=values["local_attention"],
        global_theta=_theta(values, _GLOBAL),
        local_theta=_theta(values, _LOCAL),
        activation=config_map.activation(values["hidden_activation"]),
        norm_bias=values["norm_bias"],
        attention_bias=values["attention_bias"],
        feed_forward_bias=values["mlp_bias"],
        embed_dropout=float(values["embedding_dropout"]),
        attention_dropout=float(values["attention_dropout"]),
        feed_forward_dropout=float(values["mlp_dropout"]),
        trained_positions=config_map.trained_positions(values["max_position_embeddings"], usual=_MAX_POSITIONS),
        eps=values["norm_eps"],
    )
    request = heads.MaskedLM() if "decoder.bias" in names else labels.request(values)
    return _head_from_hf(with_head(config, request), values)


def _layers(config: EncoderConfig) -> dict[str, Any]:
    """The attributes that say what each layer reads, by their names of both versions of transformers."""
    blocks = config.stack.blocks
    if any(not isinstance(block.position, Rotary) for block in blocks):
        raise config_map.InexpressibleError("it has layers without rotary positions")
    kinds = [_GLOBAL if block.attention.window is None else _LOCAL for block in blocks]
    period = next((n for n in range(1, len(kinds) + 1) if kinds == _every(n, len(kinds))), None)
    if period is None:
        raise config_map.InexpressibleError(
            "transformers 4 has layers that read everything at 0, n, 2n, ... alone, for some n"
        )
    thetas = {kind: block.position.theta for kind, block in reversed(list(zip(kinds, blocks, strict=True)))}
    thetas = {_GLOBAL: _GLOBAL_THETA, _LOCAL: _LOCAL_THETA, **thetas}
    windows = [block.attention.window for block in blocks if block.attention.window is not None]
    return {
        "local_attention": 2 * windows[0] if windows else 128,
        "max_position_embeddings": blocks[0].position.trained_positions or _MAX_POSITIONS,
        "layer_types": kinds,
        "rope_parameters": {k: {"rope_type": "default", "rope_theta": float(theta)} for k, theta in thetas.items()},
        "global_attn_every_n_layers": period,
        "global_rope_theta": float(thetas[_GLOBAL]),
        "local_rope_theta": float(thetas[_LOCAL]),
    }


def _every(period: int, number: int) -> list[str]:
    return [_LOCAL if i % period else _GLOBAL for i in range(number)]


def _to_hf(config: Any) -> dict[str, Any]:
    if not isinstance(config, EncoderConfig):
        raise config_map.InexpressibleError("it is no encoder")
    block, head = config.stack.blocks[0], config.head
    if config.embed.norm is None or not isinstance(block.norm, LayerNorm):
        raise config_map.InexpressibleError("it has no layer norm after the embeddings, or of its blocks")
    is_labels = isinstance(head, ClassificationHead)
    activation = getattr(head, "activation", None) or "gelu"
    if activation not in config_map.ACTIVATIONS or getattr(head, "pooling", "first") not in _POOLINGS.values():
        raise config_map.InexpressibleError(f"no ModernBERT has the head {head}")
    dense_bias = getattr(head, "dense_bias" if is_labels else "transform_bias", False)
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.stack.num_layers,
        "num_attention_heads": block.attention.num_heads,
        "intermediate_size": block.feed_forward.d_ff,
        "hidden_activation": config_map.ACTIVATIONS[block.feed_forward.activation],
        "norm_eps": float(block.norm.eps),
        "norm_bias": block.norm.use_bias,
        "attention_bias": block.attention.use_bias,
        "mlp_bias": block.feed_forward.use_bias,
        "embedding_dropout": float(config.embed.dropout),
        "attention_dropout": float(block.attention.dropout),
        "mlp_dropout": float(block.feed_forward.dropout),
        **_layers(config),
        "classifier_pooling": "mean" if getattr(head, "pooling", "first") == "mean" else "cls",
        "classifier_activation": config_map.ACTIVATIONS[activation],
        "classifier_bias": dense_bias,
        "classifier_dropout": float(getattr(head, "dropout", 0.0)),
        "decoder_bias": True,
        "sparse_prediction": False,
        "initializer_range": float(config.embed.initializer_std),
        "tie_word_embeddings": getattr(head, "tied", True),
        **labels.attributes(config),
    }


def _architecture(config: EncoderConfig) -> str:
    if isinstance(config.head, ClassificationHead):
        return labels.architecture(config.head, prefix="ModernBert", endings={"replaced": ""})
    return "ModernBertModel" if config.head is None else "ModernBertForMaskedLM"


FAMILY = config_map.Family(
    model_type="modernbert",
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=_architecture,
    with_head=with_head,
    head_from_hf=_head_from_hf,
    kept=_kept,
    published_ids={
        "pad_token_id": 50283, "bos_token_id": 50281, "cls_token_id": 50281, "eos_token_id": 50282,
        "sep_token_id": 50282,
    },
    starts=("bos",),
    ends=("eos",),
)  # fmt: skip
