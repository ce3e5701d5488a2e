"""The state: keys of fresh models, and shardings that follow the parameters wherever they are kept."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import PartitionSpec as P

from t2t import sharding
from t2t.config import Mesh
from t2t.train import state as state_lib
from tests.train.fake_network import AXES, FakeNetwork


def same(a, b):
    return all(bool((x == y).all()) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_a_single_model_starts_from_the_key_itself():
    key, network = jax.random.key(5), FakeNetwork()
    assert same(state_lib.init_params({"model": network}, key)["model"], network.init(key))


def test_several_models_start_apart():
    params = state_lib.init_params({"student": FakeNetwork(), "peer": FakeNetwork()}, jax.random.key(5))
    assert set(params) == {"student", "peer"}
    assert not same(params["student"], params["peer"])


def test_a_fresh_state():
    params = {"model": {"head": {"kernel": jnp.ones((2, 3))}}}
    state = state_lib.init_state(params, optax.adam(0.1), carry=jnp.zeros(4))
    assert int(state.step) == 0
    assert state.frozen == {}
    assert jax.tree.structure(state.opt_state) == jax.tree.structure(optax.adam(0.1).init(params))


@pytest.mark.multi_device
def test_shardings_of_trained_frozen_and_the_rest():
    mesh = sharding.make_mesh(Mesh(data=1, fsdp=4, tensor=2))
    network = FakeNetwork()
    params = {"model": network.init(jax.random.key(0))}
    teacher = {"teacher": network.init(jax.random.key(1))}
    state = state_lib.init_state(params, optax.adam(0.1), frozen=teacher, carry=jnp.zeros(4))
    specs = state_lib.state_shardings(state, {"model": AXES, "teacher": AXES}, mesh)
    for tree in (specs.params["model"], specs.frozen["teacher"], specs.opt_state[0].mu["model"]):
        assert tree["decoder"]["layers_0"]["attention"]["out"]["kernel"].spec == P(None, "tensor", None, "fsdp")
        assert tree["decoder"]["final_norm"]["scale"].spec == P()
        assert tree["head"]["kernel"].spec == P("fsdp", "tensor")
    assert {specs.step.spec, specs.carry.spec, specs.opt_state[0].count.spec} == {P()}
    placed = jax.device_put(state, specs)
    np.testing.assert_array_equal(placed.params["model"]["head"]["kernel"], params["model"]["head"]["kernel"])
