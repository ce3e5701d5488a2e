"""The position-wise feed-forward layer, plain or gated."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import Float

from t2t.functional import gradients
from t2t.nn import checks, projection
from t2t.nn.dropout import Dropout

Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]
"""`gelu` is exact (erf; BERT), `gelu_tanh` its approximation (GPT, GPT-2, T5 1.1): they differ by up to 5e-4."""

ACTIVATIONS: dict[Activation, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "gelu": gradients.recomputed(functools.partial(jax.nn.gelu, approximate=False)),
    "gelu_tanh": gradients.recomputed(functools.partial(jax.nn.gelu, approximate=True)),
    "silu": gradients.recomputed(jax.nn.silu),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class FeedForwardConfig:
    """Sizes of a feed-forward layer: `down(dropout(activation(up(x))))`, gated `down(dropout(activation(gate) * up))`.

    Reference of the gated form: Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202.
    """

    d_ff: int
    activation: Activation
    gated: bool = False
    use_bias: bool = False
    dropout: float = 0.0
    """Fraction in [0, 1) of the inner values dropped."""
    initializer_std: float | None = None
    """Of the inner kernels. None = d_model**-0.5."""
    out_initializer_std: float | None = None
    """Of `down`. None = initializer_std, or d_ff**-0.5 where that is None too."""
    initializer: projection.Initializer = "normal"

    def __post_init__(self):
        """Refuses values without meaning."""
        checks.check_positive(self, "d_ff")
        checks.check_choice(self, "activation", tuple(ACTIVATIONS))
        checks.check_fraction(self, "dropout")
        checks.check_deviation(self, "initializer_std", "out_initializer_std")
        checks.check_choice(self, "initializer", projection.INITIALIZERS)

    def make(
        self, d_model: int, *, dtype: Any = jnp.float32, param_dtype: Any = jnp.float32, name: str | None = None
    ) -> "FeedForward":
        """The linen module in a model of width `d_model`."""
        return FeedForward(self, d_model, dtype=dtype, param_dtype=param_dtype, name=name)


class FeedForward(nn.Module):
    """Owns `up`, `down` and, gated, `gate`."""

    config: FeedForwardConfig
    d_model: int
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: Float[Array, "B T D"], *, deterministic: bool = True) -> Float[Array, "B T D"]:
        """Returns the transformed positions."""
        config = self.config
        inner = functools.partial(
            self._projection, (self.d_model, config.d_ff), ("embed", "mlp"), std=config.initializer_std
        )
        activation = ACTIVATIONS[config.activation]
        hidden_BTF = _linear(x, inner(name="up")())
        if config.gated:
            hidden_BTF = activation(_linear(x, inner(name="gate")())) * hidden_BTF
        else:
            hidden_BTF = activation(hidden_BTF)
        hidden_BTF = Dropout(config.dropout)(hidden_BTF, deterministic=deterministic)
        hidden_BTF = nn.with_logical_constraint(hidden_BTF, ("batch", "length", "mlp"))
        out_std = config.initializer_std if config.out_initializer_std is None else config.out_initializer_std
        down = self._projection((config.d_ff, self.d_model), ("mlp", "embed"), std=out_std, name="down")
        return _linear(hidden_BTF, down())

    def _projection(
        self, shape: tuple[int, int], axes: tuple[str, str], *, std: float | None, name: str
    ) -> projection.Projection:
        return projection.Projection(
            shape=shape,
            axes=axes,
            use_bias=self.config.use_bias,
            std=std,
            initializer=self.config.initializer,
            dtype=self.dtype,
            param_dtype=self.param_dtype,
            name=name,
        )


def _linear(x: Array, parameters: tuple[Array, Array | None]) -> Array:
    kernel, bias = parameters
    return projection.add_bias(checkpoint_name(gradients.linear(x, kernel), gradients.LINEAR), bias)
