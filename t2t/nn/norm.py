"""Normalisation layers: configs `RMSNorm` and `LayerNorm` with their modules."""

import dataclasses
import math
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from t2t.functional import normalization
from t2t.nn import checks


def _check_eps(config: Any) -> None:
    is_usable = 0 < config.eps < math.inf
    checks.check(is_usable, config, "eps", allowed="positive and finite", repair="Published values are 1e-12 to 1e-5.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RMSNorm:
    """Root mean square norm with a scale, T5's "layer norm"."""

    eps: float = 1e-6

    def __post_init__(self):
        """Refuses values without meaning."""
        _check_eps(self)

    def make(
        self, *, dtype: Any = jnp.float32, param_dtype: Any = jnp.float32, name: str | None = None
    ) -> "RMSNormModule":
        """The linen module."""
        return RMSNormModule(self, dtype=dtype, param_dtype=param_dtype, name=name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LayerNorm:
    """Layer norm with a scale and, optionally, a bias."""

    eps: float = 1e-5
    use_bias: bool = True

    def __post_init__(self):
        """Refuses values without meaning."""
        _check_eps(self)

    def make(
        self, *, dtype: Any = jnp.float32, param_dtype: Any = jnp.float32, name: str | None = None
    ) -> "LayerNormModule":
        """The linen module."""
        return LayerNormModule(self, dtype=dtype, param_dtype=param_dtype, name=name)


Norm = RMSNorm | LayerNorm
"""Any normalisation config."""


def _vector(module: nn.Module, name: str, initializer: Any, width: int, param_dtype: Any) -> Array:
    return module.param(name, nn.with_logical_partitioning(initializer, ("embed",)), (width,), param_dtype)


class RMSNormModule(nn.Module):
    """Owns the scale of an RMS norm."""

    config: RMSNorm
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: Float[Array, "*axes D"]) -> Float[Array, "*axes D"]:
        """Returns the normalised array in the compute dtype."""
        scale = _vector(self, "scale", jax.nn.initializers.ones, x.shape[-1], self.param_dtype)
        return normalization.rms_norm(x.astype(self.dtype), scale, eps=self.config.eps)


class LayerNormModule(nn.Module):
    """Owns the scale and bias of a layer norm."""

    config: LayerNorm
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: Float[Array, "*axes D"]) -> Float[Array, "*axes D"]:
        """Returns the normalised array in the compute dtype."""
        width = x.shape[-1]
        scale = _vector(self, "scale", jax.nn.initializers.ones, width, self.param_dtype)
        bias = None
        if self.config.use_bias:
            bias = _vector(self, "bias", jax.nn.initializers.zeros, width, self.param_dtype)
        return normalization.layer_norm(x.astype(self.dtype), scale, bias, eps=self.config.eps)
