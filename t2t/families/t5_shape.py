"""The models of T5's shape, of any size and version, and their heads: what T5, mT5, UMT5 and ByT5 share."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from t2t import heads
from t2t.families import labels
from t2t.models.encoder import EncoderConfig
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import Activation, FeedForwardConfig
from t2t.nn.heads import LanguageModelHead
from t2t.nn.norm import RMSNorm
from t2t.nn.positions.t5_bias import T5Bias
from t2t.nn.stack import StackConfig

Config = EncoderDecoderConfig | EncoderConfig


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


SIZES: Mapping[str, Mapping[str, int]] = {
    "small": {"num_layers": 8, "d_model": 512, "num_heads": 6, "d_ff": 1024},
    "base": {"num_layers": 12, "d_model": 768, "num_heads": 12, "d_ff": 2048},
    "large": {"num_layers": 24, "d_model": 1024, "num_heads": 16, "d_ff": 2816},
    "xl": {"num_layers": 24, "d_model": 2048, "num_heads": 32, "d_ff": 5120},
    "xxl": {"num_layers": 24, "d_model": 4096, "num_heads": 64, "d_ff": 10240},
}
"""Of T5 1.1, and of the multilingual models."""

V1_1: Mapping[str, Any] = {"activation": "gelu_tanh", "gated": True, "tied": False, "dropout": 0.0}
"""What T5 1.1 has beside its sizes."""


def with_head(config: Config, head: heads.Head | None, *, name: str = "T5") -> Config:
    """The model with the head asked for; none, and that of pretraining, is the language model head.

    Scores of tokens are those of the encoder alone, so the decoder is left out. An encoder alone has no other heads.

    Args:
        config: of the model, with any head.
        head: the request.
        name: of the family, for the message.

    Raises:
        ValueError: the family has no such head.
    """
    if isinstance(config, EncoderConfig):
        if head is None:
            return dataclasses.replace(config, head=None)
    elif head in (None, heads.PRETRAINING):
        if isinstance(config.head, LanguageModelHead):
            return config
        tied = not config.encoder.blocks[0].feed_forward.gated  # 1.0 is not gated and ties its output, 1.1 neither
        return dataclasses.replace(config, head=LanguageModelHead(tied=tied, scale_by_width=tied))
    plain = {"initializer_std": config.d_model**-0.5}
    pooled = {"pooling": "last", "activation": "tanh", "drops_input": True, **plain}
    scores = None
    if isinstance(head, heads.Labels):
        scores = labels.make(head, family=name, sequence=pooled, tokens=plain, span=plain)
    if scores is None or (isinstance(config, EncoderConfig) and scores.task != "tokens"):
        raise ValueError(
            f"{name} has no head {head}; possible are None and PRETRAINING, both its language model head, and heads of "
            "labels for texts, tokens and answers, of which an encoder alone has that of tokens"
        )
    if scores.task != "tokens":
        return dataclasses.replace(config, head=scores)
    encoder = config.stack if isinstance(config, EncoderConfig) else config.encoder
    return EncoderConfig(embed=config.embed, stack=encoder, head=scores, family=config.family)


def preset(make: Callable[..., EncoderDecoderConfig], **sizes: Any) -> Callable[..., Config]:
    """A function of `head` that returns the config of a published model."""

    def config(*, head: heads.Head | None = None) -> Config:
        return with_head(make(**sizes), head)

    return config
