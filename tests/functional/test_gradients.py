"""Own gradient rules against those JAX derives from the plain operations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import gradients


@pytest.mark.parametrize(("num_inputs", "num_outputs"), [(4, 6), (6, 4)])
def test_linear_has_the_gradients_of_the_product(num_inputs, num_outputs):
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (2, 5, num_inputs))
    kernel = jax.random.normal(keys[1], (num_inputs, num_outputs))
    weight = jax.random.normal(keys[2], (2, 5, num_outputs))
    ours = jax.grad(lambda x, kernel: jnp.sum(jnp.sin(gradients.linear(x, kernel)) * weight), argnums=(0, 1))
    plain = jax.grad(lambda x, kernel: jnp.sum(jnp.sin(x @ kernel) * weight), argnums=(0, 1))
    np.testing.assert_array_equal(gradients.linear(x, kernel), x @ kernel)
    for mine, expected in zip(ours(x, kernel), plain(x, kernel), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-6)


def test_add_shared_sums_its_gradient_over_the_batch():
    x = jnp.arange(24.0).reshape(4, 1, 2, 3)
    shared = jnp.ones((1, 1, 2, 3))
    weight = jax.random.normal(jax.random.key(0), x.shape)
    ours = jax.jit(jax.grad(lambda x, b, weight: jnp.sum(gradients.add_shared(x, b) ** 2 * weight), argnums=(0, 1)))
    of_x, of_shared = ours(x, shared, weight)
    np.testing.assert_allclose(of_x, 2 * (x + 1) * weight, rtol=1e-6)
    np.testing.assert_allclose(of_shared[0], np.sum(2 * (x + 1) * weight, axis=0), rtol=1e-5, atol=1e-4)
    one = ours(x[:1], shared, weight[:1])[1]
    np.testing.assert_allclose(one, 2 * (x[:1] + 1) * weight[:1], rtol=1e-6)


def test_gradients_keep_the_dtype_of_mixed_precision():
    x, kernel = jnp.ones((1, 2, 3), jnp.bfloat16), jnp.ones((3, 4), jnp.bfloat16)
    of_x, of_kernel = jax.grad(lambda x, k: gradients.linear(x, k).astype(jnp.float32).sum(), argnums=(0, 1))(x, kernel)
    assert of_x.dtype == of_kernel.dtype == jnp.bfloat16
