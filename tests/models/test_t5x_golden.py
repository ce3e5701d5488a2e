"""Tiny models with weights recorded from T5X give T5X's numbers."""

import jax
import numpy as np
import pytest
import shared_data
from models import t5x_names

from t2t.models.base import Network
from t2t.models.decoder import DecoderConfig
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import FeedForwardConfig
from t2t.nn.heads import LanguageModelHead
from t2t.nn.norm import RMSNorm
from t2t.nn.positions.t5_bias import T5Bias
from t2t.nn.stack import StackConfig


def _stack(*, bidirectional: bool, cross: bool, gated: bool) -> StackConfig:
    attention = AttentionConfig(num_heads=t5x_names.HEADS, head_dim=8, scale=1.0)
    block = BlockConfig(
        norm=RMSNorm(),
        norm_position="pre",
        attention=attention,
        cross_attention=attention if cross else None,
        feed_forward=FeedForwardConfig(d_ff=32, activation="gelu_tanh" if gated else "relu", gated=gated),
    )
    return StackConfig(
        num_layers=t5x_names.NUM_LAYERS,
        d_model=16,
        pattern=(block,),
        position=T5Bias(bidirectional=bidirectional),
        final_norm=RMSNorm(),
    )


EMBED = EmbedConfig(vocab_size=64, dim=16, initializer_std=1.0)
HEAD = LanguageModelHead(scale_by_width=True)


def _recorded(name: str) -> dict[str, np.ndarray]:
    with np.load(shared_data.shared_data("t5x_golden", name)) as arrays:
        return dict(arrays)


def _batch(recorded, group):
    batch = t5x_names.arrays_under(recorded, group)
    # T5X reads padding off token ids; we are told by segment ids.
    for side, of in (("encoder", "encoder_input_tokens"), ("decoder", "decoder_target_tokens")):
        if of in batch:
            batch.setdefault(f"{side}_segment_ids", (batch[of] > 0).astype(np.int32))
    return batch


@pytest.mark.parametrize("group, logits", [("batch", "logits"), ("packed", "packed_logits")])
def test_tiny_t5_1_0(group, logits):
    recorded = _recorded("tiny_t5_1_0.npz")
    network = Network(
        EncoderDecoderConfig(
            embed=EMBED,
            encoder=_stack(bidirectional=True, cross=False, gated=False),
            decoder=_stack(bidirectional=False, cross=True, gated=False),
            head=HEAD,
        )
    )
    params = t5x_names.encoder_decoder_params(t5x_names.arrays_under(recorded, "param"))
    batch = _batch(recorded, group)
    with jax.default_matmul_precision("highest"):
        output = jax.jit(network.apply)(params, batch)
    real = batch["decoder_segment_ids"] > 0
    np.testing.assert_allclose(output.logits[real], recorded[logits][real], atol=1e-4)
    if group == "batch":
        real = batch["encoder_segment_ids"] > 0
        np.testing.assert_allclose(output.encoder_last_hidden[real], recorded["encoded"][real], atol=1e-4)


def test_tiny_decoder_causal():
    recorded = _recorded("tiny_decoder_causal.npz")
    network = Network(DecoderConfig(embed=EMBED, stack=_stack(bidirectional=False, cross=False, gated=True), head=HEAD))
    params = t5x_names.decoder_params(t5x_names.arrays_under(recorded, "param"))
    batch = _batch(recorded, "batch")
    with jax.default_matmul_precision("highest"):
        logits = jax.jit(network.apply)(params, batch).logits
    real = batch["decoder_segment_ids"] > 0
    np.testing.assert_allclose(logits[real], recorded["logits"][real], atol=1e-4)
