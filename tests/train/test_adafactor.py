"""Adafactor against five recorded T5X steps, its two RMS rules by hand, and layer-by-layer decisions."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from t2t.train import adafactor
from t2t.train.optimizer import Adafactor, Constant
from tests.shared_data import shared_data

GOLDEN_AXES = {
    "mat": ("embed", "mlp"),
    "wide": ("embed", "mlp"),
    "small": ("embed", "mlp"),
    "vec": ("embed",),
    "rel": ("heads", "positions"),
}


def run(optimizer, params, gradients, axes):
    """The parameters after each gradient."""
    transform = optimizer.make(params, axes)
    state = jax.jit(transform.init)(params)

    @jax.jit
    def step(params, state, gradient):
        updates, state = transform.update(gradient, state, params)
        return optax.apply_updates(params, updates), state

    trace = []
    for gradient in gradients:
        params, state = step(params, state, gradient)
        trace.append(params)
    return trace, state


def golden_tree(golden, letter, step):
    return {name: jnp.asarray(golden[f"{letter}{step}_{name}"]) for name in GOLDEN_AXES}


def learning_rate_of(golden):
    """The recorded rate: the first step of an unfactored vector moves by rate * max(RMS(p), 1e-3) * sign(g)."""
    p0, p1 = golden["p0_vec"], golden["p1_vec"]
    return float(np.abs(p1 - p0).mean() / np.sqrt(np.mean(p0**2)))


def test_equals_t5x():
    golden = np.load(shared_data("t5x_golden", "adafactor.npz"))
    optimizer = Adafactor(learning_rate=Constant(peak=round(learning_rate_of(golden), 5)))
    gradients = [golden_tree(golden, "g", step) for step in range(5)]
    trace, _ = run(optimizer, golden_tree(golden, "p", 0), gradients, GOLDEN_AXES)
    for step, got in enumerate(trace, start=1):
        for name, want in golden_tree(golden, "p", step).items():
            np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=1e-6, err_msg=f"{name} after {step}")


def test_stacked_layers_and_views_equal_matrices_one_by_one():
    """[L, D, N, H] must move as its L matrices [D, N H] do, although their gradients differ a thousandfold."""
    shapes = {"query": (3, 130, 2, 70), "out": (3, 2, 70, 130), "scale": (3, 130)}
    axes = {
        "query": ("layers", "embed", "heads", "head"),
        "out": ("layers", "heads", "head", "embed"),
        "scale": ("layers", "embed"),
    }
    rng = np.random.default_rng(0)
    size = np.array([1.0, 1e-3, 1e2])

    def draw(shape):
        return jnp.asarray(rng.normal(0, 1, shape) * size.reshape(-1, *[1] * (len(shape) - 1)), jnp.float32)

    params, gradients = ({name: draw(shape) for name, shape in shapes.items()} for _ in range(2))
    optimizer = Adafactor(learning_rate=Constant(peak=1e-2))
    (*_, stacked), state = run(optimizer, params, [gradients] * 3, axes)
    assert {k: v.shape for k, v in state[1].v_row.items()} == {"query": (3, 130), "out": (3, 130), "scale": (3, 1)}
    assert {k: v.shape for k, v in state[1].v_col.items()} == {"query": (3, 140), "out": (3, 140), "scale": (3, 1)}

    matrices = {"query": (130, 140), "out": (140, 130), "scale": (130,)}
    for layer in range(3):
        one = {name: (params[name][layer].reshape(shape)) for name, shape in matrices.items()}
        gradient = {name: (gradients[name][layer].reshape(shape)) for name, shape in matrices.items()}
        flat_axes = {"query": ("embed", "heads"), "out": ("heads", "embed"), "scale": ("embed",)}
        (*_, alone), _ = run(optimizer, one, [gradient] * 3, flat_axes)
        for name in matrices:
            got = np.asarray(stacked[name][layer]).reshape(matrices[name])
            np.testing.assert_allclose(got, alone[name], rtol=1e-5, atol=1e-7, err_msg=f"{name}, layer {layer}")


@pytest.mark.parametrize(("rms", "relative_to"), [(0.5, 0.5), (1e-5, 1e-3)])
def test_step_is_relative_to_the_parameter(rms, relative_to):
    """First step, one gradient everywhere: U = G / sqrt(G^2) = 1, so p moves by rate * max(RMS(p), 1e-3)."""
    params = {"a": jnp.full((4,), rms)}
    trace, _ = run(Adafactor(learning_rate=Constant(peak=0.1)), params, [{"a": jnp.full((4,), 7.0)}], {"a": ("embed",)})
    np.testing.assert_allclose(trace[0]["a"], rms - 0.1 * relative_to, rtol=1e-5)


def test_the_two_rms_rules_are_separate():
    """Second step, gradient three times the first: V = 2^-.8 * 9 + (1 - 2^-.8) * 1, U = 3 / sqrt(V) > 1."""
    share = 2.0**-0.8
    unclipped = 3 / np.sqrt(share * 9 + (1 - share))
    params, axes = {"a": jnp.full((4,), 0.5)}, {"a": ("embed",)}
    gradients = [{"a": jnp.full((4,), g)} for g in (1.0, 3.0)]

    def second_step(**options):
        trace, _ = run(Adafactor(learning_rate=Constant(peak=1e-3), **options), params, gradients, axes)
        return float(trace[0]["a"][0] - trace[1]["a"][0]), float(trace[0]["a"][0])

    assert unclipped > 1.05
    np.testing.assert_allclose(second_step(scale_by_parameter=False)[0], 1e-3, rtol=1e-3)
    np.testing.assert_allclose(
        second_step(scale_by_parameter=False, clip_threshold=None)[0], 1e-3 * unclipped, rtol=1e-3
    )
    moved, size = second_step()
    np.testing.assert_allclose(moved, 1e-3 * size, rtol=1e-3)
    moved, size = second_step(clip_threshold=None)
    np.testing.assert_allclose(moved, 1e-3 * unclipped * size, rtol=1e-3)


@pytest.mark.parametrize(
    ("shape", "axes", "factors"),
    [
        ((512, 8, 64), ("embed", "heads", "head"), (("embed",), ("heads",))),
        ((8, 64, 512), ("heads", "head", "embed"), (("heads",), ("embed",))),
        ((512, 2, 64), ("embed", "kv_heads", "head"), (("kv_heads",), ("embed",))),
        ((6, 512, 2048), ("layers", "embed", "mlp"), (("layers", "embed"), ("layers", "mlp"))),
        ((32128, 512), ("vocab", "embed"), (("embed",), ("vocab",))),
        ((8, 64), ("heads", "head"), None),
        ((400, 512), ("layers", "embed"), None),
        ((32, 128), ("positions", "heads"), None),
        ((127, 512), ("embed", "mlp"), None),
    ],
)
def test_what_is_factored_and_how(shape, axes, factors):
    """The names agree with the shapes that optax gives to the factors."""
    assert adafactor.factored_axes(shape, axes, min_dim=128) == factors
    sizes = dict(zip(axes, shape, strict=True)) | {axes[i]: shape[i] * shape[i + 1] for i in _heads(axes)}
    transform = Adafactor().make({"a": jax.ShapeDtypeStruct(shape, jnp.float32)}, {"a": axes}, steps=1)
    state = jax.eval_shape(transform.init, {"a": jax.ShapeDtypeStruct(shape, jnp.float32)})[1]
    if factors is not None:
        assert state.v_row["a"].shape == tuple(sizes[name] for name in factors[0])
        assert state.v_col["a"].shape == tuple(sizes[name] for name in factors[1])
    assert (state.v["a"].size == (shape[0] if axes[0] == "layers" else 1)) == (factors is not None)


def _heads(axes):
    return [i for i, axis in enumerate(axes[:-1]) if axis in ("heads", "kv_heads") and axes[i + 1] == "head"]
