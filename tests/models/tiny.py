"""Tiny configs of every topology, all sizes different, so that a swapped axis fails."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from t2t.models.base import Network
from t2t.models.decoder import DecoderConfig
from t2t.models.encoder import EncoderConfig
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import FeedForwardConfig
from t2t.nn.heads import LanguageModelHead, MaskedLanguageModelHead
from t2t.nn.norm import LayerNorm, RMSNorm
from t2t.nn.positions.absolute import LearnedPositions
from t2t.nn.positions.alibi import ALiBi
from t2t.nn.positions.rotary import Rotary
from t2t.nn.positions.t5_bias import T5Bias
from t2t.nn.stack import StackConfig

VOCAB_SIZE = 37
D_MODEL = 12


def t5_block(*, gated: bool, cross: bool, dropout: float = 0.0) -> BlockConfig:
    attention = AttentionConfig(num_heads=3, head_dim=5, scale=1.0, dropout=dropout)
    activation = "gelu_tanh" if gated else "relu"
    return BlockConfig(
        norm=RMSNorm(),
        norm_position="pre",
        attention=attention,
        cross_attention=attention if cross else None,
        feed_forward=FeedForwardConfig(d_ff=14, activation=activation, gated=gated, dropout=dropout),
        dropout=dropout,
    )


def t5_stack(*, num_layers: int, block: BlockConfig, position: T5Bias, dropout: float = 0.0) -> StackConfig:
    return StackConfig(
        num_layers=num_layers,
        d_model=D_MODEL,
        pattern=(block,),
        position=position,
        dropout=dropout,
        final_norm=RMSNorm(),
    )


def t5(*, version: str = "1.0", dropout: float = 0.0) -> EncoderDecoderConfig:
    gated = version == "1.1"
    return EncoderDecoderConfig(
        embed=EmbedConfig(vocab_size=VOCAB_SIZE, dim=D_MODEL, initializer_std=1.0, dropout=dropout),
        encoder=t5_stack(
            num_layers=2,
            block=t5_block(gated=gated, cross=False, dropout=dropout),
            position=T5Bias(num_buckets=8, max_distance=20),
            dropout=dropout,
        ),
        decoder=t5_stack(
            num_layers=3,
            block=t5_block(gated=gated, cross=True, dropout=dropout),
            position=T5Bias(num_buckets=8, max_distance=20, bidirectional=False),
            dropout=dropout,
        ),
        head=LanguageModelHead(tied=not gated, scale_by_width=not gated),
    )


def prefix_lm(*, bidirectional_prefix: bool = False) -> DecoderConfig:
    position = T5Bias(num_buckets=8, max_distance=20, bidirectional=False, bidirectional_prefix=bidirectional_prefix)
    return DecoderConfig(
        embed=EmbedConfig(vocab_size=VOCAB_SIZE, dim=D_MODEL, initializer_std=1.0),
        stack=t5_stack(num_layers=2, block=t5_block(gated=True, cross=False), position=position),
        head=LanguageModelHead(scale_by_width=True),
        prefix_attention=True,
    )


def _post_or_pre_block(norm_position: str, activation: str, eps: float, dropout: float) -> BlockConfig:
    return BlockConfig(
        norm=LayerNorm(eps=eps),
        norm_position=norm_position,
        attention=AttentionConfig(num_heads=3, head_dim=4, use_bias=True, dropout=dropout, initializer_std=0.02),
        feed_forward=FeedForwardConfig(d_ff=14, activation=activation, use_bias=True, initializer_std=0.02),
        dropout=dropout,
    )


def bert(*, dropout: float = 0.0, next_sentence: bool = True) -> EncoderConfig:
    norm = LayerNorm(eps=1e-12)
    return EncoderConfig(
        embed=EmbedConfig(
            vocab_size=VOCAB_SIZE,
            dim=D_MODEL,
            num_types=2,
            position=LearnedPositions(max_positions=16),
            norm=norm,
            dropout=dropout,
            initializer="truncated_normal",
        ),
        stack=StackConfig(num_layers=3, d_model=D_MODEL, pattern=(_post_or_pre_block("post", "gelu", 1e-12, dropout),)),
        head=MaskedLanguageModelHead(activation="gelu", norm=norm, next_sentence=next_sentence),
        pooler=next_sentence,
    )


def gpt2(*, dropout: float = 0.0) -> DecoderConfig:
    return DecoderConfig(
        embed=EmbedConfig(
            vocab_size=VOCAB_SIZE, dim=D_MODEL, position=LearnedPositions(max_positions=16), dropout=dropout
        ),
        stack=StackConfig(
            num_layers=3,
            d_model=D_MODEL,
            pattern=(_post_or_pre_block("pre", "gelu_tanh", 1e-5, dropout),),
            final_norm=LayerNorm(),
        ),
        head=LanguageModelHead(),
    )


def gpt() -> DecoderConfig:
    config = gpt2()
    block = _post_or_pre_block("post", "gelu_tanh", 1e-5, 0.0)
    return dataclasses.replace(config, stack=dataclasses.replace(config.stack, pattern=(block,), final_norm=None))


def parallel() -> DecoderConfig:
    """Two sublayers that read one norm, and half of each head turned by its position (GPT-J)."""
    config = gpt2()
    (block,) = config.stack.pattern
    block = dataclasses.replace(block, norm_position="parallel", feed_forward_norm=False)
    stack = dataclasses.replace(config.stack, pattern=(block,), position=Rotary(dim=2, interleaved=True))
    head = LanguageModelHead(tied=False, use_bias=True)
    return dataclasses.replace(config, embed=EmbedConfig(vocab_size=VOCAB_SIZE, dim=D_MODEL), stack=stack, head=head)


def windowed() -> DecoderConfig:
    """Two layers that read one position back, with scores that fall with distance (GPT-Neo, BLOOM)."""
    config = gpt2()
    (block,) = config.stack.pattern
    attention = dataclasses.replace(block.attention, window=1, use_bias=False, out_bias=True)
    block = dataclasses.replace(block, attention=attention)
    stack = dataclasses.replace(config.stack, num_layers=2, pattern=(block,), position=ALiBi())
    embed = EmbedConfig(vocab_size=VOCAB_SIZE, dim=D_MODEL, norm=LayerNorm())
    return dataclasses.replace(config, embed=embed, stack=stack)


def local_encoder() -> EncoderConfig:
    """Two layers that read their neighbours, the first without a norm of its input, turned at two rates."""
    norm = LayerNorm(use_bias=False)
    first = BlockConfig(
        norm=norm,
        norm_position="pre",
        attention_norm=False,
        attention=AttentionConfig(num_heads=3, head_dim=4, window=1),
        feed_forward=FeedForwardConfig(d_ff=14, activation="gelu", gated=True),
        position=Rotary(theta=100.0),
    )
    second = dataclasses.replace(first, attention_norm=True, position=Rotary(theta=7.0))
    return EncoderConfig(
        embed=EmbedConfig(vocab_size=VOCAB_SIZE, dim=D_MODEL, norm=norm),
        stack=StackConfig(num_layers=2, d_model=D_MODEL, prefix=(first,), pattern=(second,), final_norm=norm),
        head=MaskedLanguageModelHead(activation="gelu", norm=norm, transform_bias=False),
    )


CONFIGS = {
    "t5_1_0": t5(),
    "t5_1_1": t5(version="1.1"),
    "prefix_lm": prefix_lm(),
    "bert": bert(),
    "gpt": gpt(),
    "gpt2": gpt2(),
    "parallel": parallel(),
    "windowed": windowed(),
    "local_encoder": local_encoder(),
}


def batch(config, *, rows: int = 2, length: int = 7, encoder_length: int = 9, seed: int = 0) -> dict[str, np.ndarray]:
    """Random tokens for a config, without padding."""
    rng = np.random.default_rng(seed)

    def tokens(columns):
        return rng.integers(1, VOCAB_SIZE, (rows, columns)).astype(np.int32)

    if isinstance(config, EncoderConfig):
        types = np.arange(length) // 4 % 2 * np.ones((rows, 1), int)
        return {"encoder_input_tokens": tokens(length), "encoder_token_types": types.astype(np.int32)}
    made = {"decoder_input_tokens": tokens(length)}
    if isinstance(config, EncoderDecoderConfig):
        made["encoder_input_tokens"] = tokens(encoder_length)
    elif config.prefix_attention:
        made["decoder_causal_attention"] = (np.arange(length) < 4).astype(np.int32) * np.ones((rows, 1), np.int32)
    return made


def params(config, seed: int = 0):
    """Random parameters of a config, made without compiling an initializer; none is zero or one."""
    return jax.tree.map(jnp.array, _random_arrays(config, seed))


@functools.cache
def _random_arrays(config, seed):
    return random_like(Network(config).shapes(), seed)


def random_like(shapes, seed: int = 0):
    """Random NumPy arrays of the given shapes: norms' scales around one, everything else around zero."""
    rng = np.random.default_rng(seed)

    def draw(path, leaf):
        around = 1.0 if path[-1].key == "scale" else 0.0
        return (around + 0.3 * rng.normal(size=leaf.shape)).astype(np.float32)

    return jax.tree_util.tree_map_with_path(draw, shapes)


def randomize(params, seed: int = 0):
    """Parameters of which none is zero or one, so that every one matters."""
    leaves, tree = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    noisy = [
        leaf + 0.2 * jax.random.normal(key, leaf.shape, jnp.float32) for leaf, key in zip(leaves, keys, strict=True)
    ]
    return jax.tree.unflatten(tree, noisy)
