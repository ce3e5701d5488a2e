import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.nn.positions.context import PositionContext
from t2t.nn.positions.t5_bias import T5Bias
from tests.nn.arrays import variables
from tests.reference import transformer


def _table():
    return np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)


def _bias(config, context):
    return config.make(3).apply(variables({"embedding": _table()}), context).bias


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("length, key_length", [(30, 30), (4, 9)])
def test_bias_equals_oracle(bidirectional, length, key_length):
    config = T5Bias(num_buckets=8, max_distance=20, bidirectional=bidirectional)
    got = _bias(config, PositionContext(length=length, key_length=key_length))
    expected = transformer.relative_bias(
        _table(), length=length, key_length=key_length, bidirectional=bidirectional, max_distance=20
    )
    np.testing.assert_array_equal(got[0], expected.astype(np.float32))


def test_traced_offset_gives_the_rows_of_the_whole_bias():
    config = T5Bias(num_buckets=8, max_distance=20, bidirectional=False)
    whole = _bias(config, PositionContext(length=40, key_length=40))

    @jax.jit
    def rows(offset):
        return _bias(config, PositionContext(length=2, key_length=40, offset=offset))

    for offset in (0, 17, 38):
        np.testing.assert_array_equal(rows(jnp.int32(offset)), whole[:, :, offset : offset + 2])


def test_prefix_may_use_bidirectional_buckets():
    marks = jnp.array([[1, 1, 1, 0, 0]])
    both = (marks[:, :, None] * marks[:, None, :]).astype(bool)
    context = PositionContext(length=5, key_length=5, both_prefix=both)
    sizes = {"num_buckets": 8, "max_distance": 20}
    causal = _bias(T5Bias(**sizes, bidirectional=False), context)
    mixed = _bias(T5Bias(**sizes, bidirectional=False, bidirectional_prefix=True), context)
    bidirectional = _bias(T5Bias(**sizes), context)
    np.testing.assert_array_equal(mixed[0, :, :3, :3], bidirectional[0, :, :3, :3])
    np.testing.assert_array_equal(mixed[0, :, 3:], causal[0, :, 3:])
    np.testing.assert_array_equal(mixed[0, :, :, 3:], causal[0, :, :, 3:])


def test_biases_add_up():
    config = T5Bias(num_buckets=8, max_distance=20)
    context = PositionContext(length=4, key_length=4)
    once = _bias(config, context)
    twice = config.make(3).apply(variables({"embedding": _table()}), context.add_bias(once)).bias
    np.testing.assert_allclose(twice, 2 * once)


def test_fresh_table_has_the_variance_of_t5x(key):
    fresh = jax.jit(lambda key: T5Bias().make(64).init(key, PositionContext(length=2, key_length=2)))(key)
    table = fresh["params"]["embedding"]
    assert table.names == ("positions", "heads")
    assert table.value.std() == pytest.approx((2 / (32 + 64)) ** 0.5, rel=0.05)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"num_buckets": 7}, "T5Bias.num_buckets = 7: must be an even number of at least 4"),
        ({"num_buckets": 32, "max_distance": 16}, "T5Bias.max_distance = 16: must be above num_buckets // 2 = 16"),
        ({"bidirectional_prefix": True}, "T5Bias.bidirectional_prefix = True: must be False where bidirectional=True"),
    ],
)
def test_wrong_fields_are_refused_by_name(fields, message):
    with pytest.raises(ValueError, match=message):
        T5Bias(**fields)
