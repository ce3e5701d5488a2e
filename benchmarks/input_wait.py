"""How long a training step waits for its data, beside how long it takes: batches are made ahead while it computes.

    python -m benchmarks.input_wait [CONFIG ...] [--steps 60] [--output FILE]

Runs the steps of a config (quickstart if none is named) as `t2t train` does, with its batches, made ahead by a thread,
and its asynchronous dispatch, but writes nothing. Waiting is the time that the loop takes to get the next batch. The
first steps, which compile, are not counted.
"""

import argparse
import collections
import json
import pathlib
import time

import jax

from t2t import finding, sharding

from t2t.data import pipeline, prefetch  # isort: skip - sets up TensorFlow
from t2t.train import beginning, build, initialize, loop, tasks
from t2t.train.step import make_train_step

UNCOUNTED = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configs", nargs="*", default=["quickstart"], metavar="CONFIG")
    parser.add_argument("--steps", type=int, default=60, help="steps that are counted")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file to write")
    arguments = parser.parse_args()
    results = {}
    print(f"{'':28}{'s/step':>9}{'waiting':>10}{'share':>9}{'to make a batch':>17}")
    for name in arguments.configs:
        found = results[name] = measure(name, arguments.steps)
        print(
            f"{name:28}{found['seconds']:9.4f}{found['waiting']:10.6f}{found['share']:9.3%}{found['making']:17.4f}",
            flush=True,
        )
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=2) + "\n")


def measure(name: str, steps: int) -> dict[str, float]:
    """Seconds of a step, of its waiting, the share of the latter, and the CPU-seconds that making a batch takes."""
    experiment, _, _ = finding.load_config(name)
    tasks.register(experiment)
    pieces = build.build(experiment, beginning.choose_vocabulary(experiment, None, kept=None))
    step = make_train_step(experiment.objective, pieces.models, pieces.optimizer, seed=experiment.seed)
    state = initialize.make_state(initialize.fresh_params(pieces), pieces)
    lanes = open_lanes(pieces)
    making = time_making(lanes)
    in_flight: collections.deque = collections.deque()
    waiting = 0.0
    with prefetch.Prefetch(lanes) as batches:
        for number in range(UNCOUNTED + steps):
            if number == UNCOUNTED:
                jax.block_until_ready(state)
                begin, waiting = time.perf_counter(), 0.0
            asked = time.perf_counter()
            batch = next(batches)
            waiting += time.perf_counter() - asked
            with sharding.use_mesh(pieces.mesh):
                state, metrics = step(state, sharding.shard_batch(batch, pieces.mesh))
            in_flight.append(metrics)
            if len(in_flight) > loop.AHEAD:
                jax.block_until_ready(in_flight.popleft())
        jax.block_until_ready(state)
        seconds = time.perf_counter() - begin
    return {
        "seconds": seconds / steps,
        "waiting": waiting / steps,
        "share": waiting / seconds,
        "making": making,
    }


def open_lanes(pieces: build.Pieces) -> pipeline.TrainPipeline:
    """The batches of a run."""
    experiment = pieces.experiment
    stream = pipeline.load_stream(
        tasks.to_train(experiment), vocabulary=pieces.vocabulary, converter=pieces.converter, seed=experiment.seed
    )
    data = experiment.data
    return pipeline.TrainPipeline(stream, rows=data.batch_size, packing=data.packing, open_rows=data.open_rows)


def time_making(lanes: pipeline.TrainPipeline, number: int = 50) -> float:
    """CPU-seconds of a batch while nothing else computes."""
    next(lanes)
    begin = time.process_time()
    for _ in range(number):
        next(lanes)
    return (time.process_time() - begin) / number


if __name__ == "__main__":
    main()
