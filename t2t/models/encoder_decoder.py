"""Encoder-decoder models: a causal decoder that reads a bidirectional encoder (T5, BART)."""

import dataclasses
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from t2t import types
from t2t.functional import masks
from t2t.models import common, decoding
from t2t.models.base import Output
from t2t.nn.cache import Cache
from t2t.nn.classification import ClassificationHead
from t2t.nn.embed import EmbedConfig
from t2t.nn.heads import LanguageModelHead
from t2t.nn.positions.context import PositionContext
from t2t.nn.stack import StackConfig, StackOutput


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderDecoderConfig:
    """An encoder and a decoder over one token table, and a head that scores the vocabulary, or labels, or none."""

    embed: EmbedConfig
    """Of both sides, or of the encoder alone."""
    decoder_embed: EmbedConfig | None = None
    """The decoder's own positions and norm (BART); None = those of `embed`."""
    shared_tokens: bool = True
    """Whether the decoder reads the encoder's token table; False needs a `decoder_embed`, which then has its own."""
    encoder: StackConfig
    decoder: StackConfig
    head: LanguageModelHead | ClassificationHead | None
    family: str | None = None
    """transformers' name (model_type) of the family that exports belong to, where several have this form; None = the
    first that has it. Nothing is computed from it."""

    def __post_init__(self):
        """Refuses parts that do not fit together."""
        common.check_widths(self, encoder=self.encoder, decoder=self.decoder)
        if self.decoder_embed is None and not self.shared_tokens:
            raise ValueError("EncoderDecoderConfig.shared_tokens = False: needs a decoder_embed, which owns the table.")
        if self.decoder_embed is not None:
            own = (self.decoder_embed.vocab_size, self.decoder_embed.dim, self.decoder_embed.width)
            if own != (self.embed.vocab_size, self.embed.dim, self.embed.width):
                raise ValueError(
                    f"EncoderDecoderConfig.decoder_embed has (vocab_size, dim, width) = {own}: they must be those of"
                    f" embed, {(self.embed.vocab_size, self.embed.dim, self.embed.width)}."
                )
        common.check_cross_attention(self, "encoder", self.encoder, expected=False)
        common.check_cross_attention(self, "decoder", self.decoder, expected=True)

    @property
    def vocab_size(self) -> int:
        """Rows of the token table."""
        return self.embed.vocab_size

    @property
    def d_model(self) -> int:
        """Width of the hidden states."""
        return self.decoder.d_model

    def example(self) -> types.Batch:
        """A smallest batch, for shapes."""
        tokens = jnp.zeros((1, 1), jnp.int32)
        return {"encoder_input_tokens": tokens, "decoder_input_tokens": tokens}

    def make(
        self,
        *,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        remat: str | None = None,
        unrolled: bool = False,
        name: str | None = None,
    ) -> "EncoderDecoder":
        """The linen module."""
        return EncoderDecoder(self, dtype=dtype, param_dtype=param_dtype, remat=remat, unrolled=unrolled, name=name)


class EncoderDecoder(nn.Module):
    """Wires embeddings, both stacks and the head."""

    config: EncoderDecoderConfig
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32
    remat: str | None = None
    unrolled: bool = False

    def setup(self):
        """Creates the parts."""
        config = self.config
        dtypes = {"dtype": self.dtype, "param_dtype": self.param_dtype}
        self.embed = config.embed.make(**dtypes)
        if config.decoder_embed is not None:
            self.decoder_embed = config.decoder_embed.make(borrows_table=config.shared_tokens, **dtypes)
        self.encoder = common.stack_options(config.encoder, self.remat).make(unrolled=self.unrolled, **dtypes)
        self.decoder = common.stack_options(config.decoder, self.remat).make(unrolled=self.unrolled, **dtypes)
        self.head = None
        if config.head is not None:
            self.head = config.head.make(vocab_size=config.vocab_size, d_model=config.d_model, **dtypes)

    def initialize(self, batch: types.Batch) -> None:
        """Touches every parameter."""
        output = self.hidden(batch)
        if isinstance(self.config.head, LanguageModelHead):
            self.logits(output.last_hidden)

    def hidden(
        self,
        batch: types.Batch,
        *,
        deterministic: bool = True,
        hidden_states: bool = False,
        attentions: bool = False,
    ) -> Output:
        """Everything but scores of the vocabulary."""
        flags = {"deterministic": deterministic, "hidden_states": hidden_states, "attentions": attentions}
        read = common.read_side(batch, "encoder", only_side=False)
        encoded = self._encode(read, **flags)
        side = common.read_side(batch, "decoder", only_side=False)
        decoded = self.decoder(
            self._embed_decoder(
                side.tokens,
                positions=common.absolute_positions(side, self.config.decoder_embed or self.config.embed),
                types=side.types,
                deterministic=deterministic,
            ),
            masks.decoder_rules(segment_ids=side.segment_ids),
            PositionContext(length=side.length, key_length=side.length),
            memory=encoded.last_hidden,
            cross_mask=masks.cross_rules(
                side.segment_ids, read.segment_ids, length=side.length, key_length=read.length
            ),
            **flags,
        )
        output = Output(
            **common.stack_results(decoded),
            encoder_last_hidden=encoded.last_hidden,
            encoder_hidden_states=encoded.hidden_states,
            encoder_attentions=encoded.attentions,
            decoder_hidden_states=decoded.hidden_states,
            cross_attentions=decoded.cross_attentions,
        )
        return common.with_label_scores(output, self.head, side.segment_ids, choices=None, deterministic=deterministic)

    def _embed_decoder(self, tokens: Array, **options: Any) -> Float[Array, "B T D"]:
        if self.config.decoder_embed is None:
            return self.embed(tokens, **options)
        return self.decoder_embed(tokens, table=self.embed.table() if self.config.shared_tokens else None, **options)

    def _encode(self, side: common.Side, **flags: bool) -> StackOutput:
        x = self.embed(
            side.tokens,
            positions=common.absolute_positions(side, self.config.embed),
            types=side.types,
            deterministic=flags.get("deterministic", True),
        )
        context = PositionContext(length=side.length, key_length=side.length)
        return self.encoder(x, masks.encoder_rules(side.segment_ids), context, **flags)

    def logits(self, hidden: Float[Array, "*axes D"]) -> Float[Array, "*axes V"]:
        """Scores of the vocabulary, float32."""
        return self.head(hidden, self.embed.table())

    def prefill(self, batch: types.Batch, *, length: int) -> tuple[Float[Array, "B T D"], Cache]:
        """Encodes, reads the decoder's prompt, and returns its hidden states and a cache with room for `length`."""
        read = common.read_side(batch, "encoder", only_side=False)
        memory = self._encode(read).last_hidden
        side = common.read_side(batch, "decoder", only_side=False)
        common.check_length(length, self.config.decoder_embed or self.config.embed)
        cache = decoding.empty_cache(
            self.config.decoder,
            side,
            length=length,
            dtype=self.dtype,
            memory_mask=None if read.segment_ids is None else read.segment_ids != 0,
        )
        return self._read(side.tokens, cache, offset=None, memory=memory)

    def extend(self, tokens: Int[Array, "B T"], cache: Cache) -> tuple[Float[Array, "B T D"], Cache]:
        """Reads the next tokens and returns their hidden states and the longer cache."""
        return self._read(tokens, cache, offset=cache.index, memory=None)

    def _read(self, tokens: Array, cache: Cache, *, offset: Array | None, memory: Array | None) -> tuple[Array, Cache]:
        step = decoding.make_step(tokens, cache, offset=offset, prefix=None)
        cross_mask = None
        if cache.memory_mask is not None:
            cross_mask = jnp.broadcast_to(cache.memory_mask[:, None], (*tokens.shape, cache.memory_mask.shape[1]))
        result = self.decoder(
            self._embed_decoder(tokens, positions=step.positions),
            step.mask,
            step.context,
            memory=memory,
            cross_mask=cross_mask,
            caches=cache.layers,
        )
        return result.last_hidden, decoding.advance(cache, result.caches, tokens.shape[1])
