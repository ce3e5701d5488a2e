"""What all commands refuse of their arguments alike: names that no file can have, configs of runs that cannot be."""

import json

import pytest

from t2t import cli
from t2t.commands import arguments
from t2t.errors import UsageError

LONG = "n" * 300


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("some text\n")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ["report", LONG],
        ["train", LONG],
        ["train", "quickstart", "--init", LONG],
        ["train", "quickstart", "--data.files", LONG],
        ["eval", LONG],
        ["cache", "quickstart", "--output", LONG],
        ["tasks", "--vocabulary", LONG],
        ["audit", "file", "--kept", f"{LONG}.jsonl"],
        ["vocab", "train", "--input", f"{LONG}*", "--size", "300", "--output", "out"],
        ["import", LONG, "out"],
        ["export", "file", LONG],
        ["generate", LONG, "--input", "file"],
        ["score", "file", "--input", LONG],
        ["tokenize", "bytes", "text", "--compare", "/".join(30 * ["n" * 200])],
    ],
)
def test_names_that_no_file_can_have(here, capsys, command):
    assert cli.main(command) == 2
    assert "its name is too long" in capsys.readouterr().err
    assert [path.name for path in here.iterdir()] == ["file"]


def test_other_names_and_long_texts_pass(here):
    arguments.check_name("n" * 255)
    arguments.check_name("nowhere/at/all")
    assert cli.main(["tokenize", "bytes", LONG, "--show", "0"]) == 0


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        '{"experiment": {"class": 5}}',
        json.dumps({"experiment": {"class": "t2t.config.Data", "train": 5}}),
    ],
)
def test_a_config_of_a_run_that_cannot_be(here, content):
    (here / "run").mkdir()
    (here / "run" / "config.json").write_text(content)
    with pytest.raises(UsageError, match=r"run/config.json (is not JSON|\(written by t2t None\) cannot be read)"):
        arguments.find_experiment("run")
