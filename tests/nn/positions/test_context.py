import jax.numpy as jnp
import numpy as np

from t2t.nn.positions.context import PositionContext


def test_biases_add_up():
    context = PositionContext(length=2, key_length=3)
    one, two = jnp.full((1, 4, 2, 3), 0.5), jnp.full((1, 4, 2, 3), 2.0)
    assert context.bias is None
    np.testing.assert_array_equal(context.add_bias(one).bias, one)
    np.testing.assert_array_equal(context.add_bias(one).add_bias(two).bias, one + two)
    assert (context.add_bias(one).length, context.add_bias(one).key_length) == (2, 3)
