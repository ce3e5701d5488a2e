"""A training step of t2t against transformers on PyTorch: the same work, the same machine, one run.

    python -m benchmarks.train_step [--models t5-small ...] [--rounds 3] [--steps 3] [--output FILE]

    t5-small             version 1.0, batch 8, encoder 512 tokens, decoder 114
    bert-base-uncased    masked language modelling, batch 8, 128 tokens, 15 % predicted, as each library trains it: t2t
                         scores the 20 predicted positions, as BERT's own code does, transformers all 128
    bert-all-positions   the same, but t2t scores all positions too

Float32, dropout on, AdamW. Each side runs in its own process, one after the other, alternating for `--rounds` rounds; a
process compiles and warms up before it counts. Tokens are random: time does not depend on them.

Prints a table (seconds per step, tokens per second, CPU-seconds per step, peak memory, each the median of the rounds)
and the ratio transformers / t2t of the step times, pair by pair; writes the same as JSON.
"""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

WORK = {
    "t5-small": {"batch": 8, "encoder": 512, "decoder": 114},
    "bert-base-uncased": {"batch": 8, "encoder": 128, "predictions": 20},
    "bert-all-positions": {"batch": 8, "encoder": 128, "predictions": 20},
}
SIDES = ("t2t", "transformers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(WORK), choices=list(WORK))
    parser.add_argument("--rounds", type=int, default=3, help="pairs of processes per model")
    parser.add_argument("--steps", type=int, default=3, help="counted steps per process")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file to write")
    parser.add_argument("--worker", choices=SIDES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(measure(arguments.worker, arguments.models[0], arguments.steps)))
        return
    results = [compare(model, arguments.rounds, arguments.steps) for model in arguments.models]
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=2) + "\n")


def compare(model: str, rounds: int, steps: int) -> dict:
    """Runs both sides in turn and prints their medians and the ratio of each pair."""
    runs = {side: [] for side in SIDES}
    for _ in range(rounds):
        for side in SIDES:
            command = [sys.executable, "-m", "benchmarks.train_step", "--worker", side, "--models", model]
            out = subprocess.run([*command, "--steps", str(steps)], check=True, stdout=subprocess.PIPE, text=True)
            runs[side].append(json.loads(out.stdout.splitlines()[-1]))
            print(f"  {model} {side}: {runs[side][-1]['seconds']:.2f} s per step", file=sys.stderr, flush=True)
    ratios = [theirs["seconds"] / ours["seconds"] for ours, theirs in zip(*(runs[s] for s in SIDES), strict=True)]
    tokens = WORK[model]["batch"] * (WORK[model]["encoder"] + WORK[model].get("decoder", 0))
    print(f"\n{model}: {WORK[model]}, float32, dropout, AdamW")
    print(f"{'':14}{'s/step':>9}{'tokens/s':>10}{'CPU-s/step':>12}{'peak GiB':>10}")
    for side in SIDES:
        middle = {key: statistics.median(run[key] for run in runs[side]) for key in runs[side][0]}
        print(
            f"{side:14}{middle['seconds']:9.2f}{tokens / middle['seconds']:10.0f}"
            f"{middle['cpu_seconds']:12.2f}{middle['peak_bytes'] / 2**30:10.2f}"
        )
    middle = statistics.median(ratios)
    print(f"transformers / t2t: {middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f})\n")
    return {"model": model, "work": WORK[model], "runs": runs, "ratios": ratios, "ratio": middle}


def measure(side: str, model: str, steps: int) -> dict:
    """Median wall and CPU seconds of a step, and the process's peak memory in bytes."""
    step = (prepare_t2t if side == "t2t" else prepare_transformers)(model)
    for _ in range(2):
        step()
    wall, cpu = [], []
    for _ in range(steps):
        start, cpu_start = time.perf_counter(), time.process_time()
        step()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": statistics.median(wall), "cpu_seconds": statistics.median(cpu), "peak_bytes": peak}


def random_tokens(*shape: int) -> np.ndarray:
    """Ids that both vocabularies hold and that are no special tokens."""
    return np.random.default_rng(0).integers(1000, 30000, shape, dtype=np.int32)


def prepare_transformers(model: str):
    """A function that takes one training step of transformers' model."""
    import torch
    import transformers

    work = WORK[model]
    tokens = torch.from_numpy(random_tokens(work["batch"], work["encoder"])).long()
    if model == "t5-small":
        config = transformers.T5Config(
            vocab_size=32128,
            d_model=512,
            d_ff=2048,
            num_layers=6,
            num_heads=8,
            d_kv=64,
            dropout_rate=0.1,
            pad_token_id=0,
            decoder_start_token_id=0,
        )
        network = transformers.T5ForConditionalGeneration(config)
        labels = torch.from_numpy(random_tokens(work["batch"], work["decoder"])).long()
    else:
        network = transformers.BertForMaskedLM(transformers.BertConfig())
        labels = torch.full_like(tokens, -100)
        labels[:, : work["predictions"]] = tokens[:, : work["predictions"]]
    network.train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        network(input_ids=tokens, labels=labels).loss.backward()
        optimizer.step()

    return step


def prepare_t2t(model: str):
    """A function that takes one training step of t2t's model."""
    import jax

    import t2t
    from t2t import heads
    from t2t.models.base import Network
    from t2t.objectives.language_modeling import LanguageModeling
    from t2t.objectives.masked import MaskedLanguageModeling
    from t2t.train.optimizer import AdamW, Constant
    from t2t.train.state import init_state
    from t2t.train.step import make_train_step

    work = WORK[model]
    if model == "t5-small":
        network, objective = Network(t2t.preset(model)), LanguageModeling()
    else:
        bert = t2t.preset("bert-base-uncased", head=heads.MaskedLM())
        network, objective = Network(bert), MaskedLanguageModeling()
    models = {"model": network}
    optimizer = AdamW(learning_rate=Constant(peak=1e-4), weight_decay=0.01).make(
        {"model": network.shapes()}, {"model": network.logical_axes()}
    )
    state = init_state({"model": jax.jit(network.init)(jax.random.key(0))}, optimizer)
    train_step = make_train_step(objective, models, optimizer, seed=0)
    batch = jax.device_put(t2t_batch(model, work))

    def step() -> None:
        nonlocal state
        state, metrics = train_step(state, batch)
        jax.block_until_ready((state, metrics))

    return step


def t2t_batch(model: str, work: dict) -> dict[str, np.ndarray]:
    """The batch as the input pipeline makes it, segment ids and weights included."""
    tokens = random_tokens(work["batch"], work["encoder"])
    batch = {"encoder_input_tokens": tokens, "encoder_segment_ids": np.ones_like(tokens)}
    if model == "t5-small":
        targets = random_tokens(work["batch"], work["decoder"])
        return batch | {
            "decoder_input_tokens": np.pad(targets, ((0, 0), (1, 0)))[:, :-1],
            "decoder_target_tokens": targets,
            "decoder_segment_ids": np.ones_like(targets),
            "decoder_loss_weights": np.ones(targets.shape, np.float32),
        }
    if model == "bert-all-positions":
        is_predicted = np.arange(work["encoder"]) < work["predictions"]
        weights = np.tile(is_predicted.astype(np.float32), (work["batch"], 1))
        return batch | {"encoder_target_tokens": tokens, "encoder_loss_weights": weights}
    positions = np.tile(np.arange(work["predictions"], dtype=np.int32), (work["batch"], 1))
    return batch | {
        "encoder_predict_positions": positions,
        "encoder_predict_targets": np.take_along_axis(tokens, positions, axis=1),
        "encoder_predict_weights": np.ones(positions.shape, np.float32),
    }


if __name__ == "__main__":
    main()
