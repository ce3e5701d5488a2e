"""A run from the command line, from its first step to an exported model: every command on one tiny run."""

import json
import pathlib
import shutil
import sys

import numpy as np
import pytest

import t2t
from t2t import cli, config_values
from t2t.hf.config_map import InexpressibleError

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

MASKED = '''"""A masked encoder that takes seconds."""

from t2t import heads
from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import bert
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.train.optimizer import AdamW, Constant


def get_config():
    model = bert.bert(num_layers=1, d_model=8, num_heads=2, d_ff=16, max_positions=16, vocab_size=384)
    lengths = {"inputs": 16, "targets": 16, "predictions": 5}
    return Experiment(
        name="masked",
        model=bert.with_head(model, heads.MaskedLM()),
        data=Data(modules=("tasks.letters",), train="letters_mlm", lengths=lengths, batch_size=8),
        objective=MaskedLanguageModeling(),
        optimizer=AdamW(learning_rate=Constant(peak=1e-2)),
        train=Train(steps=4, log_every=2),
        evaluate=Evaluate(tasks=("letters_mlm",), every=4),
        checkpoint=Checkpoint(every=2),
    )
'''

PREFIX = (
    CAUSAL.replace("model=gpt2.gpt2(", "model=dataclasses.replace(gpt2.gpt2(")
    .replace("dropout=0.0)", "dropout=0.0), prefix_attention=True)")
    .replace("from t2t.config", "import dataclasses\n\nfrom t2t.config", 1)
    .replace('train="lower"', 'train="letters_prefix_lm"')
    .replace('("lower",)', '("letters_prefix_lm", "lower")')
    .replace('"causal"', '"prefix"')
)

TASKS = '''"""Words to lower case."""

from t2t.data import registry
from t2t.train import text_metrics

WORDS = ["ONE", "TWO", "SIX", "TEN"]


def rows(split):
    return [{"inputs": word, "targets": word.lower()} for word in WORDS]


def baseline(task, split="validation", max_examples=None):
    return {"accuracy": 25.0}


def documents(split):
    return [{"text": f"{word} follows {word.lower()} in the {split} text"} for word in 9 * WORDS]


registry.add_objectives("letters", registry.TextSource(documents, splits=("train", "validation")))
registry.add_text_to_text(
    "lower", registry.TextSource(rows, splits=("train", "validation", "test")), metric_fns=[text_metrics.accuracy]
)
'''


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> pathlib.Path:
    """A working directory with a config, its tasks and a trained run in runs/lower."""
    directory = tmp_path_factory.mktemp("here")
    configs = {"lower": CONFIG, "causal": CAUSAL, "masked": MASKED, "prefix": PREFIX}
    files = {f"configs/{name}.py": text for name, text in configs.items()} | {"tasks/letters.py": TASKS}
    for name, text in files.items():
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
    assert "accuracy (%)               nan    baseline 25" in capsys.readouterr().out
    (here / "strange" / "metrics.jsonl").write_text("", encoding="utf-8")
    assert cli.main(["report", "strange"]) == 0
    assert "nan" in capsys.readouterr().out


def test_eval_refuses_an_output_that_cannot_be_written_before_it_reads_anything(here, capsys, monkeypatch):
    monkeypatch.setattr("t2t.commands.eval._open", lambda *_: pytest.fail("the parameters were opened"))
    assert cli.main(["eval", "runs/lower", "--output", "configs/lower.py/eval"]) == 2
    error = capsys.readouterr().err
    assert "configs/lower.py/eval cannot be written (Not a directory): give --output DIR" in error


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


@pytest.mark.parametrize("name", ["lower", "causal", "masked", "prefix"])
def test_a_dry_run_shows_everything_and_writes_nothing(here, capsys, name):
    assert cli.main(["train", name, "--name", "dry", "--dry-run"]) == 0
    out = capsys.readouterr().out
    side = "encoder" if name in ("lower", "masked") else "decoder"
    for part in ("optimizer.learning_rate.peak", "embed/embedding", f"{side}_input_tokens", "compiles in"):
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


def test_evaluations_print_their_config_too(here, capsys):
    for source in ("runs/lower", "masked"):
        assert cli.main(["eval", source, "--evaluate.batch-size", "2", "--print-config"]) == 0
        assert config_values.from_json(json.loads(capsys.readouterr().out)).evaluate.batch_size == 2
    assert cli.main(["eval", "lower", "--init", "runs/lower", "--dry-run"]) == 0
    assert "(run)" in capsys.readouterr().out


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
    assert "encoder inputs" in out and "ONE</s>" in out
    assert "<pad>one" in out
    assert cli.main(["tasks", "lowr", "--modules", "tasks.letters"]) == 2
    assert cli.main(["tasks", "lower", "--modules", "tasks.letters", "--split", "dev"]) == 2
    assert "it has train, validation, test" in capsys.readouterr().err


def test_a_vocabulary_is_trained_on_files(here, capsys):
    text = "\n".join(f"the {word} of number {i}" for i, word in enumerate(["house", "tree", "river", "stone"] * 20))
    (here / "text.txt").write_text(text, encoding="utf-8")
    arguments = ["vocab", "train", "--input", "text.txt", "--size", "130", "--output", "voc"]
    assert cli.main(arguments) == 0
    assert "130 ids" in capsys.readouterr().out
    assert cli.main([*arguments[:-3], "100000", "--output", "voc2"]) == 2
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
    assert cli.main(["import", "causal-exported", "causal-imported"]) == 0
    for same in (model, exported, t2t.load("causal-imported")):
        assert same.generate([row["input"] for row in rows], max_tokens=6) == [row["prediction"] for row in rows]
    tokenizer = pytest.importorskip("transformers").AutoTokenizer.from_pretrained("causal-exported")
    prompt = [model.start_id, *model.vocabulary.encode(rows[0]["input"]), model.vocabulary.eos_id]
    assert tokenizer(rows[0]["input"])["input_ids"] == prompt
    assert json.loads((here / "causal-exported" / "generation_config.json").read_text())["max_new_tokens"] == 6


def evaluation(directory: pathlib.Path, task: str, step: int) -> dict:
    return json.loads((directory / task / f"{step}.json").read_text(encoding="utf-8"))["metrics"]


def test_a_masked_encoder_is_trained_evaluated_exported_and_loaded(here, capsys):
    assert cli.main(["train", "masked"]) == 0
    run = here / "runs" / "masked"
    during = evaluation(run / "eval", "letters_mlm", 4)
    assert cli.main(["eval", "runs/masked", "--output", "again"]) == 0
    assert evaluation(here / "again", "letters_mlm", 4) == pytest.approx(during)
    assert cli.main(["export", "runs/masked", "masked-exported"]) == 0
    assert cli.main(["eval", "masked", "--init", "masked-exported", "--output", "theirs"]) == 0
    assert evaluation(here / "theirs", "letters_mlm", 0) == pytest.approx(during, rel=1e-5)
    assert "letters_mlm (" in capsys.readouterr().out
    ours, theirs = t2t.load("runs/masked"), t2t.load("masked-exported")
    rng = np.random.default_rng(0)
    batch = {
        "encoder_input_tokens": rng.integers(0, 384, (2, 11)).astype(np.int32),
        "encoder_segment_ids": (np.arange(11) < [[11], [7]]).astype(np.int32),
    }
    np.testing.assert_allclose(theirs.apply(batch).logits, ours.apply(batch).logits, atol=1e-5)


def test_a_prefix_lm_is_trained_evaluated_and_loaded(here, capsys):
    assert cli.main(["train", "prefix"]) == 0
    run = here / "runs" / "prefix"
    during = {task: evaluation(run / "eval", task, 4) for task in ("letters_prefix_lm", "lower")}
    assert cli.main(["eval", "runs/prefix", "--output", "again-prefix"]) == 0
    for task, metrics in during.items():
        assert evaluation(here / "again-prefix", task, 4) == pytest.approx(metrics)
    (file,) = run.glob("eval/lower/*predictions.jsonl")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    model = t2t.load("runs/prefix")
    assert model.config.prefix_attention
    assert model.generate([row["input"] for row in rows], max_tokens=6) == [row["prediction"] for row in rows]
    scores = model.score([("ONE", "one"), ("TWO", "two")])
    tokens = sum(len(word) + 1 for word in ("one", "two"))
    assert np.isfinite(scores).all() and -2 * tokens * np.log(384) < scores.sum() < 0
    # No class of transformers attends to a prefix from both sides: the export says so and writes nothing.
    capsys.readouterr()
    assert cli.main(["export", "runs/prefix", "prefix-exported"]) == 1
    assert "prefix-LM" in capsys.readouterr().err
    assert not (here / "prefix-exported").exists()
    with pytest.raises(InexpressibleError, match="prefix-LM"):
        model.export("prefix-exported")


def test_a_run_and_its_last_checkpoint_are_one_model(here):
    steps = sorted(int(path.name) for path in (here / "runs/lower/checkpoints").iterdir())
    places = ("", f"/checkpoints/{steps[-1]}", f"/checkpoints/{steps[0]}")
    run, last, earlier = (t2t.load(f"runs/lower{place}") for place in places)
    assert (run.about["step"], last.about["step"], earlier.about["step"]) == (steps[-1], steps[-1], 2)
    assert run.config.head.tied and "head" not in run.params  # its output is the embedding, also after going on
    assert run.vocabulary.pieces() == last.vocabulary.pieces()
    rng = np.random.default_rng(0)
    batch = {
        f"{side}_input_tokens": rng.integers(0, 384, (2, length)).astype(np.int32)
        for side, length in (("encoder", 9), ("decoder", 5))
    }
    logits = [np.asarray(model.apply(batch).logits) for model in (run, last, earlier)]
    np.testing.assert_array_equal(logits[0], logits[1])
    assert np.abs(logits[0] - logits[2]).max() > 1e-3


def test_eval_does_not_ask_for_the_text_of_the_training(here, capsys):
    for name in ("learned.txt", "held_out.txt"):
        (here / name).write_text("a river and a stone and a tree\n\n" * 20, encoding="utf-8")
    own = ["--name", "own", "--data.files", "learned.txt", "--data.eval-files", "held_out.txt"]
    assert cli.main(["train", "masked", *own]) == 0
    (here / "learned.txt").unlink()
    assert cli.main(["eval", "runs/own", "--output", "own-again"]) == 0
    during = evaluation(here / "runs/own/eval", "letters_mlm", 4)
    assert evaluation(here / "own-again", "letters_mlm", 4) == pytest.approx(during)
    capsys.readouterr()
    assert cli.main(["report", "runs/own"]) == 0
    out = capsys.readouterr().out
    assert out.count("letters_mlm on own files") == out.count("letters_mlm") > 1
    assert f"token accuracy (%)  {100 * during['accuracy']:.3g}" in out
    assert cli.main(["eval", "runs/own", "--split", "train"]) == 2
    assert "learned.txt" in capsys.readouterr().err
