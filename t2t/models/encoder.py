"""Encoder-only models: every position reads every other of its example (BERT)."""

import dataclasses
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from t2t import types
from t2t.functional import masks
from t2t.models import common
from t2t.models.base import Output
from t2t.nn import mask_decoder, projection
from t2t.nn.classification import ClassificationHead, flatten_choices
from t2t.nn.embed import EmbedConfig
from t2t.nn.heads import Head, MaskedLanguageModelHead, VocabularyHead
from t2t.nn.positions.context import PositionContext
from t2t.nn.stack import StackConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """An encoder: embeddings, a stack, and optionally a head and a pooler."""

    embed: EmbedConfig
    stack: StackConfig
    head: Head | None = None
    """Of the vocabulary, or of labels."""
    pooler: bool = False
    """A dense layer with tanh on the first token, initialised as the embeddings (BERT)."""
    family: str | None = None
    """transformers' name (model_type) of the family that exports belong to, where several have this form; None = the
    first that has it. Nothing is computed from it."""

    def __post_init__(self):
        """Refuses parts that do not fit together."""
        common.check_widths(self, stack=self.stack)
        common.check_cross_attention(self, "stack", self.stack, expected=False)
        if (self.has_next_sentence or self._head_reads_pooled) and not self.pooler:
            reason = "next_sentence=True" if self.has_next_sentence else "pooling='pooler'"
            raise ValueError(
                f"EncoderConfig.pooler = False: must be True where the head has {reason}, which reads the pooled first"
                " token. Set pooler=True, or change the head."
            )
        if self.has_mask_decoder:
            mask_decoder.check_stack(self.stack)

    @property
    def vocab_size(self) -> int:
        """Rows of the token table."""
        return self.embed.vocab_size

    @property
    def d_model(self) -> int:
        """Width of the hidden states."""
        return self.stack.d_model

    @property
    def _head_reads_pooled(self) -> bool:
        return isinstance(self.head, ClassificationHead) and self.head.reads_pooled

    @property
    def has_next_sentence(self) -> bool:
        """Whether there is a next-sentence classifier."""
        return isinstance(self.head, MaskedLanguageModelHead) and self.head.next_sentence

    @property
    def has_mask_decoder(self) -> bool:
        """Whether the head's input is made by a mask decoder."""
        return isinstance(self.head, MaskedLanguageModelHead) and self.head.mask_decoder is not None

    def example(self) -> types.Batch:
        """A smallest batch, for shapes."""
        has_choices = isinstance(self.head, ClassificationHead) and self.head.task == "choice"
        return {"encoder_input_tokens": jnp.zeros((1, 1, 1) if has_choices else (1, 1), jnp.int32)}

    def make(
        self,
        *,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        remat: str | None = None,
        unrolled: bool = False,
        name: str | None = None,
    ) -> "Encoder":
        """The linen module."""
        return Encoder(self, dtype=dtype, param_dtype=param_dtype, remat=remat, unrolled=unrolled, name=name)


class Encoder(nn.Module):
    """Wires embeddings, stack, pooler and head."""

    config: EncoderConfig
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32
    remat: str | None = None
    unrolled: bool = False

    def setup(self):
        """Creates the parts that the config asks for."""
        config = self.config
        dtypes = {"dtype": self.dtype, "param_dtype": self.param_dtype}
        self.embed = config.embed.make(**dtypes)
        self.encoder = common.stack_options(config.stack, self.remat).make(unrolled=self.unrolled, **dtypes)
        if config.pooler:
            self.pooler = projection.Projection(
                shape=(config.d_model, config.d_model),
                axes=("embed", "mlp"),
                use_bias=True,
                std=config.embed.initializer_std,
                initializer=config.embed.initializer,
                **dtypes,
            )
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
        deterministic: bool = True,
        hidden_states: bool = False,
        attentions: bool = False,
    ) -> Output:
        """Everything but scores of the vocabulary. Texts with an axis of choices [B, C, T] are read as B * C rows."""
        batch, choices = flatten_choices(batch)
        side = common.read_side(batch, "encoder", only_side=True)
        x = self.embed(
            side.tokens,
            positions=common.absolute_positions(side, self.config.embed),
            types=side.types,
            languages=side.languages,
            deterministic=deterministic,
        )
        mask = masks.encoder_rules(side.segment_ids)
        result = self.encoder(
            x,
            mask,
            PositionContext(length=side.length, key_length=side.length),
            deterministic=deterministic,
            hidden_states=hidden_states or self.config.has_mask_decoder,
            attentions=attentions,
        )
        output = Output(**common.stack_results(result))
        if self.config.has_mask_decoder:
            decoded = self._decode_masked(result.hidden_states[-2], side, mask, deterministic=deterministic)
            states = output.hidden_states if hidden_states else None
            output = dataclasses.replace(output, last_hidden=decoded, hidden_states=states)
        if self.config.pooler:
            pooled = self._pool(result.last_hidden)
            next_sentence = None
            if self.config.has_next_sentence:
                next_sentence = self.head.next_sentence_logits(pooled, deterministic=deterministic)
            output = dataclasses.replace(output, pooled=pooled, next_sentence_logits=next_sentence)
        return common.with_label_scores(
            output, self.head, side.segment_ids, choices=choices, deterministic=deterministic
        )

    def _decode_masked(
        self, states: Array, side: common.Side, mask: masks.Mask, *, deterministic: bool
    ) -> Float[Array, "B T D"]:
        """What masked words are predicted from, made of the states before the last block."""
        return self.head.mask_decoder(
            states,
            positions=common.absolute_positions(side, self.config.head.mask_decoder),
            mask=mask,
            stack=self.encoder.config,
            params=self.encoder.variables["params"],
            deterministic=deterministic,
        )

    def _pool(self, hidden: Float[Array, "B T D"]) -> Float[Array, "B D"]:
        kernel, bias = self.pooler()
        pooled = jnp.tanh(projection.add_bias(jnp.einsum("BD,DE->BE", hidden[:, 0], kernel), bias))
        return nn.with_logical_constraint(pooled, ("batch", None))

    def logits(self, hidden: Float[Array, "*axes D"]) -> Float[Array, "*axes V"]:
        """Scores of the vocabulary, float32."""
        return self.head(hidden, self.embed.table())
