"""How long a bert-base-sized directory takes to open: t2t.load beside transformers' from_pretrained.

    python -m benchmarks.load [--preset bert-base-uncased] [--rounds 3]

The directory is an export of a freshly drawn model with the head of masked words, in float32, without a vocabulary.
Each side opens it in a process of its own, alternating for `--rounds` rounds; the time counts from the call to the last
parameter, imports of the libraries apart, which are printed as well. The files are in the system's cache: it is the
work that is measured, not the disk.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SIDES = ("t2t", "transformers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="bert-base-uncased", help="an encoder with a head of masked words")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of processes")
    parser.add_argument("--worker", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps((open_with_t2t if arguments.worker == "t2t" else open_with_transformers)(arguments.directory)))
        return
    with tempfile.TemporaryDirectory() as directory:
        write(pathlib.Path(directory), arguments.preset)
        compare(directory, arguments.preset, arguments.rounds)


def write(directory: pathlib.Path, preset: str) -> None:
    import t2t

    config = t2t.preset(preset, head=t2t.heads.MaskedLM())
    print(f"{preset}: {t2t.count_parameters(config):,} parameters, float32", flush=True)
    t2t.init(config).export(directory)


def compare(directory: str, preset: str, rounds: int) -> None:
    """Runs both sides in turn and prints the median seconds of each."""
    runs = {side: [] for side in SIDES}
    for _ in range(rounds):
        for side in SIDES:
            command = [sys.executable, "-m", "benchmarks.load", "--worker", side, "--directory", directory]
            done = subprocess.run([*command, "--preset", preset], check=True, stdout=subprocess.PIPE, text=True)
            runs[side].append(json.loads(done.stdout.splitlines()[-1]))
    print(f"{'':14}{'seconds to open':>16}{'to import':>12}")
    for side in SIDES:
        middle = {key: statistics.median(run[key] for run in runs[side]) for key in ("open", "import")}
        print(f"{side:14}{middle['open']:16.2f}{middle['import']:12.2f}")


def open_with_t2t(directory: pathlib.Path) -> dict[str, float]:
    start = time.perf_counter()
    import jax

    import t2t

    load = t2t.load
    middle = time.perf_counter()
    model = load(directory)
    jax.block_until_ready(model.params)
    return {"import": middle - start, "open": time.perf_counter() - middle}


def open_with_transformers(directory: pathlib.Path) -> dict[str, float]:
    start = time.perf_counter()
    import transformers

    load = transformers.AutoModelForMaskedLM.from_pretrained
    middle = time.perf_counter()
    load(directory)
    return {"import": middle - start, "open": time.perf_counter() - middle}


if __name__ == "__main__":
    main()
