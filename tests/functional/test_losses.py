"""Losses against recorded T5X arrays, a slow float64 oracle, numbers worked out by hand, and their gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from t2t.functional import losses
from tests.reference import losses as oracle
from tests.shared_data import shared_data

B, T, V, D = 2, 5, 7, 3


def random_case(seed: int = 0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 3, (B, T, V)).astype(np.float32)
    targets = rng.integers(0, V, (B, T)).astype(np.int32)
    weights = rng.uniform(0, 2, (B, T)).astype(np.float32)
    weights[0, 3] = 0.0
    return logits, targets, weights


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("z_loss", [0.0, 0.0001, 0.01])
def test_equals_t5x(smoothing, z_loss):
    """T5X's loss is cross entropy plus z-loss; its gradient is with respect to the logits."""
    golden = np.load(shared_data("t5x_golden", "loss.npz"))
    total, z_part, weight = golden[f"loss_{smoothing}_{z_loss}"]

    def ours(logits):
        sums = losses.cross_entropy(
            logits,
            targets=jnp.asarray(golden["targets"]),
            weights=jnp.asarray(golden["weights"]),
            label_smoothing=smoothing,
        )
        return sums.cross_entropy + z_loss * sums.squared_log_normalizer, sums

    (loss, sums), gradient = jax.value_and_grad(ours, has_aux=True)(jnp.asarray(golden["logits"]))
    np.testing.assert_allclose(loss, total, rtol=1e-6)
    np.testing.assert_allclose(z_loss * sums.squared_log_normalizer, z_part, rtol=1e-6)
    assert float(sums.weight) == weight
    np.testing.assert_allclose(gradient, golden[f"grad_{smoothing}_{z_loss}"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_equals_the_oracle(smoothing):
    logits, targets, weights = random_case()
    got = losses.cross_entropy(
        jnp.asarray(logits), targets=jnp.asarray(targets), weights=jnp.asarray(weights), label_smoothing=smoothing
    )
    want = oracle.cross_entropy(logits, targets, weights, label_smoothing=smoothing)
    for name, value in want.items():
        np.testing.assert_allclose(getattr(got, name), value, rtol=2e-6, err_msg=name)


def test_by_hand():
    """Logits log 1, log 2, log 5 are the probabilities 1/8, 2/8, 5/8; log Z is log 8."""
    logits = jnp.log(jnp.array([1.0, 2.0, 5.0]))
    one = losses.token_losses(logits, targets=jnp.array(1))
    np.testing.assert_allclose(one.cross_entropy, np.log(4), rtol=1e-6)
    np.testing.assert_allclose(one.log_normalizer, np.log(8), rtol=1e-6)
    assert float(one.correct) == 0.0
    assert float(losses.token_losses(logits, targets=jnp.array(2)).correct) == 1.0


def test_a_perfect_prediction_under_smoothing_costs_nothing():
    smoothing = 0.3
    probabilities = np.full(V, smoothing / (V - 1), np.float32)
    probabilities[4] = 1 - smoothing
    one = losses.token_losses(jnp.log(probabilities), targets=jnp.array(4), label_smoothing=smoothing)
    np.testing.assert_allclose(one.cross_entropy, 0.0, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_gradients(smoothing, x64):
    logits, targets, weights = random_case()
    loss = functools.partial(
        losses.cross_entropy, targets=jnp.asarray(targets), weights=jnp.asarray(weights), label_smoothing=smoothing
    )
    for part in (lambda s: s.cross_entropy, lambda s: s.squared_log_normalizer):
        check_grads(
            lambda x, part=part: part(loss(jnp.asarray(x))), (jnp.asarray(logits, jnp.float64),), order=1, modes=["rev"]
        )


def test_weightless_tokens_have_no_gradient_and_large_logits_stay_finite():
    logits, targets, weights = random_case()
    logits[1, 2] = 3e38  # exp overflows without the shift
    logits[1, 2, 0] = -3e38

    def loss(x):
        sums = losses.cross_entropy(x, targets=jnp.asarray(targets), weights=jnp.asarray(weights), label_smoothing=0.0)
        return sums.cross_entropy

    gradient = jax.grad(loss)(jnp.asarray(logits))
    assert np.isfinite(gradient).all()
    assert (np.asarray(gradient[0, 3]) == 0).all()


def test_bfloat16_logits_are_summed_in_float32():
    logits, targets, _ = random_case()
    half = jnp.asarray(logits, jnp.bfloat16)
    got = losses.token_losses(half, targets=jnp.asarray(targets))
    want = losses.token_losses(half.astype(jnp.float32), targets=jnp.asarray(targets))
    assert got.cross_entropy.dtype == jnp.float32
    np.testing.assert_array_equal(got.cross_entropy, want.cross_entropy)


def project(params, hidden):
    params["not read"].astype(jnp.bfloat16)
    return jnp.einsum("BTD,DV->BTV", hidden, params["kernel"])


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 9, None])
def test_chunks_change_nothing(chunk):
    """Also where the length is not a multiple of the chunk; loss and both gradients."""
    _, targets, weights = random_case()
    rng = np.random.default_rng(1)
    hidden = jnp.asarray(rng.normal(0, 1, (B, T, D)), jnp.float32)
    kernel = jnp.asarray(rng.normal(0, 1, (D, V)), jnp.float32)

    def loss(hidden, kernel, chunk):
        sums = losses.chunked_cross_entropy(
            hidden,
            logits=project,
            params={"kernel": kernel, "not read": jnp.zeros(3)},
            targets=jnp.asarray(targets),
            weights=jnp.asarray(weights),
            label_smoothing=0.1,
            z_loss=0.01,
            chunk=chunk,
        )
        return sums.cross_entropy + 0.01 * sums.squared_log_normalizer, sums

    def value(chunk):
        return jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(hidden, kernel, chunk)

    for got, want in zip(jax.tree.leaves(value(chunk)), jax.tree.leaves(value(None)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_chunks_never_hold_all_logits():
    """Nothing of [B, T, V] in the program, forward or backward."""
    length, vocab = 64, 97

    def loss(hidden, kernel, chunk):
        return losses.chunked_cross_entropy(
            hidden,
            logits=project,
            params={"kernel": kernel, "not read": jnp.zeros(3)},
            targets=jnp.zeros((B, length), jnp.int32),
            weights=jnp.ones((B, length)),
            chunk=chunk,
        ).cross_entropy

    def largest(chunk):
        program = jax.make_jaxpr(jax.grad(functools.partial(loss, chunk=chunk), argnums=(0, 1)))(
            jnp.zeros((B, length, D)), jnp.zeros((D, vocab))
        )
        return max(_sizes(program.jaxpr))

    assert largest(None) == B * length * vocab
    assert largest(8) == B * 8 * vocab


def _sizes(jaxpr):
    for equation in jaxpr.eqns:
        for variable in equation.outvars:
            yield int(np.prod(variable.aval.shape))
        for parameter in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
            inner = getattr(parameter, "jaxpr", parameter)
            if hasattr(inner, "eqns"):
                yield from _sizes(inner)


@pytest.mark.parametrize("options", [{"label_smoothing": 1.0}, {"label_smoothing": -0.1}, {"chunk": 0}])
def test_refuses(options):
    logits, targets, weights = random_case()
    with pytest.raises(ValueError, match=next(iter(options))):
        losses.chunked_cross_entropy(
            jnp.asarray(logits),
            logits=lambda params, x: x,
            params={},
            targets=jnp.asarray(targets),
            weights=jnp.asarray(weights),
            **options,
        )


def chunked_loss(hidden, kernel, *, targets, chunk, z_loss=0.0, share=0.0):
    sums = losses.chunked_cross_entropy(
        hidden,
        logits=project,
        params={"kernel": kernel, "not read": jnp.zeros(3)},
        targets=targets,
        weights=jnp.ones(targets.shape),
        z_loss=z_loss,
        chunk=chunk,
    )
    return sums.cross_entropy + share * sums.squared_log_normalizer


def test_the_compiled_program_holds_no_logits_of_all_positions_and_less_memory():
    rows, length, vocab = 2, 64, 1031
    arrays = jnp.zeros((rows, length, D)), jnp.zeros((D, vocab))
    targets = jnp.zeros((rows, length), jnp.int32)

    def compiled(chunk):
        loss = functools.partial(chunked_loss, targets=targets, chunk=chunk)
        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1))).lower(*arrays).compile()

    whole, chunks = compiled(None), compiled(8)
    forms = (f"[{rows},{length},{vocab}]", f"[{rows * length},{vocab}]")
    assert any(form in whole.as_text() for form in forms)
    assert not any(form in chunks.as_text() for form in forms)
    logits = 4 * rows * length * vocab
    saved = whole.memory_analysis().temp_size_in_bytes - chunks.memory_analysis().temp_size_in_bytes
    assert saved > logits / 2


def test_a_share_of_z_loss_that_was_not_said_gives_no_gradient():
    rng = np.random.default_rng(0)
    hidden, kernel = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((B, T, D), (D, V)))
    gradient = jax.grad(functools.partial(chunked_loss, targets=jnp.zeros((B, T), jnp.int32), chunk=2, z_loss=0.1))
    wanted = gradient(hidden, kernel, share=0.1)
    assert np.isfinite(wanted).all() and np.abs(wanted).max() > 0
    assert np.isnan(gradient(hidden, kernel, share=0.2)).all()
    assert np.isnan(gradient(hidden, kernel, share=0.0)).all()


def test_chunks_in_bfloat16_add_up_in_float32():
    rng = np.random.default_rng(0)
    hidden = jnp.asarray(rng.normal(size=(B, T, D)), jnp.bfloat16)
    kernel, targets = jnp.asarray(rng.normal(size=(D, V)), jnp.float32), jnp.zeros((B, T), jnp.int32)

    def loss(hidden, kernel, chunk):
        sums = losses.chunked_cross_entropy(
            hidden,
            logits=lambda kernel, x: jnp.einsum("BTD,DV->BTV", x, kernel.astype(x.dtype)),
            params=kernel,
            targets=targets,
            weights=jnp.ones((B, T)),
            chunk=chunk,
        )
        return sums.cross_entropy

    got, want = (jax.value_and_grad(loss, argnums=(0, 1))(hidden, kernel, chunk) for chunk in (2, None))
    assert got[0].dtype == got[1][1].dtype == jnp.float32 and got[1][0].dtype == jnp.bfloat16
    for mine, whole in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        whole = whole.astype(jnp.float32)
        np.testing.assert_allclose(mine.astype(jnp.float32), whole, rtol=0, atol=0.02 * float(jnp.abs(whole).max()))


@pytest.mark.multi_device
def test_devices_meet_once_and_not_in_every_chunk():
    """Rows over four devices, the vocabulary over two: same numbers, and no exchange of the vocabulary in the loop."""
    rng = np.random.default_rng(0)
    hidden = jnp.asarray(rng.normal(size=(4, 6, 8)), jnp.float32)
    kernel = jnp.asarray(rng.normal(size=(8, 30)), jnp.float32)
    loss = functools.partial(chunked_loss, targets=jnp.ones((4, 6), jnp.int32), chunk=2)
    gradient = jax.value_and_grad(loss, argnums=(0, 1))
    mesh = jax.make_mesh((4, 2), ("data", "tensor"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    spec = jax.sharding.PartitionSpec
    placed = [
        jax.device_put(x, jax.sharding.NamedSharding(mesh, where))
        for x, where in ((hidden, spec("data")), (kernel, spec(None, "tensor")))
    ]
    with jax.set_mesh(mesh):
        compiled = jax.jit(gradient).lower(*placed).compile()
        got = compiled(*placed)
    for mine, whole in zip(jax.tree.leaves(got), jax.tree.leaves(gradient(hidden, kernel)), strict=True):
        np.testing.assert_allclose(mine, whole, rtol=0, atol=1e-6 * float(jnp.abs(whole).max()))
    exchanged = [line for line in compiled.as_text().splitlines() if " all-reduce(" in line and "f32[8,15]" in line]
    assert len(exchanged) == 1 and "while" not in exchanged[0].partition("op_name")[2]
