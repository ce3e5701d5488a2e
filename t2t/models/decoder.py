"""Decoder-only models: each position reads the ones before it (GPT, GPT-2), or all of a prefix too (prefix-LM)."""

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
from t2t.nn.classification import ClassificationHead, flatten_choices
from t2t.nn.embed import EmbedConfig
from t2t.nn.heads import LanguageModelHead
from t2t.nn.positions.context import PositionContext
from t2t.nn.stack import StackConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """A decoder: embeddings, a causal stack, and a head that scores the vocabulary, or labels."""

    embed: EmbedConfig
    stack: StackConfig
    head: LanguageModelHead | ClassificationHead
    prefix_attention: bool = False
    """A prefix language model: positions marked in `decoder_causal_attention` read each other in both directions."""

    def __post_init__(self):
        """Refuses parts that do not fit together."""
        common.check_widths(self, stack=self.stack)
        common.check_cross_attention(self, "stack", self.stack, expected=False)

    @property
    def vocab_size(self) -> int:
        """Rows of the token table."""
        return self.embed.vocab_size

    @property
    def d_model(self) -> int:
        """Width of the hidden states."""
        return self.stack.d_model

    def example(self) -> types.Batch:
        """A smallest batch, for shapes."""
        has_choices = isinstance(self.head, ClassificationHead) and self.head.task == "choice"
        tokens = jnp.zeros((1, 1, 1) if has_choices else (1, 1), jnp.int32)
        return {"decoder_input_tokens": tokens, "decoder_causal_attention": tokens}

    def make(
        self,
        *,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        remat: str | None = None,
        unrolled: bool = False,
        name: str | None = None,
    ) -> "Decoder":
        """The linen module."""
        return Decoder(self, dtype=dtype, param_dtype=param_dtype, remat=remat, unrolled=unrolled, name=name)


class Decoder(nn.Module):
    """Wires embeddings, stack and head."""

    config: DecoderConfig
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32
    remat: str | None = None
    unrolled: bool = False

    def setup(self):
        """Creates the parts."""
        config = self.config
        dtypes = {"dtype": self.dtype, "param_dtype": self.param_dtype}
        self.embed = config.embed.make(**dtypes)
        self.decoder = common.stack_options(config.stack, self.remat).make(unrolled=self.unrolled, **dtypes)
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
        """Everything but scores of the vocabulary. Texts with an axis of choices [B, C, T] are read as B * C rows."""
        batch, choices = flatten_choices(batch)
        side = common.read_side(batch, "decoder", only_side=True)
        x = self.embed(
            side.tokens,
            positions=common.absolute_positions(side, self.config.embed),
            types=side.types,
            deterministic=deterministic,
        )
        prefix = self._prefix(batch)
        result = self.decoder(
            x,
            masks.decoder_rules(segment_ids=side.segment_ids, prefix=prefix),
            PositionContext(
                length=side.length,
                key_length=side.length,
                both_prefix=None if prefix is None else masks.prefix_mask(prefix, prefix),
            ),
            deterministic=deterministic,
            hidden_states=hidden_states,
            attentions=attentions,
        )
        output = Output(**common.stack_results(result))
        return common.with_label_scores(
            output, self.head, side.segment_ids, choices=choices, deterministic=deterministic
        )

    def _prefix(self, batch: types.Batch) -> Array | None:
        """The marks of the fully visible prefix, where this is a prefix language model."""
        if not self.config.prefix_attention:
            return None
        if "decoder_causal_attention" not in batch:
            raise ValueError(
                "batch has no 'decoder_causal_attention': a decoder with prefix_attention=True needs it, 1 over the"
                " start token and the prefix, 0 elsewhere (all 0 for a plain causal example)."
            )
        return batch["decoder_causal_attention"]

    def logits(self, hidden: Float[Array, "*axes D"]) -> Float[Array, "*axes V"]:
        """Scores of the vocabulary, float32."""
        return self.head(hidden, self.embed.table())

    def prefill(self, batch: types.Batch, *, length: int) -> tuple[Float[Array, "B T D"], Cache]:
        """Reads the prompt and returns its hidden states, and a cache with room for `length` positions."""
        side = common.read_side(batch, "decoder", only_side=True)
        common.check_length(length, self.config.embed)
        cache = decoding.empty_cache(self.config.stack, side, length=length, dtype=self.dtype)
        return self._read(side.tokens, cache, offset=None, prefix=self._prefix(batch))

    def extend(self, tokens: Int[Array, "B T"], cache: Cache) -> tuple[Float[Array, "B T D"], Cache]:
        """Reads the next tokens and returns their hidden states and the longer cache."""
        return self._read(tokens, cache, offset=cache.index, prefix=None)

    def _read(self, tokens: Array, cache: Cache, *, offset: Array | None, prefix: Array | None) -> tuple[Array, Cache]:
        step = decoding.make_step(tokens, cache, offset=offset, prefix=prefix)
        x = self.embed(tokens, positions=step.positions)
        result = self.decoder(x, step.mask, step.context, caches=cache.layers)
        return result.last_hidden, decoding.advance(cache, result.caches, tokens.shape[1])
