import dataclasses
import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t import api
from t2t.models.base import Network, count_parameters
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.stack import SharedLayers
from tests.models import tiny


def _paths(tree):
    return {"/".join(key.key for key in path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


ATTENTION = {
    "query/kernel": (3, 12, 3, 4),
    "query/bias": (3, 3, 4),
    "key/kernel": (3, 12, 3, 4),
    "key/bias": (3, 3, 4),
    "value/kernel": (3, 12, 3, 4),
    "value/bias": (3, 3, 4),
    "out/kernel": (3, 3, 4, 12),
    "out/bias": (3, 12),
}
BERT = {
    "embed/embedding": (37, 12),
    "embed/positions": (16, 12),
    "embed/types": (2, 12),
    "embed/norm/scale": (12,),
    "embed/norm/bias": (12,),
    **{f"encoder/layers_0/attention/{name}": shape for name, shape in ATTENTION.items()},
    "encoder/layers_0/attention_norm/scale": (3, 12),
    "encoder/layers_0/attention_norm/bias": (3, 12),
    "encoder/layers_0/feed_forward/up/kernel": (3, 12, 14),
    "encoder/layers_0/feed_forward/up/bias": (3, 14),
    "encoder/layers_0/feed_forward/down/kernel": (3, 14, 12),
    "encoder/layers_0/feed_forward/down/bias": (3, 12),
    "encoder/layers_0/feed_forward_norm/scale": (3, 12),
    "encoder/layers_0/feed_forward_norm/bias": (3, 12),
    "pooler/kernel": (12, 12),
    "pooler/bias": (12,),
    "head/bias": (37,),
    "head/transform/kernel": (12, 12),
    "head/transform/bias": (12,),
    "head/norm/scale": (12,),
    "head/norm/bias": (12,),
    "head/next_sentence/kernel": (12, 2),
    "head/next_sentence/bias": (2,),
}
T5_1_1 = {
    "embed/embedding",
    "head/kernel",
    *(f"{side}/position/embedding" for side in ("encoder", "decoder")),
    *(f"{side}/final_norm/scale" for side in ("encoder", "decoder")),
    *(
        f"{side}/layers_0/{sublayer}_norm/scale"
        for side, sublayer in (
            ("encoder", "attention"),
            ("encoder", "feed_forward"),
            ("decoder", "attention"),
            ("decoder", "cross_attention"),
            ("decoder", "feed_forward"),
        )
    ),
    *(
        f"{sublayer}/{name}/kernel"
        for sublayer in (
            "encoder/layers_0/attention",
            "decoder/layers_0/attention",
            "decoder/layers_0/cross_attention",
        )
        for name in ("query", "key", "value", "out")
    ),
    *(f"{side}/layers_0/feed_forward/{n}/kernel" for side in ("encoder", "decoder") for n in ("gate", "up", "down")),
}


def test_parameter_tree_of_a_bert():
    shapes = _paths(Network(tiny.bert()).shapes())
    assert {path: leaf.shape for path, leaf in shapes.items()} == BERT
    assert {leaf.dtype for leaf in shapes.values()} == {jnp.dtype("float32")}
    assert count_parameters(tiny.bert()) == sum(int(np.prod(shape)) for shape in BERT.values())


def test_parameter_paths_of_a_t5_1_1():
    assert set(_paths(Network(tiny.t5(version="1.1")).shapes())) == T5_1_1


def test_tied_models_have_no_head_kernel():
    assert "head" not in Network(tiny.t5()).shapes()
    assert "head" not in Network(tiny.gpt2()).shapes()


@pytest.mark.parametrize("name", tiny.CONFIGS)
def test_every_axis_of_every_parameter_has_a_name(name):
    network = Network(tiny.CONFIGS[name])
    axes = _paths_of_axes(network.logical_axes())
    shapes = _paths(network.shapes())
    assert axes.keys() == shapes.keys()
    known = {"embed", "mlp", "heads", "kv_heads", "head", "vocab", "layers", "types", "positions"}
    for path, names in axes.items():
        assert len(names) == len(shapes[path].shape)
        assert set(names) <= known
        assert ("layers" in names) == ("layers_0" in path)


def _is_axes(node):
    return isinstance(node, tuple)


def _paths_of_axes(tree):
    leaves = jax.tree_util.tree_leaves_with_path(tree, is_leaf=_is_axes)
    return {"/".join(key.key for key in path): leaf for path, leaf in leaves}


def _divided(config):
    """The encoder with a first and a last block of their own around the pattern twice."""
    block = config.stack.pattern[0]
    wide = dataclasses.replace(block, feed_forward=dataclasses.replace(block.feed_forward, d_ff=13))
    stack = dataclasses.replace(config.stack, num_layers=7, prefix=(wide,), pattern=(block, wide), suffix=(block, wide))
    return dataclasses.replace(config, stack=stack)


def _sharing(config):
    """The encoder whose four layers share two sets of parameters."""
    stack = dataclasses.replace(config.stack, num_layers=4, sharing=SharedLayers(groups=2))
    return dataclasses.replace(config, stack=stack)


ALL = {**tiny.CONFIGS, "divided": _divided(tiny.bert()), "sharing": _sharing(tiny.bert())}


@pytest.mark.parametrize("name", ALL)
def test_shapes_are_those_of_fresh_parameters(name):
    network = Network(ALL[name], param_dtype=jnp.bfloat16)
    expected = _paths(jax.eval_shape(network.init, jax.random.key(0)))
    assert list(_paths(network.shapes()).items()) == list(expected.items())


@pytest.mark.parametrize("name", ["bert", "t5_1_1"])
def test_init_gives_the_shapes_and_published_deviations(name, key):
    network = Network(tiny.CONFIGS[name])
    params = jax.jit(network.init)(key)
    same = jax.tree.map(lambda x, shape: x.shape == shape.shape and x.dtype == shape.dtype, params, network.shapes())
    assert all(jax.tree.leaves(same))
    embedding = np.asarray(params["embed"]["embedding"])
    if name == "bert":
        assert np.abs(embedding).max() <= 2 * 0.02  # Truncated at two standard deviations.
        np.testing.assert_array_equal(params["head"]["bias"], 0.0)
        np.testing.assert_array_equal(params["encoder"]["layers_0"]["attention_norm"]["scale"], 1.0)
    else:
        assert embedding.std() == pytest.approx(1.0, rel=0.1)
        assert params["head"]["kernel"].std() == pytest.approx(tiny.D_MODEL**-0.5, rel=0.15)
    # Layers are drawn apart.
    query = params["encoder"]["layers_0"]["attention"]["query"]["kernel"]
    assert (query[0] != query[1]).all()


@pytest.mark.parametrize("name", tiny.CONFIGS)
def test_apply_gives_logits_and_every_hidden_state(name):
    config = tiny.CONFIGS[name]
    network = Network(config)
    params, batch = tiny.params(config), tiny.batch(config)
    output = jax.jit(functools.partial(network.apply, hidden_states=True, attentions=True))(params, batch)
    assert output.logits.shape == (2, 7, tiny.VOCAB_SIZE)
    assert output.logits.dtype == jnp.float32
    depth = len(output.attentions)
    assert len(output.hidden_states) == depth + 1
    np.testing.assert_array_equal(output.hidden_states[-1], output.last_hidden)
    assert output.attentions[0].shape == (2, 3, 7, 7)
    if isinstance(config, EncoderDecoderConfig):
        assert len(output.encoder_hidden_states) == 3
        assert len(output.decoder_hidden_states) == depth + 1 == 4
        assert output.encoder_last_hidden.shape == (2, 9, tiny.D_MODEL)
        assert output.cross_attentions[0].shape == (2, 3, 7, 9)
    assert (output.next_sentence_logits is not None) == (name == "bert")


def test_logits_of_some_positions_equal_those_of_all():
    network, params = Network(tiny.bert()), tiny.params(tiny.bert())
    hidden = jnp.asarray(np.random.default_rng(0).normal(size=(2, 5, tiny.D_MODEL)), jnp.float32)
    logits = jax.jit(network.logits)(params, hidden)
    np.testing.assert_allclose(jax.jit(network.logits)(params, hidden[1, 2:4]), logits[1, 2:4], atol=1e-5)


def test_without_optional_outputs_they_are_none():
    shapes = jax.eval_shape(Network(tiny.gpt2()).apply, tiny.params(tiny.gpt2()), tiny.batch(tiny.gpt2()))
    assert shapes.hidden_states is None
    assert shapes.attentions is None
    assert shapes.pooled is None


@pytest.mark.slow
def test_dropout_is_decided_by_the_key_alone(key):
    config = tiny.t5(dropout=0.3)
    network, params, batch = Network(config), tiny.params(config), tiny.batch(config)
    apply = jax.jit(functools.partial(network.apply, params, batch, deterministic=False))
    first, second = jax.random.split(key)
    np.testing.assert_array_equal(apply(key=first).logits, apply(key=first).logits)
    assert (apply(key=first).logits != apply(key=second).logits).any()
    # Deterministic passes ignore a key.
    deterministic = jax.jit(functools.partial(network.apply, params, batch))
    np.testing.assert_array_equal(deterministic().logits, deterministic(key=first).logits)


@pytest.mark.parametrize("name", ["t5_1_0", "bert"])
def test_bfloat16_computes_in_bfloat16_near_float32(name):
    config = tiny.CONFIGS[name]
    params, batch = tiny.params(config), tiny.batch(config)
    exact = jax.jit(Network(config).apply)(params, batch)
    rounded = jax.jit(Network(config, dtype=jnp.bfloat16).apply)(params, batch)
    assert rounded.last_hidden.dtype == jnp.bfloat16
    assert rounded.logits.dtype == jnp.float32
    error = jnp.sqrt(jnp.mean(jnp.square(rounded.logits - exact.logits)))
    assert float(error / exact.logits.std()) < 0.03


def test_computing_in_float16_is_refused():
    """By a model that is loaded, too, before it computes (huggingface/transformers#4586)."""
    for make in (Network, functools.partial(api.Model, params={})):
        with pytest.raises(ValueError, match=r"dtype is float16, .* bfloat16 or float32"):
            make(config=tiny.bert(), dtype=jnp.float16)
        assert make(config=tiny.bert(), dtype=jnp.bfloat16).dtype == jnp.bfloat16


def test_large_feed_forwards_stay_finite_in_bfloat16():
    """Their values overflow float16, whose NaNs were a plague of T5."""
    config = tiny.CONFIGS["t5_1_0"]
    params = jax.tree.map(lambda leaf: leaf, tiny.params(config))
    for side in ("encoder", "decoder"):
        down = params[side]["layers_0"]["feed_forward"]["down"]
        down["kernel"] = down["kernel"] * 1e5
    found = jax.jit(Network(config, dtype=jnp.bfloat16).apply)(params, tiny.batch(config))
    assert float(jnp.abs(found.last_hidden).max()) > 0
    assert bool(jnp.isfinite(found.logits).all() & jnp.isfinite(found.last_hidden.astype(jnp.float32)).all())


def test_network_overrides_remat():
    network = Network(tiny.gpt2(), remat="full")
    jaxpr = jax.make_jaxpr(network.hidden)(tiny.params(tiny.gpt2()), tiny.batch(tiny.gpt2()))
    assert "remat" in str(jaxpr) or "checkpoint" in str(jaxpr)


def test_dropout_without_a_key_is_refused():
    network = Network(tiny.gpt2())
    with pytest.raises(ValueError, match="deterministic=False needs key"):
        network.apply(tiny.params(tiny.gpt2()), tiny.batch(tiny.gpt2()), deterministic=False)


@pytest.mark.parametrize(
    "name, drop, message",
    [
        ("t5_1_0", "encoder_input_tokens", "batch has no 'encoder_input_tokens'"),
        ("gpt2", "decoder_input_tokens", "batch has no 'decoder_input_tokens'"),
        ("prefix_lm", "decoder_causal_attention", "batch has no 'decoder_causal_attention'"),
    ],
)
def test_missing_keys_of_a_batch_are_named(name, drop, message):
    config = tiny.CONFIGS[name]
    batch = {key: x for key, x in tiny.batch(config).items() if key != drop}
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(Network(config).hidden, tiny.params(config), batch)


def test_more_tokens_than_positions_are_refused():
    with pytest.raises(ValueError, match="length 17 is more than LearnedPositions.max_positions = 16"):
        jax.eval_shape(Network(tiny.gpt2()).hidden, tiny.params(tiny.gpt2()), tiny.batch(tiny.gpt2(), length=17))


def test_parts_that_do_not_fit_are_refused():
    config = tiny.t5()
    with pytest.raises(ValueError, match="EncoderDecoderConfig.encoder.d_model = 16: must equal embed.dim = 12"):
        dataclasses.replace(config, encoder=dataclasses.replace(config.encoder, d_model=16))
    with pytest.raises(ValueError, match="EncoderDecoderConfig.decoder: its blocks must have cross_attention"):
        dataclasses.replace(config, decoder=config.encoder)
    with pytest.raises(ValueError, match="DecoderConfig.stack: its blocks cannot have cross_attention"):
        dataclasses.replace(tiny.prefix_lm(), stack=config.decoder)
    with pytest.raises(ValueError, match="EncoderConfig.pooler = False: must be True where the head has next_sentence"):
        dataclasses.replace(tiny.bert(), pooler=False)


@pytest.mark.multi_device
def test_sharded_parameters_and_activations_give_the_same_logits():
    config = tiny.t5(version="1.1")
    network, params, batch = Network(config), tiny.params(config), tiny.batch(config, rows=4)
    expected = jax.jit(network.apply)(params, batch).logits
    mesh = jax.make_mesh((2, 2), ("data", "tensor"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    rules = (("batch", "data"), ("mlp", "tensor"), ("embed", None))
    with jax.set_mesh(mesh), nn.logical_axis_rules(rules):
        specs = jax.tree.map(
            lambda names: nn.logical_to_mesh_axes(names, rules), network.logical_axes(), is_leaf=_is_axes
        )
        shardings = jax.tree.map(lambda spec: jax.sharding.NamedSharding(mesh, spec), specs)
        sharded = jax.device_put(params, shardings)
        rows = jax.device_put(batch, jax.sharding.NamedSharding(mesh, jax.P("data")))
        output = jax.jit(network.apply)(sharded, rows)
    np.testing.assert_allclose(output.logits, expected, atol=2e-5)
