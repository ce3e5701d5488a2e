"""Finds configs and tasks: those of the working directory, and those that t2t ships.

Neither folder has an `__init__.py`, so Python merges a user's `tasks/` and `configs/` with ours (namespace packages):
the working directory comes first on `sys.path`, t2t's recipes last. The recipes are the root of a clone, or
`t2t/recipes/` in an installed wheel.
"""

import contextlib
import difflib
import importlib.util
import pathlib
import sys
import traceback
from collections.abc import Iterator
from typing import Any

from t2t import config_values
from t2t.config import Experiment
from t2t.errors import UsageError


def recipes_root() -> pathlib.Path:
    """The directory that holds the `configs/` and `tasks/` shipped with t2t."""
    package = pathlib.Path(__file__).resolve().parent
    installed = package / "recipes"
    return installed if installed.is_dir() else package.parent


def extend_path(*extra: pathlib.Path) -> None:
    """Make `tasks` and `configs` importable: the working directory first, `extra` and then the recipes last.

    Raises:
        UsageError: Where a folder with an `__init__.py` would hide t2t's own.
    """
    here = str(pathlib.Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    for root in (*extra, recipes_root()):
        if str(root) not in sys.path:
            sys.path.append(str(root))
    for name in ("tasks", "configs"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            raise UsageError(
                f"the Python package {name} at {spec.origin} hides the {name} that t2t ships; if it is yours, delete "
                "its __init__.py (the folder works without), else run t2t where that package is not installed"
            )


def task_modules() -> tuple[str, ...]:
    """The modules under `tasks/` of the working directory and of t2t: ("tasks.pydocs", ...)."""
    found = []
    for root in (pathlib.Path.cwd(), recipes_root()):
        found += [f"tasks.{path.stem}" for path in sorted((root / "tasks").glob("*.py")) if path.stem != "__init__"]
    return tuple(dict.fromkeys(found))


def check_modules(modules: tuple[str, ...]) -> None:
    """See that the modules of `data.modules` exist, without importing them (they import TensorFlow).

    Raises:
        UsageError: Naming the first that does not, and the closest one that does.
    """
    for name in modules:
        try:
            found = importlib.util.find_spec(name) is not None
        except (ImportError, ValueError):  # also for names that no module has, such as "" and ".x"
            found = False
        if not found:
            close = difflib.get_close_matches(name, task_modules(), n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(task_modules())}"
            raise UsageError(f"the task module {name!r} cannot be imported; {hint}")


def shipped_configs() -> tuple[str, ...]:
    """Names of the configs that may be given without a path: quickstart, pretrain/t5_small, ..."""
    names = []
    for root in (pathlib.Path.cwd(), recipes_root()):
        folder = root / "configs"
        names += [path.relative_to(folder).with_suffix("").as_posix() for path in sorted(folder.rglob("*.py"))]
    return tuple(dict.fromkeys(names))


def has_config(argument: str) -> bool:
    """Whether there is a config of that path or name."""
    return _existing_config(argument) is not None


def _existing_config(argument: str) -> pathlib.Path | None:
    given = pathlib.Path(argument)
    named = [root / "configs" / f"{argument.removesuffix('.py')}.py" for root in (pathlib.Path.cwd(), recipes_root())]
    for path in [given, *named] if given.suffix == ".py" else named:
        if path.is_file():
            return path.resolve()
    return None


def config_path(argument: str) -> pathlib.Path:
    """The file of a config given as a path or by name; the working directory's configs come before the shipped ones.

    Raises:
        UsageError: Where there is none, with the closest name.
    """
    found = _existing_config(argument)
    if found is not None:
        return found
    names = shipped_configs()
    by_last_part = {name.rpartition("/")[2]: name for name in names}
    close = difflib.get_close_matches(argument, [*names, *by_last_part], n=1, cutoff=0.5)
    hint = f"did you mean {by_last_part.get(close[0], close[0])}? " if close else ""
    raise UsageError(f"there is no config {argument}; {hint}A config is a Python file, or one of {', '.join(names)}")


def load_config(argument: str) -> tuple[Experiment, str, pathlib.Path]:
    """The experiment of a config given as a path or by name, its docstring and its file.

    Raises:
        UsageError: Where there is no such config, its file cannot be run, or it has no `get_config` that returns an
            `Experiment` whose settings are of the types of their fields.
    """
    path = config_path(argument)
    extend_path()
    with _errors_of(path):
        module = _load_module(path)
    if not callable(getattr(module, "get_config", None)):
        raise UsageError(f"{path} has no function get_config() that returns an Experiment")
    with _errors_of(path):
        experiment = module.get_config()
    if not isinstance(experiment, Experiment):
        raise UsageError(f"get_config() of {path} returned {type(experiment).__name__}; it must return an Experiment")
    with _errors_of(path):
        config_values.check_types(experiment)
    return experiment, (module.__doc__ or "").strip(), path


@contextlib.contextmanager
def _errors_of(path: pathlib.Path) -> Iterator[None]:
    """What the code of a config raises is an error of the config, and the message says in which line.

    All but errors of the system, such as a file that cannot be read now.
    """
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # the code of a user may raise anything
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        place = f"{path}:{lines[-1]}" if lines else str(path)
        message = str(error) if isinstance(error, ValueError | TypeError) else f"{type(error).__name__}: {error}"
        raise UsageError(f"{place}: {message}") from error


def _load_module(path: pathlib.Path) -> Any:
    """The module of a file that need not be on the path; its name collides with no module that is."""
    spec = importlib.util.spec_from_file_location("t2t_config", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses that the file defines look up their own module
    spec.loader.exec_module(module)
    return module
