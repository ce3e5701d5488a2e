"""Slices of TPU chips: what a name such as v5e:16x16 stands for, and the devices the compiler sees in it.

A slice is a box of chips joined by their own links. Where the box closes in a dimension, that dimension is a ring and
both directions carry a collective. Slices of a job are joined by the network of the data centre.

Sources: the pages of Cloud TPU on each generation (docs.cloud.google.com/tpu/docs/v4, v5e, v5p and v6e) for peak,
memory, its bandwidth, shapes and networks of hosts; "How to Scale Your Model" (jax-ml.github.io/scaling-book/tpus) for
what a link carries in one direction, some nine tenths of what Cloud TPU states. `hbm` is what libtpu's compiler lets a
program have (its own error says so), less than the chip holds.
"""

import dataclasses
import difflib
import math
import os
import re
from typing import Any

from t2t.errors import UsageError

GIB = 2**30

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
    "TPU_LOG_DIR": "disabled",
}
"""What must be in the environment before JAX is imported: the host is no TPU machine and shall not look for chips, two
plans may run at once, and libtpu keeps its log to itself."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chip:
    """One generation of chips; rates are per chip and second."""

    name: str
    kind: str
    """`device_kind` in JAX."""
    peak: float
    """Floating-point operations in bfloat16."""
    hbm: int
    """Bytes a program may use."""
    hbm_bandwidth: float
    """Bytes."""
    link_bandwidth: float
    """Bytes over one link in one direction."""
    dcn_bandwidth: float
    """Bytes over the network of the data centre."""
    clock: float
    """Cycles: the peak divided by the operations of a cycle."""
    largest: tuple[int, ...]
    """Shape of the largest slice."""
    options: tuple[tuple[str, Any], ...] = ()
    """What libtpu must be told besides the shape."""

    @property
    def is_flat(self) -> bool:
        """Whether the chips lie in a plane."""
        return len(self.largest) == 2


CHIPS = {
    chip.name: chip
    for chip in (
        Chip(
            name="v4",
            kind="TPU v4",
            peak=275e12,
            hbm=int(30.75 * GIB),
            hbm_bandwidth=1200e9,
            link_bandwidth=45e9,
            dcn_bandwidth=6.25e9,
            clock=1.05e9,
            largest=(16, 16, 16),
            options=(("chip_config_name", "megacore"),),
        ),
        Chip(
            name="v5e",
            kind="TPU v5 lite",
            peak=197e12,
            hbm=int(15.75 * GIB),
            hbm_bandwidth=819e9,
            link_bandwidth=45e9,
            dcn_bandwidth=3.125e9,
            clock=1.5e9,
            largest=(16, 16),
        ),
        Chip(
            name="v5p",
            kind="TPU v5",
            peak=459e12,
            hbm=int(95.74 * GIB),
            hbm_bandwidth=2765e9,
            link_bandwidth=90e9,
            dcn_bandwidth=6.25e9,
            clock=1.75e9,
            largest=(16, 16, 24),
        ),
        Chip(
            name="v6e",
            kind="TPU v6 lite",
            peak=918e12,
            hbm=int(31.25 * GIB),
            hbm_bandwidth=1640e9,
            link_bandwidth=90e9,
            dcn_bandwidth=12.5e9,
            clock=1.75e9,
            largest=(16, 16),
        ),
    )
}
"""The generations that can be planned for, by name."""

FLAT_SHAPES = ((1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
"""Slices of chips in a plane; all of them can be had."""
SMALL_BOXES = ((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4))
"""Slices below a cube of 4 x 4 x 4; larger ones are made of such cubes."""
RING = 16
"""Chips after which a dimension of a plane closes to a ring; boxes close where they are made of cubes."""
CHIPS_PER_HOST = 4
MAX_SLICES = 256
SLICE_IDS = 100_000
"""Numbers between the devices of two slices in libtpu."""


@dataclasses.dataclass(frozen=True)
class Device:
    """A chip as `jax.sharding.Mesh` and `jax.make_mesh` see one, for what needs no compiler."""

    id: int
    process_index: int
    coords: tuple[int, int, int]
    device_kind: str
    slice_index: int
    core_on_chip: int = 0
    platform: str = "tpu"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Topology:
    """A slice, or several equal ones."""

    chip: Chip
    shape: tuple[int, ...]
    slices: int = 1

    def __str__(self) -> str:
        name = f"{self.chip.name}:{'x'.join(map(str, self.shape))}"
        return name if self.slices == 1 else f"{self.slices} x {name}"

    @property
    def num_chips(self) -> int:
        """Of all slices."""
        return self.slices * math.prod(self.shape)

    @property
    def num_hosts(self) -> int:
        """Machines, of `CHIPS_PER_HOST` chips each."""
        return self.slices * max(1, math.prod(self.shape) // CHIPS_PER_HOST)

    @property
    def rings(self) -> tuple[bool, ...]:
        """Whether each of three dimensions closes to a ring."""
        if self.chip.is_flat:
            return (*(size == RING for size in self.shape), False)
        return (all(size % 4 == 0 for size in self.shape),) * 3

    @property
    def bounds(self) -> tuple[int, int, int]:
        """The shape in three dimensions."""
        return (*self.shape, 1)[:3]  # type: ignore[return-value]

    def devices(self) -> list[Any]:
        """The devices as libtpu's compiler has them; no chip is needed.

        Raises:
            UsageError: libtpu is not installed, or is not one for this JAX.
        """
        from jax.experimental import topologies

        options = dict(self.chip.options) | {"wrap": self.rings}
        options["chips_per_host_bounds"] = (1, 1, 1) if math.prod(self.shape) == 1 else (2, 2, 1)
        if self.slices > 1:
            options["num_slices"] = self.slices
        name = f"{self.chip.name}:{'x'.join(map(str, self.shape))}"
        try:
            return list(topologies.get_topology_desc(platform="tpu", topology_name=name, **options).devices)
        except RuntimeError as error:
            raise UsageError(
                f"the compiler for TPU cannot be had ({str(error).splitlines()[0]}): pip install 't2t[plan]', or give "
                "--without-libtpu for what can be said without compiling"
            ) from error

    def stand_ins(self) -> list[Device]:
        """The devices without libtpu, as it numbers and orders them: host by host."""
        x, y, z = self.bounds
        wide, high = min(2, x), min(2, y)
        hosts = [(a, b, c) for c in range(z) for b in range(0, y, high) for a in range(0, x, wide)]
        found = []
        for index in range(self.slices):
            first = 0 if self.slices == 1 else SLICE_IDS * (index + 1)
            for host, (a, b, c) in enumerate(hosts):
                for coords in ((a + dx, b + dy, c) for dy in range(high) for dx in range(wide)):
                    number = first + coords[0] + x * (coords[1] + y * coords[2])
                    found.append(Device(number, index * len(hosts) + host, coords, self.chip.kind, index))
        return found


def parse(name: str, *, slices: int = 1) -> Topology:
    """The topology of a name such as v5e:16x16 or v5p:4x4x8.

    Raises:
        UsageError: there is no such generation or slice; says which there are.
    """
    generation, _, dims = name.strip().lower().partition(":")
    if generation not in CHIPS:
        close = difflib.get_close_matches(generation, CHIPS, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UsageError(f"topology {name!r}: {hint}The generations are {', '.join(CHIPS)}, as in v5e:16x16")
    chip = CHIPS[generation]
    if not re.fullmatch(r"\d{1,3}(x\d{1,3})*", dims):
        raise UsageError(f"topology {name!r}: after the generation comes the shape of the slice; {_possible(chip)}")
    shape = tuple(int(size) for size in dims.split("x"))
    if not _exists(chip, shape):
        raise UsageError(f"topology {name!r}: {chip.name} has no slice of this shape; {_possible(chip)}")
    if not 1 <= slices <= MAX_SLICES:
        raise UsageError(f"--slices {slices}: a job has 1 to {MAX_SLICES} slices")
    return Topology(chip=chip, shape=shape, slices=slices)


def _exists(chip: Chip, shape: tuple[int, ...]) -> bool:
    if chip.is_flat:
        return shape in FLAT_SHAPES
    if shape in SMALL_BOXES:
        return True
    is_made_of_cubes = len(shape) == 3 and all(size % 4 == 0 and size > 0 for size in shape)
    return is_made_of_cubes and list(shape) == sorted(shape) and math.prod(shape) <= math.prod(chip.largest)


def _possible(chip: Chip) -> str:
    if chip.is_flat:
        return f"{chip.name} has {', '.join('x'.join(map(str, shape)) for shape in FLAT_SHAPES)}"
    small = ", ".join("x".join(map(str, shape)) for shape in SMALL_BOXES)
    return (
        f"{chip.name} has {small}, and boxes of 4x4x4 chips with the longest side last, such as 4x4x8, 4x8x8 and "
        f"8x8x16, up to {math.prod(chip.largest)} chips"
    )


def prepare_environment() -> None:
    """Sets `ENVIRONMENT`; JAX must not have been imported yet."""
    os.environ |= ENVIRONMENT
