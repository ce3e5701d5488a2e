"""Meshes and partition specs by hand, errors that say what would fit, and the same numbers on one and eight devices."""

import dataclasses
import re

import jax
import numpy as np
import optax
import pytest
from jax.sharding import PartitionSpec as P

from t2t import sharding
from t2t.config import Mesh
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.optimizer import Adafactor, AdamW, Constant
from t2t.train.state import init_params, init_state, state_shardings
from t2t.train.step import make_train_step
from tests.train.fake_network import FakeNetwork

pytestmark = pytest.mark.filterwarnings("error")
multi_device = pytest.mark.multi_device


def make_mesh(**sizes):
    return sharding.make_mesh(Mesh(**sizes))


@pytest.mark.parametrize(
    ("sizes", "shape"),
    [
        ({}, (8, 1, 1, 1)),
        ({"fsdp": 4}, (2, 4, 1, 1)),
        ({"data": 1, "fsdp": -1, "tensor": 2}, (1, 4, 2, 1)),
        ({"data": 2, "tensor": 2, "sequence": 2}, (2, 1, 2, 2)),
    ],
)
@multi_device
def test_mesh(sizes, shape):
    mesh = make_mesh(**sizes)
    assert mesh.devices.shape == shape
    assert mesh.axis_names == ("data", "fsdp", "tensor", "sequence")
    assert set(mesh.axis_types) == {jax.sharding.AxisType.Auto}


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"data": 4, "fsdp": 1, "tensor": 1, "sequence": 1}, "asks for 4 devices, and there are 8"),
        ({"data": -1, "fsdp": 3, "tensor": 1, "sequence": 1}, r"a multiple of 3 devices.*\(1, 2, 4, 8\)"),
        ({"data": -1, "fsdp": -1, "tensor": 1, "sequence": 1}, "at most one is -1"),
        ({"data": 0, "fsdp": 1, "tensor": 1, "sequence": 1}, "sizes are positive"),
    ],
)
def test_mesh_refuses(sizes, message):
    with pytest.raises(ValueError, match=message):
        sharding.mesh_shape(sizes, num_devices=8)


@pytest.mark.parametrize(
    ("sizes", "rows"),
    [
        ({"data": 8}, [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]]),
        ({"data": 2, "tensor": 4}, [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]]),
        ({"data": 1, "tensor": 4, "sequence": 2}, [list(range(16))] * 2),
    ],
    ids=str,
)
@multi_device
def test_a_process_makes_the_rows_of_its_devices(monkeypatch, sizes, rows):
    """Both make all of them where the inner axes go over both."""
    monkeypatch.setattr(sharding, "_process", lambda device: device.id // 4)
    mesh = make_mesh(**sizes)
    for process in range(2):
        monkeypatch.setattr(sharding.jax, "process_index", lambda process=process: process)
        assert sharding.host_rows(16, mesh) == rows[process]


@multi_device
def test_rows_that_two_processes_have_only_partly_in_common_are_refused(monkeypatch):
    monkeypatch.setattr(sharding, "_process", lambda device: device.id // 2)
    message = r"over 3 processes of 2 devices.*tensor x sequence \(here 3\) among the divisors and multiples of 2"
    with pytest.raises(ValueError, match=message):
        sharding.make_mesh(Mesh(data=2, tensor=3), devices=jax.devices()[:6])


@multi_device
def test_devices_are_arranged_by_process_where_their_links_would_mix_rows(monkeypatch):
    monkeypatch.setattr(sharding, "_process", lambda device: device.id // 4)
    mixed = np.array([jax.devices()[number] for number in (0, 1, 2, 4, 3, 5, 6, 7)]).reshape(4, 1, 2, 1)
    monkeypatch.setattr(sharding.mesh_utils, "create_device_mesh", lambda *given, **options: mixed)
    mesh = make_mesh(data=4, tensor=2)
    assert list(mesh.devices.flat) == jax.devices()
    assert set(mesh.axis_types) == {jax.sharding.AxisType.Auto}


@multi_device
def test_slices_are_the_outermost_part_of_data():
    """Faked: eight devices in runs of four."""
    mesh = make_mesh(slices=2, data=4, tensor=2)
    assert [[d.id for d in one.flat] for one in mesh.devices] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    with pytest.raises(ValueError, match=r"over 2 slices: data alone .* must be a multiple of 2, such as 2, 4, 8"):
        make_mesh(slices=2, data=1, fsdp=8)
    with pytest.raises(ValueError, match=r"mesh.slices is 3, and 8 devices cannot be cut .* possible are 1, 2, 4, 8"):
        make_mesh(slices=3)


@pytest.fixture(scope="module")
def topology():
    """Describes TPUs that are not there; needs their compiler."""
    pytest.importorskip("libtpu")
    settings = {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "TPU_WORKER_HOSTNAMES": "localhost"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (settings | {"TPU_ACCELERATOR_TYPE": "v5litepod-4"}).items():
            patch.setenv(name, value)
        from jax.experimental import topologies

        yield lambda name, **options: topologies.get_topology_desc(name, "tpu", **options).devices


@pytest.mark.parametrize(
    ("name", "sizes", "fits"),
    [
        ("v5e:16x16", {"data": 32, "tensor": 8}, "(1, 16, 256)|data=16 x fsdp=1 x tensor=16 x sequence=1"),
        ("v5p:8x8x8", {"tensor": 4}, "(1, 8, 64, 512)|data=64 x fsdp=1 x tensor=8 x sequence=1"),
        ("v5e:16x16", {"data": 16, "tensor": 16}, None),
        ("v5e:16x16", {"data": 1, "fsdp": 256}, None),
        ("v5e:16x16", {"data": 32, "tensor": 8, "split_torus": True}, None),
        ("v5p:8x8x8", {"fsdp": 64}, None),
    ],
)
def test_axes_lie_along_whole_dimensions_of_a_torus(topology, name, sizes, fits):
    devices = topology(name)
    if fits is None:
        mesh = sharding.make_mesh(Mesh(**sizes), devices=devices)
        assert set(mesh.devices.flat) == set(devices)
        return
    for text in fits.split("|"):
        with pytest.raises(ValueError, match=f"does not fit the torus .*{re.escape(text)}"):
            sharding.make_mesh(Mesh(**sizes), devices=devices)


def test_a_process_of_a_torus_makes_rows_that_are_not_neighbours(topology):
    mesh = sharding.make_mesh(Mesh(data=16, fsdp=16), devices=topology("v5e:16x16"))  # hosts of 2 x 2 devices
    assert sharding.host_rows(512, mesh) == [0, 1, 2, 3, 32, 33, 34, 35]


def test_data_goes_over_the_slices_of_tpus(topology):
    devices = topology("v5e:4x4", num_slices=2)
    mesh = sharding.make_mesh(Mesh(data=2, fsdp=4, tensor=4), devices=devices)
    assert [{device.slice_index for device in half.flat} for half in mesh.devices] == [{0}, {1}]
    for sizes, message in (
        ({"data": 1, "fsdp": 32}, "over 2 slices.* must be a multiple of 2"),
        ({"slices": 1}, "mesh.slices is 1, but the devices belong to 2"),
        (
            {"data": 2, "fsdp": 8, "tensor": 2},
            r"data=1 x fsdp=8 .* in each of 2 slices, does .*example data=2 x fsdp=4 x",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            sharding.make_mesh(Mesh(**sizes), devices=devices)


@pytest.mark.parametrize(
    ("shape", "axes", "spec"),
    [
        ((6, 512, 8, 64), ("layers", "embed", "heads", "head"), P(None, "fsdp", "tensor")),
        ((6, 8, 64, 512), ("layers", "heads", "head", "embed"), P(None, "tensor", None, "fsdp")),
        ((6, 512, 2048), ("layers", "embed", "mlp"), P(None, "fsdp", "tensor")),
        ((32128, 512), ("vocab", "embed"), P("tensor", "fsdp")),
        ((50257, 512), ("vocab", "embed"), P(None, "fsdp")),
        ((512, 1, 64), ("embed", "kv_heads", "head"), P("fsdp")),
        ((32, 8), ("positions", "heads"), P(None, "tensor")),
        ((6, 512), ("layers", "embed"), P()),
        ((2048,), ("mlp",), P("tensor")),
        ((16, 128, 512), ("batch", "length", "embed"), P(("data", "fsdp"))),
        ((), (), P()),
    ],
)
@multi_device
def test_partition_spec(shape, axes, spec):
    assert sharding.partition_spec(shape, axes, make_mesh(data=2, fsdp=2, tensor=2)) == spec


@multi_device
def test_partition_spec_refuses():
    mesh = make_mesh(data=2, tensor=4)
    with pytest.raises(ValueError, match=r"query: heads=6 cannot be split over tensor=4.*1, 2, 3, 6"):
        sharding.partition_spec((512, 6, 64), ("embed", "heads", "head"), mesh, path="query")
    with pytest.raises(ValueError, match="no rule for logical axis 'width'"):
        sharding.partition_spec((512,), ("width",), mesh)


@multi_device
def test_batch_sizes():
    mesh = make_mesh(data=2, fsdp=4)
    sharding.check_batch_size(16, mesh, micro_batches=2)
    with pytest.raises(ValueError, match=r"batch_size=20 .*data=2 x fsdp=4.*multiple of 16, such as 16 or 32"):
        sharding.check_batch_size(20, mesh, micro_batches=2)
    with pytest.raises(ValueError, match="such as 8$"):
        sharding.check_batch_size(4, mesh)


@multi_device
def test_lengths():
    mesh = make_mesh(data=2, sequence=4)
    batch = {"encoder_input_tokens": np.zeros((1, 8)), "decoder_input_tokens": np.zeros((1, 10))}
    sharding.check_lengths({"encoder_input_tokens": batch["encoder_input_tokens"]}, mesh)
    with pytest.raises(
        ValueError, match=r"rows of 10 tokens \(decoder_input_tokens\).*sequence=4.* 8 or 12.* 1, 2, 5, 10"
    ):
        sharding.check_lengths(batch, mesh)


@multi_device
def test_shard_batch():
    batch = {"decoder_input_tokens": np.arange(16, dtype=np.int32).reshape(8, 2), "lane": np.arange(8)}
    placed = sharding.shard_batch(batch, make_mesh(data=2, fsdp=4))
    assert set(placed) == {"decoder_input_tokens"}
    tokens = placed["decoder_input_tokens"]
    np.testing.assert_array_equal(tokens, batch["decoder_input_tokens"])
    assert [shard.data.shape for shard in tokens.addressable_shards] == [(1, 2)] * 8


NETWORK = FakeNetwork(vocab_size=144, d_model=136, num_heads=4, head_dim=34)
BIG = {"min_dim_factored": 128}


@pytest.mark.parametrize("optimizer", [Adafactor(**BIG), AdamW(learning_rate=Constant(peak=0.01))], ids=type)
@multi_device
def test_optimizer_state_is_split_as_its_parameters(optimizer):
    """Also Adafactor's rows and columns: nothing that grows with the model is copied to every device."""
    mesh = make_mesh(data=1, fsdp=4, tensor=2)
    axes = {"model": NETWORK.logical_axes()}
    params = init_params({"model": NETWORK}, jax.random.key(0))
    state = jax.eval_shape(lambda p: init_state(p, optimizer.make(p, axes)), params)
    specs = {
        jax.tree_util.keystr(path, simple=True, separator="/"): leaf.spec
        for path, leaf in jax.tree_util.tree_flatten_with_path(state_shardings(state, axes, mesh))[0]
    }
    query, table = "model/decoder/layers_0/attention/query/kernel", "model/embed/embedding"
    assert specs[f"params/{query}"] == P(None, "fsdp", "tensor")
    if isinstance(optimizer, AdamW):
        assert specs[f"opt_state/1/mu/{query}"] == specs[f"opt_state/1/nu/{query}"] == P(None, "fsdp", "tensor")
    else:
        assert specs[f"opt_state/1/v_row/{table}"] == P()  # a vector over embed is kept whole
        assert specs[f"opt_state/1/v_col/{table}"] == P("tensor")
        assert specs[f"opt_state/1/v_col/{query}"] == P(None, "tensor")
        assert specs[f"opt_state/1/v/{query}"] == P()


@pytest.mark.parametrize("sizes", [{"data": 8}, {"fsdp": 8, "data": 1}, {"fsdp": 4, "tensor": 2, "data": 1}], ids=str)
@pytest.mark.parametrize("micro_batches", [1, 2])
@multi_device
def test_the_same_numbers_on_one_and_on_eight_devices(sizes, micro_batches):
    """Plain gradient descent, so that equal parameters are equal gradients."""
    transform = optax.sgd(0.1)
    one = train(one_device(), transform, micro_batches=1)
    eight = train(make_mesh(**sizes), transform, micro_batches=micro_batches)
    for got, want in zip(jax.tree.leaves(eight), jax.tree.leaves(one), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@multi_device
def test_adafactor_on_eight_devices():
    """Looser: dividing by the size of gradients near 0 magnifies what rounding did to them."""
    shapes = jax.eval_shape(lambda k: init_params({"model": SQUARE}, k), jax.random.key(0))
    optimizer = Adafactor(learning_rate=Constant(peak=0.01), clip_norm=1.0)
    transform = optimizer.make(shapes, {"model": SQUARE.logical_axes()})
    one, eight = (train(mesh, transform) for mesh in (one_device(), make_mesh(data=1, fsdp=4, tensor=2)))
    for got, want in zip(jax.tree.leaves(eight), jax.tree.leaves(one), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


SQUARE = dataclasses.replace(NETWORK, d_model=128, head_dim=32)


def one_device():
    return sharding.make_mesh(Mesh(), devices=jax.devices()[:1])


def train(mesh, transform, *, micro_batches=1, steps=2):
    """Metrics and parameters after two steps on 16 uneven rows."""
    axes, models = {"model": SQUARE.logical_axes()}, {"model": SQUARE}
    with sharding.use_mesh(mesh):

        def start(key):
            return init_state(init_params(models, key), transform)

        shardings = state_shardings(jax.eval_shape(start, jax.random.key(0)), axes, mesh)
        state = jax.jit(start, out_shardings=shardings)(jax.random.key(0))
        step = make_train_step(
            LanguageModeling(z_loss=1e-3), models, transform, seed=0, micro_batches=micro_batches,
            state_shardings=shardings,
        )  # fmt: skip
        trace = []
        for index in range(steps):
            rng = np.random.default_rng(index)
            batch = {
                "decoder_input_tokens": rng.integers(0, 144, (16, 5)).astype(np.int32),
                "decoder_target_tokens": rng.integers(0, 144, (16, 5)).astype(np.int32),
                "decoder_loss_weights": (rng.uniform(0, 1, (16, 5)) * (np.arange(16) % 3)[:, None]).astype(np.float32),
            }
            state, metrics = step(state, sharding.shard_batch(batch, mesh))
            trace.append(jax.tree.map(np.asarray, metrics))
        assert jax.tree.map(lambda x: x.sharding.spec, state.params) == jax.tree.map(lambda s: s.spec, shardings.params)
    return trace, jax.tree.map(np.asarray, state.params)
