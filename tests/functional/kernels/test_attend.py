"""Every kernel against the reference: kernel x mask x packing x bias, forward and backward, interpreted on CPU."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas

from t2t.functional import attention
from t2t.functional.kernels.attend import attend
from t2t.functional.kernels.choice import KERNELS, PLATFORMS, Request, refusal
from t2t.functional.masks import Mask

BATCH, HEADS, KV_HEADS, LENGTH, KEY_LENGTH, HEAD_DIM, SCALE = 2, 4, 2, 100, 72, 16, 0.3
WINDOW = 9

SIDES = {
    "bidirectional": Mask(),
    "causal": Mask(causal=True),
    "window": Mask(window=WINDOW),
    "causal window": Mask(causal=True, window=WINDOW),
    "prefix": Mask(causal=True),  # with marks
    "cross": Mask(),  # of KEY_LENGTH positions
}
CASES = list(itertools.product(SIDES, (False, True), (False, True)))
FUSED = [kernel for kernel in KERNELS if kernel != "reference"]


def segment_ids(length, examples):
    """Rows of examples of these sizes, and padding."""
    ids = np.concatenate([np.full(size, k + 1) for k, size in enumerate(examples)])
    return np.pad(ids, (0, length - len(ids)))


def make_case(side, *, packed, bias, length=LENGTH, dtype=jnp.float32):
    """(query, key, value, bias) and the mask of a case; the last example of a row has an empty other side."""
    rng = np.random.default_rng(0)
    key_length = KEY_LENGTH if side == "cross" else length
    shapes = [(BATCH, HEADS, length, HEAD_DIM), *[(BATCH, KV_HEADS, key_length, HEAD_DIM)] * 2]
    arrays = [jnp.asarray(rng.normal(size=shape), dtype) for shape in shapes]
    arrays.append(jnp.asarray(rng.normal(size=(1, HEADS, length, key_length)), jnp.float32) if bias else None)
    mask = SIDES[side]
    if packed:
        reader = jnp.asarray([segment_ids(length, (40, 30, 9)), segment_ids(length, (length,))], jnp.int32)
        read = reader
        if side == "cross":
            read = jnp.asarray([segment_ids(key_length, (20, 33)), segment_ids(key_length, (50,))], jnp.int32)
        mask = dataclasses.replace(mask, reader=reader, read=read)
    if side == "prefix":
        marks = np.zeros((BATCH, length), np.int32)
        marks[0, :13], marks[1, :50] = 1, 1
        mask = dataclasses.replace(mask, prefix=jnp.asarray(marks))
    return arrays, mask


def reference(query, key, value, bias, mask):
    dense = mask.dense(length=query.shape[2], key_length=key.shape[2])
    scores = attention.attention_scores(query, key, scale=SCALE)
    weights = attention.attention_weights(scores, mask=dense, bias=bias)
    return attention.weighted_values(weights.astype(value.dtype), value)


def values_and_gradients(function, arrays, mask):
    """The result, and the gradients of query, key, value and bias."""
    query = arrays[0]
    direction = jnp.asarray(np.random.default_rng(1).normal(size=query.shape), jnp.float32)

    @jax.jit
    def both(arrays, mask):
        def projected(arrays):
            out = function(*arrays, mask)
            return jnp.sum(out.astype(jnp.float32) * direction), out

        return jax.grad(projected, has_aux=True)(arrays)

    gradients, out = both(arrays, mask)
    return out, gradients


def able(kernel, arrays, mask):
    return refusal(kernel, Request.of(arrays[0], arrays[1], mask, arrays[3])) is None


def check_equal(kernel, arrays, mask, *, forward, backward):
    def fused(query, key, value, bias, mask):
        return attend(kernel, query, key, value, mask, bias, scale=SCALE, interpret=True)

    out, gradients = values_and_gradients(fused, arrays, mask)
    wanted, wanted_gradients = values_and_gradients(reference, arrays, mask)
    assert out.dtype == wanted.dtype
    np.testing.assert_allclose(out, wanted, rtol=0, atol=forward)
    for got, want in zip(jax.tree.leaves(gradients), jax.tree.leaves(wanted_gradients), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=backward * max(1.0, float(jnp.max(jnp.abs(want)))))


@pytest.fixture
def interpreted(monkeypatch):
    """Flash attention has no option for it."""
    monkeypatch.setattr(pallas, "pallas_call", functools.partial(pallas.pallas_call, interpret=True))


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("kernel", ["splash", "flash", "triton"])
@pytest.mark.parametrize(("side", "packed", "bias"), CASES)
def test_kernels_equal_the_reference_or_refuse(kernel, side, packed, bias):
    arrays, mask = make_case(side, packed=packed, bias=bias)
    if not able(kernel, arrays, mask):
        with pytest.raises(ValueError, match=f"{kernel} .*What can: reference"):
            attend(kernel, *arrays[:3], mask, arrays[3], scale=SCALE, interpret=True)
        return
    check_equal(kernel, arrays, mask, forward=2e-6, backward=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("kernel", "side"), [("splash", "causal"), ("splash", "window"), ("flash", "causal"), ("triton", "causal")]
)
def test_several_blocks_equal_the_reference(kernel, side):
    """300 positions are filled up to three blocks of 128."""
    arrays, mask = make_case(side, packed=True, bias=kernel == "flash", length=300)
    check_equal(kernel, arrays, mask, forward=2e-6, backward=1e-5)


@pytest.mark.slow
def test_what_cudnn_is_given_means_the_same(monkeypatch):
    """The call of jax.nn.dot_product_attention, computed by XLA, and in float32, which cuDNN itself does not take."""
    monkeypatch.setattr("t2t.functional.kernels.choice.HALVES", ("float32",))
    for side, packed, bias in CASES:
        arrays, mask = make_case(side, packed=packed, bias=bias)
        check_equal("cudnn", arrays, mask, forward=2e-6, backward=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", FUSED)
def test_every_case_is_lowered_for_its_platform(kernel, monkeypatch):
    """Forward and backward, as far as that goes without the device: Pallas to its compiler, cuDNN to its call."""
    cudnn = "jax._src.cudnn.fused_attention_stablehlo.check_cudnn_version"
    monkeypatch.setattr(cudnn, lambda: 91000)  # as on a machine that has it
    platform = {"tpu": "tpu", "gpu": "cuda"}[PLATFORMS[kernel]]
    call = {"splash": "tpu_custom_call", "flash": "tpu_custom_call", "cudnn": "fmha", "triton": "triton"}[kernel]
    lowered = 0
    for side, packed, bias in CASES:
        arrays, mask = make_case(side, packed=packed, bias=bias, dtype=jnp.bfloat16)
        if not able(kernel, arrays, mask):
            continue

        def loss(arrays, mask):
            return attend(kernel, *arrays[:3], mask, arrays[3], scale=SCALE).astype(jnp.float32).sum()

        with jax.numpy_dtype_promotion("standard"):  # inside of the libraries
            traced = jax.jit(jax.grad(loss)).trace(arrays, mask)
            assert call in traced.lower(lowering_platforms=(platform,)).as_text(), (side, packed, bias)
        lowered += 1
    assert lowered == {"splash": 10, "flash": 12, "cudnn": 24, "triton": 4}[kernel]


@pytest.mark.multi_device
@pytest.mark.parametrize("sizes", [(4, 2), (2, 4)])
def test_devices_compute_their_own_rows_and_heads(sizes):
    """Also where the mesh splits the two key heads into none: (2, 4)."""
    arrays, mask = make_case("causal", packed=True, bias=False)
    arrays = [None if x is None else jnp.concatenate([x, x]) for x in arrays]
    mask = jax.tree.map(lambda x: jnp.concatenate([x, x]), mask)
    mesh = jax.make_mesh(sizes, ("data", "tensor"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    with jax.set_mesh(mesh):
        check_equal("splash", arrays, mask, forward=2e-6, backward=1e-5)


def test_positions_that_may_read_nothing_get_the_mean(monkeypatch):
    """Worked by hand: example 2 has no position to read."""
    query = jnp.ones((1, 1, 2, 8), jnp.float32)
    value = jnp.asarray([1.0, 2.0, 6.0])[None, None, :, None] * jnp.ones((1, 1, 3, 8))
    mask = Mask(reader=jnp.asarray([[1, 2]]), read=jnp.asarray([[1, 1, 0]]))
    monkeypatch.setattr("t2t.functional.kernels.choice._OWN_REASONS", {"cudnn": lambda request, rules: []})
    out = attend("cudnn", query, jnp.zeros((1, 1, 3, 8)), value, mask, scale=1.0, interpret=True)
    np.testing.assert_allclose(out[0, 0, :, 0], [1.5, 3.0], rtol=1e-6)
