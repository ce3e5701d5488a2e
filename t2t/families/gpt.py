"""GPT (2018): a causal decoder with the norm after each residual and none at the end.

    openai-gpt

Reference: Radford et al., Improving Language Understanding by Generative Pre-Training (2018), and the released code of
openai/finetune-transformer-lm.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from t2t import heads
from t2t.families import gpt2, labels
from t2t.hf import config_map
from t2t.hf.table import LINEAR, MATRIX, Entry, Table
from t2t.models.decoder import DecoderConfig
from t2t.nn.feed_forward import Activation
from t2t.nn.heads import LanguageModelHead


def gpt(**sizes: Any) -> DecoderConfig:
    """A GPT of any size: the sizes of `gpt2.gpt2`, with the norms where GPT has them."""
    config = gpt2.gpt2(**sizes)
    block = config.stack.pattern[0]
    # No kernel is scaled by depth.
    attention = dataclasses.replace(block.attention, out_initializer_std=None)
    feed_forward = dataclasses.replace(block.feed_forward, out_initializer_std=None)
    block = dataclasses.replace(block, norm_position="post", attention=attention, feed_forward=feed_forward)
    return dataclasses.replace(config, stack=dataclasses.replace(config.stack, pattern=(block,), final_norm=None))


def with_head(config: DecoderConfig, head: heads.Head | None) -> DecoderConfig:
    """The model with the head asked for; that of its pretraining is its language model head."""
    tasks = ("sequence", "choice")
    return labels.decoder_with_head(config, head, family="GPT", language_model=LanguageModelHead(), tasks=tasks)


def _openai_gpt(*, head: heads.Head | None = None) -> DecoderConfig:
    sizes = {"num_layers": 12, "d_model": 768, "num_heads": 12, "vocab_size": 40478, "max_positions": 512}
    return with_head(gpt(**sizes), head)


PRESETS = {"openai-gpt": _openai_gpt}

TABLE = Table(
    base="transformer.",
    entries=(
        Entry("embed/embedding", "{base}tokens_embed.weight", MATRIX, copies=("lm_head.weight",)),
        Entry("embed/positions", "{base}positions_embed.weight", MATRIX),
        *gpt2.block_entries(),
        Entry("head/kernel", "lm_head.weight", LINEAR),
        *labels.DECODER_ENTRIES,
    ),
    ignored=gpt2.IGNORED,
)

ATTRIBUTES = config_map.Attributes(
    read={
        **labels.READ,
        "vocab_size": 40478,
        "n_positions": 512,
        "n_embd": 768,
        "n_layer": 12,
        "n_head": 12,
        "afn": "gelu",
        "resid_pdrop": 0.1,
        "embd_pdrop": 0.1,
        "attn_pdrop": 0.1,
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
        **gpt2.READ_SUMMARY,
    },
    ignored=gpt2.UNREAD_ATTRIBUTES | {"clf_pdrop"},
)

_ACTIVATIONS: Mapping[str, Activation] = {"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"}
"""What `afn` means: transformers' GPT reads gelu as the tanh approximation."""


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> DecoderConfig:
    """The config of a GPT's config.json."""
    del names
    if values["afn"] not in _ACTIVATIONS:
        raise ValueError(f"afn is {values['afn']!r}; possible are {', '.join(_ACTIVATIONS)}")
    config = gpt(
        num_layers=values["n_layer"],
        d_model=values["n_embd"],
        num_heads=values["n_head"],
        vocab_size=values["vocab_size"],
        max_positions=values["n_positions"],
        activation=_ACTIVATIONS[values["afn"]],
        tied=values["tie_word_embeddings"],
        dropout=float(values["resid_pdrop"]),
        embed_dropout=float(values["embd_pdrop"]),
        attention_dropout=float(values["attn_pdrop"]),
        eps=values["layer_norm_epsilon"],
    )
    return gpt2.head_from_hf(with_head(config, labels.request(values)), values)


def _to_hf(config: Any) -> dict[str, Any]:
    attributes = gpt2.shared_attributes(config)
    activation = config.stack.blocks[0].feed_forward.activation
    afn = next((name for name, known in _ACTIVATIONS.items() if known == activation), None)
    if afn is None:
        raise config_map.InexpressibleError(f"no afn means the activation {activation}")
    return {**attributes, "afn": afn}


FAMILY = config_map.Family(
    model_type="openai-gpt",
    presets=PRESETS,
    table=TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=functools.partial(
        labels.decoder_architecture,
        prefix="OpenAIGPT",
        language_model="OpenAIGPTLMHeadModel",
        endings={"tokens": "", "span": "", "choice": "DoubleHeadsModel"},
    ),
    with_head=with_head,
    head_from_hf=gpt2.head_from_hf,
    kept=gpt2.kept,
    starts=("start",),
)
