"""A run from the command line, from its first step to an exported model: every command on one tiny run."""

import json
import pathlib
import shutil
import sys

import pytest

import t2t
from t2t import cli

pytestmark = pytest.mark.slow

CONFIG = '''"""Upper case to lower case: a run that takes seconds."""

from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import t5
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.optimizer import AdamW, Constant


def get_config():
    return Experiment(
        name="lower",
        model=t5.t5(num_layers=1, d_model=8, num_heads=2, head_dim=4, d_ff=16, vocab_size=384, dropout=0.0),
        data=Data(modules=("tasks.letters",), train="lower", lengths={"inputs": 12, "targets": 6}, batch_size=8),
        objective=LanguageModeling(),
        optimizer=AdamW(learning_rate=Constant(peak=1e-2)),
        train=Train(steps=4, log_every=2),
        evaluate=Evaluate(tasks=("lower",), every=4),
        checkpoint=Checkpoint(every=2),
    )
'''

CAUSAL = (
    CONFIG.replace("families import t5", "families import gpt2")
    .replace("t5.t5(num_layers=1", "gpt2.gpt2(max_positions=32, num_layers=1")
    .replace("head_dim=4, d_ff=16, ", "")
    .replace('"lower"', '"causal"', 1)
)

TASKS = '''"""Words to lower case."""

from t2t.data import registry
from t2t.train import text_metrics

WORDS = ["ONE", "TWO", "SIX", "TEN"]


def rows(split):
    return [{"inputs": word, "targets": word.lower()} for word in WORDS]


def baseline(task, split="validation", max_examples=None):
    return {"accuracy": 25.0}


registry.add_text_to_text(
    "lower", registry.TextSource(rows, splits=("train", "validation", "test")), metric_fns=[text_metrics.accuracy]
)
'''


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> pathlib.Path:
    """A working directory with a config, its tasks and a trained run in runs/lower."""
    directory = tmp_path_factory.mktemp("here")
    for name, text in (("configs/lower.py", CONFIG), ("configs/causal.py", CAUSAL), ("tasks/letters.py", TASKS)):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        patch.setattr(sys, "path", [str(directory), *sys.path])
        assert cli.main(["train", "lower"]) == 0
        yield directory


def test_the_run_holds_what_its_directory_promises(here):
    run = here / "runs" / "lower"
    for name in ("config.json", "recipe/lower.py", "recipe/tasks/letters.py", "vocabulary", "metrics.jsonl", "log.txt"):
        assert (run / name).exists(), name
    assert json.loads((run / "eval" / "lower" / "4.json").read_text())["baseline"] == {"accuracy": 25.0}


def test_the_same_command_goes_on(here, capsys):
    assert cli.main(["train", "lower", "--train.steps", "6"]) == 0
    assert "checkpoints/4" in capsys.readouterr().out
    assert cli.main(["train", "runs/lower", "--train.steps", "6"]) == 0
    assert (here / "runs" / "lower" / "checkpoints" / "6").is_dir()


def test_another_config_is_refused_with_the_difference(here, capsys):
    assert cli.main(["train", "lower", "--seed", "1"]) == 2
    assert "seed: 0 -> 1" in capsys.readouterr().err


def test_eval_prints_metrics_beside_baselines(here, capsys):
    assert cli.main(["eval", "runs/lower", "--split", "test"]) == 0
    out = capsys.readouterr().out
    assert "lower (4 examples)" in out
    assert "baseline 25" in out
    assert list((here / "runs" / "lower" / "eval_test" / "lower").glob("*.json"))


def test_eval_refuses_a_split_that_is_not_there(here, capsys):
    assert cli.main(["eval", "runs/lower", "--split", "dev"]) == 2
    assert "lower has no split 'dev'; it has train, validation, test" in capsys.readouterr().err


def test_values_that_are_not_finite_are_shown_as_nan(here, capsys, monkeypatch):
    from t2t.train import evaluate

    monkeypatch.setattr(evaluate.Evaluator, "predictions", lambda *_: ({"accuracy": float("nan")}, []))
    assert cli.main(["eval", "runs/lower", "--output", "strange/eval"]) == 0
    assert "accuracy                   nan    baseline 25" in capsys.readouterr().out
    (here / "strange" / "metrics.jsonl").write_text("", encoding="utf-8")
    assert cli.main(["report", "strange"]) == 0
    assert "nan" in capsys.readouterr().out


def test_eval_of_a_config_needs_parameters(here, capsys):
    assert cli.main(["eval", "lower"]) == 2
    assert "give --init" in capsys.readouterr().err
    assert cli.main(["eval", "lower", "--init", "runs/lower"]) == 0
    assert "lower (4 examples)" in capsys.readouterr().out


def test_eval_names_the_checkpoints_there_are(here, capsys):
    assert cli.main(["eval", "runs/lower", "--step", "3"]) == 2
    assert "has no checkpoint 3; it has" in capsys.readouterr().err


def test_generate_and_score_keep_the_order_and_survive_export(here, capsys):
    (here / "in.txt").write_text("ONE\nSIX\nTWO\n", encoding="utf-8")
    assert cli.main(["generate", "runs/lower", "--input", "in.txt", "--max-tokens", "4", "--batch-size", "2"]) == 0
    ours = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["input"] for row in ours] == ["ONE", "SIX", "TWO"]

    assert cli.main(["export", "runs/lower", "exported"]) == 0
    assert "model.safetensors" in capsys.readouterr().out
    assert cli.main(["export", "runs/lower", "exported"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert cli.main(["generate", "exported", "--input", "in.txt", "--max-tokens", "4", "--output", "out.jsonl"]) == 0
    theirs = [json.loads(line) for line in (here / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    # An untrained model writes bytes that are no UTF-8: we leave them out, the tokenizers library shows U+FFFD.
    assert [row["output"].replace("\ufffd", "") for row in theirs] == [row["output"] for row in ours]
    assert [row["input"] for row in theirs] == ["ONE", "SIX", "TWO"]

    (here / "pairs.txt").write_text("ONE\tone\nTWO\ttwo\n", encoding="utf-8")
    scores = []
    for model in ("runs/lower", "exported"):
        assert cli.main(["score", model, "--input", "pairs.txt"]) == 0
        scores.append([json.loads(line)["score"] for line in capsys.readouterr().out.splitlines()])
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)
    assert len(scores[0]) == 2
    assert max(scores[0]) < 0


def test_report_reads_the_files_of_the_run(here, capsys):
    assert cli.main(["report", "runs/lower"]) == 0
    out = capsys.readouterr().out
    assert "lower" in out
    assert "accuracy" in out
    assert "25.0" in out
    assert cli.main(["report", "runs/none"]) == 2


def test_a_dry_run_shows_everything_and_writes_nothing(here, capsys):
    assert cli.main(["train", "lower", "--name", "dry", "--dry-run"]) == 0
    out = capsys.readouterr().out
    for part in ("optimizer.learning_rate.peak", "embed/embedding", "encoder_input_tokens", "compiles in"):
        assert part in out
    assert not (here / "runs" / "dry").exists()


def contents(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_dry_run_of_a_run_is_of_what_would_go_on(here, capsys):
    shutil.copytree("runs/lower", "origin")
    tuned = ["train", "lower", "--name", "tuned", "--train.steps", "2"]
    assert cli.main([*tuned, "--init", "origin"]) == 0
    shutil.rmtree("origin")  # a run that goes on needs it no more
    before, _ = contents(here / "runs" / "tuned"), capsys.readouterr()
    assert cli.main(["train", "runs/tuned", "--dry-run"]) == 0
    assert "would go on from" in capsys.readouterr().out
    assert cli.main(["train", "runs/tuned", "--seed", "9", "--dry-run"]) == 2
    assert "seed: 0 -> 9" in capsys.readouterr().err
    assert contents(here / "runs" / "tuned") == before


def test_a_dry_evaluation_shows_the_data_and_measures_nothing(here, capsys):
    before = contents(here / "runs" / "lower")
    assert cli.main(["eval", "runs/lower", "--split", "test", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "lower test: 4 examples" in out
    assert "decoder_target_tokens, row 0, example 1" in out
    assert "accuracy" not in out
    assert contents(here / "runs" / "lower") == before
    assert cli.main(["eval", "runs/lower", "--split", "dev", "--dry-run"]) == 2


def test_a_changed_vocabulary_is_found_and_the_copy_of_the_run_is_mended(here, capsys):
    assert cli.main(["train", "lower", "--name", "kept", "--train.steps", "2"]) == 0
    kept = here / "runs" / "kept" / "checkpoints" / "2" / "vocabulary" / "vocabulary.json"
    whole = kept.read_text(encoding="utf-8")
    kept.write_text(whole.replace("true", "false", 1), encoding="utf-8")
    for command in (["train", "runs/kept"], ["eval", "runs/kept"], ["export", "runs/kept", "kept-exported"]):
        capsys.readouterr()
        assert cli.main(command) == 1
        assert "vocabulary/vocabulary.json does not match its hash" in capsys.readouterr().err
    kept.write_text(whole, encoding="utf-8")
    shown = here / "runs" / "kept" / "vocabulary" / "vocabulary.json"
    shown.write_text("{}", encoding="utf-8")
    assert cli.main(["train", "runs/kept"]) == 0
    assert shown.read_text(encoding="utf-8") == whole


def test_tasks_are_listed_and_shown(here, capsys):
    assert cli.main(["tasks", "lower", "--modules", "tasks.letters", "--examples", "1"]) == 0
    out = capsys.readouterr().out
    assert "lower: text to text, 4 examples in train" in out
    assert "'one' (4 tokens)" in out
    assert cli.main(["tasks", "lowr", "--modules", "tasks.letters"]) == 2
    assert cli.main(["tasks", "lower", "--modules", "tasks.letters", "--split", "dev"]) == 2
    assert "it has train, validation, test" in capsys.readouterr().err


def test_a_vocabulary_is_trained_on_files(here, capsys):
    text = "\n".join(f"the {word} of number {i}" for i, word in enumerate(["house", "tree", "river", "stone"] * 20))
    (here / "text.txt").write_text(text, encoding="utf-8")
    arguments = ["vocab", "train", "--input", "text.txt", "--size", "130", "--output", "voc"]
    assert cli.main(arguments) == 0
    assert "130 ids" in capsys.readouterr().out
    assert cli.main([*arguments[:-3], "100000", "--output", "voc2"]) == 1
    assert "too large for this text" in capsys.readouterr().err
    assert cli.main(["vocab", "train", "--size", "130", "--output", "voc"]) == 2
    assert cli.main(["train", "lower", "--name", "spm", "--vocabulary", "voc", "--train.steps", "2"]) == 0


def test_a_causal_decoder_generates_from_the_prompts_it_was_evaluated_on(here):
    assert cli.main(["train", "causal"]) == 0
    (file,) = (here / "runs" / "causal").glob("eval/lower/*predictions.jsonl")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    model = t2t.load("runs/causal")
    model.export("causal-exported")
    exported = t2t.load("causal-exported")
    assert exported.start_id == model.start_id == 0
    assert model.generate([row["input"] for row in rows], max_tokens=6) == [row["prediction"] for row in rows]
