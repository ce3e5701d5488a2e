"""States of earlier segments of a text, which the blocks of a stack go on reading without a gradient."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Memory:
    """What the blocks of a stack read before the positions of a segment; it holds constants, never gradients.

    Attributes:
        states: Float [L, B, M, D], the inputs of every block at the M positions before the segment.
        is_real: Boolean [B, M], which of them may be read: neither padding, nor room that nothing has filled yet.

    Leaves carry no checked annotations, because JAX rebuilds this class around tracers, shapes and axis names.

    Reference: Dai et al., Transformer-XL, arXiv:1901.02860, section 3.2.
    """

    states: Any
    is_real: Any

    @property
    def length(self) -> int:
        """M."""
        return self.states.shape[2]


def empty(*, num_layers: int, batch_size: int, length: int, d_model: int, dtype: Any = jnp.float32) -> Memory:
    """A memory before the first segment: room for `length` positions, none of them real."""
    states = jnp.zeros((num_layers, batch_size, length, d_model), dtype)
    return Memory(states=states, is_real=jnp.zeros((batch_size, length), bool))


def remember(
    memory: Memory | None,
    inputs: Sequence[Float[Array, "B T D"]],
    is_real: Bool[Array, "B T"],
    *,
    length: int,
    reuse: int | None = None,
) -> Memory:
    """The memory after a segment: always of `length` positions, whatever the lengths of the old one and the segment.

    Args:
        memory: before the segment; None = empty.
        inputs: of every block at the positions of the segment.
        is_real: which of the positions are no padding.
        length: positions to keep, the latest ones.
        reuse: how many positions of the segment, from the first, to remember; None = all of them.
    """
    states = jnp.stack([state[:, :reuse] for state in inputs])
    real = is_real[:, :reuse]
    if memory is not None:
        states = jnp.concatenate([memory.states.astype(states.dtype), states], axis=2)
        real = jnp.concatenate([memory.is_real, real], axis=1)
    missing = max(length - real.shape[1], 0)
    states = jnp.pad(states, ((0, 0), (0, 0), (missing, 0), (0, 0)))[:, :, states.shape[2] + missing - length :]
    real = jnp.pad(real, ((0, 0), (missing, 0)))[:, real.shape[1] + missing - length :]
    return Memory(states=jax.lax.stop_gradient(states), is_real=real)
