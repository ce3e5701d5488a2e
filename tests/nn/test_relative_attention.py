"""Relative attention against pairs of positions one at a time, in both streams, over earlier states, with types."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import distances
from t2t.nn.relative_attention import Distances, RelativeAttentionConfig
from tests.models import tiny
from tests.reference import relative

D_MODEL, LENGTH, PAST = 12, 5, 3
ROWS = np.array([[4, 1], [0, 3]], np.int32)


def _layer(reads_types):
    config = RelativeAttentionConfig(num_heads=3, head_dim=4, reads_types=reads_types)
    return config.make(D_MODEL)


def _apply(layer, params, x, read, mask, given):
    def run(module, x):
        return module(x, module.keys_values(read), mask=mask, relative=given)

    return layer.apply({"params": params}, x, method=run)[0]


@pytest.mark.parametrize("past", [0, PAST], ids=["alone", "past"])
@pytest.mark.parametrize("queries", [False, True], ids=["one", "two"])
@pytest.mark.parametrize("reads_types", [False, True], ids=["plain", "types"])
def test_against_pairs_one_at_a_time(past, queries, reads_types):
    rng = np.random.default_rng(0)
    num_readers = LENGTH + (ROWS.shape[1] if queries else 0)
    x = rng.normal(size=(2, num_readers, D_MODEL)).astype(np.float32)
    read = np.concatenate([rng.normal(size=(2, past, D_MODEL)).astype(np.float32), x[:, :LENGTH]], axis=1)
    allowed = rng.random((2, num_readers, past + LENGTH)) < 0.7
    allowed[:, :, 0] = True
    places = past + np.concatenate([np.tile(np.arange(LENGTH), (2, 1)), ROWS], axis=1)[:, :num_readers]
    kinds = rng.integers(0, 2, (2, num_readers)), rng.integers(0, 2, (2, past + LENGTH))
    embedded = distances.distance_sinusoids(length=LENGTH, past_length=past, width=D_MODEL, max_distance=4)
    given = Distances(
        embeddings=jnp.asarray(embedded, jnp.float32),
        rows=jnp.asarray(ROWS) if queries else None,
        is_other=jnp.asarray(kinds[0][:, :, None] != kinds[1][:, None, :]) if reads_types else None,
        may_read=jnp.asarray(allowed[:, LENGTH:].any(axis=-1)) if queries else None,
    )
    layer = _layer(reads_types)
    shapes = jax.eval_shape(
        lambda key: layer.init(
            key,
            jnp.asarray(x),
            method=lambda m, x: m(x, m.keys_values(jnp.asarray(read)), mask=jnp.asarray(allowed), relative=given),
        ),
        jax.random.key(0),
    )["params"]
    params = tiny.random_like(jax.tree.map(lambda box: box.value, shapes, is_leaf=lambda b: hasattr(b, "value")))
    found = _apply(
        layer, jax.tree.map(jnp.asarray, params), jnp.asarray(x), jnp.asarray(read), jnp.asarray(allowed), given
    )
    wide = jax.tree.map(lambda leaf: leaf.astype(np.float64), params)
    expected = relative.attention(
        x.astype(np.float64), read.astype(np.float64), wide, places=places, allowed=allowed, scale=0.5, max_distance=4,
        types=kinds if reads_types else None,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-5)


def test_a_query_that_may_read_nothing_gets_nothing():
    layer = _layer(reads_types=False)
    x = jnp.ones((1, 3, D_MODEL))
    given = Distances(
        embeddings=jnp.asarray(distances.distance_sinusoids(length=2, width=D_MODEL), jnp.float32),
        rows=jnp.zeros((1, 1), jnp.int32),
        may_read=jnp.zeros((1, 1), bool),
    )
    mask = jnp.asarray([[[True, True], [True, True], [False, False]]])
    variables = layer.init(
        jax.random.key(0), x, method=lambda m, x: m(x, m.keys_values(x[:, :2]), mask=mask, relative=given)
    )
    params = jax.tree.map(lambda box: box.value, variables["params"], is_leaf=lambda b: hasattr(b, "value"))
    found = _apply(layer, params, x, x[:, :2], mask, given)
    assert np.abs(found[0, :2]).max() > 0
    np.testing.assert_array_equal(found[0, 2], 0)


def test_without_distances_it_says_what_to_build():
    layer = _layer(reads_types=False)
    x = jnp.ones((1, 3, D_MODEL))
    with pytest.raises(ValueError, match="TwoStreamEncoderConfig"):
        layer.init(jax.random.key(0), x, method=lambda m, x: m(x, m.keys_values(x)))
