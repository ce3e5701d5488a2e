import jax.numpy as jnp
import numpy as np

from t2t.nn.cache import Cache, KeysValues, empty_layer


def _cache():
    layer = empty_layer(batch_size=3, num_kv_heads=2, length=5, head_dim=4, dtype=jnp.float32)
    rows = jnp.arange(3, dtype=jnp.float32)[:, None, None, None]
    new = KeysValues(key=jnp.ones((3, 2, 1, 4)) + rows, value=jnp.ones((3, 2, 1, 4)) - rows)
    layers = (type(layer)(attention=layer.attention.write(new, index=2)),)
    return Cache(layers=layers, index=jnp.int32(3), starts=jnp.array([0, 1, 2]), memory_mask=jnp.eye(3, dtype=bool))


def test_write_touches_one_column():
    key = _cache().layers[0].attention.key
    np.testing.assert_array_equal(key[:, 0, :, 0], [[0, 0, 1, 0, 0], [0, 0, 2, 0, 0], [0, 0, 3, 0, 0]])


def test_gather_takes_rows_of_everything_but_the_index():
    gathered = _cache().gather(jnp.array([2, 2, 0, 1]))
    np.testing.assert_array_equal(gathered.layers[0].attention.key[:, 0, 2, 0], [3, 3, 1, 2])
    np.testing.assert_array_equal(gathered.starts, [2, 2, 0, 1])
    np.testing.assert_array_equal(gathered.memory_mask[0], [False, False, True])
    assert gathered.index.shape == ()
    assert gathered.length == 5
