"""XLM-RoBERTa: RoBERTa on the text of a hundred languages, with one vocabulary for all.

    xlm-roberta-base, xlm-roberta-large

Reference: Conneau et al., Unsupervised Cross-lingual Representation Learning at Scale, arXiv:1911.02116.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from t2t.families import labels, roberta
from t2t.models.encoder import EncoderConfig

_NAME = "xlm-roberta"
_preset = functools.partial(roberta.preset, vocab_size=250002, name=_NAME)

PRESETS = {
    "xlm-roberta-base": functools.partial(_preset, num_layers=12, d_model=768),
    "xlm-roberta-large": functools.partial(_preset, num_layers=24, d_model=1024),
}


def _from_hf(values: Mapping[str, Any], names: frozenset[str]) -> EncoderConfig:
    return dataclasses.replace(roberta.from_hf(values, names), family=_NAME)


FAMILY = dataclasses.replace(
    roberta.FAMILY,
    model_type=_NAME,
    refused={"XLMRobertaForCausalLM": labels.CAUSAL},
    presets=PRESETS,
    attributes=dataclasses.replace(roberta.ATTRIBUTES, read={**roberta.ATTRIBUTES.read, "vocab_size": 30522}),
    from_hf=_from_hf,
    architecture=functools.partial(roberta.architecture, prefix="XLMRoberta"),
)
