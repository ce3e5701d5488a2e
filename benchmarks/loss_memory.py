"""What a loss in chunks saves: memory and time of a gradient with all logits at once, and with few positions at a time.

    python -m benchmarks.loss_memory [--models gpt2 ...] [--chunk 64] [--rounds 5] [--output FILE]

    t5-small     vocabulary 32,128; encoder 512 tokens, decoder 114
    gpt2         vocabulary 50,257; 1,024 tokens
    mt5-small    vocabulary 250,112; encoder 512 tokens, decoder 114

Memory is what XLA plans for the compiled program besides its arguments and results, for the whole model and 8 rows; the
program is not run. Times are those of models with 2 layers a stack and 2 rows, so that the vocabulary weighs as much as
in a larger model: both programs in turn, `--rounds` times, and the median of the ratios. Float32, no dropout.
`--tiny` runs everything at a size that takes seconds, to see that it works.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import t2t
from t2t.models.base import Network
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.step import accumulate_gradients

WORK = {
    "t5-small": {"encoder": 512, "decoder": 114},
    "gpt2": {"decoder": 1024},
    "mt5-small": {"encoder": 512, "decoder": 114},
}
ROWS, TIMED_ROWS, TIMED_LAYERS = 8, 2, 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(WORK), choices=list(WORK))
    parser.add_argument("--chunk", type=int, default=64, help="positions of each row whose logits exist at a time")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of timed gradients")
    parser.add_argument("--tiny", action="store_true", help="8 tokens, 2 layers, chunks of 2")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file to write")
    arguments = parser.parse_args()
    chunk = 2 if arguments.tiny else arguments.chunk
    print(f"chunks of {chunk} positions\n{'':12}{'vocabulary':>11}{'logits':>9}{'whole':>9}{'chunks':>9}{'time':>7}")
    results = []
    for name in arguments.models:
        results.append(compare(name, chunk=chunk, rounds=arguments.rounds, tiny=arguments.tiny))
        print(line(results[-1]), flush=True)
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=2) + "\n")


def compare(name: str, *, chunk: int, rounds: int, tiny: bool) -> dict[str, Any]:
    """Memory of both programs in bytes, and the ratio of their times (chunks / whole) in each round."""
    config = t2t.preset(name)
    lengths = dict.fromkeys(WORK[name], 8) if tiny else WORK[name]
    shallow = with_layers(config, TIMED_LAYERS)
    memory = {
        kind: planned_bytes(shallow if tiny else config, lengths, chunk=size)
        for kind, size in {"whole": None, "chunks": chunk}.items()
    }
    return {
        "model": name,
        "vocabulary": config.vocab_size,
        "logits_bytes": 4 * ROWS * lengths["decoder"] * config.vocab_size,
        "bytes": memory,
        "time_ratios": time_ratios(shallow, lengths, chunk=chunk, rounds=rounds),
    }


def line(result: dict[str, Any]) -> str:
    """A row of the table: MiB, and the median of the ratios with their range."""
    sizes = [result["logits_bytes"], result["bytes"]["whole"], result["bytes"]["chunks"]]
    ratios = result["time_ratios"]
    return (
        f"{result['model']:12}{result['vocabulary']:11,}" + "".join(f"{size / 2**20:9,.0f}" for size in sizes)
        + f"{statistics.median(ratios):7.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    )  # fmt: skip


def with_layers(config: Any, num_layers: int) -> Any:
    """The model with so many layers in each stack."""
    names = [name for name in ("stack", "encoder", "decoder") if hasattr(config, name)]
    stacks = {name: dataclasses.replace(getattr(config, name), num_layers=num_layers) for name in names}
    return dataclasses.replace(config, **stacks)


def gradient_of(config: Any, *, chunk: int | None) -> Any:
    """The compiled-to-be gradient of a language model's loss."""
    network, objective = Network(config), LanguageModeling(z_loss=1e-4, logits_chunk=chunk)

    @jax.jit
    def gradient(params: Any, batch: Any) -> Any:
        state = {"frozen": {}, "key": None, "carry": ()}
        return accumulate_gradients(objective, {"model": network}, {"model": params}, batch, **state)[:2]

    return gradient


def batch_of(config: Any, lengths: dict[str, int], *, rows: int) -> dict[str, np.ndarray]:
    """Random tokens without padding."""
    rng = np.random.default_rng(0)
    batch = {"decoder_loss_weights": np.ones((rows, lengths["decoder"]), np.float32)}
    for side, length in lengths.items():
        batch[f"{side}_segment_ids"] = np.ones((rows, length), np.int32)
        for kind in ("input_tokens", *(("target_tokens",) if side == "decoder" else ())):
            batch[f"{side}_{kind}"] = rng.integers(0, config.vocab_size, (rows, length), dtype=np.int32)
    return batch


def planned_bytes(config: Any, lengths: dict[str, int], *, chunk: int | None) -> int:
    """Memory of the compiled gradient besides its arguments and results."""
    batch = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, batch_of(config, lengths, rows=ROWS)))
    compiled = gradient_of(config, chunk=chunk).lower(Network(config).shapes(), batch).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def time_ratios(config: Any, lengths: dict[str, int], *, chunk: int, rounds: int) -> list[float]:
    """Time in chunks / time with all logits, round by round."""
    params = jax.jit(Network(config).init)(jax.random.key(0))
    batch = batch_of(config, lengths, rows=TIMED_ROWS)
    programs = [gradient_of(config, chunk=chunk), gradient_of(config, chunk=None)]
    for program in programs:
        jax.block_until_ready(program(params, batch))
    return [seconds(programs[0], params, batch) / seconds(programs[1], params, batch) for _ in range(rounds)]


def seconds(program: Any, params: Any, batch: Any) -> float:
    """Of one call."""
    start = time.perf_counter()
    jax.block_until_ready(program(params, batch))
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
