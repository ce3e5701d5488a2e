"""Decoders that go on reading the segments before, by relative positions and without a gradient (Transformer-XL).

Its own topology, because a segment takes a memory and leaves one, and because its embedding and head may be adaptive.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from t2t import types
from t2t.functional import masks
from t2t.models import common
from t2t.models.base import Output
from t2t.models.decoder import Decoder, DecoderConfig
from t2t.models.two_stream import check_recurrence
from t2t.nn.adaptive import AdaptiveEmbedConfig, AdaptiveSoftmaxHead
from t2t.nn.cache import Cache
from t2t.nn.classification import ClassificationHead
from t2t.nn.heads import LanguageModelHead, VocabularyHead
from t2t.nn.memory import Memory, remember
from t2t.nn.positions.context import PositionContext
from t2t.nn.relative_attention import DistanceEmbeddings, Distances


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecurrentDecoderConfig(DecoderConfig):
    """A causal decoder with relative attention and a memory of `memory_length` positions before each segment.

    Reference: Dai et al., Transformer-XL, arXiv:1901.02860, section 3.
    Differs: what nothing has filled yet is not read; in the TensorFlow code and in transformers a first segment reads
    a memory of zeros. Rows with a memory hold one text.
    """

    head: LanguageModelHead | AdaptiveSoftmaxHead | ClassificationHead | None = None
    memory_length: int = 0
    """Positions before a segment whose states are remembered; 0 = the output has no memory."""
    max_distance: int | None = None
    """Positions farther apart look as if they were so many apart; None = every distance has its own embedding."""

    def __post_init__(self):
        """Refuses parts that do not fit together."""
        super().__post_init__()
        check_recurrence(self)
        is_adaptive = isinstance(self.embed, AdaptiveEmbedConfig)
        if isinstance(self.head, AdaptiveSoftmaxHead):
            given = (self.head.clusters, self.head.dim, self.head.is_projected)
            fits = is_adaptive and given == (self.embed.clusters, self.embed.dim, self.embed.is_projected)
        else:
            fits = not (is_adaptive and isinstance(self.head, LanguageModelHead) and self.head.tied)
        if not fits:
            raise ValueError(
                f"RecurrentDecoderConfig.head = {self.head!r}: must be of the same clusters, width and projection as "
                f"embed = {self.embed!r}. Set both alike, or head=None."
            )

    def make(
        self,
        *,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        remat: str | None = None,
        unrolled: bool = False,
        name: str | None = None,
    ) -> "RecurrentDecoder":
        """The linen module."""
        return RecurrentDecoder(self, dtype=dtype, param_dtype=param_dtype, remat=remat, unrolled=unrolled, name=name)


class RecurrentDecoder(Decoder):
    """Wires embeddings, stack and head."""

    config: RecurrentDecoderConfig

    def setup(self):
        """Creates the parts that the config asks for."""
        config = self.config
        dtypes = {"dtype": self.dtype, "param_dtype": self.param_dtype}
        self.embed = config.embed.make(**dtypes)
        self.decoder = common.stack_options(config.stack, self.remat).make(unrolled=self.unrolled, **dtypes)
        self.distances = DistanceEmbeddings(config.d_model, config.max_distance, config.embed.dropout, self.dtype)
        self.head = None
        if config.head is not None:
            self.head = config.head.make(vocab_size=config.vocab_size, d_model=config.d_model, **dtypes)

    def initialize(self, batch: types.Batch) -> None:
        """Touches every parameter."""
        output = self.hidden(batch)
        if isinstance(self.config.head, VocabularyHead):
            self.logits(output.last_hidden)

    def hidden(
        self,
        batch: types.Batch,
        *,
        memory: Memory | None = None,
        deterministic: bool = True,
        hidden_states: bool = False,
        attentions: bool = False,
    ) -> Output:
        """Everything but scores of the vocabulary."""
        side = common.read_side(batch, "decoder", only_side=True)
        length, past_length = side.length, 0 if memory is None else memory.length
        mask = masks.decoder_mask(length, segment_ids=side.segment_ids)
        if memory is not None:
            mask = masks.with_past(mask, memory.is_real, length=length, key_length=length)
        embedded = self.distances(length=length, past_length=past_length, deterministic=deterministic)
        context = PositionContext(
            length=length,
            key_length=past_length + length,
            offset=past_length or None,
            relative=Distances(embeddings=embedded),
        )
        result = self.decoder(
            self.embed(side.tokens, deterministic=deterministic),
            mask,
            context,
            past=None if memory is None else memory.states,
            deterministic=deterministic,
            hidden_states=hidden_states or self.config.memory_length > 0,
            attentions=attentions,
        )
        left = None
        if self.config.memory_length:
            real = jnp.ones(side.tokens.shape, bool) if side.segment_ids is None else side.segment_ids != 0
            left = remember(memory, result.hidden_states[:-1], real, length=self.config.memory_length)
        output = Output(**common.stack_results(result), memory=left)
        output = output if hidden_states else dataclasses.replace(output, hidden_states=None)
        return common.with_label_scores(output, self.head, side.segment_ids, choices=None, deterministic=deterministic)

    def prefill(self, batch: types.Batch, *, length: int) -> tuple[Float[Array, "B T D"], Cache]:
        """Refuses: there is no cache of keys and values for relative positions."""
        raise ValueError(
            "A decoder with relative attention does not generate from a cache. Score texts with it, or give segments "
            "of one token, each with the memory that the one before left."
        )

    def extend(self, tokens: Int[Array, "B T"], cache: Cache) -> tuple[Float[Array, "B T D"], Cache]:
        """Refuses, as `prefill` does."""
        return self.prefill({"decoder_input_tokens": tokens}, length=cache.length)
