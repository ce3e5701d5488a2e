import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import positions
from t2t.nn.attention import AttentionConfig
from tests.nn.arrays import variables
from tests.reference import transformer

D_MODEL = 10


def _params(config, seed=0):
    rng = np.random.default_rng(seed)
    kv_heads = config.kv_heads
    shapes = {
        "query": (D_MODEL, config.num_heads, config.head_dim),
        "key": (D_MODEL, kv_heads, config.head_dim),
        "value": (D_MODEL, kv_heads, config.head_dim),
        "out": (config.num_heads, config.head_dim, D_MODEL),
    }
    params = {name: {"kernel": rng.normal(size=shape).astype(np.float32) * 0.4} for name, shape in shapes.items()}
    has_bias = dict.fromkeys(shapes, config.use_bias)
    has_bias["out"] = config.use_bias if config.out_bias is None else config.out_bias
    for name, shape in shapes.items():
        if has_bias[name]:
            bias = shape[2:] if name == "out" else shape[1:]
            params[name]["bias"] = rng.normal(size=bias).astype(np.float32)
    return params


def _inputs(seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2, 5, D_MODEL)).astype(np.float32)
    read = rng.normal(size=(2, 7, D_MODEL)).astype(np.float32)
    mask = rng.random((2, 5, 7)) < 0.7
    mask[0, 2] = False
    bias = rng.normal(size=(4, 5, 7)).astype(np.float32)
    return x, read, mask, bias


def _run(config, params, x, read, **options):
    module = config.make(D_MODEL)

    def attend(module, x, read):
        return module(x, module.keys_values(read), **options)

    return module.apply(variables(params), jnp.asarray(x), jnp.asarray(read), method=attend)


@pytest.mark.parametrize(
    "config",
    [
        AttentionConfig(num_heads=4, head_dim=3),
        AttentionConfig(num_heads=4, head_dim=3, num_kv_heads=2, use_bias=True, scale=1.0),
        AttentionConfig(num_heads=4, head_dim=3, out_bias=True),
        AttentionConfig(num_heads=4, head_dim=3, use_bias=True, out_bias=False),
    ],
)
def test_attention_equals_oracle(config):
    params, (x, read, mask, bias) = _params(config), _inputs()
    out, weights = _run(config, params, x, read, mask=jnp.asarray(mask), bias=jnp.asarray(bias)[None])
    expected = transformer.attention(x, read, params, scale=config.score_scale, allowed=mask, bias=bias)
    np.testing.assert_allclose(out, expected, atol=1e-4)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-5)


@pytest.mark.parametrize("interleaved", [False, True])
def test_queries_and_keys_are_turned_and_values_are_not(interleaved):
    config = AttentionConfig(num_heads=4, head_dim=6)
    params, (x, _, mask, _) = _params(config), _inputs()
    mask = mask[:, :, :5]
    angles = np.random.default_rng(3).normal(size=(5, 2))
    rotary = positions.RotaryAngles(
        cos=jnp.asarray(np.cos(angles), jnp.float32),
        sin=jnp.asarray(np.sin(angles), jnp.float32),
        interleaved=interleaved,
    )

    def attend(module, x):
        return module(x, module.keys_values(x, rotary=rotary), rotary=rotary, mask=jnp.asarray(mask))

    out, weights = config.make(D_MODEL).apply(variables(params), jnp.asarray(x), method=attend)
    query, key, value = (np.einsum("btd,dnh->bnth", x, params[name]["kernel"]) for name in ("query", "key", "value"))
    query, key = (transformer.rotate(y, angles, interleaved=interleaved) for y in (query, key))
    scores = np.where(mask[:, None], np.einsum("bnth,bnsh->bnts", query, key) * 6**-0.5, -1e30)
    expected = np.exp(scores - scores.max(axis=-1, keepdims=True))
    expected /= expected.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(weights, expected, atol=1e-5)
    np.testing.assert_allclose(
        out, np.einsum("bnts,bnsh,nhd->btd", expected, value, params["out"]["kernel"]), atol=1e-4
    )


@pytest.mark.parametrize("scale", [1.0, None])
def test_fresh_scores_have_the_same_variance_whatever_the_scale(scale, key):
    # T5 has no scale and smaller queries instead: deviation (d_model * head_dim)**-0.5, arXiv:1910.10683 released code.
    config = AttentionConfig(num_heads=8, head_dim=16, scale=scale)
    module = config.make(64)
    x = jnp.ones((1, 1, 64))
    fresh = jax.jit(lambda key: module.init(key, x, method=lambda m, x: m(x, m.keys_values(x))))(key)
    kernels = {name: params["kernel"].value for name, params in fresh["params"].items()}
    expected = (64 * 16) ** -0.5 if scale == 1.0 else 64**-0.5
    assert kernels["query"].std() == pytest.approx(expected, rel=0.05)
    assert kernels["key"].std() == pytest.approx(64**-0.5, rel=0.05)
    assert kernels["out"].std() == pytest.approx((8 * 16) ** -0.5, rel=0.05)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"num_heads": 0}, "AttentionConfig.num_heads = 0: must be a positive integer"),
        ({"num_kv_heads": 3}, "AttentionConfig.num_kv_heads = 3: must be a divisor of num_heads = 4"),
        ({"window": 0}, "AttentionConfig.window = 0: must be a positive integer"),
        ({"scale": 0.0}, "AttentionConfig.scale = 0.0: must be None or positive"),
        ({"dropout": -0.1}, r"AttentionConfig.dropout = -0.1: must be in \[0, 1\)"),
        ({"out_initializer_std": -1.0}, "AttentionConfig.out_initializer_std = -1.0"),
    ],
)
def test_wrong_fields_are_refused_by_name(fields, message):
    with pytest.raises(ValueError, match=message):
        AttentionConfig(**({"num_heads": 4, "head_dim": 3} | fields))
