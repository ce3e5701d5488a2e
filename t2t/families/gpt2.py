"""GPT-2 and GPT-3: causal decoders with the norm before each sublayer and one at the end.

    gpt2, gpt2-medium, gpt2-large, gpt2-xl, distilgpt2, gpt3-175b

Reference: Radford et al., Language Models are Unsupervised Multitask Learners (2019), and the released code of
openai/gpt-2; Brown et al., Language Models are Few-Shot Learners, arXiv:2005.14165, table 2.1.

Differs: output projections start at 0.02 / sqrt(2 * num_layers), as in transformers and GPT-3; the paper of GPT-2 says
1 / sqrt(number of residual layers) and its code has no such factor. Positions start at 0.02, in the released code at
0.01. GPT-3's alternating sparse attention is dense here: the parameters are the same. Of transformers' class with two
heads, GPT2DoubleHeadsModel, a model that scores choices has the second; its first is the token table. Choices are
scored at their last token, in transformers at the positions given as `mc_token_ids`, or the last, padding or not.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.families import labels
from t2t.hf import config_map
from t2t.hf.table import LINEAR, MATRIX, MATRIX_2, VECTOR, Entry, Ignored, Table, norm_entries
from t2t.models.decoder import DecoderConfig
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.classification import ClassificationHead
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import Activation, FeedForwardConfig
from t2t.nn.heads import LanguageModelHead
from t2t.nn.norm import LayerNorm
from t2t.nn.positions.absolute import LearnedPositions
from t2t.nn.stack import StackConfig

INITIALIZER_STD = 0.02
"""Of all kernels and tables but those that end a residual branch."""


def gpt2(
    *,
    num_layers: int,
    d_model: int,
    num_heads: int,
    d_ff: int | None = None,
    vocab_size: int = 50257,
    max_positions: int = 1024,
    activation: Activation = "gelu_tanh",
    tied: bool = True,
    dropout: float = 0.1,
    embed_dropout: float = 0.1,
    attention_dropout: float = 0.1,
    eps: float = 1e-5,
) -> DecoderConfig:
    """A GPT-2 of any size; `d_ff` None is four times the width."""
    norm = LayerNorm(eps=eps)
    stds = {"initializer_std": INITIALIZER_STD, "out_initializer_std": INITIALIZER_STD * (2 * num_layers) ** -0.5}
    block = BlockConfig(
        norm=norm,
        norm_position="pre",
        attention=AttentionConfig(
            num_heads=num_heads, head_dim=d_model // num_heads, use_bias=True, dropout=attention_dropout, **stds
        ),
        feed_forward=FeedForwardConfig(
            d_ff=4 * d_model if d_ff is None else d_ff, activation=activation, use_bias=True, **stds
        ),
        dropout=dropout,
    )
    return DecoderConfig(
        embed=EmbedConfig(
            vocab_size=vocab_size,
            dim=d_model,
            position=LearnedPositions(max_positions=max_positions),
            dropout=embed_dropout,
            initializer_std=INITIALIZER_STD,
        ),
        stack=StackConfig(num_layers=num_layers, d_model=d_model, pattern=(block,), final_norm=norm),
        head=LanguageModelHead(tied=tied),
    )


def with_head(config: DecoderConfig, head: heads.Head | None) -> DecoderConfig:
    """The model with the head asked for; that of its pretraining is its language model head."""
    tasks = ("sequence", "tokens", "span", "choice")
    return labels.decoder_with_head(config, head, family="GPT-2", language_model=LanguageModelHead(), tasks=tasks)


def _preset(*, head: heads.Head | None = None, **sizes: Any) -> DecoderConfig:
    return with_head(gpt2(**sizes), head)


PRESETS = {
    "gpt2": functools.partial(_preset, num_layers=12, d_model=768, num_heads=12),
    "gpt2-medium": functools.partial(_preset, num_layers=24, d_model=1024, num_heads=16),
    "gpt2-large": functools.partial(_preset, num_layers=36, d_model=1280, num_heads=20),
    "gpt2-xl": functools.partial(_preset, num_layers=48, d_model=1600, num_heads=25),
    "distilgpt2": functools.partial(_preset, num_layers=6, d_model=768, num_heads=12),
    "gpt3-175b": functools.partial(_preset, num_layers=96, d_model=12288, num_heads=96, max_positions=2048),
}


def block_entries() -> tuple[Entry, ...]:
    """The tensors of one block of GPT and GPT-2, whose `Conv1D` keeps kernels as [inputs, outputs]."""
    block = "{base}h.{i}"

    def joined(part: str) -> tuple[str, ...]:
        return tuple(f"decoder/{{i}}/attention/{name}/{part}" for name in ("query", "key", "value"))

    def dense(ours: str, theirs: str, layout: Any = MATRIX) -> tuple[Entry, Entry]:
        return (
            Entry(f"decoder/{{i}}/{ours}/kernel", f"{block}.{theirs}.weight", layout),
            Entry(f"decoder/{{i}}/{ours}/bias", f"{block}.{theirs}.bias", VECTOR),
        )

    return (
        *norm_entries("decoder/{i}/attention_norm", f"{block}.ln_1"),
        Entry(joined("kernel"), f"{block}.attn.c_attn.weight", MATRIX),
        Entry(joined("bias"), f"{block}.attn.c_attn.bias", VECTOR),
        *dense("attention/out", "attn.c_proj", MATRIX_2),
        *norm_entries("decoder/{i}/feed_forward_norm", f"{block}.ln_2"),
        *dense("feed_forward/up", "mlp.c_fc"),
        *dense("feed_forward/down", "mlp.c_proj"),
    )


IGNORED = (
    Ignored("*.attn.bias", "the causal mask, which files of the Hub hold as a buffer"),
    Ignored("*.attn.masked_bias", "the score of masked positions, which files of the Hub hold as a buffer"),
    Ignored("*position_ids", "a buffer holding 0, 1, 2, ... that old files contain"),
)

TABLE = Table(
    base="transformer.",
    entries=(
        Entry("embed/embedding", "{base}wte.weight", MATRIX, copies=("lm_head.weight",)),
        Entry("embed/positions", "{base}wpe.weight", MATRIX),
        *block_entries(),
        *norm_entries("decoder/final_norm", "{base}ln_f"),
        Entry("head/kernel", "lm_head.weight", LINEAR),
        *labels.DECODER_ENTRIES,
    ),
    ignored=IGNORED,
)

UNREAD_ATTRIBUTES = frozenset({"initializer_range", "n_ctx", "n_special", "predict_special_tokens"})
"""How parameters begin, and a name whose value stands elsewhere: n_ctx is n_positions. No code reads the last two."""

SUMMARY_ATTRIBUTES = UNREAD_ATTRIBUTES | {
    "summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout",
}  # fmt: skip
"""The same, and attributes of a head that families with these attributes do not have."""

READ_SUMMARY: Mapping[str, Any] = {
    "summary_type": "cls_index",
    "summary_use_proj": True,
    "summary_activation": None,
    "summary_proj_to_labels": True,
    "summary_first_dropout": 0.1,
}
"""What says how GPT and GPT-2 score choices, for `Attributes.read`."""

ATTRIBUTES = config_map.Attributes(
    read={
        **labels.READ,
        "vocab_size": 50257,
        "n_positions": 1024,
        "n_embd": 768,
        "n_layer": 12,
        "n_head": 12,
        "n_inner": None,
        "activation_function": "gelu_new",
        "resid_pdrop": 0.1,
        "embd_pdrop": 0.1,
        "attn_pdrop": 0.1,
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
        "classifier_dropout": None,
        **READ_SUMMARY,
    },
    fixed={
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "reorder_and_upcast_attn": (False,),
        "add_cross_attention": (False,),
        "is_decoder": (False,),
    },
    ignored=UNREAD_ATTRIBUTES,
)


def head_from_hf(config: DecoderConfig, values: Mapping[str, Any]) -> DecoderConfig:
    """The model whose head is as the attributes of config.json say.

    Raises:
        ValueError: choices are scored otherwise than by one layer, or beside words that have an output of their own.
    """
    config = labels.DECODER_FIELDS.read(config, values)
    if not _scores_choices(config):
        return config
    form = {name: usual for name, usual in READ_SUMMARY.items() if name != "summary_first_dropout"}
    form |= {"tie_word_embeddings": True}
    if wrong := [f"{name}={values[name]!r}, not {usual!r}" for name, usual in form.items() if values[name] != usual]:
        raise ValueError(f"it is a DoubleHeadsModel with {', '.join(wrong)}")
    head = dataclasses.replace(config.head, dropout=float(values["summary_first_dropout"]))
    return dataclasses.replace(config, head=head)


def kept(config: DecoderConfig) -> frozenset[str]:
    """Attributes of heads that say nothing of a model with its head."""
    return labels.DECODER_FIELDS.unused(config) | frozenset(() if _scores_choices(config) else READ_SUMMARY)


def _scores_choices(config: DecoderConfig) -> bool:
    return isinstance(config.head, ClassificationHead) and config.head.task == "choice"


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> DecoderConfig:
    """The config of a GPT-2's config.json."""
    del names
    config = gpt2(
        num_layers=values["n_layer"],
        d_model=values["n_embd"],
        num_heads=values["n_head"],
        d_ff=values["n_inner"],
        vocab_size=values["vocab_size"],
        max_positions=values["n_positions"],
        activation=config_map.activation(values["activation_function"]),
        tied=values["tie_word_embeddings"],
        dropout=float(values["resid_pdrop"]),
        embed_dropout=float(values["embd_pdrop"]),
        attention_dropout=float(values["attn_pdrop"]),
        eps=values["layer_norm_epsilon"],
    )
    return head_from_hf(with_head(config, labels.request(values)), values)


def check_causal(config: Any) -> None:
    """Refuses what no decoder of transformers computes.

    Raises:
        InexpressibleError: it is no decoder, or a prefix-LM.
    """
    if not isinstance(config, DecoderConfig):
        raise config_map.InexpressibleError("it is no decoder")
    if config.prefix_attention:
        raise config_map.InexpressibleError(
            "it is a prefix-LM: no class of transformers lets the positions of a prefix read each other in both "
            "directions, so its weights would open and compute something else. Keep the run directory, or train with "
            "prefix_attention=False"
        )


def shared_attributes(config: Any) -> dict[str, Any]:
    """The attributes that GPT and GPT-2 give the same names.

    Raises:
        InexpressibleError: neither is so.
    """
    check_causal(config)
    block, embed = config.stack.blocks[0], config.embed
    if embed.position is None:
        raise config_map.InexpressibleError("it has no table of absolute positions")
    return {
        "vocab_size": config.vocab_size,
        "n_positions": embed.position.max_positions,
        "n_embd": config.d_model,
        "n_layer": config.stack.num_layers,
        "n_head": block.attention.num_heads,
        "resid_pdrop": float(block.dropout),
        "embd_pdrop": float(embed.dropout),
        "attn_pdrop": float(block.attention.dropout),
        "layer_norm_epsilon": float(block.norm.eps),
        "initializer_range": float(embed.initializer_std),
        "tie_word_embeddings": getattr(config.head, "tied", True),
        **READ_SUMMARY,
        **({"summary_first_dropout": float(config.head.dropout)} if _scores_choices(config) else {}),
        **labels.DECODER_FIELDS.written(config),
        **labels.attributes(config),
    }


def _to_hf(config: Any) -> dict[str, Any]:
    attributes = shared_attributes(config)
    feed_forward = config.stack.blocks[0].feed_forward
    return {
        **attributes,
        "n_inner": None if feed_forward.d_ff == 4 * config.d_model else feed_forward.d_ff,
        "activation_function": config_map.ACTIVATIONS[feed_forward.activation],
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "reorder_and_upcast_attn": False,
        "add_cross_attention": False,
        "use_cache": True,
    }


FAMILY = config_map.Family(
    model_type="gpt2",
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=functools.partial(
        labels.decoder_architecture,
        prefix="GPT2",
        language_model="GPT2LMHeadModel",
        endings={"choice": "DoubleHeadsModel"},
    ),
    with_head=with_head,
    head_from_hf=head_from_hf,
    kept=kept,
    starts=("start",),
)
