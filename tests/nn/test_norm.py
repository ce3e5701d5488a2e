import jax.numpy as jnp
import numpy as np
import pytest

from t2t.nn.norm import LayerNorm, RMSNorm
from tests.nn.arrays import variables
from tests.reference import transformer


def test_rms_norm_module():
    x = np.random.default_rng(0).normal(size=(2, 3, 8)).astype(np.float32)
    scale = np.arange(1, 9, dtype=np.float32)
    got = RMSNorm(eps=1e-3).make().apply(variables({"scale": scale}), jnp.asarray(x))
    np.testing.assert_allclose(got, transformer.rms_norm(x, scale, eps=1e-3), atol=1e-5)


@pytest.mark.parametrize("use_bias", [True, False])
def test_layer_norm_module(use_bias):
    x = np.random.default_rng(0).normal(size=(2, 3, 8)).astype(np.float32)
    params = {"scale": np.arange(1, 9, dtype=np.float32)} | ({"bias": np.ones(8, np.float32)} if use_bias else {})
    got = LayerNorm(use_bias=use_bias).make().apply(variables(params), jnp.asarray(x))
    np.testing.assert_allclose(got, transformer.layer_norm(x, **params, eps=1e-5), atol=1e-5)


def test_parameters_stay_float32_and_results_are_in_dtype(key):
    module = LayerNorm().make(dtype=jnp.bfloat16)
    fresh = module.init(key, jnp.ones((1, 4), jnp.bfloat16))
    assert fresh["params"]["scale"].value.dtype == jnp.float32
    assert fresh["params"]["bias"].names == ("embed",)
    assert module.apply(fresh, jnp.ones((1, 4), jnp.bfloat16)).dtype == jnp.bfloat16


@pytest.mark.parametrize("config", [RMSNorm, LayerNorm])
def test_eps_must_be_positive(config):
    with pytest.raises(ValueError, match=rf"{config.__name__}.eps = 0.0: must be positive"):
        config(eps=0.0)
    with pytest.raises(ValueError, match="eps = inf: must be positive and finite"):
        config(eps=float("inf"))
