"""What the commands share: parsing of arguments with tyro, and of the settings of a config."""

import contextlib
import dataclasses
import errno
import json
import logging
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

import tyro

from t2t import config_values, finding, staging
from t2t.config import Experiment
from t2t.errors import UsageError

Options = TypeVar("Options")

FLAGS = (tyro.conf.AvoidSubcommands,)
"""A union of classes is the class its config chose: the command line sets its fields and cannot switch it."""

NAMES = frozenset({
    "compare", "config", "eval_files", "files", "html", "init", "input", "kept", "model", "output", "runs", "source",
    "vocabulary", "workdir",
})  # fmt: skip
"""Options, and settings of an experiment, that name files or directories."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Processes:
    """What several processes of one command must know; every command that inherits it may be started as several."""

    distributed: Literal["auto"] | None = None
    """One of several processes: auto asks the cluster who the others are; None reads JAX_COORDINATOR_ADDRESS."""
    peer_timeout: float = 180.0
    """Seconds without a sign of life after which another process is given up and this one ends, with exit code 1."""


def parse(options: type[Options], arguments: Sequence[str], *, command: str) -> Options:
    """The options of a command; ends the process with code 0 after `--help` and 2 where something is wrong.

    Raises:
        UsageError: an option names a file or directory that cannot be there, for its name is too long.
    """
    config = (*FLAGS, tyro.conf.FlagCreatePairsOff)
    parsed = tyro.cli(options, args=list(arguments), prog=f"t2t {command}", config=config)
    _check_names(parsed)
    return parsed


def _check_names(options: Any) -> None:
    for name in NAMES & {field.name for field in dataclasses.fields(options)}:
        given = getattr(options, name)
        for path in given if isinstance(given, tuple) else (given,):
            if isinstance(path, str):
                check_name(path)


def check_name(path: str) -> None:
    """Refuses a path that no file can have: the system would refuse it wherever it is looked for.

    Raises:
        UsageError: it, or a name in it, is too long.
    """
    try:
        os.stat(path)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UsageError(f"there can be no file or directory {path[:60]}…: its name is too long") from error


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """Where an experiment came from.

    Attributes:
      experiment: as its config or run directory has it, before the settings of the command line.
      description: docstring of the config.
      recipe: file of the config; None for a run directory.
      run: the run directory; None for a config.
    """

    experiment: Experiment
    description: str
    recipe: pathlib.Path | None = None
    run: pathlib.Path | None = None


def split_config(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """The config, which comes before every option, and the rest."""
    if not arguments or arguments[0].startswith("-"):
        return None, list(arguments)
    return arguments[0], list(arguments[1:])


def find_experiment(argument: str) -> Source:
    """The experiment of a config (a path or a name), or of a run directory.

    Raises:
        UsageError: Where there is neither, or the config cannot be built.
    """
    check_name(argument)
    path = pathlib.Path(argument)
    # A folder may have the name of a config: one of texts beside configs/books.py is no run.
    if (path / "config.json").exists() or (path.is_dir() and not finding.has_config(argument)):
        return _read_run(path)
    experiment, description, recipe = finding.load_config(argument)
    return Source(experiment=experiment, description=description, recipe=recipe)


def _read_run(path: pathlib.Path) -> Source:
    file = path / "config.json"
    if not file.is_file():
        raise UsageError(f"{path} is no run directory: it has no config.json")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, PermissionError) as error:
        raise UsageError(f"{file} is not JSON ({error}); restore it") from error
    if not isinstance(content, dict):
        raise UsageError(f"{file} holds {type(content).__name__} instead of an object {{...}}; restore it")
    if "experiment" not in content:
        raise UsageError(f"{path} holds a model, not a run: train a config from it with t2t train CONFIG --init {path}")
    finding.extend_path(path / "recipe")
    try:
        experiment = config_values.from_json(content["experiment"])
        if not isinstance(experiment, Experiment):
            raise ValueError(f"its experiment is {experiment!r}")
        config_values.check_types(experiment)
    except (ValueError, TypeError, AttributeError, LookupError, ImportError, RecursionError) as error:
        raise UsageError(f"{file} (written by t2t {content.get('t2t')}) cannot be read: {error}") from error
    return Source(experiment=experiment, description=f"The run in {path}.", run=path)


def parse_settings(
    options: type[Options], arguments: Sequence[str], *, source: Source, command: str
) -> tuple[Options, Experiment]:
    """The options of a command, and the experiment with the settings of the command line in it.

    Every field of the experiment's own dataclasses is a flag, such as `--train.steps 1000`.

    Raises:
        UsageError: Where the settings contradict each other; unknown or ill-typed ones end the process with code 2.
    """
    experiment = Annotated[Experiment, tyro.conf.arg(name="")]
    both = dataclasses.make_dataclass(
        "Settings",
        [("options", Annotated[options, tyro.conf.arg(name="")]), ("experiment", experiment, source.experiment)],
        frozen=True,
        kw_only=True,
    )
    try:
        settings: Any = tyro.cli(
            both,
            args=list(arguments),
            prog=f"t2t {command}",
            description=source.description,
            config=FLAGS,
        )
        config_values.check_types(settings.experiment)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error
    for part in (settings.options, settings.experiment, settings.experiment.data):
        _check_names(part)
    return settings.options, settings.experiment


@contextlib.contextmanager
def status() -> Iterator[Callable[[str], None]]:
    """A function that shows what is going on: a moving line on a terminal, elsewhere a line for each new thing."""
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with console.status("starting") as line:
            yield line.update
        return
    shown: set[str] = set()

    def say(text: str) -> None:
        what = " ".join(word for word in text.split() if not word[0].isdigit())
        if what not in shown:
            print(text, file=sys.stderr, flush=True)
        shown.add(what)

    yield say


@contextlib.contextmanager
def show_log() -> Iterator[None]:
    """Shows what t2t has to say on standard error."""
    logger, handler = logging.getLogger("t2t"), logging.StreamHandler()
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False  # some library may have given the root logger a handler, which would show it all twice
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


def check_output(directory: pathlib.Path, *, overwrite: bool, source: str | None = None) -> None:
    """Refuses to write into a directory that holds something, unless told to, or that cannot be written.

    Raises:
        UsageError: it does, is a file, cannot be written, or is `source`, from which the command reads.
    """
    if source is not None and pathlib.Path(source).resolve() == directory.resolve():
        raise UsageError(f"{directory} is where the model is read from; give another directory to write")
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file; give a directory to write")
    check_writable(directory, instead="give another directory")
    there = [path for path in directory.iterdir() if path.name != staging.FOLDER] if directory.is_dir() else []
    if there and not overwrite:
        raise UsageError(f"{directory} is there already; --overwrite replaces its files")


def check_writable(directory: pathlib.Path, *, instead: str) -> None:
    """Makes the directory and a file in it and takes both away again, before the work whose results it shall hold.

    Permissions do not tell whether that works: root has them all, and a disk may be there for reading.

    Raises:
        UsageError: it does not; `instead` says what to do.
    """
    made: list[pathlib.Path] = []
    try:
        made = [folder for folder in (directory, *directory.parents) if not folder.exists()]
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, prefix=".t2t-"):
            pass
    except OSError as error:
        raise UsageError(f"{directory} cannot be written ({error.strerror or error}): {instead}") from error
    finally:
        for folder in made:  # the innermost first
            with contextlib.suppress(OSError):
                folder.rmdir()


def num_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def list_files(directory: pathlib.Path) -> None:
    """Print every file under a directory with its size."""
    for file in sorted(path for path in directory.rglob("*") if path.is_file()):
        print(f"{file}  {file.stat().st_size / 1e6:,.1f} MB")


def print_settings(experiment: Experiment) -> None:
    """Print every setting with its value, one a line."""
    print_columns(config_values.flatten(experiment))
    print(flush=True)


def print_columns(values: Mapping[str, Any]) -> None:
    """Print names, the empty one as config, with their values behind them, one a line."""
    width = max(map(len, values), default=0) + 2
    for name, value in values.items():
        print(f"{name or 'config':<{width}}{value}")


def print_config(experiment: Experiment) -> None:
    """Print the experiment as JSON, as the run directory keeps it."""
    json.dump(config_values.to_json(experiment), sys.stdout, indent=2)
    print()
