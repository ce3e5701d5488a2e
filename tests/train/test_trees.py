"""Trees as nested dicts: both ways through every kind of node, and where two trees differ."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from t2t.train import trees


def test_optimizer_state_goes_through_plain_dicts_and_back():
    state = optax.adam(1e-3).init({"kernel": jnp.ones((2, 3))})
    nested = trees.to_nested(state)
    assert set(nested["0"]) == {"count", "mu", "nu"}
    back = trees.from_nested(nested, like=jax.eval_shape(lambda: state))
    assert jax.tree.structure(back) == jax.tree.structure(state)
    np.testing.assert_array_equal(back[0].mu["kernel"], state[0].mu["kernel"])


def test_differences_name_each_path_once():
    saved = {"a": jnp.zeros((2, 3)), "b": jnp.zeros(4, jnp.bfloat16), "c": jnp.zeros(1)}
    wanted = {"a": jnp.zeros((2, 5)), "b": jnp.zeros(4), "d": jnp.zeros(1, jnp.int32)}
    assert trees.differences(saved, wanted) == [
        "a: saved float32[2, 3], wanted float32[2, 5]",
        "b: saved bfloat16[4], wanted float32[4]",
        "d: saved absent, wanted int32[1]",
        "c: saved float32[1], wanted absent",
    ]
    assert trees.differences(saved, {"c": jnp.zeros(1)}, subset=True) == []


def test_single_array_is_refused():
    with pytest.raises(ValueError, match="put it into a dict"):
        trees.to_nested(jnp.zeros(1))
