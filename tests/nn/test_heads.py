import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.nn.heads import LanguageModelHead, MaskedLanguageModelHead
from t2t.nn.norm import LayerNorm
from tests.models import tiny
from tests.nn.arrays import shapes, variables
from tests.reference import transformer

SIZES = {"vocab_size": 11, "d_model": 6}


def _inputs():
    rng = np.random.default_rng(0)
    return rng.normal(size=(2, 3, 6)).astype(np.float32), rng.normal(size=(11, 6)).astype(np.float32)


def _run(config, **options):
    hidden, table = (jnp.asarray(x) for x in _inputs())
    module = config.make(**SIZES, **options)
    params = tiny.random_like(shapes(module, hidden, table))
    return params, module.apply(variables(params), hidden, table)


def test_tied_head_is_the_product_with_the_table():
    hidden, table = _inputs()
    params, logits = _run(LanguageModelHead(scale_by_width=True))
    assert params == {}
    np.testing.assert_allclose(logits, hidden @ table.T / np.sqrt(6), atol=1e-5)


def test_untied_head_has_its_own_kernel_and_bias():
    hidden, _ = _inputs()
    params, logits = _run(LanguageModelHead(tied=False, use_bias=True))
    np.testing.assert_allclose(logits, hidden @ params["kernel"] + params["bias"], atol=1e-5)


def test_untied_kernel_starts_at_width_to_the_minus_half(key):
    module = LanguageModelHead(tied=False).make(vocab_size=500, d_model=64)
    fresh = jax.jit(module.init)(key, jnp.ones((1, 64)), jnp.ones((500, 64)))["params"]["kernel"]
    assert fresh.names == ("embed", "vocab")
    assert fresh.value.std() == pytest.approx(64**-0.5, rel=0.02)


@pytest.mark.parametrize("tied", [True, False])
def test_masked_head_transforms_before_the_table(tied):
    hidden, table = _inputs()
    params, logits = _run(MaskedLanguageModelHead(activation="gelu", norm=LayerNorm(), tied=tied))
    inner = transformer.gelu(hidden @ params["transform"]["kernel"] + params["transform"]["bias"])
    inner = transformer.layer_norm(inner, **params["norm"], eps=1e-5)
    expected = inner @ (table.T if tied else params["kernel"]) + params["bias"]
    np.testing.assert_allclose(logits, expected, atol=1e-4)


def test_masked_head_without_bias_in_its_dense_layer():
    head = MaskedLanguageModelHead(activation="gelu", norm=LayerNorm(use_bias=False), transform_bias=False)
    params, _ = _run(head)
    assert {name: sorted(held) for name, held in params.items() if name != "bias"} == {
        "transform": ["kernel"],
        "norm": ["scale"],
    }


def test_hidden_states_of_any_leading_axes():
    hidden, table = (jnp.asarray(x) for x in _inputs())
    module = MaskedLanguageModelHead(activation="gelu", norm=LayerNorm()).make(**SIZES)
    params = variables(tiny.random_like(shapes(module, hidden, table)))
    flat = module.apply(params, hidden.reshape(6, 6), table)
    np.testing.assert_allclose(module.apply(params, hidden, table).reshape(6, 11), flat, atol=1e-6)


def test_logits_are_float32_in_bfloat16():
    for config in (LanguageModelHead(scale_by_width=True), LanguageModelHead(tied=False, use_bias=True)):
        hidden, table = (jnp.asarray(x, jnp.bfloat16) for x in _inputs())
        module = config.make(**SIZES, dtype=jnp.bfloat16)
        params = variables(tiny.random_like(shapes(module, hidden, table)))
        logits = module.apply(params, hidden, table)
        assert logits.dtype == jnp.float32
