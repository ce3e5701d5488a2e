import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import dropout


def test_values_are_zeroed_at_the_rate_and_the_rest_scaled(key):
    x = jnp.ones((200, 500))
    out = np.asarray(dropout.dropout(x, rate=0.1, key=key))
    # A standard deviation of the share of zeros is sqrt(.1 * .9 / 100000) = 0.00095.
    assert abs((out == 0).mean() - 0.1) < 4 * 0.00095
    np.testing.assert_allclose(out[out != 0], 1 / 0.9, rtol=1e-4)


def test_expectation_is_exact_for_the_rounded_rate(key):
    kept = float(dropout.dropout(jnp.ones((1000,)), rate=0.3, key=key).max())
    assert kept == pytest.approx(1 / (1 - round(0.3 * 2**16) / 2**16), rel=1e-6)


def test_key_alone_decides(key):
    x = jnp.ones((3, 5, 7))
    first, second = jax.random.split(key)
    np.testing.assert_array_equal(dropout.dropout(x, rate=0.5, key=first), dropout.dropout(x, rate=0.5, key=first))
    assert (dropout.dropout(x, rate=0.5, key=first) != dropout.dropout(x, rate=0.5, key=second)).any()


def test_gradient_is_the_mask(key):
    x = jnp.ones((50,))
    out, pullback = jax.vjp(lambda x: dropout.dropout(x, rate=0.5, key=key), x)
    np.testing.assert_allclose(pullback(jnp.ones_like(x))[0], out)


def test_rate_zero_and_bfloat16(key):
    x = jnp.ones((4,), jnp.bfloat16)
    assert dropout.dropout(x, rate=0.0, key=key) is x
    assert dropout.dropout(x, rate=0.5, key=key).dtype == jnp.bfloat16
