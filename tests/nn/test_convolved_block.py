import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import masks
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import Block
from t2t.nn.convolved_block import ConvolvedBlockConfig
from t2t.nn.feed_forward import FeedForwardConfig
from t2t.nn.norm import LayerNorm
from t2t.nn.positions.context import PositionContext
from t2t.nn.stack import StackConfig
from tests.nn.arrays import shapes, variables

WIDTH, LENGTH = 10, 7
BLOCK = ConvolvedBlockConfig(
    norm=LayerNorm(eps=1e-7),
    norm_position="post",
    attention=AttentionConfig(num_heads=2, head_dim=5, use_bias=True),
    feed_forward=FeedForwardConfig(d_ff=6, activation="gelu", use_bias=True),
    kernel_size=5,
    activation="gelu",
)


def _context(length: int = LENGTH) -> PositionContext:
    return PositionContext(length=length, key_length=length)


@pytest.fixture(scope="module")
def drawn():
    """The block, parameters of which none is 0 or 1, and a row of two examples."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(1, LENGTH, WIDTH)).astype(np.float32))
    module = BLOCK.make(WIDTH)

    def draw(tree):
        if isinstance(tree, dict):
            return {name: draw(child) for name, child in tree.items()}
        return rng.normal(size=tree.shape).astype(np.float32)

    return module, draw(shapes(module, x, None, _context())), x


def test_the_convolution_is_added_before_a_norm(drawn):
    module, params, x = drawn
    found, _ = module.apply(variables(params), x, None, _context())
    plain = Block(BLOCK, WIDTH)
    inner = {name: tree for name, tree in params.items() if not name.startswith("convolution")}
    y, _ = plain.apply(variables(inner), x, None, _context())
    kernel, padded = params["convolution"]["kernel"], np.pad(np.asarray(x), ((0, 0), (2, 2), (0, 0)))
    read = sum(padded[:, k : k + LENGTH] @ kernel[k] for k in range(5)) + params["convolution"]["bias"]
    total = np.asarray(y) + np.asarray(jax.nn.gelu(read, approximate=False))
    norm = params["convolution_norm"]
    centred = total - total.mean(-1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-7) * norm["scale"] + norm["bias"]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_examples_of_a_row_do_not_see_each_other(drawn):
    module, params, x = drawn
    segments = jnp.array([[1, 1, 1, 2, 2, 2, 0]], jnp.int32)
    packed, _ = module.apply(variables(params), x, masks.encoder_mask(segments), _context())
    first, _ = module.apply(variables(params), x[:, :3], None, _context(3))
    second, _ = module.apply(variables(params), x[:, 3:6], None, _context(3))
    np.testing.assert_allclose(packed[0, :6], np.concatenate([first[0], second[0]]), atol=1e-5)


def test_a_stack_may_begin_with_it():
    config = StackConfig(num_layers=3, d_model=WIDTH, prefix=(BLOCK,), pattern=(BLOCK,))
    names = shapes(config.make(), jnp.zeros((1, LENGTH, WIDTH)), None, _context())
    assert names["prefix_0"]["convolution"]["kernel"].shape == (5, WIDTH, WIDTH)


@pytest.mark.parametrize("size", [0, 2])
def test_a_kernel_without_middle_is_refused(size):
    with pytest.raises(ValueError, match="kernel_size"):
        dataclasses.replace(BLOCK, kernel_size=size)
