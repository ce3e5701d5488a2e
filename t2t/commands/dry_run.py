"""What `t2t train CONFIG --dry-run` shows: everything up to the first step, and the memory the step would take."""

import math
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from t2t import config as config_lib
from t2t import sharding
from t2t.config import Experiment
from t2t.train import beginning, build, flops, tasks
from t2t.train.build import Pieces
from t2t.train.progress import Progress
from t2t.train.step import make_train_step
from t2t.types import Batch
from t2t.vocabulary import Vocabulary

MAX_TEXT = 300  # characters shown of each side of the first row


def show(experiment: Experiment, workdir: pathlib.Path) -> None:
    """Print config, parameters, memory and the first batch; compile the step, run none, write nothing.

    Raises:
        UsageError: The run could not start.
    """
    with Progress(pathlib.Path(os.devnull), total=experiment.train.steps) as report:
        report.phase("preparing the vocabulary")
        kept = workdir / "vocabulary"
        source = beginning.open_init(experiment)
        vocabulary = beginning.choose_vocabulary(experiment, source, kept=kept if kept.is_dir() else None)
        report.phase("building the model")
        pieces = build.build(experiment, vocabulary)
        tasks.register(experiment)
        tasks.check_best(experiment, list(tasks.to_evaluate(experiment)))
        for path, value in config_lib.flatten(experiment).items():
            report.say(f"{path or 'config':<52}{value}")
        report.say("")
        for line in parameter_lines(pieces):
            report.say(line)
        with beginning.open_batches(pieces, tasks.to_train(experiment), report, position=None) as batches:
            batch = next(batches)
        report.say("")
        for line in batch_lines(batch, vocabulary):
            report.say(line)
        report.phase("compiling the training step")
        report.say("")
        for line in memory_lines(pieces, batch):
            report.say(line)
    print(f"nothing was trained or written; without --dry-run this would train in {workdir}")


def parameter_lines(pieces: Pieces) -> Iterator[str]:
    """Shape and logical axes of every parameter, and their number."""
    for role, network in pieces.models.items():
        shapes = jax.tree_util.tree_flatten_with_path(network.shapes())[0]
        axes = dict(_by_path(network.logical_axes(), is_leaf=lambda node: isinstance(node, tuple)))
        for path, leaf in shapes:
            name = _name(path)
            dimensions = " x ".join(f"{axis}={size}" for axis, size in zip(axes[name], leaf.shape, strict=True))
            yield f"{name:<52}{dimensions}"
        yield f"{role}: {sum(math.prod(leaf.shape) for _, leaf in shapes):,} parameters"


def batch_lines(batch: Batch, vocabulary: Vocabulary) -> Iterator[str]:
    """Shape of every array of the first batch, and the text of its first row."""
    for name, value in batch.items():
        yield f"{name:<32}{value.dtype.name:<8} {' x '.join(map(str, value.shape))}"
    for side in ("encoder_input", "decoder_input", "decoder_target"):
        tokens = batch.get(f"{side}_tokens")
        if tokens is None:
            continue
        segments = np.asarray(batch[f"{side.partition('_')[0]}_segment_ids"][0])
        row = np.asarray(tokens[0])
        examples = [row[segments == segment] for segment in range(1, int(segments.max(initial=0)) + 1)]
        text = " | ".join(_show(vocabulary, example) for example in examples)
        yield f"first row, {side}: {text[:MAX_TEXT]}{' ...' if len(text) > MAX_TEXT else ''}"
    for side in ("encoder", "decoder"):
        if f"{side}_segment_ids" in batch:
            used = float(np.mean(np.asarray(batch[f"{side}_segment_ids"]) > 0))
            yield f"{side}: {used:.0%} of the positions hold tokens"


def _show(vocabulary: Vocabulary, tokens: np.ndarray) -> str:
    pieces = vocabulary.pieces()
    return "".join(pieces[token] if token < len(pieces) else "?" for token in tokens).replace("\u2581", " ")


def memory_lines(pieces: Pieces, batch: Batch) -> Iterator[str]:
    """Bytes of the state, in all and on the fullest device, and what XLA needs for a step."""
    for name, tree in (("parameters", pieces.state.params), ("optimizer state", pieces.state.opt_state)):
        leaves = jax.tree.leaves(tree)
        total = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)
        here = sum(math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize for leaf in leaves)
        yield f"{name:<20}{_bytes(total)} in all, {_bytes(here)} on each device"
    experiment = pieces.experiment
    where = sharding.batch_sharding(pieces.mesh)
    rows = {
        name: jax.ShapeDtypeStruct((experiment.data.batch_size, *value.shape[1:]), value.dtype, sharding=where)
        for name, value in batch.items()
        if name not in sharding.HOST_KEYS
    }
    step = make_train_step(
        experiment.objective,
        pieces.models,
        pieces.optimizer,
        seed=experiment.seed,
        micro_batches=experiment.train.micro_batches,
        rate=experiment.optimizer.learning_rate.rate(experiment.train.steps),
        state_shardings=pieces.shardings,
    )
    with sharding.use_mesh(pieces.mesh):
        analysis = step.lower(pieces.state, rows).compile().memory_analysis()
    if analysis is not None:
        peak = getattr(analysis, "peak_memory_in_bytes", 0) or analysis.temp_size_in_bytes
        yield f"{'a step':<20}{_bytes(peak)} at its peak on each device, by XLA's count"
    operations = sum(flops.step_flops(tree, rows) for tree in pieces.state.params.values())
    yield f"{'':<20}{operations:.3g} floating-point operations over all devices"


def _by_path(tree: Mapping[str, Any], *, is_leaf: Any = None) -> Iterator[tuple[str, Any]]:
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_leaf)[0]:
        yield _name(path), leaf


def _name(path: tuple[Any, ...]) -> str:
    return "/".join(str(part.key) for part in path)


def _bytes(number: float) -> str:
    units = ["B", "kB", "MB", "GB", "TB"]
    while number >= 1000 and len(units) > 1:
        number /= 1000
        units.pop(0)
    return f"{number:.3g} {units[0]}"
