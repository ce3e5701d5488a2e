import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import positions
from t2t.nn.positions.context import PositionContext
from t2t.nn.positions.rotary import Rotary


def _angles(config, *, head_dim=8, **context):
    return config.make(3, head_dim=head_dim).apply({}, PositionContext(**context)).rotary


def test_angles_are_position_times_rate():
    # theta 100 and four values: two pairs, of rates 100**0 = 1 and 100**(-2 / 4) = 0.1.
    angles = _angles(Rotary(theta=100.0, dim=4), length=3, key_length=3)
    expected = np.array([[0, 0], [1, 0.1], [2, 0.2]])
    np.testing.assert_allclose(angles.cos, np.cos(expected), atol=1e-7)
    np.testing.assert_allclose(angles.sin, np.sin(expected), atol=1e-7)
    assert not angles.interleaved


def test_all_of_a_head_is_turned_where_no_dim_is_given():
    assert _angles(Rotary(), length=2, key_length=2).cos.shape == (2, 4)


def test_traced_offset_gives_the_rows_of_the_whole():
    config = Rotary(dim=6)
    whole = _angles(config, length=40, key_length=40)

    @jax.jit
    def rows(offset):
        return _angles(config, length=2, key_length=40, offset=offset)

    for offset in (0, 17, 38):
        got = rows(jnp.int32(offset))
        np.testing.assert_allclose(got.cos, whole.cos[offset : offset + 2], atol=1e-5)
        np.testing.assert_allclose(got.sin, whole.sin[offset : offset + 2], atol=1e-5)


@pytest.mark.parametrize("config", [Rotary(theta=50.0), Rotary(dim=4, interleaved=True), Rotary(dim=6)])
def test_scores_depend_on_distance_alone(config):
    query, key = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
    angles = _angles(config, length=30, key_length=30)
    # The same query, and the same key, at every position.
    turned_query, turned_key = (
        positions.rotate(jnp.broadcast_to(jnp.asarray(x), (1, 1, 30, 8)), angles)[0, 0] for x in (query, key)
    )
    scores = np.asarray(turned_query @ turned_key.T)
    for distance in (-13, -2, 0, 1, 9):
        diagonal = np.diagonal(scores, distance)
        np.testing.assert_allclose(diagonal, np.full_like(diagonal, diagonal[0]), atol=1e-5)
    np.testing.assert_allclose(np.diagonal(scores), np.full(30, query @ key), atol=1e-5)
    assert np.ptp(scores[0]) > 0.1


def test_bias_of_the_context_stays():
    context = PositionContext(length=2, key_length=2, bias=jnp.ones((1, 3, 2, 2)))
    got = Rotary().make(3, head_dim=4).apply({}, context)
    np.testing.assert_array_equal(got.bias, context.bias)


@pytest.mark.parametrize("fields", [{"theta": 0.0}, {"dim": 3}, {"dim": 0}])
def test_values_without_meaning_are_refused(fields):
    with pytest.raises(ValueError, match=f"Rotary.{next(iter(fields))} = "):
        Rotary(**fields)


@pytest.mark.parametrize("dim, head_dim", [(6, 4), (None, 5)])
def test_more_values_than_a_head_has_and_an_odd_number_are_refused(dim, head_dim):
    with pytest.raises(ValueError, match="at most head_dim"):
        Rotary(dim=dim).make(3, head_dim=head_dim)


def test_the_length_of_training_changes_nothing():
    short, long = (_angles(Rotary(trained_positions=n), length=9, key_length=9) for n in (None, 4))
    np.testing.assert_array_equal(short.cos, long.cos)
    with pytest.raises(ValueError, match="trained_positions = 0"):
        Rotary(trained_positions=0)
