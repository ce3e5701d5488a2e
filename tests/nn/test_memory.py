"""What is remembered: the latest positions, of a fixed number, without a gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.nn import memory

WIDTH = 3


def _segment(first: int, length: int, layers: int = 2):
    """Inputs of every block whose values are the number of the position."""
    numbers = jnp.arange(first, first + length, dtype=jnp.float32)
    return [jnp.broadcast_to(numbers[None, :, None], (1, length, WIDTH)) for _ in range(layers)]


def _numbers(found: memory.Memory) -> list[list[float]]:
    return [[float(v) if r else -1.0 for v, r in zip(row, found.is_real[0], strict=True)]
            for row in found.states[:, 0, :, 0]]  # fmt: skip


@pytest.mark.parametrize(
    ("length", "reuse", "expected"),
    [
        (2, None, [3, 4]),
        (7, None, [-1, -1, 0, 1, 2, 3, 4]),
        (4, 2, [-1, -1, 0, 1]),
    ],
)
def test_after_one_segment(length, reuse, expected):
    found = memory.remember(None, _segment(0, 5), jnp.ones((1, 5), bool), length=length, reuse=reuse)
    assert _numbers(found) == [expected] * 2
    assert found.length == length


def test_after_two_segments_the_latest_positions_stay():
    first = memory.remember(None, _segment(0, 3), jnp.ones((1, 3), bool), length=4)
    found = memory.remember(first, _segment(3, 3), jnp.array([[True, True, False]]), length=4)
    assert _numbers(found) == [[2, 3, 4, -1]] * 2


def test_an_empty_memory_is_as_good_as_none():
    empty = memory.empty(num_layers=2, batch_size=1, length=4, d_model=WIDTH)
    assert not empty.is_real.any()
    segment = _segment(0, 3), jnp.ones((1, 3), bool)
    found, other = (memory.remember(start, *segment, length=4) for start in (empty, None))
    jax.tree.map(np.testing.assert_array_equal, found, other)


def test_no_gradient_goes_back():
    def total(state):
        return memory.remember(None, [state], jnp.ones((1, 2), bool), length=2).states.sum()

    np.testing.assert_array_equal(jax.grad(total)(jnp.ones((1, 2, WIDTH))), 0)
