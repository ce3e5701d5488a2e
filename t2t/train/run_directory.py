"""The directory of a run: self-contained, so that every command works from it alone.

RUN/config.json    {"t2t": version, "experiment": ..., "versions", "git", "command", "devices", "earlier": [starts]}
    recipe/        the config file and the task modules, verbatim; in from_step_N/ those that had changed on resume
    vocabulary/    checkpoints/    metrics.jsonl    events/    eval/TASK/    log.txt
    clock.json     the time of the run by phase (t2t/train/clock.py)
    compiled/      programs of XLA for the next start    profile/STEP/    profiles
"""

import contextlib
import fcntl
import importlib.metadata
import importlib.util
import json
import logging
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax

from t2t import __version__, config_values
from t2t import config as config_lib
from t2t.config import Experiment
from t2t.errors import UsageError
from t2t.train import processes
from t2t.vocabulary import Vocabulary

log = logging.getLogger(__name__)

FROM_STEP = "from_step_"
"""Folder of recipes that changed while the run stood still, by the step at which it went on."""

PACKAGES = (
    "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "seqio", "tensorflow", "sentencepiece",
    "tokenizers",
)  # fmt: skip
"""Packages whose versions a run records."""

STARTED = ("t2t", "versions", "git", "command", "devices")
"""What config.json says about the last start of the run, and of each earlier one in "earlier"."""


ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/")
"""How the address of an object store begins, such as gs://; a Path of it has lost one of the slashes."""


class BusyError(ValueError):
    """Another process trains in the directory of the run."""


class RunDirectory:
    """Where the files of a run are, and what they say about it.

    Args:
        path: the directory; it need not exist.
    """

    def __init__(self, path: str | os.PathLike[str]):
        if ADDRESS.match(os.fspath(path)):
            raise UsageError(
                f"{path} is the address of an object store; a run needs a file system, where a directory can be locked "
                "and moved in one step. Mount the bucket (gcsfuse, mountpoint-s3, rclone mount with a write cache), or "
                "train in a local --workdir and copy its checkpoints/STEP, each of which is complete by itself"
            )
        self.path = Path(path).absolute()
        self.config = self.path / "config.json"
        self.recipe = self.path / "recipe"
        self.vocabulary = self.path / "vocabulary"
        self.checkpoints = self.path / "checkpoints"
        self.metrics = self.path / "metrics.jsonl"
        self.events = self.path / "events"
        self.evaluations = self.path / "eval"
        self.log = self.path / "log.txt"
        self.clock = self.path / "clock.json"
        self.compiled = self.path / "compiled"
        self.profiles = self.path / "profile"
        self.profile_request = self.path / "profile-now"

    def read(self) -> dict[str, Any] | None:
        """The content of config.json; None where no run has begun.

        Raises:
            UsageError: the directory belongs to something else.
        """
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file, no directory of a run: give another --workdir")
        if not self.config.is_file():
            return None
        try:
            content = json.loads(self.config.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UsageError(f"{self.config} is not JSON ({error}); restore it, or give another --workdir") from error
        if not isinstance(content, dict) or "experiment" not in content:
            raise UsageError(
                f"{self.path} holds something else than a run (see its config.json): give another --workdir"
            )
        return content

    def check_resumable(self, experiment: Experiment, *, has_checkpoint: bool) -> None:
        """Refuses to continue the run here with an experiment that would be another run.

        A run without a checkpoint has nothing to continue: it begins again, with any config.

        Raises:
            UsageError: with every setting that differs and must not.
        """
        content = self.read()
        if content is None or not has_checkpoint:
            return
        try:
            before = config_values.from_json(content["experiment"])
        except (ValueError, TypeError) as error:
            raise UsageError(f"{self.config} cannot be read: {error}; restore it, or give another --workdir") from error
        lines = config_values.difference(before, experiment, ignore=config_lib.RESUMABLE)
        if lines:
            raise UsageError(
                f"{self.path} holds a run with another config (there -> here):\n  "
                + "\n  ".join(lines)
                + f"\nOnly {', '.join(config_lib.RESUMABLE)} may change when a run goes on. Give these settings back, "
                "or start a new run with another --workdir (--init takes the parameters of this one)."
            )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps a second process from training in this directory.

        Raises:
            BusyError: one does already.
            UsageError: the directory cannot be written.
        """
        if not processes.is_first():
            yield
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = (self.path / ".lock").open("a")
        except OSError as error:
            raise UsageError(
                f"the run directory {self.path} cannot be written: {error}. Choose another --workdir"
            ) from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise BusyError(
                    f"another process is training in {self.path}: wait for it, or give another --workdir"
                ) from error
            yield

    def write(
        self, about: dict[str, Any], experiment: Experiment, *, step: int, recipe: Path | None, vocabulary: Vocabulary
    ) -> None:
        """Writes what makes the run self-contained; config.json (`about`, see `describe`) last, in one move.

        `step` is the one the run goes on from: after 0, changed recipes are kept beside those the run began with.
        """
        if not processes.is_first():
            return
        self.path.mkdir(parents=True, exist_ok=True)
        vocabulary.save(self.vocabulary)
        self._copy_recipe(experiment, recipe, step=step)
        partial = self.config.with_name("config.json.partial")
        earlier = self._earlier_starts() if step > 0 else []
        partial.write_text(json.dumps({**about, "earlier": earlier}, indent=2) + "\n", encoding="utf-8")
        partial.replace(self.config)

    def _earlier_starts(self) -> list[dict[str, Any]]:
        """With what the run was started before this time, the first start first."""
        content = self.read() or {}
        last = {name: content[name] for name in STARTED if name in content}
        return [*content.get("earlier", ()), *([last] if last else ())]

    def cut_back(self, step: int) -> None:
        """Removes evaluations of later steps than the one the run goes on from."""
        if not processes.is_first():
            return
        for result in self.evaluations.glob("*/*.json"):
            if result.stem.isdecimal() and int(result.stem) > step:
                result.unlink()

    def _copy_recipe(self, experiment: Experiment, recipe: Path | None, *, step: int) -> None:
        sources = {} if recipe is None else {Path(recipe.name): recipe}
        for module in experiment.data.modules:
            spec = importlib.util.find_spec(module)
            if spec is not None and spec.origin is not None and Path(spec.origin).is_file():
                sources[Path(*module.split(".")).with_suffix(".py")] = Path(spec.origin)
        for name, source in sources.items():
            kept, target = self._recipe_at(step, name), self.recipe / name
            if kept.is_file() and kept.read_bytes() == source.read_bytes():
                continue
            if kept.is_file() and step > 0:
                target = self.recipe / f"{FROM_STEP}{step}" / name
                # What a config says is compared setting by setting; nothing else would tell that a task has changed.
                level = logging.INFO if source == recipe else logging.WARNING
                log.log(level, "%s is used from here on; it differs from %s. Both are kept: %s", source, kept, target)
            if source.resolve() != target.resolve():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)

    def _recipe_at(self, step: int, name: Path) -> Path:
        """The copy of a recipe that the run used up to a step."""
        copies = {int(path.name.removeprefix(FROM_STEP)): path / name for path in self.recipe.glob(f"{FROM_STEP}*")}
        used = [number for number, path in copies.items() if number <= step and path.is_file()]
        return copies[max(used)] if used else self.recipe / name


def describe(experiment: Experiment, *, command: Sequence[str] | None = None) -> dict[str, Any]:
    """The content of config.json: the experiment, and with what it is run (None: the command line of this process)."""
    return {
        "t2t": __version__,
        "experiment": config_values.to_json(experiment),
        "versions": {"python": platform.python_version(), **_versions()},
        "git": {name: found for name, path in _places().items() if (found := git_revision(path)) is not None},
        "command": [sys.executable, *sys.argv] if command is None else list(command),
        "devices": f"{jax.device_count()} {jax.devices()[0].device_kind} in {jax.process_count()} process(es)",
    }


def git_revision(directory: Path) -> dict[str, Any] | None:
    """The commit a directory is at, and whether its files differ from it; None where git knows nothing of it."""
    try:
        revision = _git(directory, "rev-parse", "HEAD")
        changes = _git(directory, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return {"revision": revision, "changed": bool(changes)}


def _places() -> dict[str, Path]:
    return {"t2t": Path(__file__).resolve().parent, "working_directory": Path.cwd()}


def _git(directory: Path, *arguments: str) -> str:
    command = ["git", "-C", str(directory), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
