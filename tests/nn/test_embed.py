import jax.numpy as jnp
import numpy as np
import pytest

from t2t.nn.embed import EmbedConfig
from t2t.nn.norm import LayerNorm
from t2t.nn.positions.absolute import LearnedPositions
from tests.nn.arrays import variables
from tests.reference import transformer


def _tables():
    rng = np.random.default_rng(0)
    return {
        "embedding": rng.normal(size=(11, 6)).astype(np.float32),
        "positions": rng.normal(size=(9, 6)).astype(np.float32),
        "types": rng.normal(size=(2, 6)).astype(np.float32),
        "norm": {"scale": rng.normal(size=6).astype(np.float32), "bias": rng.normal(size=6).astype(np.float32)},
    }


def test_sum_of_tables_then_norm():
    config = EmbedConfig(
        vocab_size=11, dim=6, num_types=2, position=LearnedPositions(max_positions=7, offset=2), norm=LayerNorm()
    )
    tables = _tables()
    tokens, positions, types = jnp.array([[3, 10, 0]]), jnp.array([[0, 1, 0]]), jnp.array([[0, 1, 1]])
    got = config.make().apply(variables(tables), tokens, positions=positions, types=types)
    summed = (
        tables["embedding"][np.asarray(tokens)]
        + tables["positions"][np.asarray(positions) + 2]
        + tables["types"][np.asarray(types)]
    )
    np.testing.assert_allclose(got, transformer.layer_norm(summed, **tables["norm"], eps=1e-5), atol=1e-5)


def test_tokens_are_scaled_before_positions_are_added():
    config = EmbedConfig(vocab_size=11, dim=6, scale=3.0, position=LearnedPositions(max_positions=9))
    tables = {name: _tables()[name] for name in ("embedding", "positions")}
    got = config.make().apply(variables(tables), jnp.array([[3, 10]]), positions=jnp.array([[0, 4]]))
    np.testing.assert_allclose(got[0], 3 * tables["embedding"][[3, 10]] + tables["positions"][[0, 4]], atol=1e-6)


def test_a_narrow_table_is_widened_after_the_norm():
    config = EmbedConfig(vocab_size=11, dim=6, d_model=10, norm=LayerNorm())
    rng = np.random.default_rng(1)
    dense = {
        "kernel": rng.normal(size=(6, 10)).astype(np.float32),
        "bias": rng.normal(size=10).astype(np.float32),
    }
    tables = {name: _tables()[name] for name in ("embedding", "norm")} | {"projection": dense}
    got = config.make().apply(variables(tables), jnp.array([[3, 10, 0]]))
    normed = transformer.layer_norm(tables["embedding"][[3, 10, 0]], **tables["norm"], eps=1e-5)
    assert config.width == 10
    np.testing.assert_allclose(got[0], normed @ dense["kernel"] + dense["bias"], atol=1e-4)


def test_absent_types_are_type_zero():
    config = EmbedConfig(vocab_size=11, dim=6, num_types=2)
    tables = {name: _tables()[name] for name in ("embedding", "types")}
    tokens = jnp.array([[3, 10]])
    absent = config.make().apply(variables(tables), tokens)
    np.testing.assert_array_equal(absent, config.make().apply(variables(tables), tokens, types=jnp.zeros((1, 2), int)))


def test_token_beyond_the_table_shows_and_position_beyond_it_stays_finite():
    config = EmbedConfig(vocab_size=11, dim=6, position=LearnedPositions(max_positions=9))
    tables = {name: _tables()[name] for name in ("embedding", "positions")}
    got = config.make().apply(variables(tables), jnp.array([[11, 3]]), positions=jnp.array([[0, 500]]))
    assert bool(jnp.isnan(got[0, 0]).all())
    assert bool(jnp.isfinite(got[0, 1]).all())


def test_table_for_a_tied_head_is_in_dtype():
    module = EmbedConfig(vocab_size=11, dim=6).make(dtype=jnp.bfloat16)
    table = module.apply(variables({"embedding": _tables()["embedding"]}), method="table")
    assert table.shape == (11, 6)
    assert table.dtype == jnp.bfloat16


@pytest.mark.parametrize(
    "field, value",
    [("vocab_size", 0), ("dim", -1), ("d_model", 0), ("num_types", -1), ("dropout", 1.0), ("initializer_std", -1.0)],
)
def test_wrong_fields_are_refused_by_name(field, value):
    with pytest.raises(ValueError, match=rf"EmbedConfig.{field} = {value!r}: must be"):
        EmbedConfig(**({"vocab_size": 11, "dim": 6} | {field: value}))


def test_language_minus_one_is_none():
    config = EmbedConfig(vocab_size=11, dim=6, num_languages=3)
    rng = np.random.default_rng(1)
    tables = {"embedding": _tables()["embedding"], "languages": rng.normal(size=(3, 6)).astype(np.float32)}
    embed, tokens = config.make(), jnp.array([[3, 10, 0]])
    got = embed.apply(variables(tables), tokens, languages=jnp.array([[2, -1, 0]]))
    expected = tables["embedding"][[3, 10, 0]] + np.stack([tables["languages"][2], np.zeros(6), tables["languages"][0]])
    np.testing.assert_allclose(got[0], expected, atol=1e-6)
    absent = embed.apply(variables(tables), tokens)
    np.testing.assert_array_equal(embed.apply(variables(tables), tokens, languages=jnp.full((1, 3), -1)), absent)
    assert np.isnan(embed.apply(variables(tables), tokens, languages=jnp.array([[3, 0, 0]]))[0, 0]).all()
