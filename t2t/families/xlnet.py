"""XLNet: encoders that predict words in a permuted order, with attention to relative positions and a memory.

    xlnet-base-cased, xlnet-large-cased

Batches for fine-tuning are those of any encoder; `models/two_stream.py` says what pretraining gives besides. Texts end
in <sep> <cls>, so a text's last state stands for it; sentence types are read by attention, and without any given no
score depends on them.

Reference: Yang et al., XLNet: Generalized Autoregressive Pretraining for Language Understanding, arXiv:1906.08237, and
zihangdai/xlnet.

Differs: the activation is the exact GELU, as in transformers; the authors' TensorFlow code has its tanh approximation.
Dropped values of the embedded distances are the same for all rows of a batch. A query that may read nothing reads
nothing (`models/two_stream.py`). Which texts of a pretraining batch are reversed (`bi_data`) the batch says row by row,
where the authors reverse its second half; their head of answers that looks for the end given the start
(XLNetForQuestionAnswering) is not here.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.families import labels
from t2t.hf import config_map
from t2t.hf.table import AXES, LINEAR, MATRIX, OUTPUTS_FIRST, VECTOR, Entry, Table, linear_entries, norm_entries
from t2t.models.two_stream import TwoStreamEncoderConfig
from t2t.nn.block import BlockConfig
from t2t.nn.classification import ClassificationHead
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import Activation, FeedForwardConfig
from t2t.nn.heads import LanguageModelHead
from t2t.nn.norm import LayerNorm
from t2t.nn.relative_attention import RelativeAttentionConfig
from t2t.nn.stack import StackConfig

_INITIALIZER = {"initializer_std": 0.02}


def xlnet(
    *,
    num_layers: int,
    d_model: int,
    num_heads: int,
    d_ff: int,
    vocab_size: int = 32000,
    activation: Activation = "gelu",
    dropout: float = 0.1,
    memory_length: int = 0,
    memory_reuse: int | None = None,
    max_distance: int | None = None,
    eps: float = 1e-12,
) -> TwoStreamEncoderConfig:
    """An XLNet of any size, without a head."""
    block = BlockConfig(
        norm=LayerNorm(eps=eps),
        norm_position="post",
        attention=RelativeAttentionConfig(
            num_heads=num_heads, head_dim=d_model // num_heads, reads_types=True, dropout=dropout, **_INITIALIZER
        ),
        feed_forward=FeedForwardConfig(
            d_ff=d_ff, activation=activation, use_bias=True, dropout=dropout, **_INITIALIZER
        ),
        dropout=dropout,
    )
    return TwoStreamEncoderConfig(
        embed=EmbedConfig(vocab_size=vocab_size, dim=d_model, dropout=dropout, **_INITIALIZER),
        stack=StackConfig(num_layers=num_layers, d_model=d_model, pattern=(block,), dropout=dropout),
        memory_length=memory_length,
        memory_reuse=memory_reuse,
        max_distance=max_distance,
    )


def with_head(config: TwoStreamEncoderConfig, head: heads.Head | None) -> TwoStreamEncoderConfig:
    """The model with the head asked for; that of pretraining is the token table with a bias."""
    if head is None:
        return dataclasses.replace(config, head=None)
    if isinstance(head, heads.Pretraining | heads.MaskedLM):
        return dataclasses.replace(config, head=LanguageModelHead(use_bias=True, **_INITIALIZER))
    summary = {"pooling": "last", "activation": "tanh", "dropout": 0.1, **_INITIALIZER}
    plain = {"dropout": 0.0, **_INITIALIZER}
    forms = {"sequence": summary, "choice": summary, "tokens": plain, "span": plain}
    scores = labels.make(head, family="XLNet", **forms)
    return dataclasses.replace(config, head=scores)


def _preset(*, head: heads.Head | None = None, **sizes: Any) -> TwoStreamEncoderConfig:
    return with_head(xlnet(**sizes), head)


PRESETS = {
    "xlnet-base-cased": functools.partial(_preset, num_layers=12, d_model=768, num_heads=12, d_ff=3072),
    "xlnet-large-cased": functools.partial(_preset, num_layers=24, d_model=1024, num_heads=16, d_ff=4096),
}

_OURS, _THEIRS = "encoder/{i}/attention", "{base}layer.{i}.rel_attn"

TABLE = Table(
    base="transformer.",
    entries=(
        Entry("embed/embedding", "{base}word_embedding.weight", MATRIX, copies=("lm_loss.weight",)),
        Entry("query_state", "{base}mask_emb", AXES),
        Entry(f"{_OURS}/query/kernel", f"{_THEIRS}.q", AXES),
        Entry(f"{_OURS}/key/kernel", f"{_THEIRS}.k", AXES),
        Entry(f"{_OURS}/value/kernel", f"{_THEIRS}.v", AXES),
        Entry(f"{_OURS}/out/kernel", f"{_THEIRS}.o", OUTPUTS_FIRST),
        Entry(f"{_OURS}/position/kernel", f"{_THEIRS}.r", AXES),
        Entry(f"{_OURS}/content_bias", f"{_THEIRS}.r_w_bias", AXES),
        Entry(f"{_OURS}/position_bias", f"{_THEIRS}.r_r_bias", AXES),
        Entry(f"{_OURS}/type_bias", f"{_THEIRS}.r_s_bias", AXES),
        Entry(f"{_OURS}/types", f"{_THEIRS}.seg_embed", AXES),
        *norm_entries("encoder/{i}/attention_norm", f"{_THEIRS}.layer_norm"),
        *linear_entries("encoder/{i}/feed_forward/up", "{base}layer.{i}.ff.layer_1"),
        *linear_entries("encoder/{i}/feed_forward/down", "{base}layer.{i}.ff.layer_2"),
        *norm_entries("encoder/{i}/feed_forward_norm", "{base}layer.{i}.ff.layer_norm"),
        Entry("head/kernel", "lm_loss.weight", LINEAR),
        Entry("head/bias", "lm_loss.bias", VECTOR),
        *linear_entries("head/dense", "sequence_summary.summary"),
        *linear_entries("head/classifier", "logits_proj", needs="head/dense/kernel"),
        *linear_entries("head/classifier", "classifier", unless="head/dense/kernel"),
        *linear_entries("head/span", "qa_outputs"),
        *labels.unread(*labels.BEAM_PARTS),
    ),
)

ATTRIBUTES = config_map.Attributes(
    read={
        **labels.READ,
        "vocab_size": None,
        "n_token": None,
        "d_model": 1024,
        "n_layer": 24,
        "n_head": 16,
        "d_head": None,
        "d_inner": 4096,
        "ff_activation": "gelu",
        "dropout": 0.1,
        "layer_norm_eps": 1e-12,
        "mem_len": 512,
        "reuse_len": None,
        "clamp_len": -1,
        "summary_last_dropout": 0.1,
        "tie_word_embeddings": True,
    },
    fixed={
        "attn_type": ("bi",),
        "bi_data": (False,),
        "untie_r": (True,),
        "summary_type": ("last",),
        "summary_use_proj": (True,),
        "summary_activation": ("tanh",),
    },
    # How parameters begin, when transformers uses a memory, the search for answers, and what causal masks alone read.
    ignored=frozenset({
        "initializer_range", "use_mems_eval", "use_mems_train", "start_n_top", "end_n_top", "same_length", "init",
        "init_std", "init_range", "max_position_embeddings",
    }),
)  # fmt: skip


_SUMMARY = labels.HeadFields({task: {"summary_last_dropout": "dropout"} for task in ("sequence", "choice")})


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> TwoStreamEncoderConfig:
    """The config of an XLNet's config.json; old ones call the size of the vocabulary `n_token`."""
    head_dim = values["d_model"] // values["n_head"]
    if values["d_head"] not in (None, head_dim) or values["d_model"] % values["n_head"]:
        raise ValueError(f"d_head is {values['d_head']}; it must be d_model / n_head, as in transformers")
    config = xlnet(
        num_layers=values["n_layer"],
        d_model=values["d_model"],
        num_heads=values["n_head"],
        d_ff=values["d_inner"],
        vocab_size=values["vocab_size"] or values["n_token"] or 32000,
        activation=config_map.activation(values["ff_activation"]),
        dropout=float(values["dropout"]),
        memory_length=values["mem_len"] or 0,
        memory_reuse=values["reuse_len"] or None,
        max_distance=values["clamp_len"] if values["clamp_len"] > 0 else None,
        eps=values["layer_norm_eps"],
    )
    if "lm_loss.bias" in names:
        config = with_head(config, heads.PRETRAINING)
        head = dataclasses.replace(config.head, tied=values["tie_word_embeddings"])
        return dataclasses.replace(config, head=head)
    request = labels.request(values)
    return config if request is None else _SUMMARY.read(with_head(config, request), values)


def _to_hf(config: Any) -> dict[str, Any]:
    if not isinstance(config, TwoStreamEncoderConfig):
        raise config_map.InexpressibleError("it is no encoder with two streams")
    block, head = config.stack.blocks[0], config.head
    return {
        "vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "n_layer": config.stack.num_layers,
        "n_head": block.attention.num_heads,
        "d_head": block.attention.head_dim,
        "d_inner": block.feed_forward.d_ff,
        "ff_activation": config_map.ACTIVATIONS[block.feed_forward.activation],
        "dropout": float(block.dropout),
        "layer_norm_eps": float(block.norm.eps),
        "initializer_range": float(config.embed.initializer_std),
        "mem_len": config.memory_length or None,
        "reuse_len": config.memory_reuse,
        "clamp_len": config.max_distance or -1,
        "attn_type": "bi",
        "bi_data": False,
        "same_length": False,
        "untie_r": True,
        "use_mems_eval": True,
        "use_mems_train": config.memory_length > 0,
        "summary_type": "last",
        "summary_use_proj": True,
        "summary_activation": "tanh",
        "summary_last_dropout": 0.1,
        **_SUMMARY.written(config),
        "tie_word_embeddings": getattr(head, "tied", True),
        **labels.attributes(config),
    }


def _architecture(config: TwoStreamEncoderConfig) -> str:
    if config.head is None:
        return "XLNetModel"
    if isinstance(config.head, ClassificationHead):
        return labels.architecture(config.head, prefix="XLNet", endings={"span": "ForQuestionAnsweringSimple"})
    return "XLNetLMHeadModel"


FAMILY = config_map.Family(
    model_type="xlnet",
    refused={"XLNetForQuestionAnswering": labels.BEAM},
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=_architecture,
    with_head=with_head,
    head_from_hf=_SUMMARY.read,
    kept=_SUMMARY.unused,
    published_ids={"pad_token_id": 5, "bos_token_id": 1, "eos_token_id": 2},
    ends=("eos",),
    closes=("bos",),
    padding_side="left",
    input_names=("input_ids", "token_type_ids", "attention_mask"),
)
