"""Operations whose gradients would be slow or store too much if left to JAX and XLA's CPU backend.

Values and gradients are those of the plain operations.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

LINEAR = "linear"
"""Name of the results of `linear` for rematerialisation policies, which cannot see a product behind its own rule."""


def recomputed(function: Callable[..., Array]) -> Callable[..., Array]:
    """Decorates a cheap function of arrays, with settings as keywords.

    Its gradient stores the arrays given and computes what it needs of the rest again.
    """

    @functools.wraps(function)
    def call(*arrays: Any, **settings: Any) -> Array:
        return jax.checkpoint(functools.partial(function, **settings), prevent_cse=False)(*arrays)

    return call


@jax.custom_vjp
def linear(x: Float[Array, "B T I"], kernel: Float[Array, "I O"]) -> Float[Array, "B T O"]:
    """`x @ kernel`; the kernel's gradient never reads the larger of its two factors across rows.

    That gradient is x^T y' (with y' the gradient of the result), and one factor has to be transposed for it. Left to
    itself, JAX asks for (y'^T x)^T, and XLA's CPU backend repeats the elementwise chain behind y' inside the transposed
    copy, value by value across rows: ten times slower than transposing x.
    """
    return jnp.einsum("BTI,IO->BTO", x, kernel)


def _linear(x: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return linear(x, kernel), (x, kernel)


def _linear_gradients(saved: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, kernel = saved
    leading = ((0, 1), (0, 1))
    if kernel.shape[0] <= kernel.shape[1]:
        of_kernel = jax.lax.dot_general(x, gradient, (leading, ((), ())))
    else:
        of_kernel = jax.lax.dot_general(gradient, x, (leading, ((), ()))).T
    return jnp.einsum("BTO,IO->BTI", gradient, kernel), of_kernel


linear.defvjp(_linear, _linear_gradients)


@jax.custom_vjp
def add_shared(x: Float[Array, "B *axes"], shared: Float[Array, "1 *axes"]) -> Float[Array, "B *axes"]:
    """`x + shared`, where all of the batch shares one array.

    The gradient of `shared` is the sum over the batch. On CPU, XLA takes 40 nanoseconds a value for that sum of [B, N,
    T, S]; adding one example after the other takes less than one.
    """
    return x + shared


def _add_shared(x: Array, shared: Array) -> tuple[Array, None]:
    return x + shared, None


def _add_shared_gradients(_: None, gradient: Array) -> tuple[Array, Array]:
    return gradient, jax.lax.platform_dependent(gradient, cpu=_sum_one_by_one, default=_sum_at_once)


def _sum_at_once(x: Array) -> Array:
    return jnp.sum(x, axis=0, keepdims=True)


def _sum_one_by_one(x: Array) -> Array:
    first = jax.lax.slice_in_dim(x, 0, 1)
    return jax.lax.fori_loop(1, x.shape[0], lambda i, total: total + jax.lax.dynamic_slice_in_dim(x, i, 1), first)


add_shared.defvjp(_add_shared, _add_shared_gradients)


@jax.custom_jvp
def softmax(x: Float[Array, "*axes S"]) -> Float[Array, "*axes S"]:
    """Softmax over the last axis; its gradient needs the result alone, where that of `jax.nn.softmax` keeps more."""
    return jax.nn.softmax(x, axis=-1)


@softmax.defjvp
def _softmax_gradients(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    weights, tangent = softmax(*primals), tangents[0]
    return weights, weights * (tangent - jnp.sum(weights * tangent, axis=-1, keepdims=True))
