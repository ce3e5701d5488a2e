"""Rooflines and prices by hand."""

import pytest

from t2t.planning import costs, topology
from t2t.planning.costs import Exchange
from t2t.planning.work import Work

PLACE = topology.parse("v5e:2x2")
EXCHANGES = [
    Exchange(kind="all-reduce", axes=("data",), times=1, bytes=1e9, seconds=0.2, hidden=0.0),
    Exchange(kind="all-gather", axes=("fsdp",), times=4, bytes=1e9, seconds=0.4, hidden=0.3),
]


def work(**changes):
    values = {"matrix_operations": 1.97e14, "looped_operations": 0.0, "bytes": 819e9, "cycles": 3e9, "kernels": 0}
    return Work(**values | changes)


def test_the_slowest_part_is_the_bound():
    found = costs.times(4 * 1.97e14, work(bytes=2 * 819e9), EXCHANGES, PLACE)
    assert found.compute == pytest.approx(1.0) and found.memory == pytest.approx(2.0)
    assert found.links == pytest.approx(0.6)
    assert (found.bound, found.limit) == (pytest.approx(2.0), "memory")
    assert found.expected == pytest.approx(2.0 + 0.2 + 0.1)  # 3e9 cycles are 2 s; what is hidden costs nothing


def test_what_is_computed_again_counts_for_the_time_alone():
    found = costs.times(4 * 1.97e14, work(matrix_operations=1.5 * 1.97e14), [], PLACE)
    assert found.compute == pytest.approx(1.5)
    assert costs.utilisation(4 * 1.97e14, found.bound, PLACE) == pytest.approx(1 / 1.5)


def test_without_a_program():
    found = costs.times(4 * 1.97e14, None, EXCHANGES, PLACE)
    assert (found.compute, found.memory, found.expected) == (pytest.approx(1.0), None, None)
    assert found.limit == "compute"


def test_collectives_are_added_up():
    from planning.test_collectives import along, mesh_of

    mesh, place = mesh_of("v5e:2x2", fsdp=2)
    one = costs.collectives.Collective
    common = {"kind": "all-gather", "axes": ("fsdp",), "group": along(mesh, "fsdp"), "bytes": 90e9}
    found = costs.by_kind(
        [one(**common, times=2, is_hidden=True), one(**common, times=1, is_hidden=False)], mesh, place
    )
    assert [(row.kind, row.times, row.bytes) for row in found] == [("all-gather", 3, 270e9)]
    assert found[0].seconds == pytest.approx(3 * 1.0) and found[0].hidden == pytest.approx(2.0)


def test_price():
    """4 chips at 2 dollars an hour for half an hour make a billion tokens for 4 dollars."""
    assert costs.dollars(1_000_000_000, 1800, PLACE, price=2.0) == pytest.approx(100 * 4.0)
