"""Computing on each device's own part of a batch, where XLA left to itself would communicate more often than needed."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.sharding import PartitionSpec

FEATURES, POSITIONS = "tensor", "sequence"
"""Mesh axes that split what belongs to a row; all others split the rows of a batch."""


@dataclasses.dataclass(frozen=True)
class MeshAxes:
    """The axes of the mesh in effect that have several devices and that the code around does not split by hand.

    Attributes:
        rows: Those that split the rows of a batch.
        features: Those that split heads and vocabulary.
        positions: Those that split rows by position.
    """

    rows: tuple[str, ...]
    features: tuple[str, ...]
    positions: tuple[str, ...]


def mesh_axes() -> MeshAxes:
    """The axes of the mesh in effect; none without a mesh."""
    mesh = jax.sharding.get_abstract_mesh()
    free = [axis for axis in mesh.axis_names if mesh.shape[axis] > 1 and axis not in mesh.manual_axes]
    return MeshAxes(
        rows=tuple(axis for axis in free if axis not in (FEATURES, POSITIONS)),
        features=tuple(axis for axis in free if axis == FEATURES),
        positions=tuple(axis for axis in free if axis == POSITIONS),
    )


def over_rows(function: Callable[[Any, Any], Any], rows: Any, *, shared: Any) -> Any:
    """The sums over all rows of `function(rows, shared)`, each device computing those of its own rows and positions.

    The gradient of `shared` is added up over the devices once, after all that a device computes. Axes of features stay
    XLA's to split. Without a mesh, or with one that does not divide the rows, the function is called as it is.

    Args:
        function: gives a tree of scalars that are sums over rows and positions.
        rows: a tree of arrays [B, T, ...].
        shared: a tree of arrays that every row reads.
    """
    axes, sizes = mesh_axes(), jax.sharding.get_abstract_mesh().shape
    num_rows, length = jax.tree.leaves(rows)[0].shape[:2]
    batch = axes.rows if num_rows % math.prod(sizes[axis] for axis in axes.rows) == 0 else ()
    positions = axes.positions if length % math.prod(sizes[axis] for axis in axes.positions) == 0 else ()
    if not batch + positions:
        return function(rows, shared)

    def of_device(rows: Any, shared: Any) -> Any:
        return jax.tree.map(lambda total: total[None], function(rows, shared))

    parts = jax.shard_map(
        of_device,
        in_specs=(PartitionSpec(batch or None, positions or None), PartitionSpec()),
        out_specs=PartitionSpec(batch + positions),
        axis_names=set(batch + positions),
        check_vma=False,
    )(rows, shared)
    return jax.tree.map(lambda part: part.sum(axis=0), parts)


Rules = Sequence[tuple[str, str | tuple[str, ...] | None]]


def free_rules(rules: Rules) -> Rules:
    """Rules from logical to mesh axes, without the mesh axes that the code around has split by hand.

    Example:
        >>> free_rules((("batch", ("data", "fsdp")), ("vocab", "tensor")))  # no such code around
        (('batch', ('data', 'fsdp')), ('vocab', 'tensor'))
    """
    manual = set(jax.sharding.get_abstract_mesh().manual_axes)
    if not manual:
        return rules

    def left(names: str | tuple[str, ...] | None) -> tuple[str, ...] | None:
        return tuple(name for name in _listed(names) if name not in manual) or None

    return tuple((axis, left(names)) for axis, names in rules)


def _listed(names: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names or ()
