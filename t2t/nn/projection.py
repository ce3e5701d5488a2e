"""Linear maps over named axes, and how their kernels begin.

`nn.DenseGeneral` cannot be partitioned logically when its kernel has three axes (flax issue 3676), so projections are
einsums over kernels that name each of their axes.
"""

import math
from collections.abc import Callable
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

Initializer = Literal["normal", "truncated_normal"]
"""Distribution of initial kernels: normal, or normal cut at two standard deviations (BERT's)."""

INITIALIZERS: tuple[Initializer, ...] = ("normal", "truncated_normal")


def make_initializer(distribution: Initializer, std: float) -> Callable[..., Array]:
    """The initializer of a distribution around zero; the truncated one is not rescaled to `std`, as in TensorFlow."""
    if distribution == "truncated_normal":
        return jax.nn.initializers.truncated_normal(std)
    return jax.nn.initializers.normal(std)


def add_bias(x: Array, bias: Array | None) -> Array:
    """`x + bias` along the last axes, or `x`. Axes are added by hand: rank promotion is an error in our tests."""
    return x if bias is None else x + bias.reshape((1,) * (x.ndim - bias.ndim) + bias.shape)


class Projection(nn.Module):
    """Parameters of a linear map: a kernel over input and output axes, and a bias over the output axes.

    Calling it gives (kernel, bias or None) in `dtype`; the layer writes its einsum, where the letters can be read.

    Attributes:
        shape: Size of each axis of the kernel.
        axes: Logical name of each axis of the kernel.
        num_inputs: How many of the axes, from the left, are summed over.
        std: Standard deviation of the initial kernel; None = (number of summed inputs)**-0.5.
    """

    shape: tuple[int, ...]
    axes: tuple[str, ...]
    num_inputs: int = 1
    use_bias: bool = False
    std: float | None = None
    initializer: Initializer = "normal"
    dtype: Any = jnp.float32
    param_dtype: Any = jnp.float32

    @nn.compact
    def __call__(self) -> tuple[Array, Array | None]:
        """Returns the kernel and the bias."""
        std = math.prod(self.shape[: self.num_inputs]) ** -0.5 if self.std is None else self.std
        initializer = nn.with_logical_partitioning(make_initializer(self.initializer, std), self.axes)
        kernel = self.param("kernel", initializer, self.shape, self.param_dtype).astype(self.dtype)
        if not self.use_bias:
            return kernel, None
        zeros = nn.with_logical_partitioning(jax.nn.initializers.zeros, self.axes[self.num_inputs :])
        bias = self.param("bias", zeros, self.shape[self.num_inputs :], self.param_dtype).astype(self.dtype)
        return kernel, bias
