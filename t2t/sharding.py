"""Where arrays live: the mesh of devices, the rules from logical axes to mesh axes, and the shardings they give.

A mesh has four named axes:

    data      rows of the batch; parameters are copied
    fsdp      rows of the batch too; parameters and optimizer state are split along d_model and gathered when used
    tensor    heads, d_ff and vocabulary: each device computes a part of every layer
    sequence  positions of activations

The program is the same on one device and on many: jit sees global arrays, and XLA inserts the communication.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from flax import linen
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from t2t import config

MESH_AXES = ("data", "fsdp", "tensor", "sequence")

RULES: tuple[tuple[str, str | tuple[str, ...] | None], ...] = (
    ("batch", ("data", "fsdp")),
    ("length", "sequence"),
    ("vocab", "tensor"),
    ("mlp", "tensor"),
    ("heads", "tensor"),
    ("kv_heads", "tensor"),
    ("embed", "fsdp"),
    ("head", None),
    ("layers", None),
    ("types", None),
    ("positions", None),
)
"""Mesh axes of each logical axis.

A mesh axis is used once per array, by the first of the array's axes that names it: activations [batch, length, embed]
are split over fsdp by rows, parameters [embed, mlp] by d_model. The order of the rules does not matter."""

MAY_STAY_WHOLE = ("vocab", "kv_heads")
"""Logical axes that are copied where the mesh does not divide them (GPT-2's vocabulary of 50257, one key/value head).
Every other axis that does not divide is an error."""

HOST_KEYS = ("lane", "position")
"""Keys of a batch that stay on the host."""

Axes = tuple[str, ...]


def make_mesh(sizes: config.Mesh, *, devices: Sequence[Any] | None = None) -> Mesh:
    """The mesh of these sizes over all devices (of all hosts).

    Args:
        sizes: devices along each axis; at most one may be -1.
        devices: None = every device there is.

    Raises:
        ValueError: if the sizes do not multiply to the number of devices, or processes would share rows of a batch.
    """
    devices = jax.devices() if devices is None else list(devices)
    wanted = {axis: getattr(sizes, axis) for axis in MESH_AXES}
    shape = mesh_shape(wanted, num_devices=len(devices))
    # Auto, because jax.make_mesh's default became Explicit, under which a lookup table[ids] is an error.
    auto = (AxisType.Auto,) * len(MESH_AXES)
    mesh = jax.make_mesh(shape, MESH_AXES, axis_types=auto, devices=devices)
    if processes_share_rows(mesh):  # arranged by the links between devices; in their own order they are by process
        mesh = Mesh(np.reshape(devices, shape), MESH_AXES, axis_types=auto)
    if processes_share_rows(mesh):
        processes = len({_process(device) for device in devices})
        each = len(devices) // processes
        raise ValueError(
            f"mesh {_sizes(mesh, MESH_AXES)} over {processes} processes of {each} devices: each process makes its own "
            f"rows of the batch, so devices that share rows (tensor x sequence = {shape[2] * shape[3]}) must be of one "
            f"process. Choose tensor x sequence among {_listed(_divisors(each))}; data x fsdp takes the rest"
        )
    return mesh


def processes_share_rows(mesh: Mesh) -> bool:
    """Whether some rows of a batch would live on devices of two processes, of which each makes others for them."""
    rows = mesh.devices.reshape(mesh.shape["data"] * mesh.shape["fsdp"], -1)
    return any(len({_process(device) for device in devices}) > 1 for devices in rows)


def _process(device: Any) -> int:
    return device.process_index


def mesh_shape(sizes: Mapping[str, int], *, num_devices: int) -> tuple[int, ...]:
    """The sizes with -1 replaced by what is left of `num_devices`.

    Example:
        >>> mesh_shape({"data": -1, "fsdp": 2, "tensor": 1, "sequence": 1}, num_devices=8)
        (4, 2, 1, 1)
    """
    text = " x ".join(f"{axis}={size}" for axis, size in sizes.items())
    if any(size < 1 and size != -1 for size in sizes.values()) or list(sizes.values()).count(-1) > 1:
        raise ValueError(f"mesh {text}: sizes are positive, and at most one is -1 (= all devices that are left)")
    fixed = math.prod(size for size in sizes.values() if size != -1)
    fits = num_devices % fixed == 0 if -1 in sizes.values() else num_devices == fixed
    if not fits:
        raise ValueError(
            f"mesh {text} asks for {'a multiple of ' if -1 in sizes.values() else ''}{fixed} devices, and there are "
            f"{num_devices}: choose sizes whose product is {num_devices}, or give one axis -1 and the others sizes "
            f"whose product divides it ({_listed(_divisors(num_devices))})"
        )
    return tuple(num_devices // fixed if size == -1 else size for size in sizes.values())


@contextlib.contextmanager
def use_mesh(mesh: Mesh) -> Iterator[None]:
    """Make `mesh` the one that logical constraints inside models refer to, while a step is traced or run."""
    with jax.set_mesh(mesh), linen.logical_axis_rules(RULES):
        yield


def partition_spec(shape: tuple[int, ...], axes: Axes, mesh: Mesh, *, path: str = "array") -> PartitionSpec:
    """How an array with these logical axes is split over the mesh.

    A parameter with one axis (a norm's scale, a bias) is not split over fsdp: gathering it costs more than keeping it.

    Args:
        shape: of the array.
        axes: a logical name for each axis.
        mesh: made by `make_mesh`.
        path: what to call the array in an error.

    Raises:
        ValueError: if an axis that must be split is not divisible.
    """
    rules = dict(RULES)
    is_vector = len([axis for axis in axes if axis != "layers"]) < 2
    used: set[str] = set()
    entries: list[Any] = []
    for size, axis in zip(shape, axes, strict=True):
        if axis not in rules:
            raise ValueError(f"{path}: no rule for logical axis {axis!r}; there are {sorted(rules)}")
        wanted = rules[axis] if isinstance(rules[axis], tuple) else (rules[axis],)
        names = tuple(name for name in wanted if name and name not in used and mesh.shape[name] > 1)
        if is_vector:
            names = tuple(name for name in names if name != "fsdp")
        parts = math.prod(mesh.shape[name] for name in names)
        if size % parts and axis in MAY_STAY_WHOLE:
            names = ()
        elif size % parts:
            raise ValueError(
                f"{path}: {axis}={size} cannot be split over {_sizes(mesh, names)} devices; "
                f"numbers that divide it: {_listed(_divisors(size))}"
            )
        used.update(names)
        entries.append(names if len(names) > 1 else (names[0] if names else None))
    while entries and entries[-1] is None:
        entries.pop()
    return PartitionSpec(*entries)


def named_sharding(shape: tuple[int, ...], axes: Axes, mesh: Mesh, *, path: str = "array") -> NamedSharding:
    """`partition_spec` on its mesh."""
    return NamedSharding(mesh, partition_spec(shape, axes, mesh, path=path))


def replicated(mesh: Mesh) -> NamedSharding:
    """A copy on every device."""
    return NamedSharding(mesh, PartitionSpec())


def param_shardings(shapes: Any, axes: Any, mesh: Mesh) -> Any:
    """The sharding of each parameter, from trees of shapes and of logical axes."""

    def one(path: tuple[Any, ...], leaf: Any, names: Axes) -> NamedSharding:
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        return named_sharding(leaf.shape, names, mesh, path=name)

    return jax.tree_util.tree_map_with_path(one, shapes, axes)


def batch_sharding(mesh: Mesh) -> NamedSharding:
    """Rows of a batch over data and fsdp."""
    return NamedSharding(mesh, PartitionSpec(("data", "fsdp")))


def shard_batch(batch: Mapping[str, np.ndarray], mesh: Mesh) -> dict[str, jax.Array]:
    """The global batch on the devices, from the rows that this host made.

    Keys that stay on the host (`HOST_KEYS`) are left out.
    """
    sharding = batch_sharding(mesh)
    return {
        key: jax.make_array_from_process_local_data(sharding, np.asarray(value))
        for key, value in batch.items()
        if key not in HOST_KEYS
    }


def check_batch_size(batch_size: int, mesh: Mesh, *, micro_batches: int = 1) -> None:
    """Refuse a global batch whose micro-batches the devices cannot share evenly.

    Raises:
        ValueError: naming the sizes and the nearest that fit.
    """
    devices = mesh.shape["data"] * mesh.shape["fsdp"]
    unit = devices * micro_batches
    if batch_size < 1 or batch_size % unit:
        below, above = batch_size // unit * unit, -(-batch_size // unit) * unit or unit
        fits = " or ".join(str(size) for size in (below, above) if size)
        raise ValueError(
            f"batch_size={batch_size} cannot be cut into micro_batches={micro_batches} of equal rows on each of "
            f"{_sizes(mesh, ('data', 'fsdp'))} devices: it must be a multiple of {unit}, such as {fits}"
        )


def _sizes(mesh: Mesh, names: Sequence[str]) -> str:
    return " x ".join(f"{name}={mesh.shape[name]}" for name in names)


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:12])) + (", ..." if len(numbers) > 12 else "")
