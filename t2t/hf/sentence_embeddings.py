"""What makes an exported encoder a model of sentence-transformers: which modules, and how states become one vector.

Reference: sentence-transformers 6 (`SentenceTransformer.save`); 2 to 5 read the same files.
"""

import json
from pathlib import Path
from typing import Any, Literal

from t2t.errors import UsageError
from t2t.models.encoder import EncoderConfig

Pooling = Literal["mean", "first"]

_MODES = {"mean": "pooling_mode_mean_tokens", "first": "pooling_mode_cls_token"}
_MODULE = "sentence_transformers.models"


def check(config: Any) -> None:
    """Refuses what has no sentence embeddings.

    Raises:
        UsageError: the model is no encoder without a head.
    """
    if not isinstance(config, EncoderConfig) or config.head is not None:
        raise UsageError("sentence embeddings come from an encoder without a head: give its bare model")


def write(directory: Path, *, config: Any, pooling: Pooling) -> list[str]:
    """Adds the files to a directory that holds an exported encoder and its tokenizer; returns their names.

    Raises:
        UsageError: the model is no encoder without a head.
    """
    check(config)
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
