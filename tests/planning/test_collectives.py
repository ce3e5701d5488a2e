"""Who exchanges what with whom, and the times of rings by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from t2t import config, sharding
from t2t.planning import collectives, hlo, topology
from t2t.planning.collectives import Collective


def mesh_of(name, *, slices=1, **sizes):
    place = topology.parse(name, slices=slices)
    return sharding.make_mesh(config.Mesh(**sizes), devices=place.stand_ins()), place


def exchange(kind, operands, groups, *, start=""):
    text = f"""\
ENTRY %main (a: bf16[4,6]) -> bf16[4,6] {{
  %a = bf16[4,6]{{1,0}} parameter(0)
  ROOT %c = bf16[4,6]{{1,0}} {kind}{start}(%a), channel_id=3, {groups}, use_global_device_ids=true
}}
"""
    return hlo.parse(text)


@pytest.mark.parametrize(
    ("groups", "axes", "group"),
    [
        ("replica_groups={{0,1},{2,3},{4,5},{6,7}}", ("tensor",), (0, 1)),
        ("replica_groups=[4,2]<=[8]", ("tensor",), (0, 1)),
        ("replica_groups=[4,2]<=[2,2,2]T(2,1,0)", ("data",), (0, 4)),
        ("replica_groups=[2,4]<=[2,2,2]T(1,0,2)", ("data", "tensor"), (0, 1, 4, 5)),
        ("replica_groups=[1,8]<=[8]", ("data", "fsdp", "tensor"), tuple(range(8))),
        ("replica_groups=mesh['a'=2,'b'=4] {'a'}", ("data",), (0, 4)),
        ("replica_groups=mesh['a'=2,'b'=4] {'b':(1)2}", ("fsdp",), (0, 2)),
        ("replica_groups=mesh['a'=2,'b'=4] {'b':(2)2}", ("tensor",), (0, 1)),
        ("replica_groups=mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'b'}", ("data",), (0, 4)),
        ("source_target_pairs={{0,0},{1,3},{3,1}}", ("fsdp",), (1, 3)),
    ],
)
def test_groups(groups, axes, group):
    """Eight chips as data=2, fsdp=2, tensor=2; three ways of writing who takes part."""
    mesh, _ = mesh_of("v5e:2x4", fsdp=2, tensor=2)
    kind = "collective-permute" if "pairs" in groups else "all-reduce"
    (found,) = collectives.find(exchange(kind, 1, groups), mesh)
    assert (found.axes, found.group, found.bytes, found.times) == (axes, group, 48, 1)


def test_what_is_gathered_is_the_whole():
    mesh, _ = mesh_of("v5e:2x4")
    (found,) = collectives.find(exchange("all-gather", 1, "replica_groups=[1,8]<=[8]", start="-start"), mesh)
    assert (found.kind, found.bytes, found.is_hidden) == ("all-gather", 8 * 48, True)


def test_alone_nothing_is_exchanged():
    mesh, _ = mesh_of("v5e:2x4")
    assert collectives.find(exchange("all-reduce", 1, "replica_groups=[8,1]<=[8]"), mesh) == []


def test_in_a_loop():
    mesh, _ = mesh_of("v5e:2x4", fsdp=4)
    from planning import test_hlo

    (found,) = collectives.find(hlo.parse(test_hlo.PROGRAM), mesh)
    assert (found.kind, found.axes, found.times, found.bytes) == ("all-reduce", ("fsdp",), 6, 120)


def test_a_sum_of_which_a_part_is_kept():
    """As the compiler for TPU writes a reduce-scatter."""
    text = """\
%all-reduce-scatter.1 (p: f32[8,6]) -> f32[4,6] {
  %p = f32[8,6]{1,0} parameter(0)
  %all = f32[8,6]{1,0} all-reduce(%p), channel_id=1, replica_groups={{0,2},{1,3}}, to_apply=%add
  %i = u32[] partition-id()
  ROOT %part = f32[4,6]{1,0} dynamic-slice(%all, %i, %i), dynamic_slice_sizes={4,6}
}

ENTRY %main (a: f32[8,6]) -> f32[4,6] {
  %a = f32[8,6]{1,0} parameter(0)
  ROOT %f = f32[4,6]{1,0} fusion(%a), kind=kCustom, calls=%all-reduce-scatter.1
}
"""
    mesh, _ = mesh_of("v5e:2x2", fsdp=2, tensor=2)
    (found,) = collectives.find(hlo.parse(text), mesh)
    assert (found.kind, found.axes, found.bytes) == ("reduce-scatter", ("fsdp",), 8 * 6 * 4)


def along(mesh, *axes):
    places = np.arange(mesh.size).reshape(mesh.devices.shape)
    index = tuple(slice(None) if name in axes else 0 for name in mesh.axis_names)
    return tuple(places[index].ravel().tolist())


def timed(kind, size, mesh, place, *axes):
    one = Collective(kind=kind, axes=axes, group=along(mesh, *axes), bytes=size, times=1, is_hidden=False)
    return collectives.seconds(one, mesh, place)


def test_times_on_a_line_and_on_rings():
    mesh, place = mesh_of("v5e:4x4")  # no ring: two dimensions of one direction each
    assert timed("all-gather", 16e9, mesh, place, "data") == pytest.approx(15e9 / 90e9)
    mesh, place = mesh_of("v5e:16x16")  # two rings: two dimensions of both directions
    assert timed("all-gather", 256e9, mesh, place, "data") == pytest.approx(255e9 / 180e9)
    assert timed("all-reduce", 256e9, mesh, place, "data") == pytest.approx(2 * 255e9 / 180e9)
    assert timed("all-to-all", 256e9, mesh, place, "data") == pytest.approx(64e9 / 180e9)
    assert timed("all-reduce", 8, mesh, place, "data") == pytest.approx(2 * 16e-6)  # eight links along each ring


def test_times_over_the_network():
    """Eight chips of each slice sum on their links, then each exchanges its eighth with the other slice's."""
    _, place = mesh_of("v5e:2x4")
    place = topology.parse("v5e:2x4", slices=2)
    devices = np.array(place.stand_ins()).reshape(16, 1, 1, 1)
    mesh = Mesh(devices, sharding.MESH_AXES, axis_types=(AxisType.Auto,) * 4)
    expected = 2 * 8e9 * 7 / 8 / 90e9 + 2 * 1e9 * 1 / 2 / 3.125e9
    assert timed("all-reduce", 8e9, mesh, place, "data") == pytest.approx(expected)


@pytest.mark.multi_device
def test_a_compiled_program():
    """Weights are gathered in each of three layers, forward and backward, and their gradients are summed."""
    mesh = sharding.make_mesh(config.Mesh(data=2, fsdp=4))

    def loss(w, x):
        return jnp.sum(jax.lax.scan(lambda h, layer: (jnp.tanh(h @ layer), None), x, w)[0])

    def shape(dims, *spec):
        return jax.ShapeDtypeStruct(dims, jnp.float32, sharding=NamedSharding(mesh, PartitionSpec(*spec)))

    w, x = shape((3, 64, 64), None, "fsdp"), shape((32, 64), ("data", "fsdp"))
    compiled = jax.jit(jax.grad(loss), out_shardings=w.sharding).lower(w, x).compile()
    total = {}
    for one in collectives.find(hlo.parse(compiled.as_text()), mesh):
        key = one.kind, one.axes
        total[key] = total.get(key, 0) + one.times * one.bytes
    assert total["all-gather", ("fsdp",)] == 2 * 3 * 64 * 64 * 4
    assert total["all-reduce", ("data",)] == 3 * 64 * 64 * 4 / 4
    assert total.get(("all-reduce", ("fsdp",)), total.get(("reduce-scatter", ("fsdp",)))) == 3 * 64 * 64 * 4
