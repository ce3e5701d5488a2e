"""The encoders of DeBERTa, of any size and version, and their heads: what v1, v2 and v3 share."""

import dataclasses
from collections.abc import Sequence

from t2t import heads
from t2t.families import labels
from t2t.models.encoder import EncoderConfig
from t2t.nn.block import BlockConfig
from t2t.nn.disentangled import TERMS, DisentangledAttentionConfig, Term
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import Activation, FeedForwardConfig
from t2t.nn.heads import MaskedLanguageModelHead
from t2t.nn.mask_decoder import MaskDecoderConfig
from t2t.nn.norm import LayerNorm
from t2t.nn.positions.absolute import LearnedPositions
from t2t.nn.positions.relative import RelativeEmbeddings
from t2t.nn.stack import StackConfig

INITIALIZER = {"initializer_std": 0.02}
"""Of the released code: normal, not cut."""

MAX_POSITIONS = 512
"""Of the published models."""


def deberta(
    *,
    num_layers: int,
    d_model: int,
    num_heads: int,
    d_ff: int,
    vocab_size: int,
    terms: Sequence[Term] = TERMS,
    max_distance: int = 512,
    num_buckets: int | None = None,
    norms_distances: bool = False,
    shares_projections: bool = False,
    key_bias: bool = False,
    max_positions: int | None = None,
    embedding_size: int | None = None,
    num_types: int = 0,
    activation: Activation = "gelu",
    dropout: float = 0.1,
    attention_dropout: float = 0.1,
    eps: float = 1e-7,
) -> EncoderConfig:
    """A DeBERTa of any size and version, without a head.

    Args:
        num_layers: blocks.
        d_model: width.
        num_heads: of each block.
        d_ff: width of the feed-forward layers.
        vocab_size: rows of the token table.
        terms: scores of distances; none of them means no distances at all.
        max_distance: tokens; longer distances count as this one.
        num_buckets: of distances, of either sign; None = each distance is its own.
        norms_distances: whether the embedded distances have a norm.
        shares_projections: whether queries and keys of distances are made as those of contents are.
        key_bias: whether keys have a bias, as queries and values do.
        max_positions: rows of a table of absolute positions; None = no such table.
        embedding_size: width of the token table; None = d_model.
        num_types: sentence types.
        activation: of the feed-forward layers.
        dropout: of embeddings, distances and sublayers.
        attention_dropout: of the attention weights.
        eps: of all norms.
    """
    norm = LayerNorm(eps=eps)
    block = BlockConfig(
        norm=norm,
        norm_position="post",
        attention=DisentangledAttentionConfig(
            num_heads=num_heads,
            head_dim=d_model // num_heads,
            use_bias=True,
            key_bias=key_bias,
            terms=tuple(terms),
            shares_projections=shares_projections,
            dropout=attention_dropout,
            **INITIALIZER,
        ),
        feed_forward=FeedForwardConfig(d_ff=d_ff, activation=activation, use_bias=True, **INITIALIZER),
        dropout=dropout,
    )
    numbers = {"dim": d_model, "max_distance": max_distance, "num_buckets": num_buckets}
    distances = RelativeEmbeddings(norm=norm if norms_distances else None, dropout=dropout, **numbers, **INITIALIZER)
    # A narrow table is projected, and the norm comes after that.
    narrow = {} if embedding_size in (None, d_model) else {"d_model": d_model, "norms_projected": True}
    return EncoderConfig(
        embed=EmbedConfig(
            vocab_size=vocab_size,
            dim=embedding_size or d_model,
            num_types=num_types,
            position=None if max_positions is None else LearnedPositions(max_positions=max_positions),
            norm=norm,
            dropout=dropout,
            **narrow,
            **INITIALIZER,
        ),
        stack=StackConfig(
            num_layers=num_layers, d_model=d_model, pattern=(block,), position=distances if terms else None
        ),
    )


def masked_words(config: EncoderConfig, *, max_positions: int | None = None) -> EncoderConfig:
    """The model with the head of masked words, with as many absolute positions behind a mask decoder; None = without.

    Raises:
        ValueError: the model has no place for a mask decoder.
    """
    block, embed = config.stack.blocks[0], config.embed
    decoder = None
    if max_positions is not None:
        if embed.position is not None:
            raise ValueError("a model that reads absolute positions from the start has no mask decoder for them")
        decoder = MaskDecoderConfig(position=LearnedPositions(max_positions=max_positions), **INITIALIZER)
    head = MaskedLanguageModelHead(
        activation=block.feed_forward.activation,
        norm=block.norm,
        dim=None if embed.d_model is None else embed.dim,
        mask_decoder=decoder,
        **INITIALIZER,
    )
    return dataclasses.replace(config, head=head)


def longest(config: EncoderConfig) -> int:
    """Absolute positions of a mask decoder: as many as there are distances, as in the published models."""
    position = config.stack.position
    return MAX_POSITIONS if position is None else position.max_distance


def with_labels(config: EncoderConfig, head: heads.Labels, *, tasks: Sequence[str]) -> EncoderConfig:
    """The model with the head of labels asked for: texts by a dense layer over the first token, with activation.

    Raises:
        ValueError: the task is none of `tasks`.
    """
    plain = {"dropout": config.stack.blocks[0].dropout, **INITIALIZER}
    pooled = {"pooling": "first", "activation": "gelu", **plain}
    forms = {"sequence": pooled, "choice": pooled, "tokens": plain, "span": {**plain, "dropout": 0.0}}
    scores = labels.make(head, family="this family", **{task: forms[task] for task in tasks})
    return dataclasses.replace(config, head=scores)
