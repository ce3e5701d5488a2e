"""Multi-head attention: the config and the layer that owns its four projections."""

import dataclasses
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from t2t.functional import attention, masks, positions
from t2t.functional.kernels import attend as kernels
from t2t.functional.kernels import choice
from t2t.functional.kernels.choice import KERNELS, Kernel, Request
from t2t.functional.masks import Mask
from t2t.functional.positions import RotaryAngles
from t2t.nn import checks, projection
from t2t.nn.cache import KeysValues


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionConfig:
    """Sizes of an attention layer."""

    num_heads: int
    head_dim: int
    num_kv_heads: int | None = None
    """Heads of keys and values, shared by groups of query heads; None = num_heads."""
    use_bias: bool = False
    key_bias: bool | None = None
    """Of the key; None = use_bias."""
    out_bias: bool | None = None
    """Of the output; None = use_bias."""
    window: int | None = None
    """Positions farther apart than this are not read; None = all are."""
    scale: float | None = None
    """Factor of the scores; None = head_dim**-0.5. T5: 1.0, its initial queries are smaller instead."""
    dropout: float = 0.0
    """Fraction in [0, 1) of the attention weights dropped."""
    initializer_std: float | None = None
    """Of query, key and value kernels. None = d_model**-0.5, the query's times head_dim**-0.5 / scale (T5)."""
    out_initializer_std: float | None = None
    """Of the output kernel. None = initializer_std, or (num_heads * head_dim)**-0.5 where that is None too."""
    initializer: projection.Initializer = "normal"
    kernels: tuple[Kernel, ...] = ("reference",)
    """What computes the attention: the first of these that can honour mask, bias and dropout; an error if none can."""

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_positive(self, "num_heads", "head_dim")
        are_kernels = len(self.kernels) > 0 and set(self.kernels) <= set(KERNELS)
        allowed, repair = f"some of {', '.join(KERNELS)}", "Set kernels=('reference',)."
        checks.check(are_kernels, self, "kernels", allowed=allowed, repair=repair)
        if self.num_kv_heads is not None:
            checks.check_positive(self, "num_kv_heads")
            allowed = f"a divisor of num_heads = {self.num_heads}"
            repair = "Set num_kv_heads=None for one per query head."
            checks.check(self.num_heads % self.num_kv_heads == 0, self, "num_kv_heads", allowed=allowed, repair=repair)
        if self.window is not None:
            checks.check_positive(self, "window")
        is_positive = self.scale is None or self.scale > 0
        checks.check(
            is_positive, self, "scale", allowed="None or positive", repair="Set scale=None for head_dim**-0.5."
        )
        checks.check_fraction(self, "dropout")
        checks.check_deviation(self, "initializer_std", "out_initializer_std")
        checks.check_choice(self, "initializer", projection.INITIALIZERS)

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.num_heads if self.num_kv_heads is None else self.num_kv_heads

    @property
    def score_scale(self) -> float:
        """Factor of the scores."""
        return self.head_dim**-0.5 if self.scale is None else self.scale

    def make(
        self, d_model: int, *, dtype: Any = jnp.float32, param_dtype: Any = jnp.float32, name: str | None = None
    ) -> "Attention":
        """The linen module in a model of width `d_model`."""
        return Attention(self, d_model, dtype=dtype, param_dtype=param_dtype, name=name)


class Attention(nn.Module):
    """Owns query, key, value and out. Self-attention reads its own input, cross-attention the encoder's output."""

    config: AttentionConfig
    d_model: int
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    def setup(self):
        """Creates the projections."""
        config = self.config
        query_std = config.initializer_std
        if query_std is None:
            query_std = (self.d_model * config.head_dim) ** -0.5 / config.score_scale
        out_std = config.initializer_std if config.out_initializer_std is None else config.out_initializer_std
        key_bias = config.use_bias if config.key_bias is None else config.key_bias
        self.query = self._projection(config.num_heads, "heads", std=query_std)
        self.key = self._projection(config.kv_heads, "kv_heads", std=config.initializer_std, use_bias=key_bias)
        self.value = self._projection(config.kv_heads, "kv_heads", std=config.initializer_std)
        self.out = projection.Projection(
            shape=(config.num_heads, config.head_dim, self.d_model),
            axes=("heads", "head", "embed"),
            num_inputs=2,
            use_bias=config.use_bias if config.out_bias is None else config.out_bias,
            std=out_std,
            initializer=config.initializer,
            dtype=self.dtype,
            param_dtype=self.param_dtype,
        )

    def _projection(
        self, num_heads: int, axis: str, *, std: float | None, use_bias: bool | None = None
    ) -> projection.Projection:
        return projection.Projection(
            shape=(self.d_model, num_heads, self.config.head_dim),
            axes=("embed", axis, "head"),
            use_bias=self.config.use_bias if use_bias is None else use_bias,
            std=std,
            initializer=self.config.initializer,
            dtype=self.dtype,
            param_dtype=self.param_dtype,
        )

    def queries(self, x: Float[Array, "B T D"], *, rotary: RotaryAngles | None = None) -> Float[Array, "B N T H"]:
        """What `x` looks for."""
        return _turned(_heads(x, self.query(), "heads"), rotary)

    def keys_values(self, x: Float[Array, "B S D"], *, rotary: RotaryAngles | None = None) -> KeysValues:
        """What others read of `x`: keys and values [B, G, S, H]."""
        key_BGSH = _turned(_heads(x, self.key(), "kv_heads"), rotary)
        return KeysValues(key=key_BGSH, value=_heads(x, self.value(), "kv_heads"))

    def __call__(
        self,
        x: Float[Array, "B T D"],
        read: KeysValues,
        *,
        mask: Bool[Array, "#B T S"] | Mask | None = None,
        bias: Float[Array, "#B N T S"] | None = None,
        rotary: RotaryAngles | None = None,
        deterministic: bool = True,
        attentions: bool = True,
    ) -> tuple[Float[Array, "B T D"], Float[Array, "B N T S"] | None]:
        """Returns what `x` reads, and the attention weights; without `attentions` there may be none."""
        query_BNTH = self.queries(x, rotary=rotary)
        kernel = self._kernel(query_BNTH, read, mask, bias, deterministic=deterministic, attentions=attentions)
        if kernel != "reference":
            scale = self.config.score_scale
            return self._out(kernels.attend(kernel, query_BNTH, read.key, read.value, mask, bias, scale=scale)), None
        scores_BNTS = attention.attention_scores(query_BNTH, read.key, scale=self.config.score_scale)
        return self._read(scores_BNTS, read, mask=mask, bias=bias, deterministic=deterministic)

    def _kernel(
        self,
        query_BNTH: Array,
        read: KeysValues,
        mask: Array | Mask | None,
        bias: Array | None,
        *,
        deterministic: bool,
        attentions: bool,
        own_scores: bool = False,
    ) -> Kernel:
        """What computes this attention: the first of `kernels` that can.

        Raises:
            ValueError: none can; says why.
        """
        request = Request.of(
            query_BNTH,
            read.key,
            mask,
            bias,
            dropout=0.0 if deterministic else self.config.dropout,
            weights=attentions,
            own_scores=own_scores,
        )
        return choice.choose(self.config.kernels, request, layer="/".join(self.path))

    def _read(
        self,
        scores_BNTS: Array,
        read: KeysValues,
        *,
        mask: Array | Mask | None,
        bias: Array | None,
        deterministic: bool,
    ) -> tuple[Array, Array]:
        """What is read with these scores, and the attention weights."""
        length, key_length = scores_BNTS.shape[2:]
        mask = masks.dense(mask, length=length, key_length=key_length)
        weights_BNTS = attention.attention_weights(scores_BNTS, mask=mask, bias=bias)
        rate = 0.0 if deterministic else self.config.dropout
        mixed_BNTH = attention.weighted_values(
            weights_BNTS.astype(self.dtype),
            read.value,
            dropout_rate=rate,
            key=self.make_rng("dropout") if rate else None,
        )
        return self._out(mixed_BNTH), weights_BNTS

    def _out(self, mixed_BNTH: Array) -> Array:
        mixed_BNTH = nn.with_logical_constraint(mixed_BNTH, ("batch", "heads", "length", "head"))
        kernel_NHD, bias_D = self.out()
        return projection.add_bias(jnp.einsum("BNTH,NHD->BTD", mixed_BNTH, kernel_NHD), bias_D)


def _turned(heads: Array, rotary: RotaryAngles | None) -> Array:
    return heads if rotary is None else positions.rotate(heads, rotary)


def _heads(x: Array, parameters: tuple[Array, Array | None], axis: str) -> Array:
    """The input projected to [batch, heads, length, head_dim]."""
    kernel_DNH, bias_NH = parameters
    heads_BNTH = jnp.einsum("BTD,DNH->BNTH", x, kernel_DNH)
    if bias_NH is not None:
        heads_BNTH = heads_BNTH + bias_NH[None, :, None, :]
    return nn.with_logical_constraint(heads_BNTH, ("batch", axis, "length", "head"))
