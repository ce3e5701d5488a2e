import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import positions
from tests.reference import transformer
from tests.shared_data import shared_data


@pytest.mark.parametrize("num_buckets, max_distance", [(32, 128), (12, 10), (32, 64), (64, 256)])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_equal_t5x(num_buckets, max_distance, bidirectional):
    with np.load(shared_data("t5x_golden", "relpos_buckets.npz")) as recorded:
        relative = recorded["rel"]
        expected = recorded[f"{'bi' if bidirectional else 'uni'}_{num_buckets}_{max_distance}"]
    got = positions.relative_position_buckets(
        relative, bidirectional=bidirectional, num_buckets=num_buckets, max_distance=max_distance
    )
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_equal_oracle(bidirectional):
    relative = np.arange(-70, 71)
    sizes = {"bidirectional": bidirectional, "num_buckets": 16, "max_distance": 50}
    expected = [transformer.bucket(int(distance), **sizes) for distance in relative]
    np.testing.assert_array_equal(positions.relative_position_buckets(relative, **sizes), expected)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_all_distances_from_max_distance_on_share_a_bucket(bidirectional):
    sizes = {"bidirectional": bidirectional, "num_buckets": 8, "max_distance": 20}
    far = positions.relative_position_buckets(np.array([-5000, -20, 20, 5000]), **sizes)
    assert far[0] == far[1]
    assert far[2] == far[3]


def test_segment_positions_restart_at_each_example():
    segments = jnp.array([[1, 1, 1, 2, 2, 0, 0], [0, 0, 0, 1, 1, 1, 1], [1, 2, 3, 4, 4, 4, 4]])
    expected = [[0, 1, 2, 0, 1, 0, 1], [0, 1, 2, 0, 1, 2, 3], [0, 0, 0, 0, 1, 2, 3]]
    np.testing.assert_array_equal(positions.segment_positions(segments), expected)


@pytest.mark.parametrize("length, key_length", [(4, 4), (3, 6), (6, 2), (1, 5)])
def test_toeplitz_and_its_gradient(length, key_length):
    line = jnp.asarray(np.random.default_rng(0).normal(size=(2, length + key_length - 1)), jnp.float32)
    columns = np.arange(key_length)[None, :] - np.arange(length)[:, None] + length - 1
    weights = jnp.asarray(np.random.default_rng(1).normal(size=(2, length, key_length)), jnp.float32)

    def by_slices(line):
        return positions.toeplitz(line, length=length, key_length=key_length)

    def by_gather(line):
        return line[:, columns]

    np.testing.assert_array_equal(by_slices(line), by_gather(line))
    gradients = [jax.grad(lambda x, f=f: jnp.sum(f(x) * weights))(line) for f in (by_slices, by_gather)]
    np.testing.assert_allclose(*gradients, atol=1e-5)
