"""How much of an accelerator training uses, with each kernel of attention: run by `bash benchmarks/gpu.sh` on one GPU.

    python -m benchmarks.gpu [--models gpt2-medium ...] [--lengths 512 2048] [--minutes 9] [--output FILE]
    python -m benchmarks.gpu --check       kernels against the reference on this device, in bfloat16
    python -m benchmarks.gpu --tiny        two layers of 64 positions, to see that it works, also on a CPU

    bert-large-uncased    masked language modelling, 15 % predicted
    t5-large              encoder of that length, decoder of a quarter of it
    gpt2-medium           next token, the loss in chunks of 256 positions

16,384 tokens a step, rows packed with examples of different lengths, bfloat16, AdamW in float32, dropout of all but
the attention weights, which no kernel drops. The step is compiled, run twice, and then `--steps` times. MFU is the
formula of `t2t/train/flops.py` over the maker's peak. Once `--minutes` are over, no further program is begun, and what
is missing is said. A program that does not fit into memory is a line of the table, not the end.
"""

import argparse
import dataclasses
import json
import pathlib
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import t2t
from t2t.functional import attention
from t2t.functional.kernels import choice
from t2t.functional.kernels.attend import attend
from t2t.functional.masks import Mask
from t2t.models.base import Network
from t2t.objectives.language_modeling import LanguageModeling
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.train import flops
from t2t.train.step import accumulate_gradients

MODELS = ("bert-large-uncased", "t5-large", "gpt2-medium")
TOKENS = 16_384
EXAMPLES = (0.5, 0.3, 0.15)
"""Shares of a row; the rest is padding."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--lengths", nargs="+", type=int, default=[512, 2048])
    parser.add_argument("--steps", type=int, default=5, help="timed steps of each program")
    parser.add_argument("--minutes", type=float, default=9.0, help="after which nothing further is begun")
    parser.add_argument("--check", action="store_true", help="compare kernels with the reference, and end")
    parser.add_argument("--tiny", action="store_true", help="two layers, 64 positions")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file to write")
    arguments = parser.parse_args()
    began = time.monotonic()
    platform = "gpu" if jax.default_backend() in ("gpu", "cuda") else jax.default_backend()
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}", flush=True)
    if arguments.check:
        check(platform)
        return
    print(f"{'model':20}{'length':>7}{'s/step':>9}{'tokens/s':>11}{'TFLOP/s':>9}{'MFU':>7}{'compile':>9}  attention")
    results = []
    for length in [64] if arguments.tiny else arguments.lengths:
        for name in arguments.models:
            for kernels in candidates(platform):
                case = {"model": name, "length": length, "kernels": kernels}
                if time.monotonic() - began > 60 * arguments.minutes:
                    results.append(case | {"missing": "no time left"})
                else:
                    results.append(case | measured(**case, steps=arguments.steps, tiny=arguments.tiny))
                print(line(results[-1]), flush=True)
                if arguments.output:
                    arguments.output.write_text(json.dumps(results, indent=2) + "\n")


def candidates(platform: str) -> list[tuple[choice.Kernel, ...]]:
    """Preferences to compare: each kernel of the platform, then the reference alone."""
    fused = [kernel for kernel in choice.KERNELS if choice.PLATFORMS.get(kernel) == platform]
    return [(kernel, "reference") for kernel in fused] + [choice.REFERENCE]


def line(result: dict[str, Any]) -> str:
    """A row of the table."""
    start = f"{result['model']:20}{result['length']:7}"
    if "missing" in result:
        return f"{start}  {result['missing']} ({', '.join(result['kernels'])})"
    mfu = "" if result["mfu"] is None else f"{result['mfu']:.1%}"
    return (
        f"{start}{result['seconds']:9.3f}{result['tokens_per_second']:11,.0f}{result['flops_per_second'] / 1e12:9.1f}"
        f"{mfu:>7}{result['compile_seconds']:9.1f}  {result['attention']}"
    )


def measured(model: str, length: int, kernels: tuple[choice.Kernel, ...], *, steps: int, tiny: bool) -> dict[str, Any]:
    """Median time of a step and what follows from it."""
    config, objective = run_of(model, length, tiny=tiny)
    batch = batch_of(config, length, tokens=256 if tiny else TOKENS)
    network, optimizer = Network(config, dtype=jnp.bfloat16, kernels=kernels), optax.adamw(1e-4)

    def step(params: Any, opt_state: Any, batch: Any, key: Any) -> Any:
        rest = {"frozen": {}, "key": key, "carry": ()}
        gradients, loss = accumulate_gradients(objective, {"model": network}, {"model": params}, batch, **rest)[:2]
        updates, opt_state = optimizer.update(gradients["model"], opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    params = jax.jit(network.init)(jax.random.key(0))
    state = params, jax.jit(optimizer.init)(params)
    operations = flops.step_flops(params, batch, applications=flops.applications(config))
    try:
        started = time.monotonic()
        with choice.recording() as choices:
            lowered = jax.jit(step, donate_argnums=(0, 1)).lower(*state, batch, jax.random.key(1))
        compiled = lowered.compile()
        seconds_to_compile = time.monotonic() - started
        times = []
        for number in range(2 + steps):
            started = time.perf_counter()
            *state, loss = compiled(*state, batch, jax.random.key(number))
            loss = float(loss)
            times.append(time.perf_counter() - started)
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        return {"missing": "does not fit into memory"}
    if not np.isfinite(loss):
        raise RuntimeError(f"{model}, {length}, {kernels}: the loss is {loss}")
    seconds = float(np.median(times[2:]))
    peak = next((peak for kind, peak in flops.PEAK_FLOPS.items() if kind in jax.devices()[0].device_kind), None)
    tokens = sum(value.size for name, value in batch.items() if name.endswith("_input_tokens"))
    return {
        "seconds": seconds,
        "tokens_per_second": tokens / seconds,
        "flops_per_second": operations / seconds,
        "mfu": None if peak is None else operations / seconds / peak,
        "compile_seconds": seconds_to_compile,
        "attention": choice.described(choices),
        "loss": loss,
    }


def run_of(name: str, length: int, *, tiny: bool) -> tuple[Any, Any]:
    """The model, with as many positions and no dropout of attention weights, and its objective."""
    is_encoder = name.startswith("bert")
    config = t2t.preset(name, head=t2t.heads.PRETRAINING) if is_encoder else t2t.preset(name)
    stacks = {}
    for part in ("stack", "encoder", "decoder"):
        if (stack := getattr(config, part, None)) is not None:
            pattern = tuple(map(without_attention_dropout, stack.pattern))
            stacks[part] = dataclasses.replace(stack, pattern=pattern, **({"num_layers": 2} if tiny else {}))
    embed = config.embed
    if embed.position is not None:
        position = dataclasses.replace(embed.position, max_positions=max(length, embed.position.max_positions))
        embed = dataclasses.replace(embed, position=position)
    config = dataclasses.replace(config, embed=embed, **stacks)
    return config, MaskedLanguageModeling() if is_encoder else LanguageModeling(logits_chunk=256)


def without_attention_dropout(block: Any) -> Any:
    """The block whose attention drops no weights."""
    layers = {name: getattr(block, name) for name in ("attention", "cross_attention")}
    return dataclasses.replace(
        block, **{name: dataclasses.replace(layer, dropout=0.0) for name, layer in layers.items() if layer is not None}
    )


def batch_of(config: Any, length: int, *, tokens: int) -> dict[str, np.ndarray]:
    """Packed rows of random tokens for the topology of a model."""
    rng = np.random.default_rng(0)
    rows = max(1, tokens // length)
    sides = {"decoder": length} if not hasattr(config, "encoder") else {"encoder": length, "decoder": length // 4}
    if isinstance(config.head, t2t.nn.heads.MaskedLanguageModelHead):
        sides = {"encoder": length}
    batch: dict[str, np.ndarray] = {}
    for side, size in sides.items():
        batch[f"{side}_input_tokens"] = rng.integers(0, config.vocab_size, (rows, size), dtype=np.int32)
        batch[f"{side}_segment_ids"] = np.tile(segment_ids(size), (rows, 1))
    if "decoder" in sides:
        batch["decoder_target_tokens"] = np.roll(batch["decoder_input_tokens"], -1, axis=1)
        batch["decoder_loss_weights"] = (batch["decoder_segment_ids"] != 0).astype(np.float32)
        return batch
    predictions = (rows, max(1, round(0.15 * length)))
    batch["encoder_predict_positions"] = rng.integers(0, round(0.9 * length), predictions, dtype=np.int32)
    batch["encoder_predict_targets"] = rng.integers(0, config.vocab_size, predictions, dtype=np.int32)
    return batch | {"encoder_predict_weights": np.ones(predictions, np.float32)}


def segment_ids(length: int) -> np.ndarray:
    """A row of examples of these shares, and padding."""
    ends = np.round(np.cumsum(EXAMPLES) * length).astype(int)
    ids = np.searchsorted(ends, np.arange(length), side="right") + 1
    return np.where(ids > len(EXAMPLES), 0, ids).astype(np.int32)


def check(platform: str) -> None:
    """Prints how far results and gradients of each kernel are from the reference's, and ends with 1 if too far."""
    length, ids = 384, jnp.asarray(segment_ids(384))[None].repeat(2, axis=0)
    packed, marks = (
        {"reader": ids, "read": ids},
        jnp.asarray(np.arange(length) % 128 < 40, jnp.int32)[None].repeat(2, 0),
    )
    masks = {
        "everything": Mask(),
        "causal": Mask(causal=True),
        "packed": Mask(**packed),
        "causal, packed": Mask(causal=True, **packed),
        "causal, window": Mask(causal=True, window=64),
        "window, packed": Mask(window=64, **packed),
        "prefix, packed": Mask(causal=True, prefix=marks, **packed),
    }
    rng, failed = np.random.default_rng(0), []
    draw = [jnp.asarray(rng.normal(size=(2, 8, length, 64)), jnp.bfloat16) for _ in range(4)]
    scores = jnp.asarray(rng.normal(size=(1, 8, length, length)), jnp.float32)
    for kernels in candidates(platform):
        for name, mask in masks.items():
            for bias in (None, scores):
                request = choice.Request.of(draw[0], draw[1], mask, bias)
                if kernels == choice.REFERENCE or choice.refusal(kernels[0], request) is not None:
                    continue
                worst = errors(kernels[0], draw, mask, bias)
                print(
                    f"{kernels[0]:8}{name:18}{'bias' if bias is not None else '':6}"
                    + " ".join(f"{e:.1e}" for e in worst)
                )
                failed += [(kernels[0], name)] * (max(worst) > 0.03)
    if failed:
        raise SystemExit(f"too far from the reference: {failed}")


def errors(kernel: choice.Kernel, draw: list[Any], mask: Mask, bias: Any) -> list[float]:
    """Greatest differences, as parts of the greatest value: of the result, and of the gradients."""
    *arrays, direction = draw

    def reference(query: Any, key: Any, value: Any, bias: Any) -> Any:
        dense = mask.dense(length=query.shape[2], key_length=key.shape[2])
        weights = attention.attention_weights(
            attention.attention_scores(query, key, scale=0.125), mask=dense, bias=bias
        )
        return attention.weighted_values(weights.astype(value.dtype), value)

    def fused(query: Any, key: Any, value: Any, bias: Any) -> Any:
        return attend(kernel, query, key, value, mask, bias, scale=0.125)

    def both(function: Any) -> Any:
        def loss(arrays: Any) -> Any:
            out = function(*arrays)
            return jnp.sum(out.astype(jnp.float32) * direction.astype(jnp.float32)), out

        gradients, out = jax.jit(jax.grad(loss, has_aux=True))((*arrays, bias))
        return [np.asarray(x, np.float32) for x in (out, *jax.tree.leaves(gradients))]

    pairs = zip(both(fused), both(reference), strict=True)
    return [float(np.max(np.abs(got - want)) / np.max(np.abs(want))) for got, want in pairs]


if __name__ == "__main__":
    main()
