"""Optimizer state in parts over data: where it lives, the same numbers, and less memory in the compiled program."""

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from t2t import sharding
from t2t.config import Mesh
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train import zero
from t2t.train.optimizer import Adafactor, AdamW, Constant
from t2t.train.state import init_params, init_state, state_shardings
from t2t.train.step import make_train_step
from tests.train.fake_network import FakeNetwork

pytestmark = pytest.mark.multi_device

NETWORK = FakeNetwork(vocab_size=144, d_model=128, num_heads=4, head_dim=32)
MODELS, AXES = {"model": NETWORK}, {"model": NETWORK.logical_axes()}
ADAM = AdamW(learning_rate=Constant(peak=0.01), weight_decay=0.1, clip_norm=1.0)


@pytest.mark.parametrize(
    ("shape", "axes", "spec"),
    [
        ((2, 128, 4, 32), ("layers", "embed", "heads", "head"), P(None, ("data", "fsdp"), "tensor")),
        ((2, 4, 32, 128), ("layers", "heads", "head", "embed"), P(None, "tensor", None, ("data", "fsdp"))),
        ((144, 6), ("vocab", "embed"), P(("data", "tensor"), "fsdp")),
        ((50257, 128), ("vocab", "embed"), P(None, ("data", "fsdp"))),
        ((50257, 6), ("vocab", "embed"), P(None, "fsdp")),
        ((8, 3, 3), ("layers", "types", "types"), P()),
        ((2, 128), ("layers", "embed"), P()),
        ((144,), ("vocab",), P("tensor")),
    ],
)
def test_parts_are_of_the_largest_axis_that_divides(shape, axes, spec):
    mesh = sharding.make_mesh(Mesh(data=2, fsdp=2, tensor=2))
    assert sharding.divided_sharding(shape, axes, mesh).spec == spec
    alone = sharding.make_mesh(Mesh(data=1, fsdp=2, tensor=4))
    assert sharding.divided_sharding(shape, axes, alone) == sharding.named_sharding(shape, axes, alone)


def make(optimizer, sizes):
    """The compiled step, and a state to begin with."""
    mesh = sharding.make_mesh(sizes)
    params = jax.eval_shape(lambda key: init_params(MODELS, key), jax.random.key(0))
    transform = optimizer.make(params, AXES)
    if sizes.zero:
        transform = zero.divide(transform, zero.shardings(params, AXES, mesh))

    def start(key):
        return init_state(init_params(MODELS, key), transform)

    where = state_shardings(jax.eval_shape(start, jax.random.key(0)), AXES, mesh, zero=sizes.zero)
    with sharding.use_mesh(mesh):
        state = jax.jit(start, out_shardings=where)(jax.random.key(0))
    step = make_train_step(LanguageModeling(), MODELS, transform, seed=0, micro_batches=2, state_shardings=where)
    return mesh, step, state


def make_batch(index=0):
    rng = np.random.default_rng(index)
    names = ("decoder_input_tokens", "decoder_target_tokens")
    batch = {name: rng.integers(0, 144, (16, 5)).astype(np.int32) for name in names}
    return batch | {"decoder_loss_weights": np.ones((16, 5), np.float32)}


@pytest.mark.parametrize("optimizer", [ADAM, Adafactor(learning_rate=Constant(peak=0.01))], ids=["adamw", "adafactor"])
@pytest.mark.parametrize("sizes", [{"data": 8}, {"data": 2, "fsdp": 2, "tensor": 2}], ids=str)
def test_the_same_numbers(optimizer, sizes):
    found = []
    for is_zero in (False, True):
        mesh, step, state = make(optimizer, Mesh(**sizes, zero=is_zero))
        metrics = []
        with sharding.use_mesh(mesh):
            for index in range(3):
                state, one = step(state, sharding.shard_batch(make_batch(index), mesh))
                metrics.append(one)
        found.append(jax.device_get((metrics, state.params, state.opt_state)))
    for got, want in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_device_holds_its_part_and_the_program_needs_less():
    sizes, bytes_of = {}, {}
    for is_zero in (False, True):
        mesh, step, state = make(ADAM, Mesh(data=8, zero=is_zero))
        with sharding.use_mesh(mesh):
            program = step.lower(state, sharding.shard_batch(make_batch(), mesh)).compile().memory_analysis()
        adam = jax.tree.leaves(state.opt_state)
        sizes[is_zero] = sum(leaf.addressable_shards[0].data.nbytes for leaf in adam)
        bytes_of[is_zero] = program.argument_size_in_bytes, program.temp_size_in_bytes
    assert sizes[True] < 1.05 * sizes[False] / 8  # vectors stay whole
    assert bytes_of[False][0] - bytes_of[True][0] == sizes[False] - sizes[True]
    assert bytes_of[True][1] <= bytes_of[False][1]  # and nothing of it is put together again for the update
    whole = {leaf.sharding.is_fully_replicated for leaf in jax.tree.leaves(state.params)}
    assert whole == {True}
