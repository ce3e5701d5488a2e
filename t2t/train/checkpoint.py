"""Checkpoints of a run: written beside the training, complete or absent, and read only if they are what was written.

    checkpoints/STEP/state/             arrays by path (Orbax): parameters, optimizer state, step, carry
                     data.json          where the data stood, and what else the loop must know to go on
                     config.json        the resolved experiment
                     vocabulary/        the tokens its embeddings mean
                     metrics.json       evaluation results at this step
                     MANIFEST.sha256    the hash of every file above

A save goes to STEP.partial first and is renamed when its manifest is written: a killed save leaves no STEP. The rename
is the commit, so a directory named by a number alone is a complete checkpoint.

Reference: Orbax 0.12, `orbax.checkpoint.v1` (https://orbax.readthedocs.io); its load notices neither a flipped bit nor
another dtype, which is why files are hashed and trees compared here before anything is loaded.
"""

import dataclasses
import json
import logging
import os
import shutil
import time
from concurrent import futures
from pathlib import Path
from types import TracebackType
from typing import Any

import jax
from jax.experimental import multihost_utils
from orbax.checkpoint import v1 as ocp

from t2t.train import disk, manifest, trees
from t2t.vocabulary import Vocabulary

log = logging.getLogger(__name__)

_ORBAX_ERRORS = (OSError, ValueError, RuntimeError)
"""What Orbax and TensorStore raise when a file cannot be written or read (a full disk is a ValueError)."""

STATE = "state"
"""The folder of a checkpoint that holds its arrays."""

VOCABULARY = "vocabulary"
"""The folder of a checkpoint that holds its vocabulary."""


class CheckpointError(ValueError):
    """A checkpoint could not be written or found; the message says what is still there and what to do."""


class DamagedCheckpointError(CheckpointError):
    """The files of a checkpoint are not those that were written."""


class TreeMismatchError(CheckpointError):
    """The arrays of a checkpoint are not those that were asked for."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Restored:
    """What a checkpoint holds."""

    step: int
    state: Any
    data: dict[str, Any]
    config: dict[str, Any]
    metrics: dict[str, float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Best:
    """Which metric decides that a checkpoint is kept beyond the last ones."""

    metric: str
    lower_is_better: bool


class CheckpointStore:
    """The checkpoints of one run, by step.

    Args:
        directory: `checkpoints/` of the run; made at the first save.
        keep: how many of the last checkpoints stay; None keeps all.
        keep_every: checkpoints of steps that are multiples of it stay too.
        best: the metric whose best checkpoint stays too.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        keep: int | None = 3,
        keep_every: int | None = None,
        best: Best | None = None,
    ):
        if keep is not None and keep < 1:
            raise ValueError(f"keep={keep}: at least one checkpoint must stay (None keeps all)")
        self.directory = Path(directory).absolute()
        self.keep = keep
        self._keep_every = keep_every
        self._best = best
        self._writer = futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._pending: futures.Future[None] | None = None
        logging.getLogger("absl").addFilter(_reported_by_us)

    def __enter__(self) -> "CheckpointStore":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        self._writer.shutdown(wait=True)
        if kind is None:
            self.wait()
        elif self._pending is not None and self._pending.exception() is not None:
            log.error("%s", self._pending.exception())

    # ---- what is there

    def steps(self) -> list[int]:
        """The steps of all complete checkpoints, in order."""
        if not self.directory.is_dir():
            return []
        return sorted(int(path.name) for path in self.directory.iterdir() if path.name.isdecimal() and path.is_dir())

    def latest(self) -> int | None:
        """The step of the newest complete checkpoint."""
        return max(self.steps(), default=None)

    def best(self) -> int | None:
        """The step of the checkpoint with the best value of the metric chosen; the earliest of equals."""
        if self._best is None:
            return None
        sign = 1.0 if self._best.lower_is_better else -1.0
        values = [(step, self._metric(step, self._best.metric)) for step in self.steps()]
        return min(((sign * value, step) for step, value in values if value is not None), default=(0.0, None))[1]

    def path(self, step: int) -> Path:
        """The directory of the checkpoint of `step`."""
        return self.directory / str(step)

    def data(self, step: int) -> dict[str, Any]:
        """Where the data stood at `step`."""
        return disk.read_json(self.path(step) / "data.json")

    def config(self, step: int) -> dict[str, Any]:
        """The resolved experiment that wrote the checkpoint of `step`."""
        return disk.read_json(self.path(step) / "config.json")

    def metrics(self, step: int) -> dict[str, float]:
        """The evaluation results saved with `step`."""
        return disk.read_json(self.path(step) / "metrics.json")

    # ---- writing

    def clean(self) -> None:
        """Removes what killed saves and deletions have left. For the one process that trains in this run."""
        if jax.process_index() == 0 and self.directory.is_dir():
            for path in list(self.directory.iterdir()):
                number, _, rest = path.name.partition(".")
                if number.isdecimal() and rest == "replaced" and not self.path(int(number)).exists():
                    path.rename(self.path(int(number)))  # killed before the new one took its place
                elif number.isdecimal() and rest.startswith(("partial", "deleted", "replaced")):
                    shutil.rmtree(path)

    def save(
        self,
        step: int,
        state: Any,
        *,
        data: dict[str, Any],
        config: dict[str, Any],
        metrics: dict[str, float] | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        """Starts to save; returns when the arrays are copied to the host, so that the caller may donate them.

        Waits for the save before this one. An error of the writing itself comes out of the next `save`, `check` or
        `wait`.

        Args:
            step: number of updates that made this state.
            state: any tree of arrays.
            data: the position of the data, as JSON.
            config: the resolved experiment, as JSON.
            metrics: evaluation results at this step.
            vocabulary: of the run.

        Raises:
            CheckpointError: this save could not start, or the one before failed.
        """
        self.wait()
        partial = self.directory / f"{step}.partial"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            context = ocp.Context()
            # A directory that cannot be made is an error now, not a timeout of twenty minutes in a thread.
            context.asynchronous.create_directories_asynchronously = False
            with context:
                response = ocp.save_async(partial, trees.to_nested(state), checkpointable_name=STATE, overwrite=True)
        except _ORBAX_ERRORS as error:
            raise self._failure(step, error) from error
        files = {"data.json": data, "config.json": config, "metrics.json": metrics or {}}
        texts = {name: json.dumps(content, indent=1) for name, content in files.items()}
        self._pending = self._writer.submit(self._commit, step, partial, response, texts, vocabulary)

    def check(self) -> None:
        """Raises the error of a save that has failed meanwhile; never waits."""
        if self._pending is not None and self._pending.done():
            self.wait()

    def wait(self) -> None:
        """Returns when the last save is complete.

        Raises:
            CheckpointError: it failed; the checkpoints before it are untouched.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def discard_after(self, step: int) -> None:
        """Sets aside (as STEP.damaged) every checkpoint after `step`, from where the run goes on."""
        if jax.process_index() == 0:
            for later in [other for other in self.steps() if other > step]:
                aside = self.directory / f"{later}.damaged"
                if aside.exists():
                    shutil.rmtree(aside)
                self.path(later).rename(aside)

    # ---- reading

    def restore(
        self,
        step: int | None = None,
        *,
        like: Any,
        fallback: bool = False,
        subset: bool = False,
        cast: bool = False,
        verified: bool = False,
    ) -> Restored:
        """Reads a checkpoint after checking it.

        Args:
            step: which one; None takes the newest.
            like: tree of arrays or `jax.ShapeDtypeStruct`s to fill; their shardings say where the arrays go, whatever
                devices wrote them (without a sharding: the first device).
            fallback: whether an older checkpoint may stand in for a damaged one.
            subset: whether `like` may ask for only some of the arrays.
            cast: whether floating-point arrays may be asked for in another floating-point type.
            verified: whether `verify(step)` or `choose` has just passed, so that the files need not be hashed again.

        Raises:
            DamagedCheckpointError: a file is not as it was written, or missing.
            TreeMismatchError: the checkpoint holds other arrays; the message lists the paths.
        """
        step = step if verified else self.choose(step, fallback=fallback)
        wanted = trees.to_nested(like)
        lines = trees.differences(self.shapes(step), wanted, subset=subset, cast=cast)
        if lines:
            shown = "\n  ".join(lines[:20] + ([f"... and {len(lines) - 20} more"] if len(lines) > 20 else []))
            raise TreeMismatchError(f"checkpoint {self.path(step)} holds other arrays than this run:\n  {shown}")
        context = ocp.Context()
        context.pytree.loading.partial_load = subset
        with context:
            nested = ocp.load(self.path(step), jax.tree.map(_placed, wanted), checkpointable_name=STATE)
        return Restored(
            step=step,
            state=trees.from_nested(nested, like=like),
            data=self.data(step),
            config=self.config(step),
            metrics=self.metrics(step),
        )

    def shapes(self, step: int) -> trees.Nested:
        """The tree of a checkpoint with shapes and dtypes in place of arrays; reads no array."""
        return ocp.metadata(self.path(step), checkpointable_name=STATE).metadata

    def verify(self, step: int) -> None:
        """Compares every file of a checkpoint with its manifest.

        Raises:
            DamagedCheckpointError: naming the files that differ.
        """
        if not self.path(step).is_dir():
            raise CheckpointError(f"there is no checkpoint of step {step} in {self.directory}, but of {self.steps()}")
        found = self._on_first_process(step)
        if found:
            earlier = [other for other in self.steps() if other < step]
            way_out = "; there is no earlier checkpoint"
            if earlier:
                way_out = f", or use the one before it, {self.path(earlier[-1])} (t2t train --fallback goes back to it)"
            raise DamagedCheckpointError(
                f"checkpoint {self.path(step)} is damaged and was not read: {'; '.join(found)}. "
                f"The file was changed after it was written. Put back a good copy of it{way_out}."
            )

    def choose(self, step: int | None = None, *, fallback: bool) -> int:
        """The step of the newest checkpoint (or `step`), verified; of an older one where that may stand in for it.

        Raises:
            DamagedCheckpointError: a file is not as it was written, or missing.
        """
        candidates = self.steps()[::-1] if step is None else [step]
        if not candidates:
            raise CheckpointError(f"there is no complete checkpoint in {self.directory}")
        for candidate in candidates:
            try:
                self.verify(candidate)
                return candidate
            except DamagedCheckpointError as error:
                if not fallback or candidate == candidates[-1]:
                    raise
                log.warning("%s\nGoing back to an older checkpoint, as asked.", error)
        raise AssertionError("unreachable")

    # ---- inside

    def _on_first_process(self, step: int) -> list[str]:
        found = manifest.problems(self.path(step)) if jax.process_index() == 0 else []
        if jax.process_count() > 1:
            count = int(multihost_utils.broadcast_one_to_all(len(found)))
            return found or [f"{count} file(s), see the message of process 0"] * min(count, 1)
        return found

    def _metric(self, step: int, name: str) -> float | None:
        try:
            return self.metrics(step).get(name)
        except (OSError, ValueError):  # damaged: never the best, and found out when it is restored
            return None

    def _commit(
        self, step: int, partial: Path, response: Any, texts: dict[str, str], vocabulary: Vocabulary | None
    ) -> None:
        try:
            response.result()
            if jax.process_index() != 0:
                return
            for name, text in texts.items():
                (partial / name).write_text(text, encoding="utf-8")
            if vocabulary is not None:
                vocabulary.save(partial / VOCABULARY)
            manifest.write(partial)
            disk.flush(partial / name for name in [*texts, manifest.NAME])
            replaced = self.directory / f"{step}.replaced"
            if self.path(step).exists():
                self.path(step).rename(replaced)
            partial.rename(self.path(step))
            disk.flush([self.directory])
            shutil.rmtree(replaced, ignore_errors=True)
            self._prune()
        except _ORBAX_ERRORS as error:
            self._discard(step)
            raise self._failure(step, error) from error

    def _discard(self, step: int) -> None:
        """Removes what a failed save has written, for a second: threads may still write, `clean` removes the last."""
        if (replaced := self.directory / f"{step}.replaced").is_dir() and not self.path(step).exists():
            replaced.rename(self.path(step))
        for _ in range(10):
            for path in list(self.directory.glob(f"{step}.partial*")):
                shutil.rmtree(path, ignore_errors=True)
            time.sleep(0.1)

    def _prune(self) -> None:
        if self.keep is None:
            return
        best = self.best()
        for step in self.steps()[: -self.keep]:
            if step != best and not (self._keep_every and step % self._keep_every == 0):
                # Renamed first: whoever lists the steps never sees half a checkpoint.
                self.path(step).rename(self.directory / f"{step}.deleted")
        for aside in self.directory.glob("*.deleted"):
            shutil.rmtree(aside)

    def _failure(self, step: int, error: Exception) -> CheckpointError:
        last = self.latest()
        good = f"the last good checkpoint is {self.path(last)}" if last is not None else "no checkpoint is there yet"
        return CheckpointError(
            f"step {step} could not be saved in {self.directory}: {disk.first_line(error)}. "
            f"Training stops here; {good}. "
            "Make room (or the directory writable) and run the same command to go on from there."
        )


def _placed(leaf: Any) -> jax.ShapeDtypeStruct:
    sharding = leaf.sharding or jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)


def _reported_by_us(record: logging.LogRecord) -> bool:
    """Orbax logs the traceback of a failed thread that we raise as a CheckpointError with a readable message."""
    return "_SignalingThread.run() raised" not in record.getMessage()
