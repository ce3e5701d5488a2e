"""A real T5, GPT-2, prefix-LM and BERT give the same loss and gradients on one device and on eight, on any mesh."""

import dataclasses
import functools

import jax
import numpy as np
import optax
import pytest

from t2t import sharding
from t2t.config import Mesh
from t2t.models.base import Network
from t2t.models.decoder import DecoderConfig
from t2t.models.encoder import EncoderConfig
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.objectives.language_modeling import LanguageModeling
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.train.state import init_params, init_state, state_shardings
from t2t.train.step import make_train_step
from tests.models import tiny

pytestmark = [pytest.mark.multi_device, pytest.mark.slow]

ROWS, LENGTH, PREDICTIONS = 16, 7, 3
MESHES = [{"data": 8}, {"data": 1, "fsdp": 8}, {"data": 1, "fsdp": 4, "tensor": 2}]


def widened(stack):
    """With sizes that eight devices can share: 4 heads, d_model and d_ff of 16."""
    block = stack.pattern[0]
    heads = functools.partial(dataclasses.replace, num_heads=4, head_dim=3)
    block = dataclasses.replace(
        block,
        attention=heads(block.attention),
        cross_attention=None if block.cross_attention is None else heads(block.cross_attention),
        feed_forward=dataclasses.replace(block.feed_forward, d_ff=16),
    )
    return dataclasses.replace(stack, d_model=16, pattern=(block,))


def t5() -> EncoderDecoderConfig:
    config = tiny.t5()
    return dataclasses.replace(
        config,
        embed=dataclasses.replace(config.embed, dim=16),
        encoder=widened(config.encoder),
        decoder=widened(config.decoder),
    )


def widened_alone(config):
    return dataclasses.replace(config, embed=dataclasses.replace(config.embed, dim=16), stack=widened(config.stack))


def gpt2() -> DecoderConfig:
    return widened_alone(tiny.gpt2())


def prefix_lm() -> DecoderConfig:
    return widened_alone(tiny.prefix_lm())


def bert() -> EncoderConfig:
    """With next-sentence head and pooler, which get no gradient from masked words and must stay as they are."""
    return widened_alone(tiny.bert())


def make_batch(config):
    batch = tiny.batch(config, rows=ROWS, length=LENGTH)
    rng = np.random.default_rng(1)
    columns = PREDICTIONS if isinstance(config, EncoderConfig) else LENGTH
    weights = (rng.uniform(0, 1, (ROWS, columns)) * (np.arange(ROWS) % 3)[:, None]).astype(np.float32)
    targets = rng.integers(0, tiny.VOCAB_SIZE, (ROWS, columns)).astype(np.int32)
    if not isinstance(config, EncoderConfig):
        return batch | {"decoder_target_tokens": targets, "decoder_loss_weights": weights}
    positions = rng.permuted(np.tile(np.arange(LENGTH, dtype=np.int32), (ROWS, 1)), axis=1)[:, :columns]
    chosen = {"positions": positions, "targets": targets, "weights": weights}
    return batch | {f"encoder_predict_{name}": array for name, array in chosen.items()}


@functools.cache
def one_step(make_config, sizes, num_devices, micro_batches):
    """Metrics and parameters after one step of gradient descent of rate 1."""
    config = make_config()
    network = Network(config)
    models, optimizer, axes = {"model": network}, optax.sgd(1.0), {"model": network.logical_axes()}
    mesh = sharding.make_mesh(Mesh(**dict(sizes)), devices=jax.devices()[:num_devices])

    def start(key):
        return init_state(init_params(models, key), optimizer)

    with sharding.use_mesh(mesh):
        shardings = state_shardings(jax.eval_shape(start, jax.random.key(0)), axes, mesh)
        state = jax.jit(start, out_shardings=shardings)(jax.random.key(0))
        masked = isinstance(config, EncoderConfig)
        objective = MaskedLanguageModeling(z_loss=1e-3) if masked else LanguageModeling(z_loss=1e-3, logits_chunk=4)
        step = make_train_step(
            objective, models, optimizer, seed=0, micro_batches=micro_batches, state_shardings=shardings
        )
        state, metrics = step(state, sharding.shard_batch(make_batch(config), mesh))
    return jax.tree.map(np.asarray, (metrics, state.params))


@pytest.mark.parametrize("make_config", [t5, gpt2, prefix_lm, bert])
@pytest.mark.parametrize("sizes", MESHES, ids=str)
def test_the_same_numbers(make_config, sizes):
    want = one_step(make_config, (), 1, 1)
    got = one_step(make_config, tuple(sizes.items()), 8, 2)
    for (path, a), b in zip(jax.tree_util.tree_flatten_with_path(got)[0], jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6, err_msg=jax.tree_util.keystr(path))
