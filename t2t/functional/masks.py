"""Which position may read which: boolean masks [B, T, S], True = may attend; and `Mask`, the rules that they follow.

Models say the rules. Attention kernels read those, which take no room; all else reads the booleans made of them.

Segment ids are the only source of padding (0) and of packing (k = k-th example of the row); token ids are never looked
at. `None` in place of a mask means that everything may be read, and costs nothing.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Int


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Mask:
    """Position t reads s iff every rule allows it; without rules everything is read.

    Attributes:
        causal: `s <= t`, or both are marked in `prefix`.
        window: `|t - s| <= window`, or None.
        reader: [B, T] segment ids of the readers: those of the example k read the example k, padding (0) nothing.
        read: [B, S] segment ids of what is read; both are given, or none (one example without padding).
        prefix: [B, T] nonzero over the fully visible prefix of causal rows, or None.
    """

    causal: bool = dataclasses.field(default=False, metadata={"static": True})
    window: int | None = dataclasses.field(default=None, metadata={"static": True})
    reader: Any = None
    read: Any = None
    prefix: Any = None

    def dense(self, *, length: int, key_length: int) -> Bool[Array, "#B T S"] | None:
        """The rules as booleans; None if there are none.

        Example:
            >>> rules = Mask(causal=True, reader=jnp.array([[1, 1, 2]]), read=jnp.array([[1, 1, 2]]))
            >>> rules.dense(length=3, key_length=3)[0].astype(int).tolist()
            [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
        """
        parts = []
        if self.causal:
            causal = causal_mask(length, key_length)
            parts.append(causal if self.prefix is None else causal | prefix_mask(self.prefix, self.prefix))
        if self.reader is not None:
            parts.append(segment_mask(self.reader, self.read))
        if self.window is not None:
            parts.append(window_mask(length, key_length, window=self.window))
        if not parts:
            return None
        mask = parts[0]
        for part in parts[1:]:
            mask = mask & part
        return mask


def dense(mask: Mask | Array | None, *, length: int, key_length: int) -> Bool[Array, "#B T S"] | None:
    """A mask as booleans, whether it is given as rules, as booleans, or not at all (all is read)."""
    return mask.dense(length=length, key_length=key_length) if isinstance(mask, Mask) else mask


def encoder_rules(segment_ids: Int[Array, "B T"] | None) -> Mask:
    """The rules of `encoder_mask`."""
    return Mask(reader=segment_ids, read=segment_ids)


def decoder_rules(*, segment_ids: Int[Array, "B T"] | None = None, prefix: Int[Array, "B T"] | None = None) -> Mask:
    """The rules of `decoder_mask`."""
    return Mask(causal=True, reader=segment_ids, read=segment_ids, prefix=prefix)


def cross_rules(
    reader: Int[Array, "B T"] | None, read: Int[Array, "B S"] | None, *, length: int, key_length: int
) -> Mask:
    """The rules of `cross_mask`."""
    return Mask(**dict(zip(("reader", "read"), _both(reader, read, length, key_length), strict=True)))


def within(
    mask: Mask | Array | None, window: int | None, *, length: int, key_length: int, index: Int[Array, ""] | int = 0
) -> Mask | Array | None:
    """The mask without what is farther than `window` (None = nothing is); the first reader is at `index`."""
    if window is None:
        return mask
    if isinstance(mask, Mask):
        return dataclasses.replace(mask, window=window)
    near = window_mask(length, key_length, index=index, window=window)
    return near if mask is None else mask & near


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
    reader, read = _both(reader, read, length, key_length)
    return None if reader is None else segment_mask(reader, read)


def _both(reader: Array | None, read: Array | None, length: int, key_length: int) -> tuple[Array | None, Array | None]:
    """Segment ids of both sides, ones on the side that has none where the other has."""
    present = reader if reader is not None else read
    if present is None:
        return None, None
    if reader is None:
        reader = jnp.ones((present.shape[0], length), present.dtype)
    if read is None:
        read = jnp.ones((present.shape[0], key_length), present.dtype)
    return reader, read


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
