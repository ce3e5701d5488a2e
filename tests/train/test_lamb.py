"""LAMB against numbers worked by hand and a float64 loop that goes layer by layer."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from t2t.train import lamb
from t2t.train.optimizer import LAMB, Constant

PARAMS = {
    "kernel": jnp.array([[[3.0, 4.0]], [[0.3, 0.4]]]),  # two layers, of length 5 and 0.5
    "embedding": jnp.array([[6.0, 8.0]]),
    "bias": jnp.array([0.5, 0.25]),
}
AXES = {"kernel": ("layers", "embed", "mlp"), "embedding": ("vocab", "embed"), "bias": ("embed",)}


def test_each_layer_has_a_ratio_of_its_own():
    transform = lamb.scale_by_trust_ratio(AXES, adapted={"kernel": True, "embedding": True, "bias": False})
    updates = {
        "kernel": jnp.array([[[1.0, 0.0]], [[0.0, 2.0]]]),
        "embedding": jnp.array([[0.0, 0.0]]),
        "bias": jnp.array([7.0, 7.0]),
    }
    got, _ = transform.update(updates, transform.init(PARAMS), PARAMS)
    np.testing.assert_allclose(got["kernel"], [[[5.0, 0.0]], [[0.0, 0.5]]], rtol=1e-6)
    np.testing.assert_array_equal(got["embedding"], [[0.0, 0.0]])  # no direction: not a number otherwise
    np.testing.assert_array_equal(got["bias"], [7.0, 7.0])


def oracle(gradients, *, rate, b1, b2, eps, decay, correct):
    params = {name: np.asarray(value, np.float64) for name, value in PARAMS.items()}
    m, v = ({name: np.zeros_like(value) for name, value in params.items()} for _ in range(2))
    for t, gradient in enumerate(gradients, start=1):
        for name, array in gradient.items():
            g = np.asarray(array, np.float64)
            m[name] = b1 * m[name] + (1 - b1) * g
            v[name] = b2 * v[name] + (1 - b2) * g**2
            m_hat = m[name] / (1 - b1**t) if correct else m[name]
            v_hat = v[name] / (1 - b2**t) if correct else v[name]
            update = m_hat / (np.sqrt(v_hat) + eps)
            if name != "bias":
                update = update + decay * params[name]
                layers = range(len(update)) if name == "kernel" else [slice(None)]
                for layer in layers:
                    length = np.linalg.norm(params[name][layer])
                    update[layer] *= length / np.linalg.norm(update[layer])
            params[name] = params[name] - rate * update
    return params


@pytest.mark.parametrize("correct", [True, False])
def test_steps_equal_the_oracle(correct):
    options = {"b1": 0.8, "b2": 0.99, "eps": 1e-6}
    config = LAMB(learning_rate=Constant(peak=0.02), weight_decay=0.1, bias_correction=correct, **options)
    rng = np.random.default_rng(0)
    gradients = [jax.tree.map(lambda p: jnp.asarray(rng.normal(0, 1, p.shape), jnp.float32), PARAMS) for _ in range(4)]
    params, transform = PARAMS, config.make(PARAMS, AXES, steps=4)
    state = transform.init(params)
    for gradient in gradients:
        updates, state = transform.update(gradient, state, params)
        params = optax.apply_updates(params, updates)
    want = oracle(gradients, rate=0.02, decay=0.1, correct=correct, **options)
    for name in PARAMS:
        np.testing.assert_allclose(params[name], want[name], rtol=1e-5, err_msg=name)


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match=r"LAMB: b2=1.0 must be in \[0, 1\)"):
        LAMB(learning_rate=Constant(peak=0.02), b2=1.0)
    with pytest.raises(ValueError, match="LAMB: eps=0 must be greater than 0"):
        LAMB(learning_rate=Constant(peak=0.02), eps=0)
