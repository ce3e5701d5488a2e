"""Evaluation: every example once on any mesh, the same twice, perplexity as it is defined, texts with their metrics."""

import dataclasses
import json
import math

import jax
import pytest

from t2t.objectives.masked import MaskedLanguageModeling
from t2t.train import build, evaluate, initialize, tasks
from t2t.vocabulary import ByteVocabulary
from tests.models import tiny
from tests.train import tiny_run

pytestmark = pytest.mark.slow


def make(**changes):
    experiment = tiny_run.experiment(**changes)
    pieces = build.build(experiment, ByteVocabulary())
    tasks.register(experiment)
    return evaluate.Evaluator(pieces, tasks.to_evaluate(experiment)), initialize.fresh_params(pieces)


@pytest.fixture(scope="module")
def whole():
    evaluator, params = make(mesh={"data": 1, "fsdp": 8})
    return evaluator(params, 5)["tiny_span_corruption"]


def test_two_evaluations_are_equal_to_the_bit(whole):
    evaluator, params = make(mesh={"data": 1, "fsdp": 8})
    assert evaluator(params, 9)["tiny_span_corruption"] == whole


@pytest.mark.multi_device
@pytest.mark.parametrize("rows", [3, 8, 64])
def test_every_example_counts_once_whatever_the_rows_and_devices(whole, rows):
    evaluator, params = make(mesh={"data": 4, "tensor": 2}, evaluate={"batch_size": rows})
    values = evaluator(params, 5)["tiny_span_corruption"]
    assert values["examples"] == whole["examples"] > 8
    assert values["cross_entropy"] == pytest.approx(whole["cross_entropy"], rel=1e-5)
    assert values["accuracy"] == pytest.approx(whole["accuracy"], rel=1e-6)


def test_perplexity_is_the_exponential_of_the_cross_entropy_in_nats(whole):
    assert whole["perplexity"] == math.exp(whole["cross_entropy"])
    assert math.log(384) - 1 < whole["cross_entropy"] < math.log(384) + 1.5


def test_held_out_text_is_masked_for_evaluation_too():
    evaluator, params = make(
        model=dataclasses.replace(tiny.bert(), embed=dataclasses.replace(tiny.bert().embed, vocab_size=384)),
        objective=MaskedLanguageModeling(),
        data={"train": "tiny_mlm", "lengths": {"inputs": 16, "targets": 16}},
        evaluate={"tasks": ("tiny_mlm",)},
    )
    found = evaluator(params, 5)["tiny_mlm"]
    assert abs(found["cross_entropy"] - math.log(384)) < 1.5  # a model that sees the answers would soon be near 0
    assert found["accuracy"] < 0.2


def test_label_smoothing_is_for_training_alone(whole):
    evaluator, params = make(mesh={"data": 1, "fsdp": 8}, objective={"label_smoothing": 0.1})
    assert evaluator(params, 5)["tiny_span_corruption"] == whole


def test_examples_can_be_limited():
    evaluator, params = make(mesh={"data": 1, "fsdp": 8}, evaluate={"max_examples": 3})
    assert evaluator(params, 1)["tiny_span_corruption"]["examples"] == 3


def test_texts_are_generated_scored_and_kept(tmp_path):
    evaluator, params = make(evaluate={"tasks": ("tiny_first",)}, data={"lengths": {"inputs": 48, "targets": 8}})
    values = evaluator(params, 7, directory=tmp_path)["tiny_first"]
    assert {"accuracy", "cross_entropy", "perplexity", "examples"} <= values.keys()
    result = json.loads((tmp_path / "tiny_first/7.json").read_text())
    assert result == {
        "step": 7, "task": "tiny_first", "split": "validation", "metrics": values, "text_metrics": ["accuracy"],
        "baseline": {"accuracy": 10.0},
    }  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "tiny_first/predictions.jsonl").read_text().splitlines()]
    assert len(lines) == values["examples"] == 13
    right = [line["prediction"].strip() == line["target"].strip() for line in lines]
    assert values["accuracy"] == 100 * sum(right) / len(right)
    assert lines[0]["input"].startswith("first: ")


def test_values_that_are_not_finite_are_null_with_a_warning(tmp_path, monkeypatch, caplog):
    evaluator, params = make(evaluate={"tasks": ("tiny_first",)}, data={"lengths": {"inputs": 48, "targets": 8}})
    monkeypatch.setattr(evaluator, "losses", lambda *_: {"cross_entropy": float("nan"), "loss": 2.0})
    monkeypatch.setattr(evaluator, "predictions", lambda *_: ({"correlation": float("inf")}, []))
    values = evaluator(params, 7, directory=tmp_path)["tiny_first"]
    assert values == {"cross_entropy": None, "loss": 2.0, "correlation": None}
    assert "NaN" not in (tmp_path / "tiny_first/7.json").read_text()
    assert json.loads((tmp_path / "tiny_first/7.json").read_text())["metrics"] == values
    assert "tiny_first at step 7 gives no finite cross_entropy, correlation" in caplog.text


def test_it_stops_when_asked_to():
    experiment = tiny_run.experiment()
    pieces = build.build(experiment, ByteVocabulary())
    tasks.register(experiment)
    asked = []
    evaluator = evaluate.Evaluator(
        pieces, tasks.to_evaluate(experiment), should_stop=lambda: asked.append(None) or len(asked) == 2
    )
    with pytest.raises(evaluate.StoppedError):
        evaluator(jax.tree.map(lambda leaf: jax.numpy.zeros(leaf.shape), pieces.state.params), 1)
    assert len(asked) == 2


def fail(targets, predictions):
    raise KeyError("x")


def words(targets, predictions):
    return {"a": "high"}


def bare(targets, predictions):
    return 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"postprocess_fn": lambda text, **_: text[99]},
            "the postprocessing of the task tiny_first failed: IndexError",
        ),
        ({"metric_fns": [fail]}, "the metric function fail of the task tiny_first failed: KeyError: 'x'"),
        ({"metric_fns": [words]}, "the metric function words of the task tiny_first failed: ValueError"),
        ({"metric_fns": [bare]}, "the metric function bare of the task tiny_first failed: AttributeError"),
    ],
)
def test_functions_of_a_task_that_fail_are_named(change, message):
    experiment = tiny_run.experiment(evaluate={"tasks": ("tiny_first",)})
    tasks.register(experiment)
    task = tasks.to_evaluate(experiment)["tiny_first"].replace(**change)
    with pytest.raises(ValueError, match=message):
        evaluate._measure(task, [{}], ["a"], ["b"])
