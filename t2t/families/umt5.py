"""UMT5: mT5 with a table of relative positions in every block, trained on languages sampled more evenly.

    umt5-small, umt5-base, umt5-xl, umt5-xxl        the sizes of T5 1.1 with 256,384 embedding rows

Reference: Chung et al., UniMax: Fairer and More Effective Language Sampling for Large-Scale Multilingual Pretraining,
arXiv:2304.09151.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from t2t.families import t5, t5_shape
from t2t.hf import config_map
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.stack import StackConfig

VOCAB_SIZE = 256384

with_head = functools.partial(t5_shape.with_head, name="UMT5")
"""The model with the head asked for, as T5's."""


def umt5(**sizes: Any) -> EncoderDecoderConfig:
    """A UMT5 of any size: the sizes of `t5_shape.t5`."""
    return _divided(t5_shape.t5(**sizes))


def _divided(config: EncoderDecoderConfig) -> EncoderDecoderConfig:
    """The same model with the table of each stack in every one of its blocks."""

    def divided(stack: StackConfig) -> StackConfig:
        pattern = tuple(dataclasses.replace(block, position=stack.position) for block in stack.pattern)
        return dataclasses.replace(stack, pattern=pattern, position=None)

    return dataclasses.replace(config, encoder=divided(config.encoder), decoder=divided(config.decoder))


PRESETS = {
    f"umt5-{size}": t5_shape.preset(umt5, **t5_shape.V1_1, vocab_size=VOCAB_SIZE, **t5_shape.SIZES[size])
    for size in ("small", "base", "xl", "xxl")
}

ATTRIBUTES = config_map.Attributes(
    read={**t5.READ, "vocab_size": 250112, "d_ff": 1024, "num_layers": 8, "num_heads": 6,
          "feed_forward_proj": "gated-gelu"},
    fixed=t5.ATTRIBUTES.fixed,
    ignored=t5.ATTRIBUTES.ignored,
)  # fmt: skip


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> t5_shape.Config:
    """The config of a UMT5's config.json."""
    sized = _divided(t5.read_sizes(values))
    return t5.read_head(sized, values, lambda: t5.read_output(values, names), name="UMT5")


FAMILY = config_map.Family(
    model_type="umt5",
    presets=PRESETS,
    table=t5.TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=lambda config: t5.shared_attributes(config, t5.encoder_of(config).blocks[0].position),
    architecture=functools.partial(t5.architecture, prefix="UMT5"),
    with_head=with_head,
    head_from_hf=t5.HEAD_FIELDS.read,
    kept=t5.HEAD_FIELDS.unused,
    has_base=t5.has_base,
    ends=("eos",),
)
