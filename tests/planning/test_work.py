"""Operations and bytes of programs, by hand, by slow loops and of compiled ones."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from planning import test_hlo

from t2t.planning import hlo, work


def test_by_hand():
    """Six rounds of 2 * 5 * 4 * 6 operations; in each a layer is read and written, multiplied, and its result added."""
    found = work.measure(hlo.parse(test_hlo.PROGRAM))
    assert found.matrix_operations == 6 * 240
    assert found.looped_operations == 5 * 240
    sliced, product, reduced, counter = 96 + 4 + 96, 80 + 96 + 120, 240, 4 + 4 + 4
    assert found.bytes == 6 * (sliced + product + reduced + counter) + 80  # and the conversion, read from memory alone
    assert found.cycles == 42


def test_writing_a_slice_in_place_counts_the_slice():
    text = """\
%write (p.0: f32[8,16], p.1: f32[1,16], p.2: s32[]) -> f32[8,16] {
  %p.0 = f32[8,16]{1,0} parameter(0)
  %p.1 = f32[1,16]{1,0} parameter(1)
  %p.2 = s32[] parameter(2)
  ROOT %new = f32[8,16]{1,0} dynamic-update-slice(%p.0, %p.1, %p.2, %p.2)
}

ENTRY %main (a: f32[8,16], b: f32[1,16], i: s32[]) -> f32[8,16] {
  %a = f32[8,16]{1,0} parameter(0)
  %b = f32[1,16]{1,0} parameter(1)
  %i = s32[] parameter(2)
  ROOT %f = f32[8,16]{1,0} fusion(%a, %b, %i), kind=kLoop, calls=%write
}
"""
    assert work.measure(hlo.parse(text)).bytes == 64 + 4 + 64  # the slice, its place, and the slice in the buffer


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", [0, 2, 5])
@pytest.mark.parametrize(("dilation", "kernel_dilation"), [(1, 1), (2, 1), (1, 3)])
def test_pairs_of_a_convolution(stride, padding, dilation, kernel_dilation):
    size, kernel = 7, 4
    reach, width = (size - 1) * dilation + 1, (kernel - 1) * kernel_dilation + 1
    result = (reach + 2 * padding - width) // stride + 1
    meet = 0
    for o, k in itertools.product(range(result), range(kernel)):
        place = o * stride + k * kernel_dilation - padding
        meet += 0 <= place < reach and place % dilation == 0
    assert work._meeting(size, kernel, result, stride, padding, dilation, kernel_dilation) == meet


def test_a_batched_product_written_as_a_convolution():
    """3 products of [5, 4] and [4, 6], as the compiler for TPU writes them: with padding that meets nothing."""
    text = """\
ENTRY %main (a: f32[3,5,4], b: f32[3,4,6]) -> f32[3,5,6] {
  %a = f32[3,5,4]{2,1,0} parameter(0)
  %b = f32[3,4,6]{2,1,0} parameter(1)
  ROOT %c = f32[3,5,6]{2,1,0} convolution(%a, %b), WINDOW, dim_labels=0bf_0io->0bf
}
"""
    text = text.replace("WINDOW", "window={size=3 stride=2 pad=2_2 lhs_dilate=3}")
    found = work.measure(hlo.parse(text)).matrix_operations
    assert found == 2 * 5 * 4 * 6 * work._meeting(3, 3, 3, 2, 2, 3, 1)


@pytest.mark.parametrize("rolled", [True, False])
def test_a_compiled_scan_counts_as_its_unrolled_loop(rolled):
    """Three layers forward and backward: three products each."""

    def loss(w, x):
        h, _ = jax.lax.scan(lambda h, layer: (jnp.tanh(h @ layer), None), x, w, unroll=1 if rolled else 3)
        return jnp.sum(h)

    w, x = np.ones((3, 32, 32), np.float32), np.ones((8, 32), np.float32)
    compiled = jax.jit(jax.grad(loss, argnums=(0, 1))).lower(w, x).compile()
    found = work.measure(hlo.parse(compiled.as_text()))
    once = 3 * 2 * 8 * 32 * 32
    assert found.matrix_operations == 3 * once
    assert found.looped_operations == (2 * once if rolled else 0)
