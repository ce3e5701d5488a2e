"""Where a command cannot write, it says so before it works, and what no option mends before what one does."""

import json
import sys

import pytest

from t2t import cli
from t2t.commands import arguments
from t2t.errors import UsageError


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a file of text, in which nothing is to be left behind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("some text\n")
    yield tmp_path
    assert not list(tmp_path.glob("deep*"))


def test_a_directory_is_tried_and_left_as_it_was(here):
    arguments.check_writable(here / "deep" / "er", instead="give another")
    (here / "there").mkdir()
    arguments.check_writable(here / "there", instead="give another")
    assert list((here / "there").iterdir()) == []


@pytest.mark.parametrize("path", ["file", "file/out", "file/a/b", "/proc/t2t/out"])
def test_a_directory_that_cannot_be_written_is_named_with_the_reason(here, path):
    with pytest.raises(UsageError, match=rf"{path} cannot be written \(.* .*\): give another"):
        arguments.check_writable(here / path, instead="give another")


def test_what_was_made_for_a_try_that_failed_is_taken_away(here, monkeypatch):
    def fail(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(arguments.tempfile, "NamedTemporaryFile", fail)
    with pytest.raises(UsageError, match=r"deep/er cannot be written \(Permission denied\)"):
        arguments.check_writable(here / "deep" / "er", instead="give another")


@pytest.mark.parametrize(
    "command",
    [
        ["export", "no_such_model", "file/out"],
        ["import", "no_such_model", "file/out"],
        ["vocab", "train", "--input", "file", "--size", "300", "--output", "file/out"],
        ["generate", "no_such_model", "--input", "file", "--output", "file/out"],
        ["score", "no_such_model", "--input", "file", "--output", "file/deep/out"],
    ],
)
def test_commands_find_out_before_they_open_a_model(here, capsys, command):
    assert cli.main(command) == 2
    error = capsys.readouterr().err
    assert "cannot be written" in error and "no_such_model" not in error


@pytest.mark.parametrize(
    ("command", "there"),
    [
        ("export", {"t2t": "0.1.0", "experiment": {}}),
        ("export", {"t2t": "0.1.0", "model": {}, "source": ""}),
        ("import", {"t2t": "0.1.0", "experiment": {}}),
        ("import", {"model_type": "t5"}),
    ],
)
def test_what_would_be_destroyed_is_refused_for_good(here, capsys, command, there):
    (here / "taken").mkdir()
    (here / "taken" / "config.json").write_text(json.dumps(there))
    for overwrite in ([], ["--overwrite"]):
        assert cli.main([command, "no_such_model", "taken", *overwrite]) == 2
        error = capsys.readouterr().err
        assert "choose another directory" in error and "--overwrite" not in error
    assert json.loads((here / "taken" / "config.json").read_text()) == there


@pytest.mark.parametrize(("missing", "said"), [(["torch"], "torch"), (["torch", "transformers"], "torch and transf")])
def test_a_verification_that_cannot_be_is_refused_before_anything_is_written(here, capsys, monkeypatch, missing, said):
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    assert cli.main(["export", "no_such_model", "deep", "--verify"]) == 2
    error = capsys.readouterr().err
    assert f"{said}" in error and f"pip install {' '.join(missing)}" in error
