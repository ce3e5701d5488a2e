"""Which tasks a run learns and is evaluated on, with and without files of its own."""

import pytest

from t2t.data import file_source
from t2t.errors import UsageError
from t2t.train import tasks
from tests.train import tiny_run


def test_tasks_come_from_the_modules_of_the_config():
    experiment = tiny_run.experiment(evaluate={"tasks": ("tiny_mlm", "tiny_first")})
    tasks.register(experiment)
    assert tasks.to_train(experiment) == "tiny_span_corruption"
    assert list(tasks.to_evaluate(experiment)) == ["tiny_mlm", "tiny_first"]
    assert list(tasks.to_evaluate(experiment, ["tiny_causal_lm"])) == ["tiny_causal_lm"]


def test_a_module_that_cannot_be_imported_is_named():
    with pytest.raises(UsageError, match=r"tasks\.nowhere"):
        tasks.register(tiny_run.experiment(data={"modules": ("tasks.nowhere",)}))


def test_an_unknown_task_is_refused_with_a_suggestion():
    with pytest.raises(UsageError, match="tiny_span_corruption"):
        tasks.to_evaluate(tiny_run.experiment(evaluate={"tasks": ("tiny_span_corupt",)}))


def test_own_files_take_the_place_of_the_text(tmp_path):
    for name in ("train.txt", "valid.txt"):
        (tmp_path / name).write_text("some text\n")
    own = {"files": (str(tmp_path / "train.txt"),), "eval_files": (str(tmp_path / "valid.txt"),)}
    experiment = tiny_run.experiment(data=own, evaluate={"tasks": ("tiny_first",)})
    learned = tasks.to_train(experiment)
    assert learned.name == "tiny_span_corruption"
    assert isinstance(learned.source, file_source.FileSource)
    found = tasks.to_evaluate(experiment)
    assert list(found) == ["tiny_first", "tiny_span_corruption"]
    assert isinstance(found["tiny_span_corruption"].source, file_source.FileSource)
    without = tiny_run.experiment(data={"files": own["files"]})
    assert tasks.to_evaluate(without) == {}
    with pytest.raises(UsageError, match="mixture"):
        tasks.to_train(tiny_run.experiment(data={**own, "train": {"tiny_mlm": 1.0, "tiny_first": 1.0}}))


def test_the_best_checkpoint_needs_a_measurement():
    best = {"best": "tiny_first/accuracy", "every": 6}
    experiment = tiny_run.experiment(checkpoint=best)
    tasks.check_best(experiment, ["tiny_first"])
    with pytest.raises(UsageError, match="TASK/METRIC"):
        tasks.check_best(experiment, ["tiny_mlm"])
    with pytest.raises(UsageError, match=r"checkpoint\.every=5 must be a multiple of evaluate\.every=6"):
        tasks.check_best(tiny_run.experiment(checkpoint={**best, "every": 5}), ["tiny_first"])
