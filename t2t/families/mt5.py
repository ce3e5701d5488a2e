"""mT5: T5 1.1 in 101 languages.

    mt5-small ... mt5-xxl        the sizes of T5 1.1 with 250,112 embedding rows

Reference: Xue et al., mT5: A Massively Multilingual Pre-trained Text-to-Text Transformer, arXiv:2010.11934.

It computes what T5 1.1 does; the name of the family is all that tells the two apart.

Differs: an mT5 whose output is tied to the embedding is refused, because transformers 4 scales its logits by
d_model**-0.5 and 5 does not.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from t2t.families import t5, t5_shape
from t2t.hf import config_map
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.heads import LanguageModelHead

VOCAB_SIZE = 250112
"""250,000 pieces, 100 of them sentinels, and unused rows."""

with_head = functools.partial(t5_shape.with_head, name="mT5")
"""The model with the head asked for, as T5's."""


def mt5(**sizes: Any) -> EncoderDecoderConfig:
    """An mT5 of any size: the sizes of `t5_shape.t5`."""
    return dataclasses.replace(t5_shape.t5(**sizes), family="mt5")


PRESETS = {
    f"mt5-{size}": t5_shape.preset(mt5, **t5_shape.V1_1, vocab_size=VOCAB_SIZE, **numbers)
    for size, numbers in t5_shape.SIZES.items()
}

ATTRIBUTES = config_map.Attributes(
    read={**t5.READ, "vocab_size": VOCAB_SIZE, "d_ff": 1024, "num_layers": 8, "num_heads": 6,
          "feed_forward_proj": "gated-gelu"},
    fixed=t5.ATTRIBUTES.fixed,
    ignored=t5.ATTRIBUTES.ignored,
)  # fmt: skip


def _output(values: Mapping[str, Any], names: frozenset[str]) -> LanguageModelHead | None:
    """The output of an mT5: its own, whatever `tie_word_embeddings` says, which transformers 5 always sets to true."""
    if "lm_head.weight" in names:
        return LanguageModelHead(tied=False)
    if t5.class_name(values).endswith("T5Model"):
        return None
    raise ValueError(
        "it is an mT5 without lm_head.weight, so with a tied output, which transformers 4 scales by d_model**-0.5 and "
        "5 does not: set model_type to t5 in its config.json if it was trained with the scaled one"
    )


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> t5_shape.Config:
    """The config of an mT5's config.json."""
    sized = dataclasses.replace(t5.read_sizes(values), family="mt5")
    return t5.read_head(sized, values, lambda: _output(values, names), name="mT5")


def _to_hf(config: Any) -> dict[str, Any]:
    attributes = t5.shared_attributes(config, t5.encoder_of(config).position)
    if config.family != "mt5":
        raise config_map.InexpressibleError("it is no mT5 by name")
    if isinstance(config.head, LanguageModelHead) and config.head.tied:
        raise config_map.InexpressibleError("its output is tied, which transformers 4 and 5 read differently in an mT5")
    return attributes


FAMILY = config_map.Family(
    model_type="mt5",
    presets=PRESETS,
    table=t5.TABLE,
    attributes=ATTRIBUTES,
    from_hf=_from_hf,
    to_hf=_to_hf,
    architecture=functools.partial(t5.architecture, prefix="MT5"),
    with_head=with_head,
    head_from_hf=t5.HEAD_FIELDS.read,
    kept=t5.HEAD_FIELDS.unused,
    has_base=t5.has_base,
    ends=("eos",),
)
