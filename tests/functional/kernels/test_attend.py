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
from t2t.functional.kernels.choice import KERNELS, Request, refusal
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
