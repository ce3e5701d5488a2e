"""Windows of attention at their published sizes: the last position that is read, and the first that is not."""

import jax
import numpy as np
import pytest

from t2t.families import gpt_neo, modernbert
from t2t.models import base
from tests.hf import tiny

SIZES = {"num_layers": 1, "d_model": 12, "num_heads": 3, "d_ff": 8, "vocab_size": 11}
CONFIGS = {
    # transformers' sliding windows were once off by one, and once ignored (huggingface/transformers#40163).
    "modernbert": (modernbert.modernbert(**SIZES, layer_types=["sliding_attention"]), "encoder", range(-64, 65)),
    "gpt_neo": (gpt_neo.gpt_neo(**SIZES, layer_types=["local"], max_positions=400), "decoder", range(256)),
}
PLACE, LENGTH = 90, 380


@pytest.mark.parametrize("name", CONFIGS)
def test_a_token_is_read_as_far_as_the_window_goes(name):
    config, side, distances = CONFIGS[name]
    tokens = np.random.default_rng(0).integers(0, 11, (1, LENGTH)).astype(np.int32).repeat(2, axis=0)
    tokens[1, PLACE] = (tokens[0, PLACE] + 1) % 11
    apply = jax.jit(base.Network(config).apply)
    params = jax.tree.map(lambda leaf: 0.2 * leaf, tiny.params(config))  # attention to all of about equal weight
    states = np.asarray(apply(params, {f"{side}_input_tokens": tokens}).last_hidden)
    readers = np.flatnonzero((states[0] != states[1]).any(axis=-1))
    np.testing.assert_array_equal(readers, PLACE + np.array(distances))
