"""What a run or an evaluation would be: parameters, memory, the first batch, the compiled step (`--dry-run`)."""

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from t2t import sharding
from t2t.config import Experiment
from t2t.train import beginning, build, evaluate, progress, sources, tasks, trees
from t2t.train.build import Pieces
from t2t.train.run_directory import RunDirectory
from t2t.train.step import make_eval_step, make_train_step
from t2t.types import Batch
from t2t.vocabulary import Vocabulary

SHOWN_TOKENS = 60
"""Tokens of the first row that are shown as text."""


def training(experiment: Experiment, workdir: str | os.PathLike[str], *, fallback: bool = False) -> Iterator[str]:
    """The preview of `t2t.train.loop.train` line by line; reads data, compiles the step, allocates no parameter.

    Raises:
        UsageError: whatever would stop the run before its first step.
        DamagedCheckpointError: the checkpoint from which it would go on is not as it was written.
    """
    run = RunDirectory(workdir)
    with beginning.open_store(run, experiment) as store:
        run.check_resumable(experiment, has_checkpoint=store.latest() is not None)
        last = None if store.latest() is None else store.choose(fallback=fallback)
    tasks.register(experiment)
    tasks.check_trained(experiment)
    source = beginning.open_init(experiment) if last is None else None
    vocabulary = beginning.choose_vocabulary(experiment, source, kept=beginning.kept_vocabulary(store, last))
    pieces = build.build(experiment, vocabulary)
    tasks.check_trained(experiment, converter=pieces.converter)
    origin = "fresh parameters" if source is None else f"the parameters of {source.path} ({source.kind})"
    yield f"{run.path} would begin with {origin}" if last is None else f"would go on from {store.path(last)}"
    yield build.summary(pieces)
    yield ""
    yield from parameters(pieces)
    yield ""
    evaluated = tasks.to_evaluate(experiment)
    tasks.check_evaluated(evaluated, pieces.converter)
    tasks.check_best(experiment, list(evaluated))
    with (
        progress.Progress(Path(os.devnull), total=experiment.train.steps) as report,
        beginning.read_data(pieces, tasks.to_train(experiment), report)(None) as batches,
    ):
        batch = next(batches)
    yield from first_batch(batch, vocabulary)
    evaluator = evaluate.Evaluator(pieces, evaluated)
    evaluator.read()
    yield from (f"{name} {tasks.SPLIT}: {evaluator.number(name):,} examples to evaluate" for name in evaluated)
    yield ""
    yield from memory(pieces, batch)


def evaluation(
    experiment: Experiment,
    source: sources.Source,
    vocabulary: Vocabulary,
    *,
    names: Sequence[str] | None,
    split: str,
) -> Iterator[str]:
    """The preview of an evaluation of the parameters of `source`, line by line; reads the data and no parameter.

    Raises:
        UsageError: whatever would stop the evaluation before its first batch.
    """
    pieces = build.build(experiment, vocabulary)
    tasks.register(experiment)
    wanted = tasks.to_evaluate(experiment, names, split=split)
    tasks.check_evaluated(wanted, pieces.converter)
    yield f"would evaluate the parameters of {source.path} ({source.kind})"
    yield build.summary(pieces)
    yield ""
    yield from parameters(pieces)
    evaluator = evaluate.Evaluator(pieces, wanted, split=split)
    for name in wanted:
        yield ""
        yield f"{name} {split}: {evaluator.number(name):,} examples"
        batch = next(iter(evaluator.batches(name)))
        yield from first_batch(batch, vocabulary)
        compiled = _compile(
            make_eval_step(pieces.experiment.objective, pieces.models), pieces.state.params, pieces, batch
        )
        yield from _by_xla(compiled)


def parameters(pieces: Pieces) -> Iterator[str]:
    """A line for each parameter: path, shape, how it is split."""
    leaves = trees.by_path(pieces.state.params)
    width = max(map(len, leaves))
    yield f"{'parameter':<{width}}  {'number':>13}  shape, split over the mesh"
    for path, leaf in leaves.items():
        split = "" if leaf.sharding.is_fully_replicated else f"  {tuple(leaf.sharding.spec)}"
        yield f"{path:<{width}}  {math.prod(leaf.shape):>13,}  {list(leaf.shape)}{split}"
    yield f"{'total':<{width}}  {sum(math.prod(leaf.shape) for leaf in leaves.values()):>13,}"


def first_batch(batch: Batch, vocabulary: Vocabulary) -> Iterator[str]:
    """The arrays of a batch and the text of its first row."""
    yield "first batch (of this process)"
    for name, value in batch.items():
        filled = f"  {np.count_nonzero(value) / value.size:.0%} real" if name.endswith("_segment_ids") else ""
        yield f"  {name:<28} {value.dtype} {list(value.shape)}{filled}"
    for name, value in batch.items():
        if name.endswith(("_input_tokens", "_target_tokens")):
            side = name.partition("_")[0]
            row = value[0][np.asarray(batch[f"{side}_segment_ids"])[0] == 1][:SHOWN_TOKENS]
            pieces = vocabulary.pieces()
            text = " ".join(pieces[token] if token < len(pieces) else f"<{token}>" for token in row)
            yield f"  {name}, row 0, example 1: {text}"


def memory(pieces: Pieces, batch: Batch) -> Iterator[str]:
    """Bytes on each device: of the state by its shardings, of the rest by compiling the step."""
    held = {
        "parameters": _bytes_on_device(pieces.state.params),
        "gradients": _bytes_on_device(pieces.state.params),
        "optimizer": _bytes_on_device(pieces.state.opt_state),
    }
    yield "memory on each device"
    for name, size in held.items():
        yield f"  {name:<22} {_readable(size)}"
    started = time.monotonic()
    yield from _by_xla(compile_step(pieces, batch))
    kept = f" but examples in {beginning.CACHE}" if os.environ.get(beginning.CACHE) else ""
    yield f"the step compiles in {time.monotonic() - started:.1f} s; nothing was trained or written{kept}"


def compile_step(pieces: Pieces, batch: Mapping[str, Any]) -> jax.stages.Compiled:
    """The compiled training step for batches like this one."""
    experiment = pieces.experiment
    step = make_train_step(
        experiment.objective,
        pieces.models,
        pieces.optimizer,
        seed=experiment.seed,
        micro_batches=experiment.train.micro_batches,
        rate=experiment.optimizer.learning_rate.rate(experiment.train.steps),
        state_shardings=pieces.shardings,
        policy=experiment.faults,
    )
    return _compile(step, pieces.state, pieces, batch)


def _compile(step: Any, state: Any, pieces: Pieces, batch: Mapping[str, Any]) -> jax.stages.Compiled:
    """A jitted function of a state and a global batch, of which `batch` is this process's part."""
    with sharding.use_mesh(pieces.mesh):
        return step.lower(state, sharding.batch_shapes(batch, pieces.mesh)).compile()


def _by_xla(compiled: jax.stages.Compiled) -> Iterator[str]:
    analysis = compiled.memory_analysis()
    if analysis is not None:
        arguments = analysis.argument_size_in_bytes + analysis.output_size_in_bytes - analysis.alias_size_in_bytes
        yield f"  {'whole step, by XLA':<22} {_readable(arguments + analysis.temp_size_in_bytes)}"
        yield f"  {'  of it temporary':<22} {_readable(analysis.temp_size_in_bytes)} (gradients, activations)"


def _bytes_on_device(tree: Any) -> int:
    return sum(
        math.prod(leaf.sharding.shard_shape(leaf.shape)) * np.dtype(leaf.dtype).itemsize
        for leaf in jax.tree.leaves(tree)
    )


def _readable(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB" if size < 2**30 else f"{size / 2**30:,.2f} GiB"
