"""Which arrays the chips of a program exchange, along which axes of the mesh, and how long that takes at least.

Times are those of rings (How to Scale Your Model, jax-ml.github.io/scaling-book/sharding): with V bytes of the whole
array of a group, W bytes per second that a chip sends along the dimensions of the slice in which the group lies (both
directions where the dimension is a ring), and n chips in the group,

    all-gather, reduce-scatter    V (n - 1) / n / W
    all-reduce                    twice that
    all-to-all                    V / 4 / W
    collective-permute            what a chip sends / what a link carries in one direction

and never less than a microsecond for each link on the way. Where a group spans slices, what one chip holds after the
part within the slice goes over the network of the data centre. Groups that share links are not taken into account: the
times are estimates, rather too short.
"""

import dataclasses
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jax.sharding import Mesh

from t2t.planning.hlo import Computation, Instruction, Program
from t2t.planning.topology import Topology

KINDS = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-permute")
HOP = 1e-6
"""Seconds for one link at least (the same book)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Collective:
    """An exchange, at one place of the program."""

    kind: str
    axes: tuple[str, ...]
    """Axes of the mesh along which chips exchange; empty if the program does not say."""
    group: tuple[int, ...]
    """One group of those that exchange, as places in the mesh."""
    bytes: float
    """Of the whole array of a group: gathered, reduced, or what all its chips send."""
    times: int
    """How often in a step."""
    is_hidden: bool
    """Whether it runs beside computations."""


def find(program: Program, mesh: Mesh) -> list[Collective]:
    """The exchanges of a step, in the order of the program; each place once, with how often it runs."""
    found = []
    for use in program.uses():
        for one in use.computation.instructions.values():
            kind = one.opcode.removesuffix("-start")
            if kind not in KINDS:
                continue
            if kind == "all-reduce" and _is_scattered(use.computation, one):
                kind = "reduce-scatter"
            group = _group(one, mesh)
            found.append(
                Collective(
                    kind=kind,
                    axes=_axes(group, mesh),
                    group=group,
                    bytes=_bytes(kind, one, use.computation, len(group)),
                    times=use.times,
                    is_hidden=one.opcode.endswith("-start"),
                )
            )
    return [one for one in found if len(one.group) > 1]


def _is_scattered(computation: Computation, one: Instruction) -> bool:
    """Whether a fusion keeps only this chip's part of the sum, as XLA writes a reduce-scatter for TPU."""
    return "all-reduce-scatter" in computation.name and computation.root.opcode == "dynamic-slice" and not one.is_root


def _bytes(kind: str, one: Instruction, computation: Computation, members: int) -> float:
    operands = [computation.instructions[name] for name in one.operands if name in computation.instructions]
    given = sum(array.bytes for operand in operands for array in operand.arrays)
    match kind:
        case "all-gather" | "all-to-all" | "ragged-all-to-all":
            return given * members
        case _:
            return given


def _group(one: Instruction, mesh: Mesh) -> tuple[int, ...]:
    """The first group of a collective, as places in the flattened mesh; every device where none is stated.

    XLA writes groups in three ways: {{0,1},{2,3}}, an iota [groups,members]<=[dims]T(permutation), and by axes of a
    mesh of its own, mesh['a'=2,'b'=4] {'b'}.
    """
    pairs = re.search(r"source_target_pairs=\{(\{[\d,{}]*\})\}", one.attributes)
    if pairs:
        moved = [tuple(map(int, pair.split(","))) for pair in re.findall(r"\{(\d+,\d+)\}", pairs[1])]
        return next((pair for pair in moved if pair[0] != pair[1]), (0,))
    written = re.search(r"replica_groups=\{\{([\d,]+)\}", one.attributes)
    if written:
        return tuple(map(int, written[1].split(",")))
    iota = re.search(r"replica_groups=(\[[\d,]+\]<=\[[\d,]+\](?:T\([\d,]+\))?)", one.attributes)
    if iota:
        return tuple(_iota(iota[1])[0].tolist())
    axes = re.search(r"replica_groups=mesh\[([^\]]*)\](?:, ?device_ids=\(([^)]*\)?)\))? ?\{([^}]*)\}", one.attributes)
    if axes:
        return _by_axes(axes[1], axes[2], axes[3])
    return tuple(range(mesh.size))


def _iota(text: str) -> np.ndarray:
    """The groups of [groups,members]<=[dims]T(permutation).

    >>> _iota("[2,2]<=[2,2]T(1,0)").tolist()
    [[0, 2], [1, 3]]
    """
    shape, _, rest = text.partition("<=")
    dims, _, order = rest.partition("T")
    numbers = np.arange(math.prod(_numbers(dims))).reshape(_numbers(dims))
    if order:
        numbers = numbers.transpose(_numbers(order))
    return numbers.reshape(_numbers(shape))


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def _by_axes(sizes: str, devices: str | None, used: str) -> tuple[int, ...]:
    """The first group along axes of a mesh such as 'a'=2,'b'=4; 'b':(1)2 is a part of an axis: size 2 after size 1."""
    shape = {name: int(size) for name, size in re.findall(r"'([^']+)'=(\d+)", sizes)}
    total = math.prod(shape.values())
    order = _iota(f"[{total}]<={devices}") if devices else np.arange(total)
    parts: list[tuple[str, int, int]] = []  # name, size, whether the collective goes along it
    wanted = {name: (int(before or 1), int(size or shape[name])) for name, before, size in
              re.findall(r"'([^']+)'(?::\((\d+)\)(\d+))?", used)}  # fmt: skip
    for name, size in shape.items():
        before, along = wanted.get(name, (size, 1))
        parts += [(name, before, 0), (name, along, 1), (name, size // before // along, 0)]
    grid = order.reshape([size for _, size, _ in parts])
    return tuple(grid[tuple(slice(None) if along else 0 for _, _, along in parts)].ravel().tolist())


def _axes(group: Sequence[int], mesh: Mesh) -> tuple[str, ...]:
    """The axes of the mesh in which the members of a group differ."""
    places = np.array(np.unravel_index(list(group), mesh.devices.shape))
    return tuple(name for name, values in zip(mesh.axis_names, places, strict=True) if len(set(values.tolist())) > 1)


def seconds(one: Collective, mesh: Mesh, topology: Topology) -> float:
    """How long a collective takes each time, at least."""
    devices = [mesh.devices.flat[place] for place in one.group]
    slices = len({getattr(device, "slice_index", 0) or 0 for device in devices})
    members = len(devices)
    within = members // slices
    rate, links = _paths([device.coords for device in devices], topology)
    factor = 2 if one.kind == "all-reduce" else 1
    if one.kind == "collective-permute":
        distance = max(1, links)
        carried = topology.chip.dcn_bandwidth if slices > 1 else topology.chip.link_bandwidth
        return max(one.bytes / carried, distance * HOP)
    if one.kind in ("all-to-all", "ragged-all-to-all"):
        over_links = one.bytes / 4 / rate if rate else 0.0
        over_network = one.bytes / members * (slices - 1) / slices / topology.chip.dcn_bandwidth
        return max(over_links, over_network, links * HOP)
    over_links = factor * one.bytes * (within - 1) / within / rate if rate else 0.0
    over_network = factor * one.bytes / within * (slices - 1) / slices / topology.chip.dcn_bandwidth
    return max(over_links, factor * links * HOP) + over_network


def _paths(coords: Iterable[Any], topology: Topology) -> tuple[float, int]:
    """Bytes per second a chip sends along the dimensions in which chips differ, and links on the longest way."""
    rate, links = 0.0, 0
    for size, is_ring, values in zip(topology.bounds, topology.rings, zip(*coords, strict=True), strict=True):
        extent = len(set(values))
        if extent < 2:
            continue
        closes = is_ring and extent == size
        rate += topology.chip.link_bandwidth * (2 if closes else 1)
        links += extent // 2 if closes else extent - 1
    return rate, links
