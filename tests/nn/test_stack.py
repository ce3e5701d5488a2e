import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.nn import stack
from t2t.nn.norm import LayerNorm, RMSNorm
from t2t.nn.positions.context import PositionContext
from t2t.nn.positions.t5_bias import T5Bias
from t2t.nn.stack import SharedLayers, StackConfig
from tests.models import tiny
from tests.nn.arrays import shapes, variables

LENGTH = 5
CONTEXT = PositionContext(length=LENGTH, key_length=LENGTH)
# Prefix, a pattern of two different blocks three times, suffix: eight blocks, every kind of place.
PLAIN, GATED = (tiny.t5_block(gated=gated, cross=False, dropout=0.2) for gated in (False, True))
CONFIG = StackConfig(
    num_layers=8,
    d_model=tiny.D_MODEL,
    prefix=(GATED,),
    pattern=(PLAIN, GATED),
    suffix=(PLAIN,),
    position=T5Bias(num_buckets=8, max_distance=20),
    final_norm=RMSNorm(),
)


def _inputs():
    x = np.random.default_rng(0).normal(size=(2, LENGTH, tiny.D_MODEL))
    mask = np.ones((2, LENGTH, LENGTH), bool)
    mask[1, :, 3:] = False
    return jnp.asarray(x, jnp.float32), jnp.asarray(mask)


def _params(config):
    return tiny.random_like(shapes(config.make(), *_inputs(), CONTEXT))


def _run(config, params, *, unrolled=False, key=None, **flags):
    x, mask = _inputs()
    module = config.make(unrolled=unrolled)
    rngs = None if key is None else {"dropout": key}
    return module.apply(variables(params), x, mask, CONTEXT, deterministic=key is None, rngs=rngs, **flags)


def test_parameters_are_stacked_per_block_of_the_pattern():
    leading = {
        name: {leaf.shape[0] for leaf in jax.tree.leaves(tree)}
        for name, tree in _params(CONFIG).items()
        if name.startswith("layers_")
    }
    assert leading == {"layers_0": {3}, "layers_1": {3}}
    assert set(_params(CONFIG)) == {"prefix_0", "layers_0", "layers_1", "suffix_0", "position", "final_norm"}


def test_scan_equals_loop_with_all_outputs():
    params = _params(CONFIG)
    flags = {"hidden_states": True, "attentions": True}
    scanned = jax.jit(functools.partial(_run, CONFIG, **flags))(params)
    apart = stack.unrolled_scopes(stack.unstack(params))
    looped = jax.jit(functools.partial(_run, CONFIG, unrolled=True, **flags))(apart)
    assert len(scanned.hidden_states) == 9
    assert len(scanned.attentions) == 8
    assert jax.tree.structure(scanned) == jax.tree.structure(looped)
    for one, other in zip(jax.tree.leaves(scanned), jax.tree.leaves(looped), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


def test_hidden_states_are_input_then_each_block_then_final_norm():
    params = _params(CONFIG)
    output = jax.jit(functools.partial(_run, CONFIG, hidden_states=True))(params)
    np.testing.assert_array_equal(output.hidden_states[0], _inputs()[0])
    np.testing.assert_array_equal(output.hidden_states[-1], output.last_hidden)
    # A shallower stack of the same first blocks ends (without norm) where the deep one passes.
    shallow = dataclasses.replace(CONFIG, num_layers=3, suffix=(), final_norm=None)
    first = {name: jax.tree.map(lambda x: x[:1], params[name]) for name in ("layers_0", "layers_1")}
    ended = _run(shallow, {"prefix_0": params["prefix_0"], "position": params["position"]} | first)
    np.testing.assert_allclose(output.hidden_states[3], ended.last_hidden, atol=1e-5)


# The smallest stack with a scan: two layers.
SMALL = dataclasses.replace(CONFIG, num_layers=2, prefix=(), pattern=(PLAIN,), suffix=())


def _loss(params, remat, key):
    config = dataclasses.replace(SMALL, remat=remat)
    return jnp.sum(jnp.square(_run(config, params, key=key).last_hidden))


@pytest.mark.slow
def test_remat_changes_neither_loss_nor_gradients_under_dropout(key):
    params = _params(SMALL)
    value_and_grad = jax.jit(jax.value_and_grad(_loss), static_argnums=1)
    loss, gradients = value_and_grad(params, "none", key)
    largest = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(gradients))
    for remat in stack.REMATS[1:]:
        loss_again, gradients_again = value_and_grad(params, remat, key)
        np.testing.assert_allclose(loss, loss_again, rtol=1e-5)
        for one, other in zip(jax.tree.leaves(gradients), jax.tree.leaves(gradients_again), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5 * largest)


def test_remat_keeps_no_attention_weights_for_the_backward_pass():
    params = _params(SMALL)

    def saved(remat):
        # Attention weights [B, N, T, S] stacked over both layers of the scan.
        return "f32[2,2,3,5,5]" in str(
            jax.make_jaxpr(jax.grad(functools.partial(_loss, remat=remat, key=None)))(params)
        )

    assert [saved(remat) for remat in ("none", "full", "dots_no_batch")] == [True, False, False]


def test_layers_draw_different_dropout(key):
    # Equal layers that shared a key would drop the same values of their outputs.
    config = dataclasses.replace(SMALL, final_norm=None)
    params = _params(config)
    params["layers_0"] = jax.tree.map(lambda x: np.broadcast_to(x[:1], x.shape), params["layers_0"])
    states = jax.jit(functools.partial(_run, config, hidden_states=True))(params, key=key).hidden_states
    first, second = (np.asarray(after - before) == 0 for before, after in itertools.pairwise(states))
    assert first.any()
    assert (first != second).any()


def test_caches_need_the_unrolled_module():
    with pytest.raises(ValueError, match="caches need unrolled=True"):
        _run(CONFIG, _params(CONFIG), caches=(None,) * 8)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"num_layers": 7}, r"StackConfig.num_layers = 7: must be .* = 2 \+ n \* 2 with n of at least 1"),
        ({"num_layers": 2}, "StackConfig.num_layers = 2"),
        ({"pattern": ()}, r"StackConfig.pattern = \(\): must be at least one block"),
        ({"dropout": 1.0}, "StackConfig.dropout"),
        (
            {"suffix": (dataclasses.replace(PLAIN, attention=dataclasses.replace(PLAIN.attention, num_heads=2)),)},
            r"StackConfig.position .* equally many heads, not \[2, 3\]",
        ),
    ],
)
def test_wrong_fields_are_refused_by_name(fields, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **fields)


def test_blocks_in_depth_order():
    assert CONFIG.repeats == 3
    assert CONFIG.blocks == (GATED, PLAIN, GATED, PLAIN, GATED, PLAIN, GATED, PLAIN)
    assert dataclasses.replace(CONFIG, final_norm=LayerNorm()).blocks == CONFIG.blocks


@pytest.mark.parametrize("groups", [1, 2])
def test_shared_layers_equal_layers_that_are_copies(groups):
    shared = StackConfig(
        num_layers=8, d_model=tiny.D_MODEL, pattern=(PLAIN, GATED), sharing=SharedLayers(groups=groups)
    )
    params = _params(shared)
    assert {leaf.shape[0] for leaf in jax.tree.leaves(params)} == {groups}
    copies = jax.tree.map(lambda leaf: jnp.repeat(leaf, 4 // groups, axis=0), params)
    unshared = dataclasses.replace(shared, sharing=None)

    def loss(params, config):
        output = _run(config, params, hidden_states=True)
        return jnp.sum(output.last_hidden**2), output.hidden_states

    (_, ours), gradient = jax.value_and_grad(loss, has_aux=True)(params, shared)
    (_, theirs), each = jax.value_and_grad(loss, has_aux=True)(copies, unshared)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-6)
    summed = jax.tree.map(lambda g: g.reshape(groups, -1, *g.shape[1:]).sum(1), each)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), gradient, summed)


def test_the_number_of_groups_divides_the_depth():
    with pytest.raises(ValueError, match="a divisor of the 4 repetitions"):
        StackConfig(num_layers=4, d_model=tiny.D_MODEL, pattern=(PLAIN,), sharing=SharedLayers(groups=3))


@pytest.mark.parametrize(
    "blocks, pattern, suffix",
    [("PPPP", "P", ""), ("PGPG", "PG", ""), ("PGPGP", "PG", "P"), ("GPPGPPG", "GPP", "G"), ("PGG", "PGG", ""),
     ("P", "P", "")],
)  # fmt: skip
def test_shortest_pattern_of_blocks_in_depth_order(blocks, pattern, suffix):
    kinds = {"P": PLAIN, "G": GATED}
    found = stack.shortest_pattern(tuple(kinds[kind] for kind in blocks))
    assert found == {"pattern": tuple(kinds[k] for k in pattern), "suffix": tuple(kinds[k] for k in suffix)}
    config = StackConfig(num_layers=len(blocks), d_model=tiny.D_MODEL, **found)
    assert config.blocks == tuple(kinds[kind] for kind in blocks)
