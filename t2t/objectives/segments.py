"""What an objective takes from one segment of a text to the next: the memory of its model, and the token just read.

The carry holds that of all rows of the global batch, one entry for each micro-batch, which take turns: the first entry
is that of the micro-batch whose turn it is, and what it leaves goes to the end. An empty carry (evaluation, or a model
that does not remember) means segments that follow nothing.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from t2t.objectives.base import Carry

UNREAD = -1
"""In place of the token before a segment that follows nothing."""


def initial(network: Any, *, rows: int, micro_batches: int, with_tokens: bool = False) -> Carry:
    """The carry before the first segment; () for a model that does not remember.

    Args:
        network: whose memory it is.
        rows: of the global batch.
        micro_batches: that a batch is cut into.
        with_tokens: whether the last token of every row is carried too.
    """
    memory = network.empty_memory(rows // micro_batches)
    if memory is None:
        return ()
    carry = {"memory": memory}
    if with_tokens:
        carry["token"] = jnp.full((rows // micro_batches,), UNREAD, jnp.int32)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (micro_batches, *leaf.shape)), carry)


def axes(carry: Carry) -> Any:
    """Logical axes of every array of a carry: its rows are split over the devices as those of the batch are."""
    if not carry:
        return ()
    states, is_real = ("types", "layers", "batch", "positions", "head"), ("types", "batch", "positions")
    named = {"memory": type(carry["memory"])(states, is_real)}
    return named | ({"token": ("types", "batch")} if "token" in carry else {})


def now(carry: Carry) -> dict[str, Any]:
    """What the micro-batch whose turn it is reads: `memory`, and `token` where it is carried; {} for an empty carry."""
    return jax.tree.map(lambda leaf: leaf[0], carry) if carry else {}


def then(carry: Carry, **left: Any) -> Carry:
    """The carry after a micro-batch that has left this."""
    if not carry:
        return carry
    return jax.tree.map(lambda leaf, new: jnp.concatenate([leaf[1:], new[None].astype(leaf.dtype)]), carry, left)


def continue_inputs(
    inputs: Int[Array, "B T"], *, token: Int[Array, " B"], segment_ids: Int[Array, "B T"]
) -> Int[Array, "B T"]:
    """Decoder inputs whose first token is the last one read before, in place of the token that starts a text.

    Example:
        >>> inputs, ids = jnp.array([[0, 5, 6], [0, 7, 8]]), jnp.ones((2, 3), jnp.int32)
        >>> continue_inputs(inputs, token=jnp.array([9, UNREAD]), segment_ids=ids).tolist()
        [[9, 5, 6], [0, 7, 8]]
    """
    follows = (token != UNREAD) & (segment_ids[:, 0] != 0)
    return inputs.at[:, 0].set(jnp.where(follows, token, inputs[:, 0]))


def last_tokens(
    targets: Int[Array, "B T"], *, token: Int[Array, " B"], segment_ids: Int[Array, "B T"]
) -> Int[Array, " B"]:
    """The last target of every row that is no padding; the one before, where a row is empty."""
    count = jnp.sum(segment_ids != 0, axis=1)
    last = jnp.take_along_axis(targets, jnp.maximum(count - 1, 0)[:, None], axis=1)[:, 0]
    return jnp.where(count > 0, last, token)
