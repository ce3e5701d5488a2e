"""Forward and backward passes of every family against transformers on PyTorch: the same weights, one process, in turn.

    python -m benchmarks.families [PRESET ...] [--layers 2] [--batch 8] [--length 128] [--rounds 5] [--output FILE]

The models have the widths of the preset and few layers, of which the time of a step is made but for its embeddings and
scores. Float32, no dropout, no optimizer; transformers with the attention it chooses itself. The loss is the sum of the
outputs times fixed noise, so that everything has a gradient. Tokens are random: time does not depend on them.

Prints for each the median seconds of a pass on either side and the ratio transformers / t2t, pair by pair.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import tempfile
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import t2t
from t2t.hf import export
from t2t.models.base import Network

PRESETS = (
    "bert-base-uncased", "roberta-base", "distilbert-base-uncased", "albert-base-v2", "electra-base",
    "deberta-base", "deberta-v3-base", "modernbert-base", "mpnet-base", "xlm-mlm-tlm-xnli15-1024",
    "xlnet-base-cased", "gpt2", "openai-gpt", "gpt-neo-125m", "opt-125m", "bloom-560m", "pythia-160m",
    "t5-base", "t5-v1_1-base", "bart-base",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", default=PRESETS)
    parser.add_argument("--layers", type=int, default=2, help="of each stack")
    parser.add_argument("--batch", type=int, default=8, help="rows")
    parser.add_argument("--length", type=int, default=128, help="tokens of a row; of a decoder beside an encoder half")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of passes")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file to write")
    arguments = parser.parse_args()
    results = []
    print(f"{'':28}{'t2t s':>9}{'torch s':>9}  transformers / t2t")
    for name in arguments.presets or PRESETS:
        pairs = compare(name, arguments)
        ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratios = sorted(theirs / ours for ours, theirs in pairs)
        middle = statistics.median(ratios)
        print(f"{name:28}{ours:9.3f}{theirs:9.3f}  {middle:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)
        results.append({"preset": name, "pairs": pairs, "ratio": middle})
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=2) + "\n")


def compare(name: str, arguments: argparse.Namespace) -> list[tuple[float, float]]:
    """Seconds of a pass of t2t and of transformers, in turn."""
    config = shallow(t2t.preset(name), arguments.layers)
    params = jax.jit(Network(config).init)(jax.random.key(0))
    batch = make_batch(config, arguments.batch, arguments.length)
    steps = prepare_t2t(config, params, batch), prepare_transformers(config, params, batch)
    for step in steps:
        step()
        step()
    return [tuple(timed(step) for step in steps) for _ in range(arguments.rounds)]


def timed(step: Any) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def shallow(config: Any, layers: int) -> Any:
    """The model with fewer layers in each stack."""
    changed = {}
    for name in ("stack", "encoder", "decoder"):
        part = getattr(config, name, None)
        if part is not None and hasattr(part, "num_layers"):
            fixed = len(part.prefix) + len(part.suffix)
            number = fixed + max(1, (layers - fixed) // len(part.pattern)) * len(part.pattern)
            changed[name] = dataclasses.replace(part, num_layers=number)
        elif part is not None and hasattr(part, "stack"):
            changed[name] = shallow(part, layers)
    return dataclasses.replace(config, **changed)


def make_batch(config: Any, rows: int, length: int) -> dict[str, np.ndarray]:
    """Random tokens without padding for each side that the model has."""
    rng = np.random.default_rng(0)
    sides = [side for side in ("encoder", "decoder") if f"{side}_input_tokens" in config.example()]
    batch = {}
    for side in sides:
        shape = (rows, length // 2 if side == "decoder" and len(sides) == 2 else length)
        batch[f"{side}_input_tokens"] = rng.integers(10, config.vocab_size - 1000, shape, dtype=np.int32)
        batch[f"{side}_segment_ids"] = np.ones(shape, np.int32)
    return batch


def prepare_t2t(config: Any, params: Any, batch: dict[str, np.ndarray]) -> Any:
    """A function that computes the gradients of our model."""
    network = Network(config)

    def outputs(params: Any) -> jax.Array:
        output = network.apply(params, batch)
        return output.last_hidden if output.logits is None else output.logits

    noise = np.random.default_rng(1).normal(size=jax.eval_shape(outputs, params).shape).astype(np.float32)
    gradients = jax.jit(jax.grad(lambda params, noise: (outputs(params) * noise).sum()))
    placed = jnp.asarray(noise)
    return lambda: jax.block_until_ready(gradients(params, placed))


def prepare_transformers(config: Any, params: Any, batch: dict[str, np.ndarray]) -> Any:
    """A function that computes the gradients of transformers' model of the same weights."""
    import torch
    import transformers

    with tempfile.TemporaryDirectory() as directory:
        export.export(directory, config=config, params=params)
        (architecture,) = transformers.AutoConfig.from_pretrained(directory).architectures
        model = getattr(transformers, architecture).from_pretrained(directory).eval()
    side = "encoder" if "encoder_input_tokens" in batch else "decoder"
    given = {"input_ids": batch[f"{side}_input_tokens"], "attention_mask": batch[f"{side}_segment_ids"]}
    if side == "encoder" and "decoder_input_tokens" in batch:
        given["decoder_input_ids"] = batch["decoder_input_tokens"]
    given = {name: torch.tensor(array, dtype=torch.long) for name, array in given.items()}

    def outputs() -> torch.Tensor:
        result = model(**given, return_dict=True)
        found = next(result[name] for name in ("logits", "prediction_logits", "last_hidden_state") if name in result)
        return found

    noise = torch.randn(outputs().shape)

    def step() -> None:
        model.zero_grad()
        (outputs() * noise).sum().backward()

    return step


if __name__ == "__main__":
    main()
