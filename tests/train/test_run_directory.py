"""The directory of a run: self-contained, locked, and resumed only with the same experiment."""

import json
import pathlib
import subprocess
import sys

import pytest

from t2t import __version__, config_values
from t2t.errors import UsageError
from t2t.train import run_directory
from t2t.vocabulary import ByteVocabulary, Vocabulary
from tests.train import tiny_run


@pytest.fixture
def run(tmp_path):
    return run_directory.RunDirectory(tmp_path / "run")


def write(run, experiment, **options):
    about = run_directory.describe(experiment, command=["t2t", "train", "tiny"])
    run.write(about, experiment, vocabulary=ByteVocabulary(), **{"step": 0, "recipe": None, **options})


def test_config_json_says_what_was_run_and_with_what(run):
    experiment = tiny_run.experiment()
    write(run, experiment)
    content = json.loads(run.config.read_text())
    assert content["t2t"] == __version__
    assert config_values.from_json(content["experiment"]) == experiment
    assert content["command"] == ["t2t", "train", "tiny"]
    assert {"python", "jax", "orbax-checkpoint"} <= content["versions"].keys()
    assert len(content["git"]["t2t"]["revision"]) == 40
    assert Vocabulary.load(run.vocabulary) == ByteVocabulary()


def test_config_json_keeps_with_what_a_run_was_started_before(run):
    experiment = tiny_run.experiment()
    for step, word in ((0, "lost"), (0, "first"), (4, "second"), (6, "third")):  # a run at step 0 begins anew
        about = run_directory.describe(experiment, command=["t2t", "train", word])
        run.write(about, experiment, vocabulary=ByteVocabulary(), step=step, recipe=None)
    content = json.loads(run.config.read_text())
    assert content["command"] == ["t2t", "train", "third"]
    assert [start["command"][-1] for start in content["earlier"]] == ["first", "second"]
    assert all(start["versions"] == content["versions"] for start in content["earlier"])


def test_recipe_holds_config_file_and_task_modules_verbatim(run, tmp_path):
    recipe = tmp_path / "mine.py"
    recipe.write_text("# my config\n")
    write(run, tiny_run.experiment(), recipe=recipe)
    assert (run.recipe / "mine.py").read_text() == "# my config\n"
    copied = run.recipe / "tests/train/tiny_run.py"
    assert copied.read_bytes() == pathlib.Path(tiny_run.__file__).read_bytes()


def test_a_module_that_changed_is_named_and_kept_beside_the_one_the_run_began_with(run, tmp_path, monkeypatch, caplog):
    module = tmp_path / "changing_task.py"
    monkeypatch.syspath_prepend(str(tmp_path))
    experiment = tiny_run.experiment(data={"modules": ("changing_task",)})
    for step, text in ((0, "x = 1\n"), (4, "x = 1\n"), (6, "x = 2\n"), (8, "x = 2\n"), (10, "x = 1\n")):
        module.write_text(text)
        caplog.clear()
        write(run, experiment, step=step)
        warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert len(warned) == (step in (6, 10))
        assert all(str(module) in line and str(run.recipe) in line for line in warned)
    copies = {str(path.relative_to(run.recipe)): path.read_text() for path in run.recipe.rglob("*.py")}
    assert copies == {
        "changing_task.py": "x = 1\n",
        "from_step_6/changing_task.py": "x = 2\n",
        "from_step_10/changing_task.py": "x = 1\n",
    }


def test_a_run_that_begins_again_replaces_its_recipe(run, tmp_path, caplog):
    recipe = tmp_path / "mine.py"
    for text in ("# one\n", "# two\n"):
        recipe.write_text(text)
        write(run, tiny_run.experiment(), recipe=recipe)
    assert (run.recipe / "mine.py").read_text() == "# two\n"
    assert not caplog.records


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
        with pytest.raises(run_directory.BusyError, match="another process is training"), run.locked():
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


@pytest.mark.parametrize("path", ["gs://bucket/run", pathlib.Path("s3://bucket/run")])
def test_addresses_of_object_stores_are_refused_with_the_ways_there_are(path):
    with pytest.raises(UsageError, match=r"object store.*Mount the bucket.*local --workdir"):
        run_directory.RunDirectory(path)
