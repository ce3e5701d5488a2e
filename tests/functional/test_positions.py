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


def _angles(*turns, interleaved):
    """Angles of one position, in quarter turns."""
    angles = np.array([turns]) * np.pi / 2
    cos, sin = (jnp.asarray(f(angles), jnp.float32) for f in (np.cos, np.sin))
    return positions.RotaryAngles(cos=cos, sin=sin, interleaved=interleaved)


@pytest.mark.parametrize("interleaved, expected", [(False, [-3, -2, 1, -4, 5]), (True, [-2, 1, -3, -4, 5])])
def test_rotate_by_a_quarter_and_a_half_turn(interleaved, expected):
    # Pairs are (1, 3) and (2, 4), or interleaved (1, 2) and (3, 4); the fifth value stays.
    x = jnp.array([1.0, 2, 3, 4, 5]).reshape(1, 1, 1, 5)
    got = positions.rotate(x, _angles(1, 2, interleaved=interleaved))
    np.testing.assert_allclose(got.reshape(-1), expected, atol=1e-6)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotate_equals_oracle_and_keeps_lengths(interleaved):
    rng = np.random.default_rng(0)
    x, angles = rng.normal(size=(2, 3, 5, 8)).astype(np.float32), rng.normal(size=(5, 3)) * 4
    turned = positions.RotaryAngles(
        cos=jnp.asarray(np.cos(angles), jnp.float32),
        sin=jnp.asarray(np.sin(angles), jnp.float32),
        interleaved=interleaved,
    )
    got = positions.rotate(jnp.asarray(x), turned)
    np.testing.assert_allclose(got, transformer.rotate(x, angles, interleaved=interleaved), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(got, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-5)


def test_rotate_keeps_the_dtype_and_computes_in_float32():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(1, 1, 1, 4)), jnp.bfloat16)
    angles = _angles(0.3, 0.7, interleaved=False)
    got = positions.rotate(x, angles)
    assert got.dtype == jnp.bfloat16
    np.testing.assert_array_equal(got, positions.rotate(x.astype(jnp.float32), angles).astype(jnp.bfloat16))


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
