"""The tiny models recorded from T5X (`t5x_golden`): their configs, arrays and batches."""

import numpy as np

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
from tests.models import t5x_names
from tests.shared_data import shared_data

EMBED = EmbedConfig(vocab_size=64, dim=16, initializer_std=1.0)
HEAD = LanguageModelHead(scale_by_width=True)


def t5() -> EncoderDecoderConfig:
    """Of `tiny_t5_1_0.npz`."""
    return EncoderDecoderConfig(
        embed=EMBED,
        encoder=_stack(bidirectional=True, cross=False, gated=False),
        decoder=_stack(bidirectional=False, cross=True, gated=False),
        head=HEAD,
    )


def decoder() -> DecoderConfig:
    """Of `tiny_decoder_causal.npz`."""
    return DecoderConfig(embed=EMBED, stack=_stack(bidirectional=False, cross=False, gated=True), head=HEAD)


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


def recorded(name: str) -> dict[str, np.ndarray]:
    """The arrays of a file of `t5x_golden`."""
    with np.load(shared_data("t5x_golden", name)) as arrays:
        return dict(arrays)


def batch(arrays: dict[str, np.ndarray], group: str) -> dict[str, np.ndarray]:
    """The recorded batch, with segment ids where T5X read padding off token ids."""
    made = t5x_names.arrays_under(arrays, group)
    for side, of in (("encoder", "encoder_input_tokens"), ("decoder", "decoder_target_tokens")):
        if of in made:
            made.setdefault(f"{side}_segment_ids", (made[of] > 0).astype(np.int32))
    return made
