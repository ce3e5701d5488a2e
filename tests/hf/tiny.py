"""Tiny configs and parameters of every family, without transformers."""

from typing import Any

import jax
import numpy as np
from flax import traverse_util

from t2t import heads
from t2t.families import bert, gpt, gpt2, t5
from t2t.models import base

BERT = bert.bert(num_layers=2, d_model=12, num_heads=3, d_ff=7, vocab_size=11, max_positions=9)
MASKED = bert.with_head(BERT, heads.MaskedLM())
PRETRAINING = bert.with_head(BERT, heads.PRETRAINING)
GPT2 = gpt2.gpt2(num_layers=2, d_model=12, num_heads=3, vocab_size=11, max_positions=9)
GPT = gpt.gpt(num_layers=2, d_model=12, num_heads=3, vocab_size=11, max_positions=9)
SIZES = {"d_model": 12, "num_heads": 3, "head_dim": 5, "d_ff": 7, "vocab_size": 11}
T5 = t5.t5(num_layers=2, num_decoder_layers=1, **SIZES)
T5_1_1 = t5.t5(num_layers=2, gated=True, activation="gelu_tanh", tied=False, **SIZES)
ALL = {"bert": BERT, "masked": MASKED, "pretraining": PRETRAINING, "gpt2": GPT2, "gpt": GPT, "t5": T5, "t5_1_1": T5_1_1}


def params(config: Any, seed: int = 0) -> dict[str, Any]:
    """Parameters of a model, each value different from every other."""
    rng = np.random.default_rng(seed)
    shapes = traverse_util.flatten_dict(base.Network(config).shapes(), sep="/")
    leaves = {path: rng.normal(size=leaf.shape).astype(np.float32) for path, leaf in shapes.items()}
    return traverse_util.unflatten_dict(leaves, sep="/")


def assert_trees_equal(found: Any, expected: Any) -> None:
    """Same structure, same values."""
    jax.tree.map(np.testing.assert_array_equal, found, expected)
