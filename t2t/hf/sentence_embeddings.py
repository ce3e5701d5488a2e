"""What makes an exported encoder a model of sentence-transformers: which modules, and how states become one vector.

Reference: sentence-transformers 6 (`SentenceTransformer.save`); 2 to 5 read the same files.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from flax import traverse_util

from t2t import families
from t2t.errors import UsageError
from t2t.models import base
from t2t.models.encoder import EncoderConfig

Pooling = Literal["mean", "first"]

FILES = ("modules.json", "1_Pooling/config.json", "sentence_bert_config.json", "config_sentence_transformers.json")
"""What `write` writes."""

_MODES = {"mean": "pooling_mode_mean_tokens", "first": "pooling_mode_cls_token"}
_MODULE = "sentence_transformers.models"


def without_head(config: Any, params: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """The encoder whose states make the vectors, and its parameters: a head has no part in them and is left out.

    Where the class of transformers has a pooler and the model has none, its parameters are zeros: no vector reads them.

    Raises:
        UsageError: the model is no encoder.
        InexpressibleError: no class of transformers computes what it does.
    """
    if not isinstance(config, EncoderConfig):
        raise UsageError("sentence embeddings come from an encoder, which this model is not")
    if config.head is None:
        return config, params
    family, _ = families.expressing(config)
    bare = family.with_head(config, None)
    leaves = traverse_util.flatten_dict(params, sep="/")
    shapes = base.Network(bare).shapes_by_path()
    kept = {path: leaves[path] if path in leaves else np.zeros(shape, np.float32) for path, shape in shapes.items()}
    return bare, traverse_util.unflatten_dict(kept, sep="/")


def write(directory: Path, *, config: Any, pooling: Pooling) -> list[str]:
    """Adds the files to a directory that holds an exported encoder and its tokenizer; returns their names."""
    modes = {name: pooling == mode for mode, name in _MODES.items()}
    others = ("max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
    position = config.embed.position
    contents = {
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": f"{_MODULE}.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{_MODULE}.Pooling"},
        ],
        "1_Pooling/config.json": {
            "word_embedding_dimension": config.d_model,
            **modes,
            **{f"pooling_mode_{name}": False for name in others},
            "include_prompt": True,
        },
        "sentence_bert_config.json": {
            "max_seq_length": None if position is None else position.max_positions,
            "do_lower_case": False,
        },
        "config_sentence_transformers.json": {
            "prompts": {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    }
    (directory / "1_Pooling").mkdir(exist_ok=True)
    for name, content in contents.items():
        (directory / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return list(contents)
