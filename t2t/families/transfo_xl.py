"""Transformer-XL: causal decoders that read a memory of earlier segments by relative positions.

    transfo-xl-wt103                          the released model of words, with its settings of evaluation
    transfo-xl-wt103-base, -large             models of words as trained, with adaptive embeddings and softmax
    transfo-xl-enwik8-base, -large            models of characters as trained

Reference: Dai et al., Transformer-XL: Attentive Language Models Beyond a Fixed-Length Context, arXiv:1901.02860, and
the scripts of kimiyoung/transformer-xl. For evaluation these set the memory to 640 (wt103-base), 1600, 2100
(enwik8-base) and 3800 positions, max_distance to 400, 1000, 820 and 1000, and let each position read as many as every
other (`same_length`: here the attention's window, one less than the memory).

Differs: every layer has its own biases of content and position (`untie_r`), as the released models do; the scripts of
the smaller PyTorch models share them. What no segment has filled yet is not read, as in the authors' PyTorch code; in
transformers a first segment reads zeros. Norms begin at 1. Clusters come in the order of the TensorFlow code and of
transformers, of which the authors' PyTorch code reverses the scores. Transformers 5 has no such class: an export opens
in transformers 4.57, with a torch that its code still runs with.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from t2t import heads
from t2t.families import labels
from t2t.hf import config_map
from t2t.hf.table import AXES, LINEAR, LINEAR_2, MATRIX, VECTOR, Entry, Ignored, Table, linear_entries, norm_entries
from t2t.models.recurrent_decoder import RecurrentDecoderConfig
from t2t.nn.adaptive import AdaptiveEmbedConfig, AdaptiveSoftmaxHead, Clusters
from t2t.nn.block import BlockConfig
from t2t.nn.feed_forward import FeedForwardConfig
from t2t.nn.norm import LayerNorm
from t2t.nn.relative_attention import RelativeAttentionConfig
from t2t.nn.stack import StackConfig

_INITIALIZER = {"initializer_std": 0.02}


def transfo_xl(
    *,
    num_layers: int,
    d_model: int,
    num_heads: int,
    head_dim: int,
    d_ff: int,
    vocab_size: int,
    d_embed: int | None = None,
    cutoffs: tuple[int, ...] = (),
    divisor: int = 1,
    memory_length: int = 0,
    max_distance: int | None = None,
    same_length: bool = False,
    dropout: float = 0.1,
    attention_dropout: float = 0.0,
    eps: float = 1e-5,
) -> RecurrentDecoderConfig:
    """A Transformer-XL of any size, without a head; `d_embed` None is the width of the model."""
    block = BlockConfig(
        norm=LayerNorm(eps=eps),
        norm_position="post",
        attention=RelativeAttentionConfig(
            num_heads=num_heads,
            head_dim=head_dim,
            window=memory_length - 1 if same_length else None,
            dropout=attention_dropout,
            **_INITIALIZER,
        ),
        feed_forward=FeedForwardConfig(d_ff=d_ff, activation="relu", use_bias=True, dropout=dropout, **_INITIALIZER),
        dropout=dropout,
    )
    return RecurrentDecoderConfig(
        embed=AdaptiveEmbedConfig(
            vocab_size=vocab_size,
            dim=d_model if d_embed is None else d_embed,
            d_model=d_model,
            clusters=Clusters(cutoffs=cutoffs, divisor=divisor),
            scale=d_model**0.5,
            dropout=dropout,
            **_INITIALIZER,
        ),
        stack=StackConfig(num_layers=num_layers, d_model=d_model, pattern=(block,), dropout=dropout),
        memory_length=memory_length,
        max_distance=max_distance,
    )


def with_head(config: RecurrentDecoderConfig, head: heads.Head | None) -> RecurrentDecoderConfig:
    """The model with the head asked for: that of pretraining shares the tables of the embedding.

    Raises:
        ValueError: another head.
    """
    if head is None:
        return dataclasses.replace(config, head=None)
    if head != heads.PRETRAINING:
        raise ValueError(
            f"Transformer-XL has no head {head}; possible are None and PRETRAINING, its language model head"
        )
    embed = config.embed
    softmax = AdaptiveSoftmaxHead(clusters=embed.clusters, dim=embed.dim, is_projected=embed.is_projected)
    return dataclasses.replace(config, head=softmax)


def _preset(*, head: heads.Head | None = None, **sizes: Any) -> RecurrentDecoderConfig:
    return with_head(transfo_xl(**sizes), head)


_WT103 = functools.partial(_preset, vocab_size=267735, cutoffs=(20000, 40000, 200000))
_WT103_LARGE = functools.partial(_WT103, num_layers=18, d_model=1024, num_heads=16, head_dim=64, d_ff=4096, divisor=4)
_ENWIK8 = functools.partial(_preset, vocab_size=204, num_heads=8)

PRESETS = {
    "transfo-xl-enwik8-base": functools.partial(
        _ENWIK8, num_layers=12, d_model=512, head_dim=64, d_ff=2048, memory_length=512
    ),
    "transfo-xl-enwik8-large": functools.partial(
        _ENWIK8,
        num_layers=24,
        d_model=1024,
        head_dim=128,
        d_ff=3072,
        memory_length=768,
        dropout=0.15,
        attention_dropout=0.15,
    ),
    "transfo-xl-wt103": functools.partial(_WT103_LARGE, memory_length=1600, max_distance=1000, same_length=True),
    "transfo-xl-wt103-base": functools.partial(
        _WT103, num_layers=16, d_model=410, num_heads=10, head_dim=41, d_ff=2100, memory_length=150
    ),
    "transfo-xl-wt103-large": functools.partial(_WT103_LARGE, memory_length=384, dropout=0.2, attention_dropout=0.2),
}

MOST_CLUSTERS = 16

_OURS, _THEIRS = "decoder/{i}/attention", "{base}layers.{i}.dec_attn"


def _cluster_entries(i: int) -> tuple[Entry, ...]:
    """The tensors of a cluster; those of the output are the input's, but for the first one's projection."""
    projection = {} if i == 0 else {"copies": (f"crit.out_projs.{i}",)}
    table = f"{{base}}word_emb.emb_layers.{i}.weight"
    return (
        Entry(f"embed/cluster_{i}/embedding", table, MATRIX, copies=(f"crit.out_layers.{i}.weight",)),
        Entry(f"embed/cluster_{i}/kernel", f"{{base}}word_emb.emb_projs.{i}", LINEAR, **projection),
        Entry(f"head/cluster_{i}/bias", f"crit.out_layers.{i}.bias", VECTOR),
    )


TABLE = Table(
    base="transformer.",
    entries=(
        *(entry for i in range(MOST_CLUSTERS) for entry in _cluster_entries(i)),
        Entry(
            tuple(f"{_OURS}/{name}/kernel" for name in ("query", "key", "value")), f"{_THEIRS}.qkv_net.weight", LINEAR
        ),
        Entry(f"{_OURS}/out/kernel", f"{_THEIRS}.o_net.weight", LINEAR_2),
        Entry(f"{_OURS}/position/kernel", f"{_THEIRS}.r_net.weight", LINEAR),
        Entry(f"{_OURS}/content_bias", f"{_THEIRS}.r_w_bias", AXES),
        Entry(f"{_OURS}/position_bias", f"{_THEIRS}.r_r_bias", AXES),
        *norm_entries("decoder/{i}/attention_norm", f"{_THEIRS}.layer_norm"),
        *linear_entries("decoder/{i}/feed_forward/up", "{base}layers.{i}.pos_ff.CoreNet.0"),
        *linear_entries("decoder/{i}/feed_forward/down", "{base}layers.{i}.pos_ff.CoreNet.3"),
        *norm_entries("decoder/{i}/feed_forward_norm", "{base}layers.{i}.pos_ff.layer_norm"),
        Entry("head/projection/kernel", "crit.out_projs.0", MATRIX),
        Entry("head/clusters/kernel", "crit.cluster_weight", LINEAR),
        Entry("head/clusters/bias", "crit.cluster_bias", VECTOR),
        *labels.unread("score"),
    ),
    ignored=(Ignored("*pos_emb.inv_freq", "a buffer of the rates of the sinusoids, which no training changes"),),
)

ATTRIBUTES = config_map.Attributes(
    read={
        "vocab_size": None,
        "n_token": None,
        "cutoffs": [20000, 40000, 200000],
        "d_model": 1024,
        "d_embed": 1024,
        "n_head": 16,
        "d_head": 64,
        "d_inner": 4096,
        "div_val": 4,
        "n_layer": 18,
        "mem_len": 1600,
        "clamp_len": 1000,
        "same_length": True,
        "dropout": 0.1,
        "dropatt": 0.0,
        "layer_norm_epsilon": 1e-5,
    },
    fixed={
        "pre_lnorm": (False,),
        "untie_r": (True,),
        "attn_type": (0,),
        "proj_share_all_but_first": (True,),
        "tie_word_embeddings": (True,),
        "sample_softmax": (-1, 0),
    },
    # How parameters begin, lengths of the authors' batches, and names whose value stands elsewhere.
    ignored=frozenset({
        "adaptive", "init", "init_range", "init_std", "proj_init_std", "tgt_len", "ext_len", "tie_weight", "tie_projs",
        "trainer_compatible",
    }),
)  # fmt: skip


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> RecurrentDecoderConfig:
    """The config of a Transformer-XL's config.json; old ones call the size of the vocabulary `n_token`."""
    config = transfo_xl(
        num_layers=values["n_layer"],
        d_model=values["d_model"],
        num_heads=values["n_head"],
        head_dim=values["d_head"],
        d_ff=values["d_inner"],
        vocab_size=values["vocab_size"] or values["n_token"] or 267735,
        d_embed=values["d_embed"],
        cutoffs=tuple(values["cutoffs"]),
        divisor=values["div_val"],
        memory_length=values["mem_len"],
        max_distance=values["clamp_len"] if values["clamp_len"] > 0 else None,
        same_length=values["same_length"] and values["mem_len"] > 1,
        dropout=float(values["dropout"]),
        attention_dropout=float(values["dropatt"]),
        eps=values["layer_norm_epsilon"],
    )
    return with_head(config, heads.PRETRAINING if "crit.out_layers.0.bias" in names else None)


def _to_hf(config: Any) -> dict[str, Any]:
    if not isinstance(config, RecurrentDecoderConfig):
        raise config_map.InexpressibleError("it is no decoder with a memory")
    block, embed = config.stack.blocks[0], config.embed
    if not isinstance(embed, AdaptiveEmbedConfig):
        raise config_map.InexpressibleError("its embedding has no clusters, not even one")
    if len(embed.clusters.cutoffs) >= MOST_CLUSTERS:
        raise config_map.InexpressibleError(f"it has more than {MOST_CLUSTERS} clusters")
    return {
        "vocab_size": config.vocab_size,
        "cutoffs": list(embed.clusters.cutoffs),
        "d_model": config.d_model,
        "d_embed": embed.dim,
        "n_head": block.attention.num_heads,
        "d_head": block.attention.head_dim,
        "d_inner": block.feed_forward.d_ff,
        "div_val": embed.clusters.divisor,
        "n_layer": config.stack.num_layers,
        "mem_len": config.memory_length,
        "clamp_len": config.max_distance or -1,
        "same_length": block.attention.window is not None,
        "dropout": float(block.dropout),
        "dropatt": float(block.attention.dropout),
        "layer_norm_epsilon": float(block.norm.eps),
        "pre_lnorm": False,
        "untie_r": True,
        "attn_type": 0,
        "proj_share_all_but_first": True,
        "tie_word_embeddings": True,
        "adaptive": len(embed.clusters.cutoffs) > 0,
        "sample_softmax": -1,
    }


def _rates(config: RecurrentDecoderConfig) -> dict[str, np.ndarray]:
    """The rates of the sinusoids, which transformers keeps as a tensor."""
    rates = 10_000.0 ** (-np.arange(0, config.d_model, 2, dtype=np.float64) / config.d_model)
    prefix = TABLE.base if config.head is not None else ""
    return {f"{prefix}pos_emb.inv_freq": rates.astype(np.float32)}


FAMILY = config_map.Family(
    model_type="transfo-xl",
    refused={
        "TransfoXLForSequenceClassification": "t2t scores no texts with this family. Open the model without its head, "
        "head=heads.BARE (t2t import --head none)"
    },
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=lambda config: "TransfoXLModel" if config.head is None else "TransfoXLLMHeadModel",
    with_head=with_head,
    constants=_rates,
    note=(
        "Transformers 5 has no Transformer-XL. This model opens in transformers 4.57 and before, whose class runs with "
        "the versions of torch of its time."
    ),
    ends=("eos",),
)
