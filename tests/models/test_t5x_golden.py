"""Tiny models with weights recorded from T5X give T5X's numbers."""

import jax
import numpy as np
import pytest

from t2t.models.base import Network
from tests.models import t5x_names, t5x_tiny


@pytest.mark.parametrize("group, logits", [("batch", "logits"), ("packed", "packed_logits")])
def test_tiny_t5_1_0(group, logits):
    recorded = t5x_tiny.recorded("tiny_t5_1_0.npz")
    network = Network(t5x_tiny.t5())
    params = t5x_names.encoder_decoder_params(t5x_names.arrays_under(recorded, "param"))
    batch = t5x_tiny.batch(recorded, group)
    with jax.default_matmul_precision("highest"):
        output = jax.jit(network.apply)(params, batch)
    real = batch["decoder_segment_ids"] > 0
    np.testing.assert_allclose(output.logits[real], recorded[logits][real], atol=1e-4)
    if group == "batch":
        real = batch["encoder_segment_ids"] > 0
        np.testing.assert_allclose(output.encoder_last_hidden[real], recorded["encoded"][real], atol=1e-4)


def test_tiny_decoder_causal():
    recorded = t5x_tiny.recorded("tiny_decoder_causal.npz")
    network = Network(t5x_tiny.decoder())
    params = t5x_names.decoder_params(t5x_names.arrays_under(recorded, "param"))
    batch = t5x_tiny.batch(recorded, "batch")
    with jax.default_matmul_precision("highest"):
        logits = jax.jit(network.apply)(params, batch).logits
    real = batch["decoder_segment_ids"] > 0
    np.testing.assert_allclose(logits[real], recorded["logits"][real], atol=1e-4)
