import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.nn.feed_forward import ACTIVATIONS, FeedForwardConfig
from tests.nn.arrays import variables
from tests.reference import transformer


def _params(*, gated, use_bias):
    rng = np.random.default_rng(0)
    shapes = {"up": (6, 9), "down": (9, 6)} | ({"gate": (6, 9)} if gated else {})
    params = {name: {"kernel": rng.normal(size=shape).astype(np.float32)} for name, shape in shapes.items()}
    if use_bias:
        for name, shape in shapes.items():
            params[name]["bias"] = rng.normal(size=shape[1]).astype(np.float32)
    return params


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("gated, use_bias", [(False, True), (True, False)])
def test_feed_forward_equals_oracle(activation, gated, use_bias):
    config = FeedForwardConfig(d_ff=9, activation=activation, gated=gated, use_bias=use_bias)
    params = _params(gated=gated, use_bias=use_bias)
    x = np.random.default_rng(1).normal(size=(2, 3, 6)).astype(np.float32)
    got = config.make(6).apply(variables(params), jnp.asarray(x))
    np.testing.assert_allclose(got, transformer.feed_forward(x, params, activation=activation), atol=1e-4)


def test_fresh_kernels_have_the_published_deviations(key):
    config = FeedForwardConfig(d_ff=256, activation="relu")
    fresh = jax.jit(config.make(64).init)(key, jnp.ones((1, 1, 64)))
    assert fresh["params"]["up"]["kernel"].value.std() == pytest.approx(64**-0.5, rel=0.05)
    assert fresh["params"]["down"]["kernel"].value.std() == pytest.approx(256**-0.5, rel=0.05)


@pytest.mark.parametrize("field, value", [("d_ff", 0), ("dropout", 2.0), ("out_initializer_std", -0.1)])
def test_wrong_fields_are_refused_by_name(field, value):
    with pytest.raises(ValueError, match=rf"FeedForwardConfig.{field} = {value!r}: must be"):
        FeedForwardConfig(**({"d_ff": 8, "activation": "relu"} | {field: value}))
