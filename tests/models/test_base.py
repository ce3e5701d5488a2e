import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.models import tiny

from t2t.models.base import Network, count_parameters


@pytest.mark.parametrize("name", tiny.CONFIGS)
def test_apply_gives_logits_and_every_hidden_state(name, key):
    config = tiny.CONFIGS[name]
    network = Network(config)
    params = network.init(key)
    batch = tiny.batch(config)
    output = network.apply(params, batch, hidden_states=True, attentions=True)
    assert output.logits.shape == (2, 7, tiny.VOCAB_SIZE)
    assert output.logits.dtype == jnp.float32
    assert bool(jnp.isfinite(output.logits).all())
    assert count_parameters(config) == sum(leaf.size for leaf in jax.tree.leaves(params))
    print(jax.tree.map(lambda x: x.shape, params))
    print(network.logical_axes())
