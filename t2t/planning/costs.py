"""How long a step takes at least, what share of the peak that leaves, and what tokens cost.

A roofline: a step takes no less than its operations at the peak of the matrix units, its traffic at the bandwidth of
the memory, or its exchanges at that of the links. The estimate besides is XLA's own: the cycles it expects of each
kernel, and the exchanges that do not run beside computations.

Reference: Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", doi:10.1145/1498765.1498785.
"""

import dataclasses
from collections.abc import Sequence

from jax.sharding import Mesh

from t2t.planning import collectives
from t2t.planning.collectives import Collective
from t2t.planning.topology import Topology
from t2t.planning.work import Work

TOKENS = 100e9
"""Whose cost is stated."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Times:
    """Seconds of a step."""

    compute: float
    """Of the program's operations at the peak."""
    memory: float | None
    """Of its traffic with the chip's memory; None if it was not compiled."""
    links: float
    """Of its exchanges."""
    expected: float | None
    """By XLA's estimate of every kernel, and the exchanges that are not hidden; None if it was not compiled."""

    @property
    def bound(self) -> float:
        """No step is faster."""
        return max(self.compute, self.memory or 0.0, self.links)

    @property
    def limit(self) -> str:
        """What bounds it."""
        named = {"compute": self.compute, "memory": self.memory or 0.0, "interconnect": self.links}
        return max(named, key=lambda name: named[name])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exchange:
    """All collectives of one kind along the same axes."""

    kind: str
    axes: tuple[str, ...]
    times: int
    bytes: float
    """Of the arrays that are gathered, reduced or sent, of all of them in a step."""
    seconds: float
    hidden: float
    """The part of the seconds that runs beside computations."""


def by_kind(found: Sequence[Collective], mesh: Mesh, topology: Topology) -> list[Exchange]:
    """Collectives added up by kind and axes, those that take longest first."""
    sums: dict[tuple[str, tuple[str, ...]], list[float]] = {}
    for one in found:
        total = sums.setdefault((one.kind, one.axes), [0, 0.0, 0.0, 0.0])
        seconds = one.times * collectives.seconds(one, mesh, topology)
        for index, value in enumerate((one.times, one.times * one.bytes, seconds, seconds * one.is_hidden)):
            total[index] += value
    exchanges = [
        Exchange(kind=kind, axes=axes, times=int(times), bytes=size, seconds=seconds, hidden=hidden)
        for (kind, axes), (times, size, seconds, hidden) in sums.items()
    ]
    return sorted(exchanges, key=lambda one: -one.seconds)


def times(operations: float, work: Work | None, exchanges: Sequence[Exchange], topology: Topology) -> Times:
    """The times of a step.

    Args:
        operations: by the formula, of all chips; of a compiled program its own are taken where they are more.
        work: of the compiled program on one chip.
        exchanges: of a step.
        topology: the chips.
    """
    chip = topology.chip
    links = sum(one.seconds for one in exchanges)
    compute = operations / topology.num_chips / chip.peak
    if work is None:
        return Times(compute=compute, memory=None, links=links, expected=None)
    compute = max(compute, work.matrix_operations / chip.peak)
    memory = work.bytes / chip.hbm_bandwidth
    kernels = max(work.cycles / chip.clock, compute, memory)
    visible = sum(one.seconds - one.hidden for one in exchanges)
    return Times(compute=compute, memory=memory, links=links, expected=max(kernels + visible, links))


def utilisation(operations: float, seconds: float, topology: Topology) -> float:
    """Model FLOP utilisation of a step: operations by the formula over those of the peak."""
    return operations / (topology.num_chips * topology.chip.peak * seconds)


def dollars(tokens: int, seconds: float, topology: Topology, *, price: float) -> float:
    """What `TOKENS` tokens cost in steps of so many tokens and seconds, at a price per chip and hour.

    >>> from t2t.planning.topology import parse
    >>> dollars(1_000_000, 3.6, parse("v5e:4x4"), price=1.0)
    1600.0
    """
    return TOKENS / tokens * seconds * topology.num_chips * price / 3600
