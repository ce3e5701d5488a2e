"""The run as one story: mesh, data, state, steps, evaluations, saves.

How a batch travels, in five files:

1. `tasks/<name>.py`: source, tokenise, corrupt, features.
2. `t2t/data/pipeline.py`: mixture -> feature converter -> packed, sharded, resumable global batches.
3. `t2t/train/loop.py`: this file.
4. `t2t/train/step.py`: value_and_grad, micro-batches, update, metrics. Small and pure.
5. `t2t/objectives/<kind>.py`: which model call, which loss.

A run that was killed and started again gives, on the same mesh, bit for bit the metrics of one that was not: a
checkpoint holds the state, where the data stood, and the sums of the metrics since the last log line.
"""

import collections
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from t2t import sharding
from t2t.config import Experiment
from t2t.data.corpora import MissingFileError
from t2t.train import (
    beginning,
    build,
    checkpoint,
    evaluate,
    processes,
    progress,
    record,
    run_directory,
    signals,
    tasks,
)
from t2t.train.interval import Interval, NonFiniteError
from t2t.train.state import TrainState
from t2t.train.step import make_train_step

AHEAD = 2
"""Steps the host may be ahead of the devices: enough to keep them busy, few enough to stop soon when asked to."""


def train(
    experiment: Experiment,
    workdir: str | os.PathLike[str],
    *,
    recipe: Path | None = None,
    command: Sequence[str] | None = None,
    fallback: bool = False,
) -> TrainState:
    """Trains in a directory, from its last checkpoint if it has one.

    Args:
        experiment: what to train.
        workdir: directory of the run.
        recipe: the config file, kept in the run.
        command: how the run was started, kept in the run; None is the command line of the process.
        fallback: whether to go on from an older checkpoint when the newest is damaged.

    Returns:
        The state after the last step.

    Raises:
        UsageError: the experiment cannot work, or differs from the one the run began with.
        CheckpointError: a checkpoint cannot be read or written.
        RunError: the loss became NaN, the data failed, or a file could not be written.
        Interrupted: SIGTERM or Ctrl-C; the state is saved.
    """
    run = run_directory.RunDirectory(workdir)
    with (
        run.locked(),
        progress.Progress(run.log, total=experiment.train.steps) as report,
        beginning.open_store(run, experiment) as store,
    ):
        store.clean()
        processes.wait_for_all("checkpoints are in their places")
        run.check_resumable(experiment, has_checkpoint=store.latest() is not None)
        about = run_directory.describe(experiment, command=command)
        try:
            return _train(experiment, run, store, report, about=about, recipe=recipe, fallback=fallback)
        except MissingFileError as error:  # files that were good when the run began may come back
            if store.latest() is None:
                raise
            raise beginning.explain(error, store) from error
        except (NonFiniteError, beginning.DataError, OSError) as error:
            raise beginning.explain(error, store) from error


def _train(  # noqa: PLR0915 - the story is told in one piece
    experiment: Experiment,
    run: run_directory.RunDirectory,
    store: checkpoint.CheckpointStore,
    report: progress.Progress,
    *,
    about: dict[str, Any],
    recipe: Path | None,
    fallback: bool,
) -> TrainState:
    # The pieces: vocabulary, mesh, models, optimizer, tasks. What cannot work fails here, before anything is written.
    report.phase("importing tasks")
    tasks.register(experiment)
    tasks.check_trained(experiment)
    report.phase("preparing the vocabulary")
    last = None if store.latest() is None else store.choose(fallback=fallback)
    source = beginning.open_init(experiment) if last is None else None
    vocabulary = beginning.choose_vocabulary(experiment, source, kept=beginning.kept_vocabulary(store, last))
    report.phase("building the model")
    pieces = build.build(experiment, vocabulary)
    tasks.check_trained(experiment, converter=pieces.converter)
    report.say(build.summary(pieces))
    evaluated_tasks = tasks.to_evaluate(experiment)
    tasks.check_evaluated(evaluated_tasks, pieces.converter)
    tasks.check_best(experiment, list(evaluated_tasks))

    # The state: restored, imported or fresh; and the data, from where they stood.
    report.phase("initialising")
    if last is None:
        state, loop = beginning.new_state(pieces, source, report), beginning.LoopState()
    else:
        state, loop = beginning.restored_state(pieces, store, report, verified_step=last)
    step, total = int(state.step), experiment.train.steps
    saved = step, loop.evaluated  # of the newest checkpoint: its step, and the last evaluation it knows of
    about |= beginning.origin(source, store, last)
    run.write(about, experiment, step=step, recipe=recipe, vocabulary=vocabulary)
    run.cut_back(step)
    store.discard_after(step)
    batches = beginning.open_batches(pieces, tasks.to_train(experiment), report, position=loop.position)

    interval = Interval.of(loop.interval)
    evaluated, results = loop.evaluated, {}
    train_step = make_train_step(
        pieces.experiment.objective,
        pieces.models,
        pieces.optimizer,
        seed=experiment.seed,
        micro_batches=experiment.train.micro_batches,
        rate=experiment.optimizer.learning_rate.rate(total),
        state_shardings=pieces.shardings,
    )
    in_flight: collections.deque[Any] = collections.deque()
    failed: Exception | None = None
    with (
        batches,
        signals.StopRequests() as requests,
        record.Recorder(pieces, run, report, step=step, evaluated=evaluated) as recorder,
    ):
        evaluator = evaluate.Evaluator(
            pieces, evaluated_tasks, on_progress=report.phase, should_stop=lambda: requests.received is not None
        )
        evaluator.read()  # what cannot be evaluated is not found out after days
        report.phase("compiling the training step")
        while True:
            # Between two steps: evaluate, save, stop. A resumed run begins here, with what was left undone.
            stop = requests.agreed(step)
            if stop is None and evaluated < step and is_due(step, experiment.evaluate.every, total):
                try:
                    with recorder.paused():
                        results = evaluator(state.params, step, directory=run.evaluations)
                except evaluate.StoppedError:
                    stop = requests.agreed(step)
                except Exception as error:  # of a task's own functions: what was trained is saved before it is raised
                    failed = error
                else:
                    recorder.evaluation(step, results)
                    evaluated = step
                failed = processes.agree_on_failure(failed)  # the disk of one may be full
            end = tasks.never_measured(experiment, results) if stop is None else signals.Interrupted(stop, step)
            end = failed or end
            lacks_results = saved[0] == step and saved[1] < evaluated  # the run was stopped before this evaluation
            is_wanted = end is not None or is_due(step, experiment.checkpoint.every, total)
            if lacks_results or (saved[0] < step and is_wanted):
                interval.fetch()
                loop = beginning.LoopState(position=batches.state(), interval=interval.state(), evaluated=evaluated)
                metrics = record.flat(results) if evaluated == step else {}
                store.save(
                    step,
                    beginning.to_save(state),
                    data=loop.to_json(),
                    config=about,
                    metrics=metrics,
                    vocabulary=vocabulary,
                )
                saved = step, evaluated
            if end is not None:
                store.wait()
                after = "; the same command goes on from there" if isinstance(end, signals.Interrupted) else ""
                report.say(f"stopped after step {step}{after}")
                raise end
            if step >= total:
                break

            batch = next(batches)
            with sharding.use_mesh(pieces.mesh):
                state, metrics = train_step(state, sharding.shard_batch(batch, pieces.mesh))
            step += 1
            interval.add(step, metrics, tokens=record.count_tokens(batch))
            in_flight.append(metrics)
            if len(in_flight) > AHEAD:
                jax.block_until_ready(in_flight.popleft())
                recorder.completed(step - AHEAD)
            if is_due(step, experiment.train.log_every, total):
                interval.fetch()
                recorder.log(step, interval)
                interval.clear()
                store.check()
        store.wait()
    report.say(f"done after {total} steps; the last checkpoint is {store.path(total)}")
    return state


def is_due(step: int, every: int, total: int) -> bool:
    """Whether something done every so many steps, and once more after the last, is due after `step`."""
    return step > 0 and (step % every == 0 or step == total)
