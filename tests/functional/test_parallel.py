import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import parallel

AUTO = jax.sharding.AxisType.Auto


def total(rows, shared):
    """Sums of products."""
    return {"sum": jnp.sum(rows * shared)}


def test_without_a_mesh_nothing_changes():
    assert parallel.mesh_axes() == parallel.MeshAxes((), (), ())
    assert float(parallel.over_rows(total, jnp.ones((2, 3)), shared=jnp.asarray(2.0))["sum"]) == 12.0
    rules = (("batch", ("data", "fsdp")), ("vocab", "tensor"))
    assert parallel.free_rules(rules) is rules


@pytest.mark.multi_device
def test_sums_and_gradients_over_a_mesh():
    mesh = jax.make_mesh((2, 2, 2), ("data", "tensor", "sequence"), axis_types=(AUTO,) * 3)
    rows, shared = jnp.arange(24.0).reshape(4, 6), jnp.asarray(2.0)
    seen = []

    def function(rows, shared):
        axes = parallel.mesh_axes()
        rules = parallel.free_rules((("batch", ("data", "fsdp")), ("length", "sequence"), ("vocab", "tensor")))
        seen.append((rows.shape, axes, rules))
        return total(rows, shared)

    def loss(rows, shared):
        return parallel.over_rows(function, rows, shared=shared)["sum"]

    with jax.set_mesh(mesh):
        value, gradients = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(rows, shared)
        assert float(jax.jit(loss)(jnp.ones((3, 5)), shared)) == 30.0  # neither rows nor positions divide
    assert float(value) == 2 * 276 and float(gradients[1]) == 276
    np.testing.assert_array_equal(gradients[0], np.full((4, 6), 2.0))
    shape, axes, rules = seen[0]
    assert shape == (2, 3) and axes == parallel.MeshAxes((), ("tensor",), ())
    assert dict(rules) == {"batch": ("fsdp",), "length": None, "vocab": ("tensor",)}
