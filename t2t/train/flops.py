"""Floating-point operations of a training step, by formula, and the share of the hardware's peak they reach.

Model FLOP utilisation (MFU) counts what the model needs, not what the program does: matrix products alone, a multiply
and an add as two operations, three times the forward pass (one product forward, two backward), nothing for what
rematerialisation repeats, half of the scores of a causal decoder.

Per row of the batch, with N parameters in kernels and T tokens passing through them:

    6 N T  +  12 L T S (num_heads head_dim)        (6 instead of 12 where attention is causal)

Embedding tables count where they are multiplied (a tied head), not where they are looked up; the head counts at the
positions that are predicted, cross-attention's keys and values at the encoder's tokens. A mask decoder is two more
runs of the last block.

Reference: Chowdhery et al., "PaLM", arXiv:2204.02311, appendix B. `tests/train/test_flops.py` compares with the
products of the traced program, exactly, and with XLA's own count.
Differs: PaLM counts all scores of causal attention; MaxText halves them since 2025-07, as here.
"""

import math
import time
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from t2t.nn import mask_decoder
from t2t.train import roles

PEAK_FLOPS = {
    "TPU v4": 275e12,
    "TPU v5 lite": 197e12,
    "TPU v5": 459e12,
    "TPU v6 lite": 918e12,
    "TPU7x": 2307e12,
    "A100": 312e12,
    "H100": 989e12,
    "H200": 989e12,
}
"""Operations per second of one device in bfloat16, dense, by a part of its `device_kind`; from the makers' data sheets.

The first part that occurs counts ("TPU v5 lite" before "TPU v5")."""


def step_flops(
    params: Any,
    batch: Mapping[str, Any],
    *,
    halve_causal: bool = True,
    applications: Mapping[str, int] | None = None,
) -> float:
    """Operations of one training step of one model.

    Args:
        params: its parameters, or their shapes.
        batch: the global batch, or its shapes: rows, lengths and predicted positions are read off it.
        halve_causal: count half of the scores of a decoder's own attention (also of a prefix-LM's).
        applications: by side, how often a step of depth uses each set of parameters that its layers share.

    Raises:
        ValueError: if the batch has neither side's input tokens.
    """
    tokens, predictions, rows = _positions(batch)
    total = 0.0
    for path, leaf in jax.tree_util.tree_flatten_with_path(params)[0]:
        names = roles.path_name(path).split("/")
        if names[-1] != "kernel":
            continue
        times = (applications or {}).get(names[0], 1) if names[1].startswith("layers_") else 1
        uses = _uses(names, tokens=tokens, predictions=predictions, rows=rows)
        total += times * 6 * math.prod(leaf.shape) * uses
        if names[-2] == "query":
            total += times * _attention(names, leaf.shape, tokens=tokens, rows=rows, halve_causal=halve_causal)
    head = params.get("head", {})
    if "mask_decoder" in head:
        total += mask_decoder.RUNS * _last_block(params["encoder"], tokens=tokens, rows=rows)
    if not {"kernel", "classifier", "span"} & set(head) and set(head) != {"next_sentence"}:
        tables = jax.tree_util.tree_flatten_with_path(params["embed"])[0]
        words = [leaf for path, leaf in tables if roles.path_name(path).split("/")[-1] == "embedding"]
        total += 6 * sum(math.prod(leaf.shape) for leaf in words) * predictions
    return total


def applications(config: Any) -> dict[str, int]:
    """How often the sets of parameters that layers share are used, by side, for `step_flops`."""
    stacks = {"encoder": "encoder", "decoder": "decoder", "stack": "encoder"}
    found = {side: getattr(config, name, None) for name, side in stacks.items()}
    return {
        side: stack.repeats // stack.sharing.groups
        for side, stack in found.items()
        if stack is not None and stack.sharing is not None
    }


def _positions(batch: Mapping[str, Any]) -> tuple[dict[str, int], int, int]:
    """Tokens of each side, predicted positions, and rows, of the whole batch."""
    shapes = {
        side: batch[f"{side}_input_tokens"].shape for side in ("encoder", "decoder") if f"{side}_input_tokens" in batch
    }
    if not shapes:
        raise ValueError(f"the batch has neither encoder_input_tokens nor decoder_input_tokens, only {sorted(batch)}")
    tokens = {side: math.prod(shape) for side, shape in shapes.items()}
    predictions = tokens.get("decoder", tokens.get("encoder", 0))
    if "encoder_predict_positions" in batch:
        predictions = math.prod(batch["encoder_predict_positions"].shape)
    return tokens, predictions, next(iter(shapes.values()))[0]


def _uses(names: list[str], *, tokens: Mapping[str, int], predictions: int, rows: int) -> int:
    """How many vectors are multiplied with a kernel."""
    match names:
        case ["pooler", *_] | ["head", "next_sentence", *_]:
            return rows
        case ["head", *_]:
            return predictions
        case [*_, "cross_attention", "key" | "value", _]:
            return tokens["encoder"]
        case ["encoder" | "decoder" as side, *_, "position", _]:  # of distances, the same for all rows
            return 2 * tokens[side] // rows
        case ["encoder" | "decoder" as side, *_]:
            return tokens[side]
        case _:  # projections of embeddings
            return sum(tokens.values())


def _last_block(params: Mapping[str, Any], *, tokens: Mapping[str, int], rows: int) -> float:
    """Operations of one more run of the last block of an encoder."""
    last = [f"{kind}_{i}" for kind in ("layers", "suffix") for i in range(len(params)) if f"{kind}_{i}" in params][-1]
    total = 0.0
    for path, leaf in jax.tree_util.tree_flatten_with_path(params[last])[0]:
        names = ["encoder", last, *roles.path_name(path).split("/")]
        if names[-1] != "kernel":
            continue
        shape = leaf.shape[1:] if last.startswith("layers_") else leaf.shape
        total += 6 * math.prod(shape) * _uses(names, tokens=tokens, predictions=0, rows=rows)
        if names[-2] == "query":
            total += _attention(names, shape, tokens=tokens, rows=rows, halve_causal=True)
    return total


def _attention(
    names: list[str], shape: tuple[int, ...], *, tokens: Mapping[str, int], rows: int, halve_causal: bool
) -> float:
    """Scores and their products with the values, of the layers stacked in one query kernel."""
    side = "decoder" if names[0] == "decoder" else "encoder"
    is_cross = names[-3] == "cross_attention"
    layers = shape[0] if len(shape) == 4 else 1
    width = shape[-2] * shape[-1]
    read = tokens["encoder" if is_cross else side] // rows
    factor = 6 if halve_causal and side == "decoder" and not is_cross else 12
    return factor * layers * width * tokens[side] * read


def peak_flops(device: Any) -> float | None:
    """Matrix products per second that the maker of a device states, in bfloat16; None if the device is not known."""
    return next((peak for part, peak in PEAK_FLOPS.items() if part in device.device_kind), None)


def measured_peak_flops(*, size: int = 1024, repeats: int = 5) -> float:
    """Operations per second of float32 matrix products here and now, as the peak of a CPU (takes 0.1 s)."""
    x = jnp.ones((size, size), jnp.float32)
    product = jax.jit(jnp.matmul)
    product(x, x).block_until_ready()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        product(x, x).block_until_ready()
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / min(seconds)
