import jax
import jax.numpy as jnp
import numpy as np

from t2t.functional import attention
from t2t.nn.positions import alibi
from t2t.nn.positions.alibi import ALiBi
from t2t.nn.positions.context import PositionContext


def _bias(num_heads, **context):
    return ALiBi().make(num_heads, head_dim=5).apply({}, PositionContext(**context)).bias


def test_slopes_of_the_paper():
    # Section 3: 2**-1, ..., 2**-8 for eight heads; for twelve the released code adds every other one of sixteen.
    eight = [2.0**-i for i in range(1, 9)]
    np.testing.assert_allclose(alibi.slopes_of(8), eight)
    np.testing.assert_allclose(alibi.slopes_of(12), [*eight, 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5])
    np.testing.assert_allclose(alibi.slopes_of(1), [2.0**-8])


def test_bias_falls_with_distance_at_each_heads_rate():
    distances = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    bias = _bias(2, length=3, key_length=3)
    assert bias.shape == (1, 2, 3, 3)
    np.testing.assert_array_equal(bias[0, 0], -distances / 16)
    np.testing.assert_array_equal(bias[0, 1], -distances / 256)


def test_traced_offset_gives_the_rows_of_the_whole():
    whole = _bias(3, length=20, key_length=20)

    @jax.jit
    def rows(offset):
        return _bias(3, length=2, key_length=20, offset=offset)

    for offset in (0, 7, 18):
        np.testing.assert_allclose(rows(jnp.int32(offset)), whole[:, :, offset : offset + 2], rtol=1e-6)


def test_of_what_a_causal_reader_sees_the_position_alone_counts():
    """Where later positions are hidden, slope * s gives the same weights: what BLOOM's code adds."""
    scores = jnp.asarray(np.random.default_rng(0).normal(size=(1, 4, 6, 6)), jnp.float32)
    mask = jnp.tril(jnp.ones((1, 6, 6), bool))
    by_position = jnp.asarray(alibi.slopes_of(4)[:, None, None] * np.arange(6) * np.ones((6, 1)), jnp.float32)[None]
    np.testing.assert_allclose(
        attention.attention_weights(scores, mask=mask, bias=_bias(4, length=6, key_length=6)),
        attention.attention_weights(scores, mask=mask, bias=by_position),
        atol=1e-6,
    )


def test_bias_is_added_to_that_of_the_context():
    given = jnp.ones((1, 2, 3, 3))
    got = _bias(2, length=3, key_length=3, bias=given)
    np.testing.assert_allclose(got, given + _bias(2, length=3, key_length=3))
