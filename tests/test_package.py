"""The wheel alone, in an empty directory: the recipes are in it, nothing else is, and quickstart trains."""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

import t2t

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = ("t2t", "tasks", "configs", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> pathlib.Path:
    """A wheel built from a copy of the clone, so that the clone stays clean."""
    clone = tmp_path_factory.mktemp("clone")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, clone / name, ignore=shutil.ignore_patterns("__pycache__", "recipes"))
        else:
            shutil.copy(source, clone / name)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", "dist", "."]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = (clone / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> dict[str, str]:
    """The environment of a process that sees the wheel and its dependencies, and nothing of the clone."""
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)
    return {**os.environ, "PYTHONPATH": str(site), "XLA_FLAGS": ""}


SMALL = ("--train.steps", "2", "--optimizer.learning-rate.warmup-steps", "1", "--data.batch-size", "8")


def run(environment: dict[str, str], where: pathlib.Path, *arguments: str, python: str = sys.executable) -> str:
    command = [python, "-m", "t2t", *arguments]
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_the_recipes(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"t2t", f"t2t-{t2t.__version__}.dist-info"}
    recipes = {path.relative_to(ROOT).as_posix() for top in ("tasks", "configs") for path in (ROOT / top).rglob("*.py")}
    assert {name.removeprefix("t2t/recipes/") for name in names if name.startswith("t2t/recipes/")} == recipes


@pytest.mark.slow
def test_the_shipped_configs_are_found_in_an_empty_directory(installed, tmp_path):
    printed = run(installed, tmp_path, "train", "quickstart", "--print-config")
    assert '"name": "quickstart"' in printed
    assert "recipes" in run(installed, tmp_path, "doctor")


@pytest.mark.slow
def test_quickstart_trains_in_an_empty_directory(installed, tmp_path):
    run(installed, tmp_path, "train", "quickstart", *SMALL, "--evaluate.max-examples", "8")
    assert (tmp_path / "runs" / "quickstart" / "checkpoints" / "2").is_dir()
    run(installed, tmp_path, "export", "runs/quickstart", "exported")
    assert (tmp_path / "exported" / "model.safetensors").is_file()


@pytest.mark.nightly
def test_quickstart_trains_where_pip_has_installed_nothing_but_the_wheel(wheel, tmp_path):
    """With the dependencies that the wheel itself asks for, in an environment of its own (downloads 1 GB)."""
    python = str(tmp_path / "venv" / "bin" / "python")
    # Without PYTHONPATH, by which pip would hold the clone for t2t installed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"XLA_FLAGS": ""}
    for command in ([sys.executable, "-m", "venv", "venv"], [python, "-m", "pip", "install", "-q", str(wheel)]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    run(environment, empty, "train", "quickstart", *SMALL, "--evaluate.max-examples", "8", python=python)
    assert (empty / "runs" / "quickstart" / "checkpoints" / "2").is_dir()
    assert run(environment, empty, "presets", "--names", python=python)
    code = "import t2t, importlib.util; print(t2t.__file__); print(importlib.util.find_spec('torch'))"
    done = subprocess.run([python, "-c", code], cwd=empty, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(tmp_path / "venv")) and done.stdout.endswith("None\n")
