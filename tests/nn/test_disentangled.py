import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.functional import masks
from t2t.nn.disentangled import DisentangledAttentionConfig
from t2t.nn.norm import LayerNorm
from t2t.nn.positions.context import PositionContext
from t2t.nn.positions.relative import RelativeEmbeddings
from tests.nn.arrays import variables
from tests.reference import disentangled as oracle

WIDTH, HEADS, HEAD_DIM, LENGTH = 12, 4, 3, 7
CONFIG = DisentangledAttentionConfig(num_heads=HEADS, head_dim=HEAD_DIM, use_bias=True)
EXACT = RelativeEmbeddings(dim=WIDTH, max_distance=5)
BUCKETS = RelativeEmbeddings(dim=WIDTH, max_distance=9, num_buckets=4)
FORMS = {
    "first version": (dataclasses.replace(CONFIG, key_bias=False), EXACT),
    "long": (CONFIG, dataclasses.replace(EXACT, max_distance=20)),
    "shared": (dataclasses.replace(CONFIG, shares_projections=True), BUCKETS),
    "c2p": (dataclasses.replace(CONFIG, terms=("c2p",)), EXACT),
    "p2c": (dataclasses.replace(CONFIG, terms=("p2c",)), BUCKETS),
    "none": (dataclasses.replace(CONFIG, terms=()), None),
}
SEGMENTS = jnp.array([[1, 1, 1, 1, 2, 2, 2], [1, 1, 1, 1, 1, 0, 0]], jnp.int32)


def _params(config, seed=0):
    rng = np.random.default_rng(seed)
    names = ["query", "key", "value"]
    if not config.shares_projections:
        names += [name for name, term in (("position_key", "c2p"), ("position_query", "p2c")) if term in config.terms]
    params = {name: {"kernel": rng.normal(size=(WIDTH, HEADS, HEAD_DIM))} for name in names}
    params["out"] = {"kernel": rng.normal(size=(HEADS, HEAD_DIM, WIDTH)), "bias": rng.normal(size=WIDTH)}
    for name in names:
        if "key" not in name or config.key_bias is not False:
            params[name]["bias"] = rng.normal(size=(HEADS, HEAD_DIM))
    return jax.tree.map(lambda leaf: np.float32(0.5 * leaf), params)


def _table(scheme, seed=1):
    return None if scheme is None else np.random.default_rng(seed).normal(size=(scheme.num_rows, WIDTH)).astype("f4")


def _inputs(seed=2, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=(2, LENGTH, WIDTH)).astype(dtype)


def _run(config, scheme, params, table, x, mask, dtype=jnp.float32):
    context = PositionContext(length=x.shape[1], key_length=x.shape[1])
    if scheme is not None:
        module = scheme.make(HEADS, head_dim=HEAD_DIM, dtype=dtype)
        context = module.apply({"params": {"positions": jnp.asarray(table)}}, context)
    module = config.make(WIDTH, dtype=dtype)

    def attend(module, x):
        return module(x, module.keys_values(x), mask=mask, relative=context.relative)

    return module.apply(variables(params), x, method=attend)


@pytest.mark.parametrize("form", FORMS)
def test_attention_equals_the_oracle_in_packed_and_padded_rows(form):
    config, scheme = FORMS[form]
    params, table, x = _params(config), _table(scheme), _inputs()
    mask = masks.encoder_mask(SEGMENTS)
    found, _ = _run(config, scheme, params, table, jnp.asarray(x), mask)
    settings = {"max_distance": 1} if scheme is None else {
        "max_distance": scheme.max_distance, "num_buckets": scheme.num_buckets,
    }  # fmt: skip
    table = np.zeros((2, WIDTH)) if table is None else table
    for row in range(2):
        expected = oracle.attention(
            x[row], table, params, allowed=np.asarray(mask[row]), terms=config.terms, **settings
        )
        np.testing.assert_allclose(found[row], expected, atol=1e-4)


def test_the_second_example_of_a_row_is_read_as_if_it_were_alone():
    config, scheme = FORMS["shared"]
    params, table, x = _params(config), _table(scheme), jnp.asarray(_inputs())
    packed, _ = _run(config, scheme, params, table, x, masks.encoder_mask(SEGMENTS))
    alone, _ = _run(config, scheme, params, table, x[:1, 4:], None)
    np.testing.assert_allclose(packed[0, 4:], alone[0], atol=1e-5)


@pytest.mark.parametrize("form", ["first version", "shared"])
def test_gradients_are_finite_where_nothing_may_be_read(form):
    config, scheme = FORMS[form]
    mask = masks.encoder_mask(SEGMENTS)

    def loss(params, table):
        return jnp.sum(_run(config, scheme, params, table, jnp.asarray(_inputs()), mask)[0] ** 2)

    found = jax.grad(loss, argnums=(0, 1))(_params(config), jnp.asarray(_table(scheme)))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_large_states_stay_finite_in_half_precision(dtype):
    config, scheme = FORMS["shared"]
    x = jnp.asarray(100 * _inputs()).astype(dtype)
    found, weights = _run(config, scheme, _params(config), _table(scheme), x, masks.encoder_mask(SEGMENTS), dtype)
    assert found.dtype == dtype
    assert weights.dtype == jnp.float32
    assert np.isfinite(np.asarray(found, np.float32)).all()


def test_distances_are_normed_and_dropped():
    scheme = dataclasses.replace(EXACT, norm=LayerNorm(eps=1e-7), dropout=0.25)
    context = PositionContext(length=3, key_length=3)
    module = scheme.make(HEADS, head_dim=HEAD_DIM)
    scale = np.full(WIDTH, 2.0, np.float32)
    table = _table(scheme)
    params = {"positions": table, "norm": {"scale": scale, "bias": scale}}
    relative = module.apply(variables(params), context).relative
    used = table[3:8]
    expected = (used - used.mean(-1, keepdims=True)) / used.std(-1, keepdims=True) * 2 + 2
    np.testing.assert_allclose(relative.embeddings, expected, atol=1e-4)
    assert relative.rows is None
    assert relative.dropout == 0.25


@pytest.mark.parametrize(
    ("change", "message"),
    [({"terms": ("c2p", "c2p")}, "terms"), ({"num_kv_heads": 2}, "num_kv_heads")],
)
def test_layers_without_meaning_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **change)


@pytest.mark.parametrize("change", [{"num_buckets": 2}, {"num_buckets": 18}, {"max_distance": 0}])
def test_tables_without_meaning_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        dataclasses.replace(BUCKETS, **change)


def test_scores_of_distances_need_a_table_of_them():
    with pytest.raises(ValueError, match="RelativeEmbeddings"):
        _run(CONFIG, None, _params(CONFIG), None, jnp.asarray(_inputs()), None)
