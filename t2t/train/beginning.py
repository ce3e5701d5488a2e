"""How a run begins or goes on: its vocabulary, its state, its data, from a config, another model or a checkpoint."""

import dataclasses
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from t2t import sharding
from t2t.config import Experiment
from t2t.data import pipeline, prefetch
from t2t.data.corpora import MissingFileError
from t2t.data.mixtures import Spec
from t2t.errors import UsageError
from t2t.train import build, checkpoint, faults, initialize, processes, sources
from t2t.train.build import Pieces
from t2t.train.new_vocabulary import train_vocabulary
from t2t.train.progress import Progress
from t2t.train.run_directory import RunDirectory
from t2t.train.state import TrainState
from t2t.types import Batch
from t2t.vocabulary import ByteVocabulary, Vocabulary

CACHE = "T2T_CACHE"
"""Environment variable: folder where tokenised examples are kept for other runs; unset, none are kept."""


_WAY_OUT = (
    "The same command would come to the same step: go on with --faults.on-nan skip or roll_back (--faults.on-spike "
    "where the loss jumped), or start a new run from that checkpoint (--init) with a lower learning rate, clip_norm, "
    "or in float32."
)


class RunError(ValueError):
    """A run could not go on; the message says what is left of it and what to do."""


class FatalError(RunError, UsageError):
    """A run ended in numbers that are not finite or an example that is no good: run again, it would end so again."""


class DataError(ValueError):
    """The next batch could not be made."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoopState:
    """What the loop must know besides the arrays to go on as if nothing had happened."""

    position: dict[str, Any] | None = None
    """Where the data of this process stand; None = at the beginning."""
    interval: dict[str, Any] | None = None
    """Metrics since the last log line."""
    evaluated: int = 0
    """Step of the last evaluation."""
    faults: dict[str, Any] | None = None
    """Steps that went wrong."""
    clock: dict[str, float] | None = None
    """Seconds by phase; as this process measured them."""

    def to_json(self) -> dict[str, Any]:
        """The same for all processes, as a checkpoint keeps it. Every process must call it."""
        positions = pipeline.merge_states(processes.gather_json(self.position))
        return {**dataclasses.asdict(self), "position": positions}


class Batches:
    """The batches of a run, made ahead by a thread; use it as a context manager."""

    def __init__(self, lanes: pipeline.TrainPipeline):
        self._ahead = prefetch.Prefetch(lanes)

    def __enter__(self) -> "Batches":
        return self

    def __exit__(self, *error: object) -> None:
        self._ahead.close()

    def __next__(self) -> Batch:
        try:
            return next(self._ahead)
        except (ValueError, OSError) as error:
            raise DataError(f"the next batch could not be made: {error}") from error

    def state(self) -> dict[str, Any]:
        """Where the batch after the last one taken starts."""
        return self._ahead.state()


def open_store(run: RunDirectory, experiment: Experiment) -> checkpoint.CheckpointStore:
    """The checkpoints of a run, kept as its config says."""
    settings = experiment.checkpoint
    best = None
    if settings.best is not None:
        best = checkpoint.Best(metric=settings.best, lower_is_better=settings.best_is == "lowest")
    return checkpoint.CheckpointStore(run.checkpoints, keep=settings.keep, keep_every=settings.keep_every, best=best)


def open_init(experiment: Experiment) -> sources.Source | None:
    """Where the parameters of a new run come from; None = from the seed.

    Raises:
        UsageError: `init` is no model.
    """
    return None if experiment.init is None else sources.open_source(experiment.init)


def choose_vocabulary(experiment: Experiment, source: sources.Source | None, *, kept: Path | None) -> Vocabulary:
    """The vocabulary of a run: the one it keeps, else its config's, else that of `init`; without `init` a new one.

    Decoders start with the token with which those of `init` do.

    Raises:
        UsageError: it cannot be read, is not that of the parameters the run starts from, or they come without one.
    """
    if kept is not None:
        return Vocabulary.load(kept)
    if experiment.vocabulary is None:
        if source is not None and source.vocabulary is not None:
            return _starting_as(source, initialize.load_vocabulary(source))
        if source is not None:
            raise UsageError(
                f"{source.path} holds no vocabulary, and its embeddings mean the tokens of one: give its directory or "
                "file with --vocabulary (for a model of bytes, what t2t.vocabulary.ByteVocabulary().save() writes)"
            )
        return ByteVocabulary() if experiment.vocabulary_size is None else train_vocabulary(experiment)
    try:
        vocabulary = Vocabulary.load(experiment.vocabulary)
    except (OSError, ValueError) as error:
        raise UsageError(f"vocabulary: {error}") from error
    if source is not None:
        initialize.check_same_vocabulary(source, vocabulary)
        vocabulary = _starting_as(source, vocabulary)
    return vocabulary


def _starting_as(source: sources.Source, vocabulary: Vocabulary) -> Vocabulary:
    return vocabulary if source.start_id is None else vocabulary.starting_with(source.start_id)


def origin(
    source: sources.Source | None, store: checkpoint.CheckpointStore, step: int | None
) -> dict[str, dict[str, Any]]:
    """What config.json keeps of the Hugging Face files that the parameters came from: attributes, which exports write.

    How to generate it does not keep: that is the run's own.

    Args:
        source: `init` of a run that begins.
        store: of the run.
        step: of the checkpoint from which the run goes on.
    """
    known = {} if source is None else source.origin
    known = known if step is None else store.config(step).get("origin", {})
    return {"origin": {"kept": known["kept"]}} if known.get("kept") else {}


def kept_vocabulary(store: checkpoint.CheckpointStore, step: int | None) -> Path | None:
    """Where the vocabulary of a run is that goes on from a checkpoint; None for one that begins (`step` None)."""
    return None if step is None else store.path(step) / checkpoint.VOCABULARY


def new_state(pieces: Pieces, source: sources.Source | None, report: Progress) -> TrainState:
    """The state of step 0, around parameters drawn from the seed or read from `source`."""
    if source is None:
        return initialize.make_state(initialize.fresh_params(pieces), pieces)
    report.say(f"starting from the parameters of {source.path} ({source.kind})")
    return initialize.make_state(initialize.load_params(source, pieces), pieces)


def restored_state(
    pieces: Pieces, store: checkpoint.CheckpointStore, report: Progress, *, verified_step: int
) -> tuple[TrainState, LoopState]:
    """The state of a checkpoint that was just verified on the mesh of this run, and what the loop knew.

    Raises:
        UsageError: it is of a later step than the last of the run.
        CheckpointError: it holds other arrays.
    """
    total = pieces.experiment.train.steps
    if verified_step > total:
        raise UsageError(f"the run is at step {verified_step} and train.steps is {total}: nothing is left to train")
    restored = store.restore(verified_step, like=to_save(pieces.state), verified=True)
    report.say(f"going on from {store.path(restored.step)}")
    return TrainState(frozen=pieces.state.frozen, **restored.state), LoopState(**restored.data)


def to_save(state: TrainState) -> dict[str, Any]:
    """The part of a state that a checkpoint holds: all but frozen parameters."""
    return {
        "step": state.step,
        "params": state.params,
        "opt_state": state.opt_state,
        "carry": state.carry,
        "guard": state.guard,
    }


def rolled_back(
    error: faults.BadStepError,
    pieces: Pieces,
    store: checkpoint.CheckpointStore,
    source: sources.Source | None,
    report: Progress,
    history: faults.History,
) -> tuple[TrainState, LoopState]:
    """The state of the last checkpoint before a bad step, with the data after the batch of that step.

    Only checkpoints of `checkpoint.every` are gone back to where there is one, not those of interruptions: a run that
    was interrupted is the run that was not. Without any checkpoint the run begins again.

    Raises:
        TooManyFaultsError: the run has gone back too often.
        CheckpointError: the checkpoint is damaged.
    """
    store.wait()
    processes.wait_for_all("the last checkpoint is in its place")
    before = [step for step in store.steps() if step < error.step]
    regular = [step for step in before if step % pieces.experiment.checkpoint.every == 0]
    to = max(regular or before, default=0)
    history.roll_back(error, to=to)
    if to == 0:
        state, loop = new_state(pieces, source, report), LoopState()
    else:
        state, loop = restored_state(pieces, store, report, verified_step=store.choose(to, fallback=False))
    processes.wait_for_all("every process has gone back")
    store.discard_after(to)
    known = (loop.faults or {}) | {"roll_backs": history.roll_backs}
    return state, dataclasses.replace(loop, position=error.position, faults=known)


def read_data(pieces: Pieces, learned: Spec, report: Progress) -> Callable[[dict[str, Any] | None], Batches]:
    """Reads the data; the result opens their batches from a position (None: from the beginning).

    Raises:
        UsageError: there are none, they are no longer those of the checkpoint, or T2T_CACHE cannot be used.
        ValueError: they cannot be read.
    """
    experiment, cache = pieces.experiment, cache_directory()
    reads_on = build.reads_on(experiment)
    report.phase("reading data")
    stream = pipeline.load_stream(
        learned,
        vocabulary=pieces.vocabulary,
        converter=pieces.converter,
        seed=experiment.seed,
        cache_dir=cache,
        contiguous=experiment.data.batch_size if reads_on else None,
        progress=lambda task, count: report.phase(f"reading {task}: {count:,} examples"),
    )
    counts = ", ".join(f"{task.name} {len(task):,}" for task in stream.tasks)
    report.say(f"examples: {counts}")
    lanes = pipeline.TrainPipeline(
        stream,
        rows=experiment.data.batch_size,
        packing=experiment.data.packing and not reads_on,
        open_rows=1 if reads_on else experiment.data.open_rows,
        lanes=sharding.host_rows(experiment.data.batch_size, pieces.mesh),
    )

    def batches(position: dict[str, Any] | None) -> Batches:
        if position is not None:
            lanes.restore(position)
        return Batches(lanes)

    return batches


def cache_directory() -> Path | None:
    """Where tokenised examples are kept for other runs; made if missing. None = nowhere.

    Raises:
        UsageError: it cannot be written.
    """
    if not os.environ.get(CACHE):
        return None
    directory = Path(os.environ[CACHE])
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return directory
    except OSError as error:
        raise UsageError(
            f"examples cannot be kept in {CACHE}={directory}: {error}. Name a folder that can be written, or unset it"
        ) from error


def explain(
    error: faults.BadStepError | faults.TooManyFaultsError | DataError | MissingFileError | OSError,
    store: checkpoint.CheckpointStore,
) -> RunError:
    """What to tell the user when a run cannot go on; waits for the save under way."""
    store.wait()
    last = store.latest()
    good = "No checkpoint is there yet" if last is None else f"The last good checkpoint is {store.path(last)}"
    if isinstance(error, DataError) and isinstance(error.__cause__, ValueError):  # it lies in memory as it is
        return FatalError(
            f"{error}. {good}. The same command would come to the same example: mend the task or its text."
        )
    if isinstance(error, faults.TooManyFaultsError):
        return FatalError(f"{error}; training stops. {good}. {_WAY_OUT}")
    if isinstance(error, faults.SpikeError):
        return FatalError(f"{error}; training stops, as faults.on_spike says. {good}. {_WAY_OUT}")
    if not isinstance(error, faults.NonFiniteError):
        return RunError(f"{error}. {good}. Put that right and run the same command to go on.")
    return FatalError(
        f"loss, gradient or parameters are not finite after step {error.step} ({', '.join(error.names)}); training "
        f"stops and nothing of it is saved. {good}. {_WAY_OUT}"
    )
