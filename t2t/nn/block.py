"""One block: attention, optionally attention to an encoder, and feed-forward, each with its norm and residual."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from t2t.functional import masks
from t2t.functional.masks import Mask
from t2t.nn import checks
from t2t.nn.attention import AttentionConfig
from t2t.nn.cache import LayerCache
from t2t.nn.dropout import Dropout
from t2t.nn.feed_forward import FeedForwardConfig
from t2t.nn.norm import Norm
from t2t.nn.positions.context import PositionContext
from t2t.nn.positions.schemes import Position

NormPosition = Literal["pre", "post", "sandwich", "parallel"]
NORM_POSITIONS: tuple[NormPosition, ...] = ("pre", "post", "sandwich", "parallel")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockConfig:
    """The parts of a block and how residuals run around them.

    `pre`: `x + f(norm(x))` (GPT-2, T5). `post`: `norm(x + f(x))` (BERT, GPT). `sandwich`: `x + norm(f(norm(x)))`.
    `parallel`: `x + attention(norm(x)) + feed_forward(norm(x))`, by two norms (GPT-NeoX) or one (GPT-J).
    """

    norm: Norm
    norm_position: NormPosition
    attention: AttentionConfig
    feed_forward: FeedForwardConfig
    cross_attention: AttentionConfig | None = None
    position: Position | None = None
    """A position scheme whose parameters each layer owns; one shared by all layers belongs to the stack."""
    attention_norm: bool = True
    """Whether there is a norm of the attention's input; False: it reads what is normed already (ModernBERT's first)."""
    feed_forward_norm: bool = True
    """Whether the feed-forward has its own norm; False, of parallel blocks: it reads what the attention reads."""
    dropout: float = 0.0
    """Fraction in [0, 1) of each sublayer's output dropped, before the residual is added."""

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_choice(self, "norm_position", NORM_POSITIONS)
        checks.check_fraction(self, "dropout")
        is_pre = self.norm_position == "pre"
        allowed, repair = "True where norm_position is not 'pre'", "Set attention_norm=True."
        checks.check(self.attention_norm or is_pre, self, "attention_norm", allowed=allowed, repair=repair)
        is_parallel = self.norm_position == "parallel"
        allowed, repair = "True where norm_position is not 'parallel'", "Set feed_forward_norm=True."
        checks.check(self.feed_forward_norm or is_parallel, self, "feed_forward_norm", allowed=allowed, repair=repair)
        allowed, repair = "None where norm_position='parallel'", "Set norm_position='pre'."
        can_read = self.cross_attention is None or not is_parallel
        checks.check(can_read, self, "cross_attention", allowed=allowed, repair=repair)

    def make(
        self, d_model: int, *, dtype: Any = jnp.float32, param_dtype: Any = jnp.float32, name: str | None = None
    ) -> "Block":
        """The linen module in a model of width `d_model`."""
        return Block(self, d_model, dtype=dtype, param_dtype=param_dtype, name=name)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class BlockOutput:
    """What a block hands out besides its hidden state: attention weights [B, N, T, S] and the cache, where asked for.

    `hidden` repeats the hidden state [B, T, D] where a stack collects them all.
    """

    hidden: Any = None
    attention: Any = None
    cross_attention: Any = None
    cache: Any = None


class Block(nn.Module):
    """Wires the sublayers of one block."""

    config: BlockConfig
    d_model: int
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "#B T S"] | Mask | None,
        context: PositionContext,
        memory: Float[Array, "B M D"] | None = None,
        cross_mask: Bool[Array, "#B T M"] | Mask | None = None,
        cache: LayerCache | None = None,
        past: Float[Array, "B P D"] | None = None,
        *,
        deterministic: bool = True,
        attentions: bool = False,
    ) -> tuple[Float[Array, "B T D"], BlockOutput]:
        """Returns the new hidden state, and what else was asked for.

        `past` are inputs of this block at earlier positions, read before those of `x` (post-norm alone).

        With a cache, the new positions are written into it from `context.offset` on and all of it is read; the keys and
        values of the encoder are made from `memory` when the cache has none yet.
        """
        flags = {"deterministic": deterministic, "attentions": attentions}
        weights: dict[str, Any] = {"attention": None, "cross_attention": None}
        kept: dict[str, Any] = {}

        def self_attention(y: Array) -> Array:
            layer = self.config.attention.make(self.d_model, name="attention", **self._dtypes())
            own = self._position(context)
            read = layer.keys_values(_readable(y, past, context.read_length), rotary=own.rotary)
            if cache is not None:
                index = 0 if context.offset is None else context.offset
                read = kept["attention"] = cache.attention.write(read, index=index)
            more = {} if own.relative is None else {"relative": own.relative}
            out, weights["attention"] = layer(
                y,
                read,
                mask=self._window(mask, context),
                bias=own.bias,
                rotary=own.rotary,
                **flags,
                **more,
            )
            return out

        def cross_attention(y: Array) -> Array:
            layer = self.config.cross_attention.make(self.d_model, name="cross_attention", **self._dtypes())
            read = None if cache is None else cache.cross_attention
            read = layer.keys_values(memory) if read is None else read
            kept["cross_attention"] = read
            out, weights["cross_attention"] = layer(y, read, mask=cross_mask, **flags)
            return out

        def feed_forward(y: Array) -> Array:
            layer = self.config.feed_forward.make(self.d_model, name="feed_forward", **self._dtypes())
            return layer(y, deterministic=deterministic)

        if self.config.norm_position == "parallel":
            x = self._parallel(x, self_attention, feed_forward, deterministic=deterministic)
        else:
            x = self._residual(x, self_attention, "attention", deterministic=deterministic)
            if self.config.cross_attention is not None:
                x = self._residual(x, cross_attention, "cross_attention", deterministic=deterministic)
            x = self._residual(x, feed_forward, "feed_forward", deterministic=deterministic)
        output = BlockOutput(cache=None if cache is None else LayerCache(**kept))
        return x, dataclasses.replace(output, **weights) if attentions else output

    def _dtypes(self) -> dict[str, Any]:
        return {"dtype": self.dtype, "param_dtype": self.param_dtype}

    def _position(self, context: PositionContext) -> PositionContext:
        position = self.config.position
        if position is None:
            return context
        heads = self.config.attention
        return position.make(heads.num_heads, head_dim=heads.head_dim, name="position", **self._dtypes())(context)

    def _window(self, mask: Array | Mask | None, context: PositionContext) -> Array | Mask | None:
        """The mask without what lies outside the attention's window."""
        lengths = {"length": context.length, "key_length": context.key_length}
        index = 0 if context.offset is None else context.offset
        return masks.within(mask, self.config.attention.window, index=index, **lengths)

    def _parallel(
        self,
        x: Array,
        attention: Callable[[Array], Array],
        feed_forward: Callable[[Array], Array],
        *,
        deterministic: bool,
    ) -> Array:
        """The residual wiring of a block whose two sublayers read the same input."""
        normed = self.config.norm.make(name="attention_norm", **self._dtypes())(x)
        y = Dropout(self.config.dropout)(attention(normed), deterministic=deterministic)
        if self.config.feed_forward_norm:
            normed = self.config.norm.make(name="feed_forward_norm", **self._dtypes())(x)
        y = y + Dropout(self.config.dropout)(feed_forward(normed), deterministic=deterministic)
        return nn.with_logical_constraint(x + y, ("batch", "length", None))

    def _residual(self, x: Array, sublayer: Callable[[Array], Array], name: str, *, deterministic: bool) -> Array:
        """The residual wiring of one sublayer at a time."""
        norm_position = self.config.norm_position
        if name == "attention" and not self.config.attention_norm:
            y = Dropout(self.config.dropout)(sublayer(x), deterministic=deterministic)
            return nn.with_logical_constraint(x + y, ("batch", "length", None))
        norm = self.config.norm.make(name=f"{name}_norm", **self._dtypes())
        y = sublayer(x if norm_position == "post" else norm(x))
        if norm_position == "sandwich":
            y = self.config.norm.make(name=f"{name}_out_norm", **self._dtypes())(y)
        y = Dropout(self.config.dropout)(y, deterministic=deterministic)
        x = norm(x + y) if norm_position == "post" else x + y
        return nn.with_logical_constraint(x, ("batch", "length", None))


def _readable(y: Array, past: Array | None, length: int | None) -> Array:
    """What a block's attention reads: earlier positions, and the first `length` of its own, or all."""
    own = y if length is None else y[:, :length]
    return own if past is None else jnp.concatenate([past.astype(own.dtype), own], axis=1)
