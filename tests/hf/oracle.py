"""Tiny random models of transformers and their outputs, against which import and export are compared."""

import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from t2t.hf import export, load
from tests.cases import Case, all_cases

ROWS = 3
SHORTER = 6
"""Tokens by which the rows of a decoder are shorter than those that its encoder reads."""

CASES = all_cases()


def build(case: Case) -> Any:
    """A model of transformers whose every parameter is random: biases, norm weights and the own output of an untied T5.

    Attention is eager; the model does not drop out.
    """
    import torch
    import transformers

    architecture = getattr(transformers, case.architecture)
    config = architecture.config_class(**case.config)
    config._attn_implementation = "eager"
    model = architecture(config).eval()
    own = getattr(model, "lm_head", None)
    if case.is_untied and getattr(own, "weight", None) is model.get_input_embeddings().weight:
        model.lm_head.weight = torch.nn.Parameter(torch.empty(config.vocab_size, config.d_model))
    # T5's scores have no scale, and states grow with every layer: of larger draws they make errors of rounding near the
    # tolerance, in transformers too (4e-5 from what it computes in float64, after six layers of ModernBERT).
    spread = 0.2 if hasattr(config, "feed_forward_proj") or config.num_hidden_layers > 4 else 0.3
    generator = torch.Generator().manual_seed(sum(map(ord, case.name)))
    for name, parameter in model.named_parameters():
        centre = 1.0 if parameter.ndim == 1 and name.endswith("weight") else 0.0
        parameter.data = centre + spread * torch.randn(parameter.shape, generator=generator)
    return model


def save(model: Any, directory: Path) -> Path:
    """The directory transformers itself writes of a model."""
    model.save_pretrained(directory)
    return directory


@dataclasses.dataclass(frozen=True)
class Exported:
    """A directory that transformers wrote, what we read from it, and the directory that we wrote of that."""

    theirs: Path
    config: Any
    params: Any
    ours: Path


_EXPORTED: dict[str, Exported] = {}
_ROOT = tempfile.TemporaryDirectory(prefix="exports")


def exported(case: Case) -> Exported:
    """The model of `build`, read and exported; done once in a process, whatever the number of tests that read it."""
    if case.name not in _EXPORTED:
        root = Path(_ROOT.name) / case.name
        opened = load.open_directory(save(build(case), root / "theirs"))
        params = opened.params()
        export.export(root / "ours", config=opened.config, params=params)
        _EXPORTED[case.name] = Exported(root / "theirs", opened.config, params, root / "ours")
    return _EXPORTED[case.name]


def batch(case: Case, *, padded: bool) -> dict[str, np.ndarray]:
    """Random input by t2t's keys, with sentence types where the model has them.

    Padded rows have different lengths; the second is of padding but for one token.
    """
    rng = np.random.default_rng(7)

    def side(name: str, length: int) -> dict[str, np.ndarray]:
        lengths = [length, 1, length - 3] if padded else [length] * ROWS
        segments = (np.arange(length)[None] < np.array(lengths)[:, None]).astype(np.int32)
        segments = segments[:, ::-1].copy() if case.pads_left else segments  # torch reads no reversed view
        tokens = rng.integers(2, case.config["vocab_size"], (ROWS, length)).astype(np.int32)
        tokens = np.where(segments, tokens, case.pad_id).astype(np.int32)
        return {f"{name}_input_tokens": tokens, f"{name}_segment_ids": segments}

    if case.side == "both":
        arrays = side("encoder", case.length)
        ends = case.end is not None
        return arrays | (_shifted(arrays, case.end) if ends else side("decoder", case.length - SHORTER))
    arrays, shape = side(case.side, case.length), (ROWS, case.length)
    if case.num_types:
        arrays[f"{case.side}_token_types"] = rng.integers(0, case.num_types, shape).astype(np.int32)
    if case.num_languages:
        arrays[f"{case.side}_language_ids"] = rng.integers(0, case.num_languages, shape).astype(np.int32)
    if case.choices:
        arrays = {name: np.stack([array, array[::-1]], axis=1) for name, array in arrays.items()}
        tokens, segments = (arrays[f"{case.side}_{name}"] for name in ("input_tokens", "segment_ids"))
        tokens[:, 1] = tokens[:, 1] % 7 + 2 * (segments[:, 1] != 0)
    return arrays


def _shifted(arrays: dict[str, np.ndarray], end: int) -> dict[str, np.ndarray]:
    """The texts with one end each, and the same for the decoder behind an end, with which BART's starts.

    Behind padding it would have gradients that torch leaves out.
    """
    tokens, segments = arrays["encoder_input_tokens"], arrays["encoder_segment_ids"]
    tokens = np.where(tokens == end, end + 1, tokens)
    tokens[np.arange(ROWS), segments.sum(axis=1) - 1] = end
    shifted = np.pad(tokens[:, :-1], ((0, 0), (1, 0)), constant_values=end) * segments
    return {"encoder_input_tokens": tokens, "decoder_input_tokens": shifted, "decoder_segment_ids": segments}


def moved_left(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A batch whose rows have their padding on the right, with it on the left."""
    moved = {}
    for name, array in arrays.items():
        real = arrays[f"{name.partition('_')[0]}_segment_ids"].sum(axis=-1, keepdims=True)
        places = (np.arange(array.shape[-1]) + real) % array.shape[-1]
        moved[name] = np.take_along_axis(array, places, axis=-1)
    return moved


def without_types(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A batch that says nothing of sentence types."""
    return {name: array for name, array in arrays.items() if not name.endswith("token_types")}


NAMES = {
    "logits": ("mc_logits", "logits", "prediction_logits"),
    "next_sentence_logits": ("seq_relationship_logits", "sop_logits"),
    "start_logits": ("start_logits",),
    "end_logits": ("end_logits",),
    "pooled": ("pooler_output",),
    "hidden_states": ("decoder_hidden_states", "hidden_states"),
    "encoder_hidden_states": ("encoder_hidden_states",),
}
"""Names of our outputs -> transformers' names, of which a model has one or none."""


def inputs(case: Case, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A batch by the names of transformers."""
    side = "decoder" if case.side == "decoder" else "encoder"
    names = {"input_ids": f"{side}_input_tokens", "attention_mask": f"{side}_segment_ids"}
    if f"{side}_token_types" in arrays:
        names["token_type_ids"] = f"{side}_token_types"
    if case.num_languages:
        names["langs"] = f"{side}_language_ids"
    if case.side == "both":
        names |= {"decoder_input_ids": "decoder_input_tokens", "decoder_attention_mask": "decoder_segment_ids"}
    given = {theirs: arrays[ours] for theirs, ours in names.items()}
    if case.side == "decoder" and case.choices:  # whose class reads words too, and is told where a text ends
        real = given["attention_mask"]
        given |= {"attention_mask": real.reshape(-1, real.shape[-1]), "mc_token_ids": real.sum(axis=-1) - 1}
    return given


def run(case: Case, model: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What transformers computes, as torch tensors, by the names of t2t's Output."""
    import torch

    given = {name: torch.tensor(array, dtype=torch.long) for name, array in inputs(case, arrays).items()}
    result = model(**given, output_hidden_states=True, return_dict=True)
    found = {}
    for ours, theirs in NAMES.items():
        value = next((result[name] for name in theirs if result.get(name) is not None), None)
        if value is not None:
            found[ours] = value
    if case.architecture.endswith("ForNextSentencePrediction"):
        found["next_sentence_logits"] = found.pop("logits")
    if case.choices and "hidden_states" in found:  # choices are rows in ours
        found["hidden_states"] = tuple(state.reshape(-1, *state.shape[-2:]) for state in found["hidden_states"])
    return found


def outputs(case: Case, model: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What transformers computes, by the names of t2t's Output."""
    import torch

    with torch.no_grad():
        found = run(case, model, arrays)
    return {n: [v.numpy() for v in value] if isinstance(value, tuple) else value.numpy() for n, value in found.items()}


def assert_equal(ours: Any, theirs: dict[str, Any], arrays: dict[str, np.ndarray], *, what: str = "") -> None:
    """Every output of transformers equals ours where the input is no padding, within 1e-4 absolutely."""
    scores = {"logits", "next_sentence_logits", "start_logits", "hidden_states"}
    assert theirs.keys() & scores, "transformers gave nothing to compare"
    for name, mine, other in compared(ours, theirs, arrays):
        np.testing.assert_allclose(mine, other, atol=1e-4, rtol=0, err_msg=f"{what} {name}")


def largest_difference(ours: Any, theirs: dict[str, Any], arrays: dict[str, np.ndarray]) -> float:
    """Of any number of any output where the input is no padding."""
    return max(float(np.abs(mine - other).max()) for _, mine, other in compared(ours, theirs, arrays))


def compared(
    ours: Any, theirs: dict[str, Any], arrays: dict[str, np.ndarray]
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, our values and transformers' of every output, without those of padding."""
    side = "decoder" if "decoder_segment_ids" in arrays else "encoder"
    for name, expected in theirs.items():
        found = getattr(ours, name)
        assert found is not None, name
        pairs = zip(found, expected, strict=True) if isinstance(expected, list) else [(found, expected)]
        real = arrays[f"{'encoder' if name == 'encoder_hidden_states' else side}_segment_ids"] != 0
        if name in ("hidden_states", "pooled"):
            real = real.reshape(-1, real.shape[-1])  # choices are rows there
        for mine, other in pairs:
            mine = np.asarray(mine)
            assert mine.shape == other.shape, name
            if mine.shape[: real.ndim] == real.shape and name != "pooled":
                mine, other = mine[real], other[real]
            yield name, mine, other
