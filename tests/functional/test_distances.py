"""Products with distances land where they belong, for readers in order and for readers anywhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import distances
from tests.reference import relative


@pytest.mark.parametrize("max_distance", [None, 2])
def test_sinusoids_of_every_distance(max_distance):
    table = distances.distance_sinusoids(length=4, past_length=3, width=6, max_distance=max_distance)
    expected = range(6, -4, -1)
    if max_distance is not None:
        expected = [max(-2, min(2, d)) for d in expected]
    np.testing.assert_allclose(table, [relative.sinusoid(d, 6) for d in expected], atol=1e-12)


def test_mirrored_sinusoids_are_those_of_the_opposite_distances():
    table = distances.distance_sinusoids(length=4, past_length=3, width=6)
    expected = [relative.sinusoid(-d, 6) for d in range(6, -4, -1)]
    np.testing.assert_allclose(distances.mirror(jnp.asarray(table, jnp.float32)), expected, atol=1e-6)


@pytest.mark.parametrize(("length", "past"), [(5, 0), (4, 3), (1, 0), (1, 6)])
def test_shifted_rows_are_those_of_their_distance(length, past):
    width = past + 2 * length - 1
    products = np.random.default_rng(0).normal(size=(2, 3, length, width)).astype(np.float32)
    shifted = np.asarray(distances.shift_rows(jnp.asarray(products)))
    assert shifted.shape == (2, 3, length, past + length)
    for t in range(length):
        for s in range(past + length):
            distance = past + t - s
            np.testing.assert_array_equal(shifted[:, :, t, s], products[:, :, t, past + length - 1 - distance])


def test_readers_anywhere_are_shifted_by_their_own_row():
    length, past, rows = 5, 2, np.array([[4, 0, 2], [1, 1, 3]], np.int32)
    products = np.random.default_rng(1).normal(size=(2, 4, 3, past + 2 * length - 1)).astype(np.float32)
    shifted = np.asarray(distances.shift_rows_at(jnp.asarray(products), jnp.asarray(rows), length=length))
    assert shifted.shape == (2, 4, 3, past + length)
    for b, k, s in np.ndindex(2, 3, past + length):
        distance = past + rows[b, k] - s
        np.testing.assert_array_equal(shifted[b, :, k, s], products[b, :, k, past + length - 1 - distance])


def test_readers_in_order_are_a_special_case():
    products = jnp.asarray(np.random.default_rng(2).normal(size=(2, 3, 4, 9)), jnp.float32)
    rows = jnp.broadcast_to(jnp.arange(4, dtype=jnp.int32), (2, 4))
    np.testing.assert_array_equal(distances.shift_rows_at(products, rows, length=4), distances.shift_rows(products))


def test_the_gradient_goes_back_to_where_it_came_from():
    products = jnp.asarray(np.random.default_rng(3).normal(size=(1, 1, 3, 7)), jnp.float32)
    weights = jnp.asarray(np.random.default_rng(4).normal(size=(1, 1, 3, 5)), jnp.float32)
    gradient = jax.grad(lambda x: jnp.sum(distances.shift_rows(x) * weights))(products)
    expected = np.zeros((3, 7), np.float32)
    for t in range(3):
        expected[t, 2 - t : 7 - t] = weights[0, 0, t]
    np.testing.assert_array_equal(gradient[0, 0], expected)
