"""Which position may read which: boolean masks [B, T, S], True = may attend.

Segment ids are the only source of padding (0) and of packing (k = k-th example of the row); token ids are never looked
at. `None` in place of a mask means that everything may be read, and costs nothing.
"""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Int


def segment_mask(reader: Int[Array, "B T"], read: Int[Array, "B S"]) -> Bool[Array, "B T S"]:
    """True where both positions belong to the same example; padding (segment 0) neither reads nor is read.

    Example:
        >>> segment_mask(jnp.array([[1, 2, 0]]), jnp.array([[1, 1, 2, 0]]))[0].astype(int).tolist()
        [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    """
    return (reader[:, :, None] == read[:, None, :]) & (reader[:, :, None] != 0)


def causal_mask(length: int, key_length: int | None = None) -> Bool[Array, "1 T S"]:
    """True where the position read is not later than the reader: `s <= t`.

    Example:
        >>> causal_mask(3)[0].astype(int).tolist()
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    rows = jnp.arange(length)[:, None]
    columns = jnp.arange(length if key_length is None else key_length)[None, :]
    return (columns <= rows)[None]


def prefix_mask(reader: Int[Array, "B T"], read: Int[Array, "B S"]) -> Bool[Array, "B T S"]:
    """True where both positions are marked (nonzero) as belonging to a fully visible prefix.

    Example:
        >>> prefix_mask(jnp.array([[1, 1, 0]]), jnp.array([[1, 1, 0]]))[0].astype(int).tolist()
        [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    """
    return (reader[:, :, None] != 0) & (read[:, None, :] != 0)


def encoder_mask(segment_ids: Int[Array, "B T"] | None) -> Bool[Array, "B T T"] | None:
    """Mask of a bidirectional stack: everything within an example."""
    return None if segment_ids is None else segment_mask(segment_ids, segment_ids)


def decoder_mask(
    length: int, *, segment_ids: Int[Array, "B T"] | None = None, prefix: Int[Array, "B T"] | None = None
) -> Bool[Array, "#B T T"]:
    """Mask of a causal stack, or of a prefix language model where `prefix` marks the fully visible positions.

    Position t reads s iff both are of the same example and (s <= t or both are marked).

    Example:
        >>> decoder_mask(4, prefix=jnp.array([[1, 1, 1, 0]]))[0].astype(int).tolist()
        [[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 1]]

    Reference: Raffel et al., Exploring the Limits of Transfer Learning, arXiv:1910.10683, figures 3 and 4.
    """
    mask = causal_mask(length)
    if prefix is not None:
        mask = mask | prefix_mask(prefix, prefix)
    if segment_ids is not None:
        mask = mask & segment_mask(segment_ids, segment_ids)
    return mask


def cross_mask(
    reader: Int[Array, "B T"] | None, read: Int[Array, "B S"] | None, *, length: int, key_length: int
) -> Bool[Array, "B T S"] | None:
    """Mask of a decoder reading an encoder: example k reads example k. Absent ids mean one example without padding."""
    if reader is None and read is None:
        return None
    present = reader if reader is not None else read
    if reader is None:
        reader = jnp.ones((present.shape[0], length), present.dtype)
    if read is None:
        read = jnp.ones((present.shape[0], key_length), present.dtype)
    return segment_mask(reader, read)


def cache_mask(
    length: int, *, index: Int[Array, ""] | int, starts: Int[Array, " B"], key_length: int
) -> Bool[Array, "B T S"]:
    """Causal mask of `length` new positions from `index` on over a cache whose rows are real from `starts` on.

    Example:
        >>> cache_mask(1, index=2, starts=jnp.array([0, 1]), key_length=4)[:, 0].astype(int).tolist()
        [[1, 1, 1, 0], [0, 1, 1, 0]]
    """
    rows = index + jnp.arange(length)[None, :, None]
    columns = jnp.arange(key_length)[None, None, :]
    return (columns <= rows) & (columns >= starts[:, None, None])


def window_mask(length: int, key_length: int, *, index: Int[Array, ""] | int = 0, window: int) -> Bool[Array, "1 T S"]:
    """True where the positions are at most `window` apart; the first reader is at `index`.

    Example:
        >>> window_mask(3, 3, window=1)[0].astype(int).tolist()
        [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    """
    rows = index + jnp.arange(length)[:, None]
    return (jnp.abs(jnp.arange(key_length)[None, :] - rows) <= window)[None]


def permutation_mask(
    forbidden: Int[Array, "B T T"], segment_ids: Int[Array, "B T"] | None = None
) -> Bool[Array, "B T T"]:
    """Mask of a permuted order: position t reads s of its example unless `forbidden[t, s]` is 1, and itself always.

    Example:
        >>> permutation_mask(jnp.array([[[1, 0, 0], [1, 1, 1], [1, 0, 1]]]))[0].astype(int).tolist()
        [[1, 1, 1], [0, 1, 0], [0, 1, 1]]

    Reference: Yang et al., XLNet, arXiv:1906.08237, section 2.3, the content stream.
    """
    mask = (forbidden == 0) | jnp.eye(forbidden.shape[1], dtype=bool)[None]
    return mask if segment_ids is None else mask & segment_mask(segment_ids, segment_ids)


def query_mask(
    forbidden: Int[Array, "B T T"], rows: Int[Array, "B K"], segment_ids: Int[Array, "B T"] | None = None
) -> Bool[Array, "B K T"]:
    """Mask of readers at the positions `rows` of a permuted order: itself a position reads only where it is allowed.

    Example:
        >>> query_mask(jnp.array([[[1, 0, 0], [1, 1, 1], [1, 0, 1]]]), jnp.array([[2, 0]]))[0].astype(int).tolist()
        [[0, 1, 0], [0, 1, 1]]

    Reference: Yang et al., XLNet, arXiv:1906.08237, section 2.3, the query stream.
    """
    mask = forbidden == 0
    mask = mask if segment_ids is None else mask & segment_mask(segment_ids, segment_ids)
    return jnp.take_along_axis(mask, rows[:, :, None], axis=1)


def with_past(
    mask: Bool[Array, "#B T S"] | None, is_real: Bool[Array, "B P"], *, length: int, key_length: int
) -> Bool[Array, "B T Q"]:
    """A mask over earlier positions, all of which are read where they are real, and then those of `mask` (None = all).

    Example:
        >>> with_past(causal_mask(2), jnp.array([[False, True]]), length=2, key_length=2)[0].astype(int).tolist()
        [[0, 1, 1, 0], [0, 1, 1, 1]]
    """
    shape = (is_real.shape[0], length)
    own = jnp.ones((1, 1, key_length), bool) if mask is None else mask
    past = jnp.broadcast_to(is_real[:, None], (*shape, is_real.shape[1]))
    return jnp.concatenate([past, jnp.broadcast_to(own, (*shape, key_length))], axis=-1)
