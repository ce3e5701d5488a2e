import jax.numpy as jnp
import numpy as np

from t2t.functional import normalization
from tests.reference import transformer


def _inputs():
    rng = np.random.default_rng(0)
    x = rng.normal(loc=0.7, size=(2, 3, 8)).astype(np.float32)
    scale, bias = rng.normal(size=(2, 8)).astype(np.float32)
    return x, scale, bias


def test_rms_norm_equals_oracle():
    x, scale, _ = _inputs()
    got = normalization.rms_norm(jnp.asarray(x), jnp.asarray(scale), eps=1e-6)
    np.testing.assert_allclose(got, transformer.rms_norm(x, scale, eps=1e-6), atol=1e-5)


def test_layer_norm_equals_oracle_with_and_without_bias():
    x, scale, bias = _inputs()
    got = normalization.layer_norm(jnp.asarray(x), jnp.asarray(scale), jnp.asarray(bias), eps=1e-5)
    np.testing.assert_allclose(got, transformer.layer_norm(x, scale, bias, eps=1e-5), atol=1e-5)
    got = normalization.layer_norm(jnp.asarray(x), jnp.asarray(scale), None, eps=1e-5)
    np.testing.assert_allclose(got, transformer.layer_norm(x, scale, eps=1e-5), atol=1e-5)


def test_eps_is_inside_the_root():
    x = jnp.full((1, 4), 3e-3)
    got = normalization.rms_norm(x, jnp.ones(4), eps=1e-6)
    np.testing.assert_allclose(got, 3e-3 / np.sqrt(9e-6 + 1e-6), rtol=1e-5)


def test_statistics_are_float32_for_bfloat16():
    # 256 + 1/256 is lost in bfloat16 sums; in float32 the mean square of this row is exactly 1.
    x = jnp.ones((1, 512), jnp.bfloat16)
    got = normalization.rms_norm(x, jnp.ones(512), eps=1e-6)
    assert got.dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(got, np.float32), 1.0)
