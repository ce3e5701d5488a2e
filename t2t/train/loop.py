"""The run as one story: mesh, data, state, steps, evaluations, saves.

How a batch travels, in five files:

1. `tasks/<name>.py`: source, tokenise, corrupt, features.
2. `t2t/data/pipeline.py`: mixture -> feature converter -> packed, sharded, resumable global batches.
3. `t2t/train/loop.py`: this file.
4. `t2t/train/step.py`: value_and_grad, micro-batches, update, metrics. Small and pure.
5. `t2t/objectives/<kind>.py`: which model call, which loss.

A run that was killed and started again gives, on the same mesh, bit for bit the metrics of one that was not: a
checkpoint holds the state, where the data stood, and the sums of the metrics since the last log line.

`train` opens the directory, `_train` makes what is made once, `_steps` goes from a state to the end of the run, or to a
bad step because of which the run goes back.
"""

import collections
import dataclasses
import os
from collections.abc import Callable, Sequence
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
    compile_cache,
    evaluate,
    faults,
    processes,
    profiling,
    progress,
    record,
    run_directory,
    signals,
    tasks,
    watchdog,
)
from t2t.train.clock import Clock
from t2t.train.interval import Interval
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
        RunError: the loss became NaN or jumped, the data failed, or a file could not be written.
        Interrupted: SIGTERM or Ctrl-C; the state is saved.
    """
    run = run_directory.RunDirectory(workdir)
    clock = Clock(run.clock if processes.is_first() else None)
    with (
        run.locked(),
        progress.Progress(run.log, total=experiment.train.steps) as report,
        watchdog.of_run(run, experiment.watch, report),
        compile_cache.used(run.compiled if experiment.train.compile_cache == "run" else None),
        beginning.open_store(run, experiment) as store,
    ):
        store.clean()
        processes.wait_for_all("checkpoints are in their places")
        run.check_resumable(experiment, has_checkpoint=store.latest() is not None)
        about = run_directory.describe(experiment, command=command)
        try:
            return _train(experiment, run, store, report, clock, about=about, recipe=recipe, fallback=fallback)
        except MissingFileError as error:  # files that were good when the run began may come back
            if store.latest() is None:
                raise
            raise beginning.explain(error, store) from error
        except (faults.BadStepError, faults.TooManyFaultsError, beginning.DataError, OSError) as error:
            raise beginning.explain(error, store) from error


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Parts:
    """What a start of a run makes once, whatever steps go wrong."""

    pieces: build.Pieces
    store: checkpoint.CheckpointStore
    report: progress.Progress
    clock: Clock
    about: dict[str, Any]
    batches: Callable[[dict[str, Any] | None], beginning.Batches]
    train_step: Callable[..., Any]
    evaluator: evaluate.Evaluator
    evaluations: Path
    recorder: record.Recorder
    profiler: profiling.Profiler
    requests: signals.StopRequests
    never_measured: Callable[[Any], Exception | None]


def _train(
    experiment: Experiment,
    run: run_directory.RunDirectory,
    store: checkpoint.CheckpointStore,
    report: progress.Progress,
    clock: Clock,
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
    step = int(state.step)
    clock.go_on(loop.clock)
    about |= beginning.origin(source, store, last)
    run.write(about, experiment, step=step, recipe=recipe, vocabulary=vocabulary)
    run.cut_back(step)
    store.discard_after(step)
    batches = beginning.read_data(pieces, tasks.to_train(experiment), report)

    train_step = make_train_step(
        pieces.experiment.objective,
        pieces.models,
        pieces.optimizer,
        seed=experiment.seed,
        micro_batches=experiment.train.micro_batches,
        rate=experiment.optimizer.learning_rate.rate(experiment.train.steps),
        state_shardings=pieces.shardings,
        policy=experiment.faults,
    )
    with (
        signals.StopRequests() as requests,
        record.Recorder(pieces, run, report, step=step, evaluated=loop.evaluated, clock=clock) as recorder,
        profiling.of_run(run, experiment.watch) as profiler,
    ):
        evaluator = evaluate.Evaluator(
            pieces, evaluated_tasks, on_progress=report.phase, should_stop=lambda: requests.received is not None
        )
        evaluator.read()  # what cannot be evaluated is not found out after days
        parts = _Parts(
            pieces=pieces,
            store=store,
            report=report,
            clock=clock,
            about=about,
            batches=batches,
            train_step=train_step,
            evaluator=evaluator,
            evaluations=run.evaluations,
            recorder=recorder,
            profiler=profiler,
            requests=requests,
            never_measured=lambda results: tasks.never_measured(experiment, results),
        )
        while True:
            history = faults.History(experiment.faults, loop.faults)
            try:
                return _steps(parts, state, loop, history)
            except faults.BadStepError as error:
                if not history.rolls_back(error):
                    raise
                bad = error.with_traceback(None)  # which holds the arrays of the bad state
            state, loop = beginning.rolled_back(bad, pieces, store, source, report, history)
            clock.go_back(loop.clock or {})
            run.cut_back(int(state.step))
            recorder.cut_back(step=int(state.step), evaluated=loop.evaluated)


def _steps(  # noqa: PLR0915 - the story is told in one piece
    parts: _Parts, state: TrainState, loop: beginning.LoopState, history: faults.History
) -> TrainState:
    """From a state to the end of the run."""
    pieces, store, clock, recorder = parts.pieces, parts.store, parts.clock, parts.recorder
    experiment = pieces.experiment
    step, total = int(state.step), experiment.train.steps
    saved = step, loop.evaluated  # of the newest checkpoint: its step, and the last evaluation it knows of
    evaluated, results = loop.evaluated, {}
    interval = Interval.of(loop.interval, history)
    in_flight: collections.deque[Any] = collections.deque()
    failed: Exception | None = None
    parts.report.phase("compiling the training step")
    with parts.batches(loop.position) as batches:
        while True:
            # Between two steps: evaluate, save, stop. A resumed run begins here, with what was left undone.
            stop = parts.requests.agreed(step)
            if stop is None and evaluated < step and is_due(step, experiment.evaluate.every, total):
                try:
                    with recorder.paused(), clock.during("evaluation"):
                        results = parts.evaluator(state.params, step, directory=parts.evaluations)
                except evaluate.StoppedError:
                    stop = parts.requests.agreed(step)
                except Exception as error:  # of a task's own functions: what was trained is saved before it is raised
                    failed = error
                else:
                    recorder.evaluation(step, results)
                    evaluated = step
                failed = processes.agree_on_failure(failed)  # the disk of one may be full
            end = parts.never_measured(results) if stop is None else signals.Interrupted(stop, step)
            end = failed or end
            lacks_results = saved[0] == step and saved[1] < evaluated  # the run was stopped before this evaluation
            is_wanted = end is not None or is_due(step, experiment.checkpoint.every, total)
            if lacks_results or (saved[0] < step and is_wanted):
                interval.fetch()
                loop = beginning.LoopState(
                    position=batches.state(),
                    interval=interval.state(),
                    evaluated=evaluated,
                    faults=history.state(),
                    clock=clock.seconds(),
                )
                with clock.during("checkpoint"):
                    store.save(
                        step,
                        beginning.to_save(state),
                        data=loop.to_json(),
                        config=parts.about,
                        metrics=record.flat(results) if evaluated == step else {},
                        vocabulary=pieces.vocabulary,
                    )
                saved = step, evaluated
            if end is not None:
                with clock.during("checkpoint"):
                    store.wait()
                after = "; the same command goes on from there" if isinstance(end, signals.Interrupted) else ""
                parts.report.say(f"stopped after step {step}{after}")
                raise end
            if step >= total:
                break

            with clock.data_wait(is_busy=lambda: bool(in_flight) and not is_ready(in_flight[-1])):
                batch = next(batches)
            parts.profiler.before(step + 1)
            with sharding.use_mesh(pieces.mesh):
                state, metrics = parts.train_step(state, sharding.shard_batch(batch, pieces.mesh))
            clock.enter("step")
            step += 1
            interval.add(step, metrics, tokens=record.count_tokens(batch), position=batches.state())
            parts.profiler.after(step, metrics)
            in_flight.append(metrics)
            if len(in_flight) > AHEAD:
                jax.block_until_ready(in_flight.popleft())
                recorder.completed(step - AHEAD)
            if is_due(step, experiment.train.log_every, total):
                interval.fetch()
                recorder.log(step, interval, history)
                interval.clear()
                store.check()
        with clock.during("checkpoint"):
            store.wait()
    parts.report.say(f"done after {total} steps; the last checkpoint is {store.path(total)}")
    return state


def is_due(step: int, every: int, total: int) -> bool:
    """Whether something done every so many steps, and once more after the last, is due after `step`."""
    return step > 0 and (step % every == 0 or step == total)


def is_ready(metrics: Any) -> bool:
    """Whether the devices have computed these metrics; does not wait."""
    return all(leaf.is_ready() for leaf in jax.tree.leaves(metrics))
