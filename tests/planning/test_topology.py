"""Names of slices, their sizes, and devices that look as libtpu's do."""

import pytest
from planning.runs import needs_libtpu

from t2t.errors import UsageError
from t2t.planning import topology


@pytest.mark.parametrize(
    ("name", "slices", "chips", "hosts", "rings"),
    [
        ("v5e:1x1", 1, 1, 1, (False, False, False)),
        ("v5e:2x4", 2, 16, 4, (False, False, False)),
        ("v5e:16x16", 1, 256, 64, (True, True, False)),
        ("v6e:8x16", 1, 128, 32, (False, True, False)),
        ("v4:2x2x1", 1, 4, 1, (False, False, False)),
        ("V5P:4x4x8", 3, 384, 96, (True, True, True)),
        ("v5p:2x4x4", 1, 32, 8, (False, False, False)),
    ],
)
def test_sizes(name, slices, chips, hosts, rings):
    found = topology.parse(name, slices=slices)
    assert (found.num_chips, found.num_hosts, found.rings) == (chips, hosts, rings)
    devices = found.stand_ins()
    assert len(devices) == chips == len({device.id for device in devices})
    assert len({device.process_index for device in devices}) == hosts
    assert len({(device.slice_index, device.coords) for device in devices}) == chips


def test_a_name_comes_back():
    assert str(topology.parse("v5p:4x4x8")) == "v5p:4x4x8"
    assert str(topology.parse("v5e:4x4", slices=2)) == "2 x v5e:4x4"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("v5x:4x4", "did you mean v5"),
        ("h100:8", "generations are v4, v5e, v5p, v6e"),
        ("v5e", "v5e has 1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16"),
        ("v5e:3x5", "no slice of this shape; v5e has 1x1"),
        ("v5e:4x2", "no slice of this shape"),
        ("v5p:4x4", "no slice of this shape; v5p has 2x2x1"),
        ("v5p:8x4x4", "the longest side last"),
        ("v4:16x16x20", "up to 4096 chips"),
        ("v5litepod-16", "generations are"),
    ],
)
def test_what_is_no_slice_is_refused_with_what_is(name, said):
    with pytest.raises(UsageError, match=said):
        topology.parse(name)


def test_slices_are_at_least_one():
    with pytest.raises(UsageError, match="--slices 0"):
        topology.parse("v5e:4x4", slices=0)


@needs_libtpu
@pytest.mark.parametrize("name", ["v5e:1x1", "v5e:2x4", "v5e:16x16", "v6e:8x16", "v4:2x2x2", "v5p:2x4x4", "v5p:4x4x8"])
@pytest.mark.parametrize("slices", [1, 2])
def test_stand_ins_are_like_the_devices_of_libtpu(name, slices, monkeypatch):
    for variable, value in topology.ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    found = topology.parse(name, slices=slices)

    def seen(device):
        index = (getattr(device, "slice_index", 0) or 0) if slices > 1 else 0
        return device.id, device.process_index, tuple(device.coords), device.device_kind, device.platform, index

    assert [seen(device) for device in found.devices()] == [seen(device) for device in found.stand_ins()]


def test_without_libtpu_it_is_said_how_to_get_it(monkeypatch):
    from jax.experimental import topologies

    def missing(**_):
        raise RuntimeError("JAX TPU support not installed; cannot generate TPU topology.")

    monkeypatch.setattr(topologies, "get_topology_desc", missing)
    with pytest.raises(UsageError, match=r"pip install 't2t\[plan\]', or give --without-libtpu"):
        topology.parse("v5e:4x4").devices()
