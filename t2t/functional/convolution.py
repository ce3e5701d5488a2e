"""Convolution over positions that stays within an example."""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float


def convolve(
    x: Float[Array, "B T D"], kernel: Float[Array, "K D E"], *, mask: Bool[Array, "#B T T"] | None = None
) -> Float[Array, "B T E"]:
    """Sums over neighbours: `out[b, t] = sum_k x[b, t + k - K // 2] @ kernel[k]`, K odd.

    Neighbours outside the row, and those that the mask says may not be read, count as zeros.

    Example:
        >>> x, kernel = jnp.array([[[1.0], [2.0], [3.0]]]), jnp.array([[[100.0]], [[10.0]], [[1.0]]])
        >>> convolve(x, kernel)[0, :, 0].tolist()
        [12.0, 123.0, 230.0]
        >>> mask = jnp.array([[[True, True, False], [True, True, False], [False, False, True]]])
        >>> convolve(x, kernel, mask=mask)[0, :, 0].tolist()
        [12.0, 120.0, 30.0]
    """
    reach, length = kernel.shape[0] // 2, x.shape[1]
    padded = jnp.pad(x, ((0, 0), (reach, reach), (0, 0)))
    neighbours = [padded[:, k : k + length] for k in range(kernel.shape[0])]
    if mask is not None:
        sides = ((0, 0), (0, 0), (reach, reach))
        diagonals = jnp.pad(mask, sides)
        readable = [jnp.diagonal(diagonals, offset=k, axis1=1, axis2=2)[..., None] for k in range(kernel.shape[0])]
        neighbours = [jnp.where(may, part, 0) for may, part in zip(readable, neighbours, strict=True)]
    # One product over all neighbours.
    return jnp.einsum("BTKD,KDE->BTE", jnp.stack(neighbours, axis=2), kernel)
