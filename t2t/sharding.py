"""Where arrays live: the mesh of devices, the rules from logical axes to mesh axes, and the shardings they give.

A mesh has four named axes:

    data      rows of the batch; parameters are copied
    fsdp      rows of the batch too; parameters and optimizer state are split along d_model and gathered when used
    tensor    heads, d_ff and vocabulary: each device computes a part of every layer
    sequence  positions of activations

The program is the same on one device and on many: jit sees global arrays, and XLA inserts the communication.
"""

import contextlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from flax import linen
from jax.experimental import mesh_utils
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

    Slices, joined by the data centre's network, are the outermost part of data: gradients are added up over that
    network once a step, and all else travels within a slice. Within a slice of TPUs each axis lies along whole
    dimensions of the torus, in which its devices form rings.

    Args:
        sizes: devices along each axis; at most one may be -1.
        devices: None = every device there is.

    Raises:
        ValueError: if the sizes do not multiply to the number of devices, data cannot be laid over the slices, an axis
            does not fit the torus, or rows of a batch cannot be shared among the processes.
    """
    devices = jax.devices() if devices is None else list(devices)
    wanted = {axis: getattr(sizes, axis) for axis in MESH_AXES}
    shape = mesh_shape(wanted, num_devices=len(devices))
    slices = _slices(devices, sizes.slices)
    if shape[0] % len(slices):
        fits = [d for d in _divisors(len(devices)) if d % len(slices) == 0]
        raise ValueError(
            f"mesh {_text(shape)} over {len(slices)} slices: data alone is laid over the network between slices, so "
            f"mesh.data must be a multiple of {len(slices)}, such as {_listed(fits)}"
        )
    within = (shape[0] // len(slices), *shape[1:])
    arranged = np.concatenate([_arrange(within, one, sizes, num_slices=len(slices)) for one in slices])
    # Auto, because under Explicit axes a lookup table[ids] is an error.
    auto = (AxisType.Auto,) * len(MESH_AXES)
    mesh = Mesh(arranged, MESH_AXES, axis_types=auto)
    if not _rows_can_be_shared(mesh):  # arranged by the links between devices; in their own order they are by process
        mesh = Mesh(np.reshape([device for one in slices for device in one], shape), MESH_AXES, axis_types=auto)
    if not _rows_can_be_shared(mesh):
        processes = len({_process(device) for device in devices})
        each = len(devices) // processes
        raise ValueError(
            f"mesh {_text(shape)} over {processes} processes of {each} devices: two processes would have some rows of "
            f"the batch in common and others not. Choose tensor x sequence (here {shape[2] * shape[3]}) among the "
            f"divisors and multiples of {each}; data x fsdp takes the rest"
        )
    return mesh


def _slices(devices: Sequence[Any], wanted: int) -> list[list[Any]]:
    """The devices of each slice, in their order; devices that belong to none are cut into equal runs."""
    groups: dict[int, list[Any]] = {}
    for device in devices:
        groups.setdefault(getattr(device, "slice_index", 0), []).append(device)  # a device of one slice has none
    found = [groups[index] for index in sorted(groups)]
    is_tpu = devices[0].platform == "tpu"
    if is_tpu and wanted not in (-1, len(found)):
        raise ValueError(f"mesh.slices is {wanted}, but the devices belong to {len(found)}: set that, or -1")
    if is_tpu or wanted == len(found):
        return found
    count = 1 if wanted == -1 else wanted
    if len(devices) % count:
        raise ValueError(
            f"mesh.slices is {count}, and {len(devices)} devices cannot be cut into as many equal groups; possible are "
            f"{_listed(_divisors(len(devices)))}"
        )
    size = len(devices) // count
    return [list(devices[start : start + size]) for start in range(0, len(devices), size)]


def _arrange(shape: tuple[int, ...], devices: Sequence[Any], sizes: config.Mesh, *, num_slices: int) -> np.ndarray:
    """The devices of one slice as an array of this shape, neighbours along the links between them."""
    try:
        return mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=sizes.split_torus)
    except NotImplementedError as error:
        torus = _torus(devices)
        possible = sorted({math.prod(some) for n in range(len(torus) + 1) for some in itertools.combinations(torus, n)})
        data, *others = _fitting(shape, torus)
        of_slice = f", {_text(shape)} in each of {num_slices} slices," if num_slices > 1 else ""
        raise ValueError(
            f"mesh {_text((shape[0] * num_slices, *shape[1:]))}{of_slice} does not fit the torus of "
            f"{' x '.join(map(str, torus))} devices: each axis lies along whole dimensions of it, so its size is a "
            f"product of some of them ({_listed(possible)}), and no dimension serves two axes. Choose such sizes, for "
            f"example {_text((data * num_slices, *others))}, or set mesh.split_torus, which is slower"
        ) from error


def _torus(devices: Sequence[Any]) -> list[int]:
    """The lengths of the dimensions in which devices of one slice are arranged, those of length 1 left out."""
    places = np.array([(*device.coords, device.core_on_chip) for device in devices])
    return [int(size) for size in np.ptp(places, axis=0) + 1 if size > 1]


def _fitting(shape: tuple[int, ...], torus: list[int]) -> tuple[int, ...]:
    """The sizes that fit and differ least from those wanted, by factors; the inner axes count first."""
    best = (math.inf, shape)
    for choice in itertools.product(range(len(shape)), repeat=len(torus)):
        sizes = [1] * len(shape)
        for axis, size in zip(choice, torus, strict=True):
            sizes[axis] *= size
        distance = sum((axis + 1) * abs(math.log(a / b)) for axis, (a, b) in enumerate(zip(sizes, shape, strict=True)))
        best = min(best, (distance, tuple(sizes)))
    return best[1]


def _row_blocks(mesh: Mesh) -> dict[int, list[int]]:
    """Which of the data x fsdp equal parts of a batch the devices of each process hold."""
    parts: dict[int, list[int]] = {}
    for number, devices in enumerate(mesh.devices.reshape(mesh.shape["data"] * mesh.shape["fsdp"], -1)):
        for process in {_process(device) for device in devices}:
            parts.setdefault(process, []).append(number)
    return parts


def _rows_can_be_shared(mesh: Mesh) -> bool:
    """Whether any two processes hold the same rows of a batch or none in common, and all hold as many."""
    parts = {tuple(blocks) for blocks in _row_blocks(mesh).values()}
    total = mesh.shape["data"] * mesh.shape["fsdp"]
    return len({len(blocks) for blocks in parts}) == 1 and sum(map(len, parts)) == total


def host_rows(batch_size: int, mesh: Mesh) -> list[int]:
    """The rows of a global batch that this process makes: those that its devices hold, in order.

    Processes whose devices share rows (tensor or sequence goes over several of them) make the same ones.
    """
    size = batch_size // (mesh.shape["data"] * mesh.shape["fsdp"])
    blocks = _row_blocks(mesh)[jax.process_index()]
    return [row for block in blocks for row in range(block * size, (block + 1) * size)]


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
    used: set[str] = set()
    entries: list[Any] = []
    for size, axis in zip(shape, axes, strict=True):
        if axis not in rules:
            raise ValueError(f"{path}: no rule for logical axis {axis!r}; there are {sorted(rules)}")
        wanted = rules[axis] if isinstance(rules[axis], tuple) else (rules[axis],)
        names = tuple(name for name in wanted if name and name not in used and mesh.shape[name] > 1)
        if _is_vector(axes):
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


def _is_vector(axes: Axes) -> bool:
    return len([axis for axis in axes if axis != "layers"]) < 2


def named_sharding(shape: tuple[int, ...], axes: Axes, mesh: Mesh, *, path: str = "array") -> NamedSharding:
    """`partition_spec` on its mesh."""
    return NamedSharding(mesh, partition_spec(shape, axes, mesh, path=path))


def divided_sharding(shape: tuple[int, ...], axes: Axes, mesh: Mesh, *, path: str = "array") -> NamedSharding:
    """`named_sharding`, and the largest axis that data divides is split over data too; vectors are not.

    For what each copy of the parameters may keep a part of: the optimizer's state.
    """
    spec = partition_spec(shape, axes, mesh, path=path)
    entries = [*spec, *(None,) * (len(shape) - len(spec))]
    copies = mesh.shape["data"]
    best = None
    for number, (size, axis) in enumerate(zip(shape, axes, strict=True)):
        names = entries[number] if isinstance(entries[number], tuple) else filter(None, [entries[number]])
        parts = math.prod(mesh.shape[name] for name in names)
        if axis != "layers" and size % (parts * copies) == 0 and (best is None or size > shape[best]):
            best = number
    if best is None or copies == 1 or _is_vector(axes):
        return NamedSharding(mesh, spec)
    names = entries[best] if isinstance(entries[best], tuple) else tuple(filter(None, [entries[best]]))
    entries[best] = ("data", *names) if names else "data"
    return NamedSharding(mesh, PartitionSpec(*entries[: max(best + 1, len(spec))]))


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
    """The global batch on the devices, from the rows that this process made (`host_rows`).

    Keys that stay on the host (`HOST_KEYS`) are left out.
    """
    return {
        key: jax.make_array_from_process_local_data(shape.sharding, np.asarray(batch[key]), shape.shape)
        for key, shape in batch_shapes(batch, mesh).items()
    }


def batch_shapes(batch: Mapping[str, Any], mesh: Mesh) -> dict[str, jax.ShapeDtypeStruct]:
    """What `shard_batch` makes of a batch: shape, dtype and sharding of the global arrays."""
    sharding = batch_sharding(mesh)
    blocks = mesh.shape["data"] * mesh.shape["fsdp"] // len(_row_blocks(mesh)[jax.process_index()])
    return {
        key: jax.ShapeDtypeStruct((len(value) * blocks, *np.shape(value)[1:]), value.dtype, sharding=sharding)
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


def check_lengths(batch: Mapping[str, np.ndarray], mesh: Mesh) -> None:
    """Refuse rows of tokens that the devices of the sequence axis cannot share evenly.

    XLA would fill them up, and in the gradient of an embedding table it adds what stands in the filling (jaxlib 0.10).

    Raises:
        ValueError: naming the length and the nearest that fit.
    """
    parts = mesh.shape["sequence"]
    for name, tokens in batch.items():
        if name.endswith("_input_tokens") and tokens.shape[1] % parts:
            length = tokens.shape[1]
            fits = " or ".join(str(size) for size in (length // parts * parts, -(-length // parts) * parts) if size)
            raise ValueError(
                f"rows of {length} tokens ({name}) cannot be split over sequence={parts} devices: change data.lengths "
                f"so that they have {fits}, or set mesh.sequence to one of {_listed(_divisors(length))}"
            )


def _text(shape: Sequence[int]) -> str:
    return " x ".join(f"{axis}={size}" for axis, size in zip(MESH_AXES, shape, strict=True))


def _sizes(mesh: Mesh, names: Sequence[str]) -> str:
    return " x ".join(f"{name}={mesh.shape[name]}" for name in names)


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:12])) + (", ..." if len(numbers) > 12 else "")
