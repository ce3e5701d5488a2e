"""Encoders that predict tokens in any order: beside the stream of tokens, one of queries that do not see them (XLNet).

Its own topology, because two streams run through one stack, and because a segment may go on reading the one before.
"""

import dataclasses
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax import Array
from jaxtyping import Int

from t2t import types
from t2t.functional import masks
from t2t.models import common
from t2t.models.base import Output
from t2t.models.encoder import Encoder, EncoderConfig
from t2t.nn import checks, projection
from t2t.nn.classification import flatten_choices
from t2t.nn.dropout import Dropout
from t2t.nn.memory import Memory, remember
from t2t.nn.positions.context import PositionContext
from t2t.nn.relative_attention import DistanceEmbeddings, Distances, RelativeAttentionConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoStreamEncoderConfig(EncoderConfig):
    """An encoder with relative attention, a first state for queries, and a memory where it is asked for.

    With `permutation_mask` [B, T, T] in the batch (1 = t may not read s) the tokens read each other in that order. With
    `encoder_predict_positions` [B, K] besides, K queries at these positions run along: each begins as one learned
    state, reads the states of the tokens that its position may read, not itself, and ends as `last_hidden` [B, K, D],
    from which its token is predicted.

    Reference: Yang et al., XLNet, arXiv:1906.08237, sections 2.2 to 2.4.
    Differs: a query that may read nothing gets nothing; in the released code, as in transformers, it averages all
    values, those of tokens it must not read and of padding too. Rows with a memory hold one example.
    """

    memory_length: int = 0
    """Positions before a segment whose states are remembered; 0 = the output has no memory."""
    memory_reuse: int | None = None
    """How many positions of a segment, from the first, are remembered; None = all. Fewer, where the next segment begins
    before the end of this one."""
    max_distance: int | None = None
    """Positions farther apart look as if they were so many apart; None = every distance has its own embedding."""
    bidirectional: bool = False
    """Whether rows may hold reversed texts, which `encoder_reversed` [B] in the batch says (1): their distances change
    signs, so that what comes later in the text is read as such, and a memory holds what follows in it."""

    def __post_init__(self):
        """Refuses parts that do not fit together."""
        super().__post_init__()
        check_recurrence(self)
        checks.check(
            not self.pooler, self, "pooler", allowed="False", repair="Give a ClassificationHead its own layer."
        )
        allowed, repair = "without a mask decoder", "Set mask_decoder=None."
        checks.check(not self.has_mask_decoder, self, "head", allowed=allowed, repair=repair)
        if self.memory_reuse is not None:
            checks.check_positive(self, "memory_reuse")

    def make(
        self,
        *,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        remat: str | None = None,
        unrolled: bool = False,
        name: str | None = None,
    ) -> "TwoStreamEncoder":
        """The linen module."""
        return TwoStreamEncoder(self, dtype=dtype, param_dtype=param_dtype, remat=remat, unrolled=unrolled, name=name)


class TwoStreamEncoder(Encoder):
    """Wires embeddings, the first state of queries, stack and head."""

    config: TwoStreamEncoderConfig

    def setup(self):
        """Creates the parts."""
        super().setup()
        config, embed = self.config, self.config.embed
        initializer = projection.make_initializer(embed.initializer, embed.initializer_std)
        partitioned = nn.with_logical_partitioning(initializer, ("types", "positions", "embed"))
        self.query_state = self.param("query_state", partitioned, (1, 1, config.d_model), self.param_dtype)
        self.distances = DistanceEmbeddings(config.d_model, config.max_distance, embed.dropout, dtype=self.dtype)
        self.query_dropout = Dropout(embed.dropout)

    def hidden(
        self,
        batch: types.Batch,
        *,
        memory: Memory | None = None,
        deterministic: bool = True,
        hidden_states: bool = False,
        attentions: bool = False,
    ) -> Output:
        """Everything but scores of the vocabulary. Texts with an axis of choices [B, C, T] are read as B * C rows."""
        forbidden = batch.get("permutation_mask")
        batch, choices = flatten_choices({name: v for name, v in batch.items() if name != "permutation_mask"})
        side = common.read_side(batch, "encoder", only_side=True)
        rows = None if forbidden is None else batch.get("encoder_predict_positions")
        is_reversed = self._is_reversed(batch)
        x = self.embed(side.tokens, deterministic=deterministic)
        if rows is not None:
            queries = jnp.broadcast_to(self.query_state.astype(x.dtype), (*rows.shape, x.shape[2]))
            x = jnp.concatenate([x, self.query_dropout(queries, deterministic=deterministic)], axis=1)
        mask, context = self._mask(side, forbidden, rows, memory, is_reversed, deterministic=deterministic)
        result = self.encoder(
            x,
            mask,
            context,
            past=None if memory is None else memory.states,
            deterministic=deterministic,
            hidden_states=hidden_states or self.config.memory_length > 0,
            attentions=attentions,
        )
        output = self._output(result, side, memory, hidden_states=hidden_states, has_queries=rows is not None)
        return common.with_label_scores(
            output, self.head, side.segment_ids, choices=choices, deterministic=deterministic
        )

    def _is_reversed(self, batch: types.Batch) -> Array | None:
        given = batch.get("encoder_reversed")
        if given is not None and not self.config.bidirectional:
            raise ValueError(
                "the batch has encoder_reversed, which this model does not read: set "
                "TwoStreamEncoderConfig.bidirectional=True"
            )
        return None if given is None else given != 0

    def _mask(
        self,
        side: common.Side,
        forbidden: Array | None,
        rows: Int[Array, "B K"] | None,
        memory: Memory | None,
        is_reversed: Array | None,
        *,
        deterministic: bool,
    ) -> tuple[Array | None, PositionContext]:
        """What each token, and after them each query, may read, and the distances they read."""
        length, past_length = side.length, 0 if memory is None else memory.length
        mask, num_readers, may_read = masks.encoder_mask(side.segment_ids), length, None
        if forbidden is not None:
            mask = masks.permutation_mask(forbidden, side.segment_ids)
        if rows is not None:
            num_readers += rows.shape[1]
            mask = jnp.concatenate([mask, masks.query_mask(forbidden, rows, side.segment_ids)], axis=1)
        if memory is not None:
            mask = masks.with_past(mask, memory.is_real, length=num_readers, key_length=length)
        if rows is not None:
            may_read = jnp.any(mask[:, length:], axis=-1)
        distances = Distances(
            embeddings=self.distances(length=length, past_length=past_length, deterministic=deterministic),
            rows=rows,
            is_other=_type_differs(side.types, rows, past_length=past_length),
            may_read=may_read,
            is_reversed=is_reversed,
        )
        context = PositionContext(
            length=num_readers,
            key_length=past_length + length,
            offset=past_length or None,
            relative=distances,
            read_length=None if rows is None else length,
        )
        return mask, context

    def _output(
        self, result: Any, side: common.Side, before: Memory | None, *, hidden_states: bool, has_queries: bool
    ) -> Output:
        """The results of the stack, taken apart into those of tokens and of queries, and the memory they leave."""
        length, states = side.length, result.hidden_states
        tokens = None if states is None else tuple(state[:, :length] for state in states)
        queries = tuple(state[:, length:] for state in states) if hidden_states and has_queries else None
        left = None
        if self.config.memory_length:
            real = jnp.ones(side.tokens.shape, bool) if side.segment_ids is None else side.segment_ids != 0
            sizes = {"length": self.config.memory_length, "reuse": self.config.memory_reuse}
            left = remember(before, tokens[:-1], real, **sizes)
        return Output(
            last_hidden=result.last_hidden[:, length:] if has_queries else result.last_hidden,
            hidden_states=tokens if hidden_states else None,
            query_hidden_states=queries,
            attentions=result.attentions,
            memory=left,
        )


def check_recurrence(config: Any) -> None:
    """Refuses models with a memory whose parts cannot read earlier positions."""
    allowed, repair = "0 or more", "Set memory_length=0 for no memory."
    checks.check(config.memory_length >= 0, config, "memory_length", allowed=allowed, repair=repair)
    if config.max_distance is not None:
        checks.check_positive(config, "max_distance")
    has_relative = all(isinstance(block.attention, RelativeAttentionConfig) for block in config.stack.blocks)
    repair = "Set BlockConfig.attention=RelativeAttentionConfig(...)."
    checks.check(has_relative, config, "stack", allowed="of blocks with relative attention", repair=repair)
    allowed, repair = "without a table of positions", "Set EmbedConfig.position=None."
    checks.check(config.embed.position is None, config, "embed", allowed=allowed, repair=repair)


def _type_differs(
    types_BT: Int[Array, "B T"] | None, rows: Int[Array, "B K"] | None, *, past_length: int
) -> Array | None:
    """Whether the sentence types of reader and read differ; those of earlier positions count as 0."""
    if types_BT is None:
        return None
    readers = types_BT
    if rows is not None:
        readers = jnp.concatenate([types_BT, jnp.take_along_axis(types_BT, rows, axis=1)], axis=1)
    read = jnp.pad(types_BT, ((0, 0), (past_length, 0)))
    return readers[:, :, None] != read[:, None, :]
