"""Whether an exported directory is what it should be, by transformers itself: keys, logits and token ids."""

import fnmatch
import functools
import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t2t import families
from t2t.errors import UsageError
from t2t.hf import files
from t2t.models import base
from t2t.models.decoder import DecoderConfig
from t2t.models.encoder import EncoderConfig
from t2t.vocabulary import MosesVocabulary, Vocabulary

TOLERANCE = 1e-4
"""Of outputs in float32, relative to the largest; ours are computed with the parameters as they are stored."""

ROWS, LENGTH = 2, 24

LINES = (
    "The quick brown fox jumps over the lazy dog.",
    "  spaces   and\ttabs ",
    "Ünïcödé, 中文, ﬁ, 🙂",
    "3.14 x^2 -> [MASK] <mask>",
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


def check_class(config: Any) -> None:
    """Looks for transformers' class of a model, so that nothing is written that it cannot open.

    Raises:
        UsageError: the installed version has no such class.
        InexpressibleError: no version has.
    """
    family, attributes = families.expressing(config)
    _class(attributes["architectures"][0], note=family.note)


def verify(directory: Path, *, config: Any, params: Any, vocabulary: Vocabulary | None) -> Iterator[str]:
    """Opens the directory with transformers and compares; one line for each thing that is as it should be.

    Raises:
        UsageError: torch or transformers is not installed, or it has no class for the model.
        VerificationError: keys that are missing, left over or of another shape; other outputs; other token ids.
    """
    check_installed()
    import torch
    import transformers

    attributes = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    architecture, where = attributes["architectures"][0], f"transformers {transformers.__version__}"
    family, _ = families.expressing(config)
    model, info = _class(architecture, note=family.note).from_pretrained(
        directory, output_loading_info=True, attn_implementation="eager", dtype=torch.float32
    )
    unread = family.unread(config)
    if problems := _problems(info, unread):
        raise VerificationError(f"{where} opens {directory} as {architecture} with {problems}")
    known = f", but for {', '.join(unread)}, which no class of it reads" if unread else ""
    yield f"{where} opens it as {architecture}: no key is missing, left over or of another shape{known}"
    batch = _batch(config, attributes)
    theirs, ours = _theirs(model.eval(), batch), _ours(config, params, batch, files.DTYPES[attributes["dtype"]])
    difference = max(_largest_difference(theirs[name], ours[name]) for name in theirs)
    if not difference <= TOLERANCE:
        raise VerificationError(f"{where} computes other numbers from {directory}: {difference:.2g} away")
    yield f"its outputs for {ROWS} rows of random tokens are ours within {difference:.1e} (allowed {TOLERANCE:.0e})"
    if isinstance(vocabulary, MosesVocabulary) and importlib.util.find_spec("sacremoses") is None:
        yield "its tokenizer is not compared, since that of transformers needs sacremoses: pip install sacremoses"
    elif vocabulary is not None:
        opened = transformers.AutoTokenizer.from_pretrained(directory)
        for line in LINES:
            theirs, ours = opened(line, add_special_tokens=False)["input_ids"], vocabulary.encode(line)
            if theirs != ours:
                raise VerificationError(f"{where} reads {line!r} as {theirs}, the vocabulary as {ours}")
        yield f"its tokenizer gives the ids of the vocabulary for {len(LINES)} lines"


def _class(architecture: str, *, note: str | None) -> Any:
    import transformers

    found = getattr(transformers, architecture, None)
    if found is None:
        raise UsageError(
            f"--verify: transformers {transformers.__version__} has no class {architecture}. {note or ''} Export "
            "without --verify, or verify where a version is installed that has it."
        )
    return found


def _problems(info: Mapping[str, Any], unread: Sequence[str]) -> dict[str, list[str]]:
    """What transformers reports of its loading, without the tensors that no class of it reads."""
    found = {name: sorted(map(str, keys)) for name, keys in info.items() if keys}
    others = [
        key for key in found.pop("unexpected_keys", []) if not any(fnmatch.fnmatchcase(key, known) for known in unread)
    ]
    return {**found, **({"unexpected_keys": others} if others else {})}


def _batch(config: Any, attributes: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Rows of random tokens without padding; a head that reads a decoder's last state is given a text and its end."""
    rng = np.random.default_rng(0)
    shape = jax.tree.leaves(config.example())[0].shape
    shape = (ROWS, *([2] * (len(shape) - 2)), min(LENGTH, _longest(config)))
    sides = ("encoder",) if isinstance(config, EncoderConfig) else ("encoder", "decoder")
    sides = ("decoder",) if isinstance(config, DecoderConfig) else sides
    end = attributes.get("eos_token_id")
    special = [token for token in (end, attributes.get("pad_token_id")) if token is not None]
    usable = np.setdiff1d(np.arange(config.vocab_size, dtype=np.int32), special)
    tokens = {f"{side}_input_tokens": rng.choice(usable, shape) for side in sides}
    if len(sides) == 2 and getattr(config.head, "task", None) == "sequence":
        text = tokens["encoder_input_tokens"]
        text[:, -1] = end
        tokens["decoder_input_tokens"] = np.pad(text[:, :-1], ((0, 0), (1, 0)), constant_values=end)
    return tokens | {f"{side}_segment_ids": np.ones(shape, np.int32) for side in sides}


def _longest(config: Any) -> int:
    """Positions that the tables of the model have."""
    parts = (config.embed, getattr(config, "decoder_embed", None), getattr(config.head, "mask_decoder", None))
    tables = [part.position for part in parts if part is not None and part.position is not None]
    return min((table.max_positions for table in tables), default=LENGTH)


def _ours(config: Any, params: Any, batch: Mapping[str, np.ndarray], stored: np.dtype) -> dict[str, np.ndarray]:
    """What t2t computes with the parameters as they are stored, by the names of transformers' outputs."""
    rounded = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf).astype(stored).astype(np.float32)), params)
    apply = jax.jit(functools.partial(base.Network(config).apply, hidden_states=True))
    output = apply(rounded, dict(batch))
    scores = output.next_sentence_logits if output.logits is None else output.logits
    found = {
        **dict.fromkeys(("mc_logits", "prediction_logits", "logits"), scores),
        **dict.fromkeys(("seq_relationship_logits", "sop_logits"), output.next_sentence_logits),
        "start_logits": output.start_logits,
        "end_logits": output.end_logits,
        "last_hidden_state": output.hidden_states[-1],
    }
    return {name: np.asarray(value) for name, value in found.items() if value is not None}


_SCORES = (
    ("mc_logits", "prediction_logits", "logits"),
    ("seq_relationship_logits", "sop_logits"),
    ("start_logits",),
    ("end_logits",),
)
"""Outputs of transformers that are compared: of each line the first that a model has."""


def _theirs(model: Any, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What transformers computes, by the names of its outputs: all scores, or else the last states."""
    import torch

    given = {name: torch.tensor(array, dtype=torch.long) for name, array in batch.items()}
    side = "encoder" if "encoder_input_tokens" in given else "decoder"
    inputs = {"input_ids": given[f"{side}_input_tokens"]}
    if side == "encoder" or inputs["input_ids"].ndim == 2:  # OpenAI's class cannot mask choices
        inputs["attention_mask"] = given[f"{side}_segment_ids"]
    if len(given) > 2:
        inputs["decoder_input_ids"] = given["decoder_input_tokens"]
    with torch.no_grad():
        output = model(**inputs)
    found = [next((name for name in names if output.get(name) is not None), None) for names in _SCORES]
    return {name: output[name].numpy() for name in found if name is not None} or {
        "last_hidden_state": output["last_hidden_state"].numpy()
    }


def _largest_difference(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Relative to the largest value."""
    return float(np.abs(theirs - ours).max() / max(np.abs(ours).max(), 1.0))
