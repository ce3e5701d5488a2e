import dataclasses
import functools

import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import masks
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.cache import empty_layer
from t2t.nn.feed_forward import FeedForwardConfig
from t2t.nn.norm import LayerNorm, RMSNorm
from t2t.nn.positions.alibi import ALiBi
from t2t.nn.positions.context import PositionContext
from t2t.nn.positions.rotary import Rotary
from t2t.nn.positions.t5_bias import T5Bias
from tests.models import tiny
from tests.nn.arrays import shapes, variables
from tests.reference import transformer

D_MODEL = 10
NORMS = {
    RMSNorm: lambda x, params: transformer.rms_norm(x, **params, eps=1e-6),
    LayerNorm: lambda x, params: transformer.layer_norm(x, **params, eps=1e-5),
}


def _config(*, norm=None, norm_position="pre", cross=False, position=None, **fields):
    return BlockConfig(
        **fields,
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
@pytest.mark.parametrize(
    "norm_position, fields",
    [
        ("pre", {}),
        ("post", {}),
        ("sandwich", {}),
        ("parallel", {}),
        ("parallel", {"feed_forward_norm": False}),
        ("pre", {"attention_norm": False}),
    ],
)
def test_block_equals_oracle_in_every_norm_position(norm, norm_position, fields):
    config = _config(norm=norm, norm_position=norm_position, **fields)
    x, _, mask, _ = _inputs()
    args = (jnp.asarray(x), jnp.asarray(mask), PositionContext(length=5, key_length=5))
    params = tiny.random_like(shapes(config.make(D_MODEL), *args))
    assert set(fields).isdisjoint(params)
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


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"norm_position": "post", "attention_norm": False}, "attention_norm = False: must be True where"),
        ({"norm_position": "parallel", "attention_norm": False}, "attention_norm = False: must be True where"),
        ({"feed_forward_norm": False}, "feed_forward_norm = False: must be True where"),
        ({"norm_position": "parallel", "cross": True}, "cross_attention = .*: must be None where"),
    ],
)
def test_norms_and_attentions_that_a_wiring_does_not_have_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        _config(**fields)


def _who_reads_whom(mask, *, window):
    """0/1 matrix of the positions that have a weight in a block with a window."""
    config = _config()
    config = dataclasses.replace(config, attention=dataclasses.replace(config.attention, window=window))
    length = 6
    x = jnp.asarray(np.random.default_rng(0).normal(size=(1, length, D_MODEL)), jnp.float32)
    args = (x, mask, PositionContext(length=length, key_length=length))
    params = tiny.random_like(shapes(config.make(D_MODEL), *args))
    _, output = config.make(D_MODEL).apply(variables(params), *args, attentions=True)
    weights = np.asarray(output.attention[0])
    assert ((weights > 0) == (weights[:1] > 0)).all()  # the same in every head
    return (weights[0] > 0).astype(int)


def test_a_window_without_other_mask_reads_near_positions_on_both_sides():
    expected = [
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [1, 1, 1, 1, 1, 0],
        [0, 1, 1, 1, 1, 1],
        [0, 0, 1, 1, 1, 1],
        [0, 0, 0, 1, 1, 1],
    ]
    np.testing.assert_array_equal(_who_reads_whom(None, window=2), expected)


def test_a_window_of_packed_causal_examples_ends_at_both_borders():
    segments = jnp.array([[1, 1, 1, 1, 2, 2]])
    expected = [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [0, 1, 1, 0, 0, 0],
        [0, 0, 1, 1, 0, 0],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 1, 1],
    ]
    mask = masks.decoder_mask(6, segment_ids=segments)
    np.testing.assert_array_equal(_who_reads_whom(mask, window=1), expected)


@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("position", [Rotary(dim=2), Rotary(interleaved=True), ALiBi()])
def test_a_block_with_a_cache_equals_one_without(position, window):
    config = _config(position=position)
    config = dataclasses.replace(config, attention=dataclasses.replace(config.attention, window=window))
    x, _, mask, _ = _inputs()
    module, length = config.make(D_MODEL), x.shape[1]
    args = (jnp.asarray(x), jnp.asarray(mask), PositionContext(length=length, key_length=length))
    params = variables(tiny.random_like(shapes(module, *args)))
    whole, _ = module.apply(params, *args)

    room = length + 2
    cache = empty_layer(batch_size=2, num_kv_heads=3, length=room, head_dim=4, dtype=jnp.float32)
    starts = jnp.zeros(2, jnp.int32)
    parts = []
    for index, count in ((0, 2), (2, 1), (3, 2)):
        new = jnp.asarray(x[:, index : index + count])
        offset = jnp.int32(index)
        context = PositionContext(length=count, key_length=room, offset=offset if index else None)
        allowed = masks.cache_mask(count, index=offset, starts=starts, key_length=room)
        out, output = module.apply(params, new, allowed, context, cache=cache)
        cache = output.cache
        parts.append(out)
    np.testing.assert_allclose(jnp.concatenate(parts, axis=1), whole, atol=1e-5)
