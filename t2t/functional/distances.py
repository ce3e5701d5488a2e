"""Scores of distances that depend on content: sinusoids of distances, and their products moved to where they belong."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int


def distance_sinusoids(
    *, length: int, past_length: int = 0, width: int, max_distance: int | None = None
) -> Float[np.ndarray, "W D"]:
    """Sines, then cosines, of every distance `t - s` from T readers to the P + T positions they read.

    The distances are P + T - 1, ..., 1, 0, -1, ..., 1 - T in this order; those beyond `max_distance` count as it.
    Computed in NumPy, float64, when the program is traced.

    Example:
        >>> distance_sinusoids(length=2, width=2).round(3).tolist()
        [[0.841, 0.54], [0.0, 1.0], [-0.841, 0.54]]

    Reference: Dai et al., Transformer-XL, arXiv:1901.02860, section 3.3; the two halves as in the released code.
    """
    distances = np.arange(past_length + length - 1, -length, -1, dtype=np.float64)
    if max_distance is not None:
        distances = np.clip(distances, -max_distance, max_distance)
    angles = distances[:, None] * 10_000.0 ** (-np.arange(0, width, 2, dtype=np.float64) / width)[None]
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)


def mirror(sinusoids: Float[Array, "W D"]) -> Float[Array, "W D"]:
    """The sinusoids of the opposite distances: sines change their sign, cosines do not.

    Example:
        >>> table = jnp.asarray(distance_sinusoids(length=2, width=2))
        >>> bool(jnp.all(mirror(table) == table[::-1]))
        True
    """
    signs = jnp.where(jnp.arange(sinusoids.shape[1]) < sinusoids.shape[1] // 2, -1, 1)
    return sinusoids * signs.astype(sinusoids.dtype)[None]


def shift_rows(products: Float[Array, "B N T W"]) -> Float[Array, "B N T S"]:
    """Products with distances, moved to the positions that are so far away: `out[t, s] = products[t, T - 1 - t + s]`.

    The columns are those of `distance_sinusoids`, W = T + S - 1. Reshaping and slicing only ("relative shift").

    Example:
        >>> shift_rows(jnp.array([[[[2.0, 1.0, 0.0, -1.0], [2.0, 1.0, 0.0, -1.0]]]]))[0, 0].tolist()
        [[1.0, 0.0, -1.0], [2.0, 1.0, 0.0]]

    Reference: Dai et al., Transformer-XL, arXiv:1901.02860, appendix B.
    """
    *axes, length, width = products.shape
    # A row more each time: with one column more, row t starts T - 1 - t later than in a view with W columns.
    flat = jnp.pad(products, [(0, 0)] * (products.ndim - 1) + [(0, 1)]).reshape(*axes, -1)
    rows = flat[..., length - 1 : length - 1 + length * width].reshape(*axes, length, width)
    return rows[..., : width - length + 1]


def shift_rows_at(
    products: Float[Array, "B N K W"], rows: Int[Array, "B K"], *, length: int
) -> Float[Array, "B N K S"]:
    """As `shift_rows` for readers that stand anywhere: reader k at position `rows[b, k]` of the T that are read.

    Example:
        >>> products = jnp.array([[[[2.0, 1.0, 0.0, -1.0], [2.0, 1.0, 0.0, -1.0]]]])
        >>> shift_rows_at(products, jnp.array([[1, 0]]), length=2)[0, 0].tolist()
        [[2.0, 1.0, 0.0], [1.0, 0.0, -1.0]]
    """
    size = products.shape[-1] - length + 1

    def window(products_NW: Array, row: Array) -> Array:
        return jax.lax.dynamic_slice_in_dim(products_NW, length - 1 - row, size, axis=-1)

    return jax.vmap(jax.vmap(window, in_axes=(1, 0), out_axes=1))(products, rows)
