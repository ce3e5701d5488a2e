import functools

import jax.numpy as jnp
import numpy as np
import pytest

from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.feed_forward import FeedForwardConfig
from t2t.nn.norm import LayerNorm, RMSNorm
from t2t.nn.positions.context import PositionContext
from t2t.nn.positions.t5_bias import T5Bias
from tests.models import tiny
from tests.nn.arrays import shapes, variables
from tests.reference import transformer

D_MODEL = 10
NORMS = {
    RMSNorm: lambda x, params: transformer.rms_norm(x, **params, eps=1e-6),
    LayerNorm: lambda x, params: transformer.layer_norm(x, **params, eps=1e-5),
}


def _config(*, norm=None, norm_position="pre", cross=False, position=None):
    return BlockConfig(
        norm=norm or LayerNorm(),
        norm_position=norm_position,
        attention=AttentionConfig(num_heads=3, head_dim=4, use_bias=True),
        cross_attention=AttentionConfig(num_heads=2, head_dim=5, scale=0.5) if cross else None,
        feed_forward=FeedForwardConfig(d_ff=7, activation="gelu", use_bias=True),
        position=position,
    )


def _inputs():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 5, D_MODEL)).astype(np.float32)
    memory = rng.normal(size=(2, 6, D_MODEL)).astype(np.float32)
    mask = np.tril(np.ones((1, 5, 5), bool)) & np.ones((2, 1, 1), bool)
    readable = rng.random((2, 5, 6)) < 0.7
    return x, memory, mask, readable


@pytest.mark.parametrize("norm", [RMSNorm(), LayerNorm()])
@pytest.mark.parametrize("norm_position", ["pre", "post", "sandwich"])
def test_block_equals_oracle_in_every_norm_position(norm, norm_position):
    config = _config(norm=norm, norm_position=norm_position)
    x, _, mask, _ = _inputs()
    args = (jnp.asarray(x), jnp.asarray(mask), PositionContext(length=5, key_length=5))
    params = tiny.random_like(shapes(config.make(D_MODEL), *args))
    got, output = config.make(D_MODEL).apply(variables(params), *args)
    oracle = functools.partial(transformer.block, norm=NORMS[type(norm)], norm_position=norm_position)
    expected = oracle(x, params, scale=4**-0.5, activation="gelu", allowed=mask)
    np.testing.assert_allclose(got, expected, atol=1e-4)
    assert output.attention is None


def test_block_with_cross_attention_and_own_bias_equals_oracle():
    config = _config(cross=True, position=T5Bias(num_buckets=4, max_distance=6, bidirectional=False))
    x, memory, mask, readable = _inputs()
    context = PositionContext(length=5, key_length=5)
    args = tuple(jnp.asarray(a) for a in (x, mask)) + (context, jnp.asarray(memory), jnp.asarray(readable))
    params = tiny.random_like(shapes(config.make(D_MODEL), *args))
    # The oracle has one scale for both attentions: give cross-attention that of the block's own through its query.
    got, output = config.make(D_MODEL).apply(variables(params), *args, attentions=True)
    params["cross_attention"]["query"]["kernel"] *= 0.5 / 4**-0.5
    expected = transformer.block(
        x,
        params,
        norm=NORMS[LayerNorm],
        norm_position="pre",
        scale=4**-0.5,
        activation="gelu",
        allowed=mask,
        bias=transformer.relative_bias(
            np.asarray(params["position"]["embedding"]), length=5, key_length=5, bidirectional=False, max_distance=6
        ),
        memory=memory,
        readable=readable,
    )
    np.testing.assert_allclose(got, expected, atol=1e-4)
    assert output.attention.shape == (2, 3, 5, 5)
    assert output.cross_attention.shape == (2, 2, 5, 6)
