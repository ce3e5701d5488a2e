"""Which tasks a run learns and is evaluated on, with and without files of its own."""

import pytest

from t2t.data import file_source, registry, templates
from t2t.errors import UsageError
from t2t.train import build, tasks
from t2t.vocabulary import ByteVocabulary
from tests.train import tiny_run


def test_tasks_come_from_the_modules_of_the_config():
    experiment = tiny_run.experiment(evaluate={"tasks": ("tiny_mlm", "tiny_first")})
    tasks.register(experiment)
    assert tasks.to_train(experiment) == "tiny_span_corruption"
    assert list(tasks.to_evaluate(experiment)) == ["tiny_mlm", "tiny_first"]
    assert list(tasks.to_evaluate(experiment, ["tiny_causal_lm"])) == ["tiny_causal_lm"]


def test_a_mixture_is_evaluated_task_by_task():
    registry.add_mixture("tiny_mixed", {"tiny_mlm": 1.0, "tiny_first": 2.0})
    experiment = tiny_run.experiment(evaluate={"tasks": ("tiny_mixed", "tiny_causal_lm")})
    assert list(tasks.to_evaluate(experiment)) == ["tiny_first", "tiny_mlm", "tiny_causal_lm"]
    with pytest.raises(UsageError, match="tiny_first has no split 'dev'"):
        tasks.to_evaluate(experiment, ["tiny_mixed"], split="dev")
    tasks.check_best(tiny_run.experiment(checkpoint={"best": "tiny_first/accuracy", "every": 6}), ["tiny_first"])


def test_a_module_that_cannot_be_imported_is_named():
    with pytest.raises(UsageError, match=r"tasks\.nowhere"):
        tasks.register(tiny_run.experiment(data={"modules": ("tasks.nowhere",)}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ndef f(:\n", "SyntaxError"),
        ("x = 1\nraise KeyError(3)\n", r"module_at_fault.py:2\) cannot be imported: KeyError: 3"),
    ],
)
def test_what_a_module_raises_is_told_with_its_line(tmp_path, monkeypatch, text, message):
    (tmp_path / "module_at_fault.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=f"the task module module_at_fault.*{message}"):
        tasks.import_modules(["module_at_fault"])


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
    for key in own:
        mixture = tiny_run.experiment(data={key: own[key], "train": {"tiny_mlm": 1.0, "tiny_first": 1.0}})
        for chosen in (tasks.to_train, tasks.to_evaluate):
            with pytest.raises(UsageError, match="mixture"):
                chosen(mixture)


def test_only_files_that_are_read_must_be_there(tmp_path):
    (tmp_path / "valid.txt").write_text("some text\n")
    own = {"files": (str(tmp_path / "train.txt"),), "eval_files": (str(tmp_path / "valid.txt"),)}
    experiment = tiny_run.experiment(data=own)
    assert tasks.to_evaluate(experiment)["tiny_span_corruption"].splits == ("validation",)
    for needs_them in (tasks.to_train, tasks.check_trained, lambda run: tasks.to_evaluate(run, split="train")):
        with pytest.raises(UsageError, match=r"train\.txt"):
            needs_them(experiment)


def test_held_out_instructions_are_shown_solved_examples_of_the_training_file(tmp_path):
    for name in ("train", "valid"):
        (tmp_path / f"{name}.csv").write_text(f"text,mood\n{name} 0,sad\n{name} 1,glad\n")
    source = registry.TextSource(lambda split: [{"text": "a", "mood": "b"}], splits=("train", "validation"))
    template = templates.Template(inputs="{text}", targets="{mood}")
    templates.add_templates("tiny_moods", source, templates=(template,), shots=1)
    own = {"files": (str(tmp_path / "train.csv"),), "eval_files": (str(tmp_path / "valid.csv"),)}

    def evaluated(task):
        (found,) = tasks.to_evaluate(tiny_run.experiment(data={"train": task, **own}, evaluate={"tasks": ()})).values()
        return found

    shown = evaluated("tiny_moods_few_shot").preprocessors[0].keywords["solved"]()
    assert [row["text"] for row in shown] == ["train 0", "train 1"]
    (tmp_path / "train.csv").unlink()
    assert evaluated("tiny_moods_zero_shot").splits == ("validation",)
    with pytest.raises(UsageError, match=r"data.files: .*train\.csv"):
        evaluated("tiny_moods_few_shot")


def test_the_split_that_is_evaluated_must_be_there():
    source = registry.TextSource(tiny_run.sentences, splits=("train", "test"))
    registry.add_objectives("tiny_tested", source)
    experiment = tiny_run.experiment(evaluate={"tasks": ("tiny_tested_mlm",)})
    assert list(tasks.to_evaluate(experiment, split="test")) == ["tiny_tested_mlm"]
    with pytest.raises(UsageError, match=r"tiny_tested_mlm has no split 'validation'; it has train, test"):
        tasks.to_evaluate(experiment)
    with pytest.raises(UsageError, match=r"no split 'test'; it has train, validation"):
        tasks.to_evaluate(tiny_run.experiment(), split="test")


def test_the_best_checkpoint_needs_a_measurement():
    best = {"best": "tiny_first/accuracy", "every": 6}
    experiment = tiny_run.experiment(checkpoint=best)
    tasks.check_best(experiment, ["tiny_first"])
    with pytest.raises(UsageError, match="TASK/METRIC"):
        tasks.check_best(experiment, ["tiny_mlm"])
    with pytest.raises(UsageError, match=r"checkpoint\.every=5 must be a multiple of evaluate\.every=6"):
        tasks.check_best(tiny_run.experiment(checkpoint={**best, "every": 5}), ["tiny_first"])


def test_a_best_metric_that_no_evaluation_gives_is_found_out():
    results = {"tiny_first": {"accuracy": 50.0, "loss": None}}
    for best, known in (("tiny_first/accuracy", True), ("tiny_first/loss", True), ("tiny_first/acuracy", False)):
        experiment = tiny_run.experiment(checkpoint={"best": best})
        assert (tasks.never_measured(experiment, results) is None) == known
        assert tasks.never_measured(experiment, {}) is None
    error = tasks.never_measured(experiment, results)
    assert "it can be one of tiny_first/accuracy, tiny_first/loss" in str(error)
    assert tasks.never_measured(tiny_run.experiment(), results) is None


def test_what_is_learned_must_be_there_and_suit_the_model():
    with pytest.raises(UsageError, match=r"data.train: .*tiny_mlm"):
        tasks.check_trained(tiny_run.experiment(data={"train": "tiny_mlmm"}))
    experiment = tiny_run.experiment(data={"train": "tiny_causal_lm"})
    tasks.check_trained(experiment)
    converter = build.build(experiment, ByteVocabulary()).converter
    with pytest.raises(UsageError, match=r"data.train: Task 'tiny_causal_lm'.*lacks \['inputs'\]"):
        tasks.check_trained(experiment, converter=converter)
