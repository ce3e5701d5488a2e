"""Memory without compiling: exact where it says so, near where it estimates."""

import jax
import numpy as np
import pytest
from planning import runs

from t2t.planning import analytic, compiled, topology
from t2t.planning.analytic import Kept

MESHES = [{"data": 8}, {"fsdp": 8, "data": 1}, {"data": 2, "fsdp": 4}]


def pieces_of(architecture, place="v5e:2x4", **parts):
    return compiled.pieces_of(runs.experiment(architecture, **parts), topology.parse(place).stand_ins())


def test_state_by_hand():
    """Adam keeps two numbers for each parameter; over 4 chips of fsdp matrices are cut along d_model."""
    whole, cut = (analytic.held(pieces_of("decoder", "v5e:2x2", mesh=mesh)) for mesh in ({}, {"fsdp": 4}))
    leaves = jax.tree.leaves(compiled.pieces_of(runs.experiment("decoder"), jax.devices()[:1]).state.params)
    parameters = 4 * sum(leaf.size for leaf in leaves)
    assert whole.parameters == whole.gradients == parameters
    assert parameters / 4 < cut.parameters < parameters / 2
    assert 2 * whole.parameters < whole.optimizer < 2 * whole.parameters + 100  # and the counters of steps
    assert whole.batch == 16 * 16 * 4 * 5 / 4  # tokens, targets, weights, segments, positions of a quarter of the rows


@pytest.mark.nightly
@pytest.mark.multi_device
@pytest.mark.parametrize("architecture", runs.RUNS)
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_arguments_are_those_of_the_compiled_step(architecture, mesh):
    pieces = compiled.pieces_of(runs.experiment(architecture, mesh=mesh), jax.devices())
    lowered = compiled.lower(pieces)
    program = lowered.compile()
    memory = program.memory_analysis()
    # What of a batch the step does not read (positions, where a model has none) is on the chip too, but no argument.
    read = program._executable._kept_var_idx  # JAX says it nowhere else
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(lowered.args_info)[0]]
    shapes = compiled.batch_shapes(pieces).items()
    unread = [shape for name, shape in shapes if names.index(f"[0][2]['{name}']") not in read]
    unread = analytic.bytes_on_chip(unread)
    assert analytic.held(pieces).arguments - unread == memory.argument_size_in_bytes


def test_stand_ins_give_what_devices_give():
    real = compiled.pieces_of(runs.experiment("encoder-decoder", mesh={"fsdp": 4}), jax.devices()[:8])
    assert analytic.held(real) == analytic.held(pieces_of("encoder-decoder", mesh={"fsdp": 4}))


@pytest.mark.parametrize(
    "architecture", [pytest.param(name, marks=[] if name == "decoder" else [pytest.mark.slow]) for name in runs.RUNS]
)
def test_what_is_kept_grows_with_rows_and_falls_with_rematerialisation(architecture):
    everything, little = (analytic.kept(pieces_of(architecture, train={"remat": remat})) for remat in ("none", "full"))
    assert 0 < little.per_row < everything.per_row
    assert everything.per_row * 100 > everything.fixed


def test_the_part_of_a_chip():
    pieces = pieces_of("decoder", train={"micro_batches": 2}, mesh={"fsdp": 2, "tensor": 1}, data={"batch_size": 32})
    assert Kept(fixed=40.0, per_row=3.0).on_chip(pieces.experiment, pieces.mesh.shape) == 40 / 2 + 3 * 32 / 8 / 2


def test_exchanges_of_fsdp():
    """In bfloat16: a gather for forward and backward of each micro-batch, and the gradients back."""
    pieces = pieces_of("decoder", train={"micro_batches": 2}, mesh={"fsdp": 4})
    found = {(one.kind, one.axes): one for one in analytic.exchanges(pieces)}
    cut = sum(leaf.size for leaf in jax.tree.leaves(pieces.state.params) if "fsdp" in str(leaf.sharding.spec))
    gathers = found["all-gather", ("fsdp",)]
    assert (gathers.bytes, gathers.times) == (2 * cut, 4)
    assert found["reduce-scatter", ("fsdp",)].times == 2
    assert found["all-reduce", ("data",)].bytes == 4 * cut / 4
    assert all(np.ptp(one.group) > 0 for one in found.values())
