"""Adafactor as T5X runs it: sublinear memory, updates relative to each parameter's size, decided layer by layer.

Reference: Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", arXiv:1804.04235,
algorithms 4 and 5; `t5x/adafactor.py`.

The second moments are optax's (`optax.scale_by_factored_rms`, equal to T5X's on matrices). Around them stand

- a two-dimensional view of each kernel: [D, N, H] is factored as [D, N H] and [N, H, D] as [N H, D], because optax
  finds no two dimensions of 128 in [512, 8, 64] and silently keeps the whole second moment;
- `jax.vmap` over the layers of a stacked leaf, because factors, clipping and scale belong to one layer's matrix;
- clipping and parameter scale in one line each, because optax's take a parameter tree, and its parameter scale reads
  every parameter twice.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

Axes = tuple[str, ...]
"""Logical names of a parameter's axes."""

_JOINED = (("heads", "head"), ("kv_heads", "head"))
"""Neighbouring axes that are one dimension of the matrix a kernel stands for."""


class AdafactorState(NamedTuple):
    """Steps made, and second moments: `v_row`, `v_col` of factored parameters, `v` of the others.

    Each tree has a leaf for each parameter; where it has nothing to hold, the leaf has one element per layer.
    """

    count: Any
    v_row: Any
    v_col: Any
    v: Any


def matrix_view(shape: tuple[int, ...], axes: Axes) -> tuple[tuple[int, ...], Axes]:
    """Shape and axis names of one layer of a parameter, seen as the matrix (or vector) it is.

    Example:
        >>> matrix_view((6, 512, 8, 64), ("layers", "embed", "heads", "head"))
        ((512, 512), ('embed', 'heads'))
    """
    pairs = list(zip(shape, axes, strict=True))
    pairs = pairs[1:] if axes[:1] == ("layers",) else pairs
    view: list[tuple[int, str]] = []
    for size, name in pairs:
        if view and (view[-1][1], name) in _JOINED:
            view[-1] = (view[-1][0] * size, view[-1][1])
        else:
            view.append((size, name))
    return tuple(size for size, _ in view), tuple(name for _, name in view)


def factored_axes(shape: tuple[int, ...], axes: Axes, *, min_dim: int) -> tuple[Axes, Axes] | None:
    """Names of the axes of a parameter's `v_row` and `v_col`; None if its second moment is kept whole.

    The rows' moment is the mean over the largest dimension of the view, the columns' over the second largest.

    Example:
        >>> factored_axes((6, 512, 2048), ("layers", "embed", "mlp"), min_dim=128)
        (('layers', 'embed'), ('layers', 'mlp'))
    """
    view, names = matrix_view(shape, axes)
    order = sorted(range(len(view)), key=lambda i: view[i])  # stable, as optax's argsort on so few elements
    if len(view) < 2 or view[order[-2]] < min_dim:
        return None
    layers = axes[:1] if axes[:1] == ("layers",) else ()
    without_largest = tuple(name for i, name in enumerate(names) if i != order[-1])
    without_second = tuple(name for i, name in enumerate(names) if i != order[-2])
    return layers + without_largest, layers + without_second


def scale_by_adafactor(
    axes: Any,
    *,
    decay_exponent: float,
    epsilon: float,
    clip_threshold: float | None,
    minimum_scale: float | None,
    min_dim_factored: int | None,
) -> optax.GradientTransformation:
    """Gradients to Adafactor's update directions, before learning rate and sign.

    Formula, for a gradient G of one layer at step t = 0, 1, ...: V moves towards G^2 + epsilon with rate
    (t + 1)^-decay_exponent; U = G / sqrt(V) (V the outer product of its row and column means where factored);
    U is divided by max(1, RMS(U) / clip_threshold) and multiplied by max(RMS(parameter), minimum_scale).

    Args:
        axes: tree of the logical axes of each parameter.
        decay_exponent: 0.8 in T5.
        epsilon: added to squared gradients.
        clip_threshold: greatest RMS of an update; None: no clipping.
        minimum_scale: least RMS a parameter is taken to have; None: updates are not relative to the parameter.
        min_dim_factored: factor where both dimensions are at least this; None: never.
    """
    moments = optax.scale_by_factored_rms(
        factored=min_dim_factored is not None,
        decay_rate=decay_exponent,
        min_dim_size_to_factor=min_dim_factored or 0,
        epsilon=epsilon,
    )

    def init(params: Any) -> AdafactorState:
        with jax.numpy_dtype_promotion("standard"):
            leaves = jax.tree.map(lambda p, a: _by_layer(moments.init, a)(_view(p, a)), params, axes)
        parts = [jax.tree.map(lambda _, s, f=field: getattr(s, f), params, leaves) for field in ("v_row", "v_col", "v")]
        return AdafactorState(jnp.zeros((), jnp.int32), *parts)

    def update_layer(count: Array, g: Array, v_row: Array, v_col: Array, v: Array, p: Array) -> tuple[Array, ...]:
        update, state = moments.update(g, optax.FactoredState(count, v_row, v_col, v), p)
        if clip_threshold is not None:
            update = update / jnp.maximum(1.0, _rms(update) / clip_threshold)
        if minimum_scale is not None:
            update = update * jnp.maximum(_rms(p), minimum_scale)
        return update, state.v_row, state.v_col, state.v

    def update(gradients: Any, state: AdafactorState, params: Any) -> tuple[Any, AdafactorState]:
        def update_leaf(g: Array, v_row: Array, v_col: Array, v: Array, p: Array, a: Axes) -> tuple[Array, ...]:
            one = _by_layer(functools.partial(update_layer, state.count), a)
            new, *moments = one(_view(g, a), v_row, v_col, v, _view(p, a))
            return new.reshape(g.shape), *moments

        with jax.numpy_dtype_promotion("standard"):
            leaves = jax.tree.map(update_leaf, gradients, state.v_row, state.v_col, state.v, params, axes)
        updates, *moments = (jax.tree.map(lambda _, leaf, i=i: leaf[i], params, leaves) for i in range(4))
        return updates, AdafactorState(optax.safe_increment(state.count), *moments)

    return optax.GradientTransformation(init, update)


def _view(x: Array, axes: Axes) -> Array:
    """The parameter with each layer seen as a matrix; the layers stay in front."""
    view, _ = matrix_view(x.shape, axes)
    return x.reshape(x.shape[:1] + view if axes[:1] == ("layers",) else view)


def _by_layer(function: Any, axes: Axes) -> Any:
    return jax.vmap(function) if axes[:1] == ("layers",) else function


def _rms(x: Float[Array, "..."]) -> Float[Array, ""]:
    return jnp.sqrt(jnp.mean(jnp.square(x)))
