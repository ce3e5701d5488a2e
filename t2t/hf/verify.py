"""Whether an exported directory is what it should be, by transformers itself: keys, logits and token ids."""

import importlib.util
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t2t.errors import UsageError
from t2t.hf import files
from t2t.models import base
from t2t.models.decoder import DecoderConfig
from t2t.models.encoder import EncoderConfig
from t2t.vocabulary import Vocabulary

TOLERANCE = 1e-4
"""Of outputs in float32, relative to the largest; ours are computed with the parameters as they are stored."""

ROWS, LENGTH = 2, 24

LINES = (
    "The quick brown fox jumps over the lazy dog.",
    "  spaces   and\ttabs ",
    "Ünïcödé, 中文, ﬁ, 🙂",
    "3.14 x^2 -> [MASK] <mask> </s>",
    "",
)


class VerificationError(ValueError):
    """transformers reads something else from a directory than was written."""


def check_installed() -> None:
    """Looks for what opens the directory; imports nothing.

    Raises:
        UsageError: torch or transformers is not installed.
    """
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"--verify opens the export with transformers, and {' and '.join(missing)} cannot be imported: "
            f"pip install {' '.join(missing)}, or export without --verify"
        )


def verify(directory: Path, *, config: Any, params: Any, vocabulary: Vocabulary | None) -> Iterator[str]:
    """Opens the directory with transformers and compares; one line for each thing that is as it should be.

    Raises:
        UsageError: torch or transformers is not installed.
        VerificationError: keys that are missing, left over or of another shape; other logits; other token ids.
    """
    check_installed()
    import torch
    import transformers

    architecture = json.loads((directory / "config.json").read_text(encoding="utf-8"))["architectures"][0]
    where = f"transformers {transformers.__version__}"
    model, info = getattr(transformers, architecture).from_pretrained(
        directory, output_loading_info=True, attn_implementation="eager", dtype=torch.float32
    )
    problems = {name: sorted(map(str, found)) for name, found in info.items() if found}
    if problems:
        raise VerificationError(f"{where} opens {directory} as {architecture} with {problems}")
    yield f"{where} opens it as {architecture}: no key is missing, left over or of another shape"
    batch = _batch(config)
    stored = files.DTYPES[json.loads((directory / "config.json").read_text(encoding="utf-8"))["dtype"]]
    difference = _largest_difference(_theirs(model.eval(), batch), _ours(config, params, batch, stored))
    if not difference <= TOLERANCE:
        raise VerificationError(f"{where} computes other numbers from {directory}: {difference:.2g} away")
    yield f"its outputs for {ROWS} rows of random tokens are ours within {difference:.1e} (allowed {TOLERANCE:.0e})"
    if vocabulary is not None:
        opened = transformers.AutoTokenizer.from_pretrained(directory)
        for line in LINES:
            theirs, ours = opened(line, add_special_tokens=False)["input_ids"], vocabulary.encode(line)
            if theirs != ours:
                raise VerificationError(f"{where} reads {line!r} as {theirs}, the vocabulary as {ours}")
        yield f"its tokenizer gives the ids of the vocabulary for {len(LINES)} lines"


def _batch(config: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shape = jax.tree.leaves(config.example())[0].shape
    shape = (ROWS, *([2] * (len(shape) - 2)), LENGTH)
    sides = ("encoder",) if isinstance(config, EncoderConfig) else ("encoder", "decoder")
    sides = ("decoder",) if isinstance(config, DecoderConfig) else sides
    return {
        f"{side}_{name}": array
        for side in sides
        for name, array in {
            "input_tokens": rng.integers(3, config.vocab_size, shape).astype(np.int32),
            "segment_ids": np.ones(shape, np.int32),
        }.items()
    }


def _ours(config: Any, params: Any, batch: Mapping[str, np.ndarray], stored: np.dtype) -> np.ndarray:
    rounded = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf).astype(stored).astype(np.float32)), params)
    output = jax.jit(base.Network(config).apply)(rounded, dict(batch))
    found = next(x for x in (output.logits, output.start_logits, output.last_hidden) if x is not None)
    return np.asarray(found)


def _theirs(model: Any, batch: Mapping[str, np.ndarray]) -> np.ndarray:
    import torch

    given = {name: torch.tensor(array, dtype=torch.long) for name, array in batch.items()}
    side = "encoder" if "encoder_input_tokens" in given else "decoder"
    inputs = {"input_ids": given[f"{side}_input_tokens"], "attention_mask": given[f"{side}_segment_ids"]}
    if len(given) > 2:
        inputs["decoder_input_ids"] = given["decoder_input_tokens"]
    with torch.no_grad():
        output = model(**inputs)
    names = ("logits", "prediction_logits", "start_logits", "last_hidden_state")
    return next(output[name] for name in names if output.get(name) is not None).numpy()


def _largest_difference(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Relative to the largest value."""
    return float(np.abs(theirs - ours).max() / max(np.abs(ours).max(), 1.0))
