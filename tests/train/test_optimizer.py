"""AdamW against a float64 loop, decay, clipping, and settings that cannot work."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from t2t.train.optimizer import Adafactor, AdamW, Constant, InverseSquareRoot

PARAMS = {"kernel": jnp.array([[1.0, -2.0, 3.0]]), "scale": jnp.array([0.5, 0.25])}
AXES = {"kernel": ("embed", "mlp"), "scale": ("embed",)}


def run(optimizer, gradients, params=PARAMS):
    transform = optimizer.make(params, AXES, steps=len(gradients))
    state = transform.init(params)
    for gradient in gradients:
        updates, state = transform.update(gradient, state, params)
        params = optax.apply_updates(params, updates)
    return params


def draw_gradients(steps=4):
    rng = np.random.default_rng(0)
    return [jax.tree.map(lambda p: jnp.asarray(rng.normal(0, 1, p.shape), jnp.float32), PARAMS) for _ in range(steps)]


def adamw_oracle(gradients, *, rate, b1, b2, eps, decay, correct):
    params = {name: np.asarray(value, np.float64) for name, value in PARAMS.items()}
    m, v = ({name: np.zeros_like(value) for name, value in params.items()} for _ in range(2))
    for t, gradient in enumerate(gradients, start=1):
        for name, array in gradient.items():
            g = np.asarray(array, np.float64)
            m[name] = b1 * m[name] + (1 - b1) * g
            v[name] = b2 * v[name] + (1 - b2) * g**2
            m_hat = m[name] / (1 - b1**t) if correct else m[name]
            v_hat = v[name] / (1 - b2**t) if correct else v[name]
            own_decay = decay if name == "kernel" else 0.0
            params[name] -= rate * (m_hat / (np.sqrt(v_hat) + eps) + own_decay * params[name])
    return params


@pytest.mark.parametrize("correct", [True, False])
def test_adamw_equals_the_oracle(correct):
    options = {"b1": 0.8, "b2": 0.99, "eps": 1e-6}
    optimizer = AdamW(learning_rate=Constant(peak=0.02), weight_decay=0.1, bias_correction=correct, **options)
    got = run(optimizer, draw_gradients())
    want = adamw_oracle(draw_gradients(), rate=0.02, decay=0.1, correct=correct, **options)
    for name in PARAMS:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-5, err_msg=name)


def test_bias_correction_at_the_first_step():
    """Without it the first update is (1 - b1) / sqrt(1 - b2) of the corrected one: 3.16 times, for BERT's betas."""
    gradient = jax.tree.map(jnp.ones_like, PARAMS)

    def moved(correct):
        optimizer = AdamW(learning_rate=Constant(peak=0.01), eps=1e-12, bias_correction=correct)
        return float(PARAMS["kernel"][0, 0] - run(optimizer, [gradient])["kernel"][0, 0])

    np.testing.assert_allclose(moved(True), 0.01, rtol=1e-4)
    np.testing.assert_allclose(moved(False), 0.01 * 0.1 / 0.001**0.5, rtol=1e-4)


@pytest.mark.parametrize("optimizer", [AdamW, Adafactor])
def test_decay_shrinks_kernels_alone_and_follows_the_rate(optimizer):
    """With no gradient, kernels lose rate * decay of themselves and nothing else moves."""
    zeros = jax.tree.map(jnp.zeros_like, PARAMS)
    config = optimizer(learning_rate=Constant(peak=0.1), weight_decay=0.5)
    got = run(config, [zeros])
    np.testing.assert_allclose(got["kernel"], PARAMS["kernel"] * (1 - 0.1 * 0.5), rtol=1e-6)
    np.testing.assert_array_equal(got["scale"], PARAMS["scale"])


def test_clipping_by_the_global_norm():
    """A gradient of norm 5 is scaled to norm 1 before anything else; one of norm 0.5 is left alone."""
    gradient = {"kernel": jnp.array([[3.0, 0.0, 0.0]]), "scale": jnp.array([0.0, 4.0])}
    transform = AdamW(learning_rate=Constant(peak=0.1), clip_norm=1.0).make(PARAMS, AXES)
    for scale, norm in ((1.0, 1.0), (0.1, 0.5)):
        scaled = jax.tree.map(lambda g, scale=scale: g * scale, gradient)
        _, state = transform.update(scaled, transform.init(PARAMS), PARAMS)
        first_moment = optax.tree.norm(state[1].mu) / (1 - 0.9)
        np.testing.assert_allclose(first_moment, norm, rtol=1e-5)


def test_optax_runs_under_strict_promotion():
    for optimizer in (AdamW(learning_rate=Constant(peak=0.1), clip_norm=1.0, weight_decay=0.1), Adafactor()):
        with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
            updates, _ = (t := optimizer.make(PARAMS, AXES)).update(PARAMS, t.init(PARAMS), PARAMS)
        assert all(u.dtype == jnp.float32 for u in jax.tree.leaves(updates))


def test_the_state_of_both_is_a_plain_pytree_of_the_same_precision():
    transform = Adafactor().make(PARAMS, AXES)
    leaves = jax.tree.leaves(jax.eval_shape(transform.init, PARAMS))
    assert {leaf.dtype for leaf in leaves} == {jnp.dtype("float32"), jnp.dtype("int32")}


RATE = Constant(peak=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Adafactor(scale_by_parameter=False), r"What works: scale_by_parameter=True .*Constant\(peak=1e-3\)"),
        (lambda: Adafactor(scale_by_parameter=False, learning_rate=InverseSquareRoot(peak=0.5)), "a peak of 0.5"),
        (lambda: Adafactor(learning_rate=RATE, scale_by_parameter=False, minimum_scale=0.1), "minimum_scale=0.1"),
        (lambda: Adafactor(factored=False, min_dim_factored=64), "factored=True"),
        (lambda: Adafactor(clip_threshold=0.0), r"clip_threshold=0.0 .*None"),
        (lambda: Adafactor(decay_exponent=1.0), "decay_exponent=1.0"),
        (lambda: AdamW(learning_rate=RATE, b1=1.0), "b1=1.0"),
        (lambda: AdamW(learning_rate=RATE, eps=0.0), "eps=0.0"),
        (lambda: AdamW(learning_rate=RATE, clip_norm=-1.0), r"clip_norm=-1.0 .*None"),
        (lambda: AdamW(learning_rate=RATE, weight_decay=-0.1), "weight_decay=-0.1"),
    ],
)
def test_impossible_settings_are_refused_with_what_works(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("options", [{}, {"learning_rate": RATE}, {"learning_rate": RATE, "scale_by_parameter": False}])
def test_the_alternatives_named_by_the_error_work(options):
    run(Adafactor(**options), draw_gradients())
