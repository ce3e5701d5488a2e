import jax
import jax.numpy as jnp
import numpy as np

from t2t.functional import attention
from tests.reference import transformer


def _inputs(*, num_heads=6, num_kv_heads=6, seed=0):
    rng = np.random.default_rng(seed)
    query = rng.normal(size=(2, num_heads, 5, 4)).astype(np.float32)
    key, value = rng.normal(size=(2, 2, num_kv_heads, 7, 4)).astype(np.float32)
    return jnp.asarray(query), jnp.asarray(key), jnp.asarray(value)


def _attend(query, key, value, **options):
    scores = attention.attention_scores(query, key, scale=0.3)
    return attention.weighted_values(attention.attention_weights(scores, **options), value)


def test_attention_equals_oracle_with_mask_bias_and_grouped_heads():
    rng = np.random.default_rng(1)
    query, key, value = _inputs(num_kv_heads=3)
    mask = rng.random((2, 5, 7)) < 0.6
    mask[:, :, 0] = True
    bias = rng.normal(size=(6, 5, 7)).astype(np.float32)
    got = _attend(query, key, value, mask=jnp.asarray(mask), bias=jnp.asarray(bias)[None])
    for b in range(2):
        for n in range(6):
            scores = 0.3 * np.asarray(query)[b, n] @ np.asarray(key)[b, n // 2].T + bias[n]
            weights = np.exp(scores) * mask[b]
            weights /= weights.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(got[b, n], weights @ np.asarray(value)[b, n // 2], atol=1e-5)


def test_grouped_heads_equal_repeated_heads():
    query, key, value = _inputs(num_kv_heads=2)
    repeated = _attend(query, jnp.repeat(key, 3, axis=1), jnp.repeat(value, 3, axis=1))
    np.testing.assert_allclose(_attend(query, key, value), repeated, atol=1e-6)


def test_row_that_may_read_nothing_is_finite_with_zero_gradient_to_scores():
    query, key, value = _inputs()
    mask = jnp.ones((2, 5, 7), bool).at[0, 3].set(False)

    def padded_row(query, key):
        return jnp.sum(jnp.square(_attend(query, key, value, mask=mask)[0, :, 3]))

    np.testing.assert_allclose(_attend(query, key, value, mask=mask)[0, :, 3], value[0].mean(axis=1), atol=1e-6)
    for gradient in jax.grad(padded_row, argnums=(0, 1))(query, key):
        np.testing.assert_array_equal(gradient, 0.0)


def test_masked_pairs_have_weight_zero_even_with_large_scores():
    scores = jnp.full((1, 1, 1, 2), 1e4).at[0, 0, 0, 1].set(-1e4)
    weights = attention.attention_weights(scores, mask=jnp.array([[[False, True]]]))
    np.testing.assert_array_equal(weights[0, 0, 0], [0.0, 1.0])


def test_scores_and_weights_are_float32_in_bfloat16():
    query, key, value = (x.astype(jnp.bfloat16) for x in _inputs())
    scores = attention.attention_scores(query, key, scale=0.5)
    weights = attention.attention_weights(scores, bias=jnp.ones((1, 6, 5, 7), jnp.bfloat16))
    assert scores.dtype == jnp.float32
    assert weights.dtype == jnp.float32
    assert attention.weighted_values(weights, value).dtype == jnp.bfloat16


def test_oracle_agrees_with_a_sum_by_hand():
    # Two positions, one head of width 1: scores 2 * [1, 3] for the second query, weights softmax(2, 6).
    kernel = {"kernel": np.ones((1, 1, 1))}
    x = np.array([[[1.0], [2.0]]])
    read = np.array([[[1.0], [3.0]]])
    got = transformer.attention(x, read, {name: kernel for name in ("query", "key", "value", "out")}, scale=1.0)
    far = np.exp(6) / (np.exp(2) + np.exp(6))
    np.testing.assert_allclose(got[0, 1, 0], (1 - far) * 1 + far * 3)
