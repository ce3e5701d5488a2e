"""How much of this machine's matrix-product peak a training step of t2t reaches (model FLOP utilisation, MFU).

    python -m benchmarks.mfu_cpu [--models t5-small ...] [--steps 3] [--output FILE]

    t5-small             version 1.0, batch 8, encoder 512 tokens, decoder 114
    bert-base-uncased    masked language modelling, batch 8, 128 tokens, 20 predicted positions a row
    gpt2                 batch 4, 256 tokens

Float32, dropout on, AdamW. The peak is that of products of 2048 x 2048, measured right before and right after the steps
of each model, the best of them; operations are counted by formula (t2t/train/flops.py): matrix products alone, half of
a causal decoder's scores, nothing for what is computed again. "of CPU time" compares operations per CPU-second of the
step with those of the products: what other programs take on a busy machine is missing on both sides.

Prints a table and writes the same as JSON.
"""

import argparse
import json
import os
import pathlib
import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.train_step import WORK as TRAIN_STEP_WORK
from benchmarks.train_step import random_tokens, t2t_batch

WORK = {
    "t5-small": TRAIN_STEP_WORK["t5-small"],
    "bert-base-uncased": TRAIN_STEP_WORK["bert-base-uncased"],
    "gpt2": {"batch": 4, "decoder": 256},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(WORK), choices=list(WORK))
    parser.add_argument("--steps", type=int, default=3, help="counted steps per model")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file to write")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} CPUs, load {load:.1f} before this run")
    print(
        f"{'':20}{'s/step':>8}{'tokens/s':>10}{'GFLOP/step':>12}{'GFLOP/s':>9}{'peak':>7}{'MFU':>8}{'of CPU time':>13}"
    )
    results = [measure(model, arguments.steps) for model in arguments.models]
    if arguments.output:
        arguments.output.write_text(json.dumps({"load": load, "models": results}, indent=2) + "\n")


def measure(model: str, steps: int) -> dict:
    """The figures of one model, printed as a line."""
    step, operations = prepare(model)
    step()
    before = peaks()
    wall, cpu = zip(*(timed(step) for _ in range(steps)), strict=True)
    peak, cpu_peak = (max(pair) for pair in zip(before, peaks(), strict=True))
    seconds, cpu_seconds = statistics.median(wall), statistics.median(cpu)
    tokens = WORK[model]["batch"] * (WORK[model].get("encoder", 0) + WORK[model].get("decoder", 0))
    found = {
        "model": model,
        "work": WORK[model],
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "tokens_per_second": tokens / seconds,
        "flops_per_step": operations,
        "peak_flops": peak,
        "peak_flops_per_cpu_second": cpu_peak,
        "mfu": operations / seconds / peak,
        "mfu_of_cpu_time": operations / cpu_seconds / cpu_peak,
    }
    print(
        f"{model:20}{seconds:8.2f}{found['tokens_per_second']:10.0f}{operations / 1e9:12.0f}"
        f"{operations / seconds / 1e9:9.0f}{peak / 1e9:7.0f}{found['mfu']:8.1%}{found['mfu_of_cpu_time']:13.1%}",
        flush=True,
    )
    return found


def timed(step: Callable[[], None]) -> tuple[float, float]:
    """Wall seconds and CPU-seconds of a call."""
    start, cpu_start = time.perf_counter(), time.process_time()
    step()
    return time.perf_counter() - start, time.process_time() - cpu_start


def peaks(*, size: int = 2048, repeats: int = 5) -> tuple[float, float]:
    """Operations per second, and per CPU-second, of float32 matrix products here and now."""
    import jax
    import jax.numpy as jnp

    x = jnp.ones((size, size), jnp.float32)
    product = jax.jit(jnp.matmul)
    product(x, x).block_until_ready()
    wall, cpu = zip(*(timed(lambda: product(x, x).block_until_ready()) for _ in range(repeats)), strict=True)
    return 2 * size**3 / min(wall), 2 * size**3 / min(cpu)


def prepare(model: str):
    """A function that takes one training step, and the operations of one."""
    import jax

    import t2t
    from t2t import heads
    from t2t.models.base import Network
    from t2t.objectives.language_modeling import LanguageModeling
    from t2t.objectives.masked import MaskedLanguageModeling
    from t2t.train import flops
    from t2t.train.optimizer import AdamW, Constant
    from t2t.train.state import init_state
    from t2t.train.step import make_train_step

    is_encoder = model == "bert-base-uncased"
    config = t2t.preset(model, head=heads.MaskedLM()) if is_encoder else t2t.preset(model)
    network, objective = Network(config), MaskedLanguageModeling() if is_encoder else LanguageModeling()
    models = {"model": network}
    optimizer = AdamW(learning_rate=Constant(peak=1e-4), weight_decay=0.01).make(
        {"model": network.shapes()}, {"model": network.logical_axes()}
    )
    state = init_state({"model": jax.jit(network.init)(jax.random.key(0))}, optimizer)
    train_step = make_train_step(objective, models, optimizer, seed=0)
    batch = make_batch(model)
    operations = flops.step_flops(network.shapes(), batch, applications=flops.applications(config))
    placed = jax.device_put(batch)

    def step() -> None:
        nonlocal state
        state, metrics = train_step(state, placed)
        jax.block_until_ready((state, metrics))

    return step, operations


def make_batch(model: str) -> dict[str, np.ndarray]:
    """The batch as the input pipeline makes it."""
    work = WORK[model]
    if model != "gpt2":
        return t2t_batch(model, work)
    tokens = random_tokens(work["batch"], work["decoder"] + 1)
    return {
        "decoder_input_tokens": tokens[:, :-1],
        "decoder_target_tokens": tokens[:, 1:],
        "decoder_segment_ids": np.ones((work["batch"], work["decoder"]), np.int32),
        "decoder_loss_weights": np.ones((work["batch"], work["decoder"]), np.float32),
    }


if __name__ == "__main__":
    main()
