"""Configs by path and name, and tasks of the working directory beside those of t2t."""

import importlib
import pathlib
import sys

import pytest

from t2t import finding
from t2t.errors import UsageError

CONFIG = '''"""A config of my own."""
from t2t.config import Data, Experiment, Train

def get_config():
    return Experiment(name="mine", model=None, data=Data(train="a", lengths={}, batch_size=1), objective=None,
                      optimizer=None, train=Train(steps=1))
'''


@pytest.fixture
def here(tmp_path, monkeypatch) -> pathlib.Path:
    """An empty working directory, as a fresh process sees it; what was imported comes back afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    kept = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in ("tasks", "configs")}
    for name in kept:
        del sys.modules[name]
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tasks", "configs")]:
        del sys.modules[name]
    sys.modules.update(kept)
    importlib.invalidate_caches()


def write(path: pathlib.Path, text: str) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_config_is_found_by_path_and_by_name(here):
    mine = write(here / "configs" / "sub" / "mine.py", CONFIG)
    for argument in ("configs/sub/mine.py", str(mine), "sub/mine", "sub/mine.py"):
        experiment, description, path = finding.load_config(argument)
        assert (experiment.name, description, path) == ("mine", "A config of my own.", mine)


def test_a_name_with_a_dot_is_no_suffix(here):
    mine = write(here / "configs" / "t5-v1.1.py", CONFIG)
    for argument in ("t5-v1.1", "t5-v1.1.py"):
        assert finding.config_path(argument) == mine


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ndef get_config(:\n", r"odd.py: SyntaxError: .*\(odd.py, line 2\)"),
        ("x = 1\ny = z\n", r"odd.py:2: NameError: name 'z' is not defined"),
        ("import t2t.nowhere\n", r"odd.py:1: ModuleNotFoundError: No module named 't2t.nowhere'"),
        (
            "from t2t.config import Train\n\ndef get_config():\n    return Train(steps=0)\n",
            r"odd.py:4: train.steps is 0",
        ),
        (
            f"{CONFIG}\nmine = get_config()\nobject.__setattr__(mine, 'seed', 1.5)\nget_config = lambda: mine\n",
            r"odd.py: seed is 1.5 \(float\); it must be int",
        ),
    ],
)
def test_a_config_that_cannot_be_run_says_where(here, text, message):
    write(here / "odd.py", text)
    with pytest.raises(UsageError, match=message):
        finding.load_config("odd.py")


def test_shipped_configs_are_found_from_anywhere(here):
    assert "quickstart" in finding.shipped_configs()
    assert finding.config_path("quickstart") == finding.recipes_root() / "configs" / "quickstart.py"


def test_configs_of_the_working_directory_come_first(here):
    mine = write(here / "configs" / "quickstart.py", CONFIG)
    assert finding.config_path("quickstart") == mine


def test_a_misspelt_config_gets_a_suggestion(here):
    with pytest.raises(UsageError, match="did you mean quickstart?"):
        finding.config_path("quikstart")
    write(here / "configs" / "deep" / "mine.py", CONFIG)
    with pytest.raises(UsageError, match="did you mean deep/mine?"):
        finding.config_path("mine")


@pytest.mark.parametrize(
    ("text", "message"), [("x = 1", "no function get_config"), ("def get_config(): return 3", "returned int")]
)
def test_a_config_must_return_an_experiment(here, text, message):
    write(here / "odd.py", text)
    with pytest.raises(UsageError, match=message):
        finding.load_config("odd.py")


def test_own_tasks_stand_beside_the_shipped_ones(here, monkeypatch):
    monkeypatch.syspath_prepend(str(here))
    write(here / "tasks" / "mine.py", "value = 3")
    finding.extend_path()
    assert importlib.import_module("tasks.mine").value == 3
    assert importlib.util.find_spec("tasks.pydocs") is not None
    finding.check_modules(("tasks.mine", "tasks.pydocs"))
    with pytest.raises(UsageError, match=r"'tasks.pydoc' cannot be imported.*did you mean tasks.pydocs?"):
        finding.check_modules(("tasks.pydoc",))


def test_a_package_that_hides_the_shipped_tasks_is_named(here, monkeypatch):
    monkeypatch.syspath_prepend(str(here))
    hiding = write(here / "tasks" / "__init__.py", "")
    with pytest.raises(UsageError, match=f"{hiding} hides the tasks that t2t ships"):
        finding.extend_path()
