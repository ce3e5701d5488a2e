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
    assert kept == pytest.approx(1 / (1 - round(0.3 * 2**32) / 2**32), rel=1e-6)


def test_key_alone_decides(key):
    x = jnp.ones((3, 5, 7))
    first, second = jax.random.split(key)
    np.testing.assert_array_equal(dropout.dropout(x, rate=0.5, key=first), dropout.dropout(x, rate=0.5, key=first))
    assert (dropout.dropout(x, rate=0.5, key=first) != dropout.dropout(x, rate=0.5, key=second)).any()


def test_every_bit_is_fair_and_independent_of_its_neighbours(key):
    bits = np.asarray(dropout.random_bits(key, (8, 4, 128, 256)))
    planes = np.unpackbits(bits[..., None].view(np.uint8), axis=-1).astype(np.float32) - 0.5
    sigma = 0.5 / np.sqrt(bits.size)
    assert np.abs(planes.mean(axis=(0, 1, 2, 3))).max() < 5 * sigma
    # A standard deviation of the mean of products of two fair signs of 1/2 is 1/4 over the root of their number.
    for axis in range(4):
        ahead, behind = (np.moveaxis(planes, axis, 0)[cut] for cut in (slice(1, None), slice(None, -1)))
        products = (ahead * behind).mean(axis=(0, 1, 2, 3))
        assert np.abs(products).max() < 5 * 0.25 / np.sqrt(ahead.size / 32), f"neighbours along axis {axis}"


def test_keys_give_unrelated_masks(key):
    """The share of values that two keys both keep is that of independent masks, as it is for every shift."""
    first, second = (np.asarray(dropout.random_bits(k, (2, 100_000))) >= 2**31 for k in jax.random.split(key))
    for shift in (0, 1, 2, 64):
        agree = (first[:, shift:] == second[:, : second.shape[1] - shift]).mean()
        assert abs(agree - 0.5) < 5 * 0.5 / np.sqrt(200_000 - 2 * shift)


def test_no_mask_is_stored_for_the_gradient(key):
    x = jnp.ones((8, 16))
    _, pullback = jax.vjp(lambda x: dropout.dropout(x, rate=0.5, key=key), x)
    assert [leaf.shape for leaf in jax.tree.leaves(pullback) if leaf.shape == x.shape] == []


def test_gradient_is_the_mask(key):
    x = jnp.ones((50,))
    out, pullback = jax.vjp(lambda x: dropout.dropout(x, rate=0.5, key=key), x)
    np.testing.assert_allclose(pullback(jnp.ones_like(x))[0], out)


def test_rate_zero_and_bfloat16(key):
    x = jnp.ones((4,), jnp.bfloat16)
    assert dropout.dropout(x, rate=0.0, key=key) is x
    assert dropout.dropout(x, rate=0.5, key=key).dtype == jnp.bfloat16
