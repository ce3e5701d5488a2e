"""Published sizes, freshly drawn, predict about as badly as the uniform distribution, not worse."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t2t
from t2t import families, heads
from t2t.models import base
from t2t.models.encoder import EncoderConfig
from tests import cases

QUICK = ("t5-small", "t5-v1_1-small", "bert-base-uncased", "openai-gpt", "gpt2")
SURE = {
    name
    for family, is_sure in cases.said("SURE_OF_ITS_INPUT", False).items()
    for name in families.by_model_type(family).presets
    if is_sure
}
LARGEST = 1_100_000_000
"""Parameters that fit this test's memory, in float32 and twice while they are drawn."""


def published() -> list:
    quick = [pytest.param(name, marks=pytest.mark.slow) for name in QUICK]
    return quick + [pytest.param(name, marks=pytest.mark.nightly) for name in t2t.presets() if name not in QUICK]


def fitting(config: Any) -> Any:
    """The model with fewer layers where it is too large: the loss at the start is a matter of widths."""
    if t2t.count_parameters(config) <= LARGEST:
        return config
    stacks = {part: getattr(config, part) for part in ("stack", "encoder", "decoder") if hasattr(config, part)}
    least = {part: len(stack.prefix) + len(stack.pattern) + len(stack.suffix) for part, stack in stacks.items()}
    fewer = {part: dataclasses.replace(stack, num_layers=least[part]) for part, stack in stacks.items()}
    return dataclasses.replace(config, **fewer)


@pytest.mark.parametrize("name", published())
def test_published_sizes_start_near_the_uniform_distribution(name):
    head = heads.MaskedLM() if isinstance(t2t.preset(name), EncoderConfig) else None
    network = base.Network(fitting(t2t.preset(name, head=head)))
    if t2t.count_parameters(network.config) > LARGEST:
        pytest.skip("too wide to draw here")
    vocab_size = network.config.vocab_size
    tokens = jnp.asarray(np.random.default_rng(0).integers(1, vocab_size, (2, 32), np.int32))
    batch = {f"{side}_input_tokens": tokens for side in ("encoder", "decoder")}
    params = jax.jit(network.init)(jax.random.key(0))
    logits = jax.jit(lambda params: network.apply(params, batch).logits)(params)
    if name in SURE:  # as in transformers; among all other tokens it does not choose
        logits = jnp.where(jax.nn.one_hot(tokens, vocab_size, dtype=bool), -jnp.inf, logits)
    # Other tokens than those read: a model whose output is its embedding guesses its own input well from the start.
    targets = jnp.asarray(np.random.default_rng(1).integers(1, vocab_size, tokens.shape, np.int32))
    loss = -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1).mean()
    assert float(loss) < np.log(vocab_size) + 1.5
