"""The directory of a run: self-contained, locked, and resumed only with the same experiment."""

import json
import pathlib
import subprocess
import sys

import pytest

from t2t import __version__, config
from t2t.errors import UsageError
from t2t.train import run_directory
from t2t.vocabulary import ByteVocabulary, Vocabulary
from tests.train import tiny_run


@pytest.fixture
def run(tmp_path):
    return run_directory.RunDirectory(tmp_path / "run")


def write(run, experiment, **options):
    about = run_directory.describe(experiment, command=["t2t", "train", "tiny"])
    run.write(about, experiment, vocabulary=ByteVocabulary(), **{"recipe": None, **options})


def test_config_json_says_what_was_run_and_with_what(run):
    experiment = tiny_run.experiment()
    write(run, experiment)
    content = json.loads(run.config.read_text())
    assert content["t2t"] == __version__
    assert config.from_json(content["experiment"]) == experiment
    assert content["command"] == ["t2t", "train", "tiny"]
    assert {"python", "jax", "orbax-checkpoint"} <= content["versions"].keys()
    assert len(content["git"]["t2t"]["revision"]) == 40
    assert Vocabulary.load(run.vocabulary) == ByteVocabulary()


def test_recipe_holds_config_file_and_task_modules_verbatim(run, tmp_path):
    recipe = tmp_path / "mine.py"
    recipe.write_text("# my config\n")
    write(run, tiny_run.experiment(), recipe=recipe)
    assert (run.recipe / "mine.py").read_text() == "# my config\n"
    copied = run.recipe / "tests/train/tiny_run.py"
    assert copied.read_bytes() == pathlib.Path(tiny_run.__file__).read_bytes()


def test_only_some_settings_may_change_on_resume(run):
    write(run, tiny_run.experiment())
    allowed = tiny_run.experiment(
        train={"steps": 99}, evaluate={"every": 3}, checkpoint={"keep": 1}, mesh={"data": 4, "fsdp": 2}
    )
    run.check_resumable(allowed, has_checkpoint=True)
    other = tiny_run.experiment(seed=4, data={"batch_size": 16}, train={"log_every": 2})
    with pytest.raises(UsageError) as error:
        run.check_resumable(other, has_checkpoint=True)
    for line in ("seed: 3 -> 4", "data.batch_size: 8 -> 16", "train.log_every: 4 -> 2", "--workdir"):
        assert line in str(error.value)
    run.check_resumable(other, has_checkpoint=False)


def test_a_directory_of_something_else_is_refused(run):
    run.path.mkdir()
    run.config.write_text('{"model_type": "t5"}')
    with pytest.raises(UsageError, match="something else than a run"):
        run.check_resumable(tiny_run.experiment(), has_checkpoint=False)
    run.config.write_text("{")
    with pytest.raises(UsageError, match="is not JSON"):
        run.read()


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UsageError, match=r"cannot be written.*--workdir"),
        run_directory.RunDirectory(tmp_path / "file" / "run").locked(),
    ):
        pass


def test_two_processes_cannot_train_in_one_directory(run):
    script = (
        "import fcntl, sys; file = open(sys.argv[1], 'a'); fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('locked', flush=True); sys.stdin.read()"
    )
    run.path.mkdir()
    command = [sys.executable, "-c", script, str(run.path / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with pytest.raises(UsageError, match="another process is training"), run.locked():
            pass
        process.stdin.close()
    with run.locked():
        pass


def test_evaluations_after_the_resumed_step_are_removed(run):
    folder = run.evaluations / "task"
    folder.mkdir(parents=True)
    for name in ("4.json", "8.json", "predictions.jsonl"):
        (folder / name).write_text("{}")
    run.cut_back(4)
    assert {path.name for path in folder.iterdir()} == {"4.json", "predictions.jsonl"}


def test_a_place_outside_git_has_no_revision(tmp_path):
    assert run_directory.git_revision(tmp_path) is None
