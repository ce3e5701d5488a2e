"""All of GLUE in one run from the command line: official files, metrics of each task, their average, a submission."""

import json

import pytest

from t2t import cli
from t2t.data import official_files

pytestmark = pytest.mark.slow

CONFIG = '''"""GLUE in seconds."""

from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import t5
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.optimizer import AdamW, Constant


def get_config():
    return Experiment(
        name="glue",
        model=t5.t5(num_layers=1, d_model=8, num_heads=2, head_dim=4, d_ff=16, vocab_size=384, dropout=0.0),
        data=Data(modules=("tasks.glue",), train="glue", lengths={"inputs": 64, "targets": 16}, batch_size=8),
        objective=LanguageModeling(),
        optimizer=AdamW(learning_rate=Constant(peak=1e-2)),
        train=Train(steps=4, log_every=2),
        evaluate=Evaluate(tasks=("glue", "glue_mnli_mismatched"), every=4),
        checkpoint=Checkpoint(every=4, best="glue/average"),
    )
'''

PAIR = ("sentence1", "sentence2")
# Folder: columns of texts and of the label, labels.
TASKS = {
    "SST-2": (("sentence",), "label", ("0", "1")),
    "MRPC": (("#1 String", "#2 String"), "Quality", ("0", "1")),
    "STS-B": (PAIR, "score", ("1.000", "4.500")),
    "QQP": (("question1", "question2"), "is_duplicate", ("0", "1")),
    "MNLI": (PAIR, "gold_label", ("neutral", "contradiction")),
    "QNLI": (("question", "sentence"), "label", ("entailment", "not_entailment")),
    "RTE": (PAIR, "label", ("entailment", "not_entailment")),
    "WNLI": (PAIR, "label", ("0", "1")),
}


def table(path, header, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(cells) for cells in ([header, *rows] if header else rows)]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A working directory with GLUE's files, and a run on them."""
    root = tmp_path_factory.mktemp("glue")
    (root / "glue_config.py").write_text(CONFIG, encoding="utf-8")
    glue = root / "corpora" / "glue"
    for folder, (texts, label, labels) in TASKS.items():
        rows = [[str(i), *(f"text {i} of {name}" for name in texts)] for i in range(4)]
        labelled = [[*row, labels[i % 2]] for i, row in enumerate(rows)]
        table(glue / folder / "train.tsv", ["index", *texts, label], labelled)
        for name in ("dev_matched", "dev_mismatched") if folder == "MNLI" else ("dev",):
            table(glue / folder / f"{name}.tsv", ["index", *texts, label], labelled)
        for name in ("test_matched", "test_mismatched") if folder == "MNLI" else ("test",):
            table(glue / folder / f"{name}.tsv", ["index", *texts], rows)
    acceptability = [["x", str(i % 2), "", f"Sentence {i}."] for i in range(4)]
    for name in ("train", "dev"):
        table(glue / "CoLA" / f"{name}.tsv", None, acceptability)
    table(glue / "CoLA" / "test.tsv", ["index", "sentence"], [["7", "Bill whistled."]])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv(official_files.CORPORA, str(root / "corpora"))
        assert cli.main(["train", "glue_config.py", "--workdir", "run"]) == 0
        yield root


def test_every_task_has_its_metrics_and_glue_its_average(here):
    records = [json.loads(line) for line in (here / "run" / "metrics.jsonl").read_text().splitlines()]
    last = {record["task"]: record for record in records if record["split"] == "validation" and record["step"] == 4}
    assert {"matthews", "cross_entropy"} <= set(last["glue_cola"])
    assert {"f1", "accuracy", "invalid_predictions"} <= set(last["glue_qqp"])
    assert {"pearson", "spearman"} <= set(last["glue_stsb"])
    assert last["glue_sst2"]["invalid_predictions"] <= 4
    scores = [
        last["glue_cola"]["matthews"],
        (last["glue_stsb"]["pearson"] + last["glue_stsb"]["spearman"]) / 2,
        (last["glue_mnli"]["accuracy"] + last["glue_mnli_mismatched"]["accuracy"]) / 2,
        *((last[f"glue_{name}"]["f1"] + last[f"glue_{name}"]["accuracy"]) / 2 for name in ("mrpc", "qqp")),
        *(last[f"glue_{name}"]["accuracy"] for name in ("sst2", "qnli", "rte", "wnli")),
    ]
    assert last["glue"]["average"] == pytest.approx(sum(scores) / 9)
    assert json.loads((here / "run" / "eval" / "glue" / "4.json").read_text())["metrics"]["average"] == pytest.approx(
        sum(scores) / 9
    )


def test_predictions_carry_the_numbers_of_their_examples(here):
    lines = (here / "run" / "eval" / "glue_rte" / "predictions.jsonl").read_text().splitlines()
    assert [json.loads(line)["idx"] for line in lines] == [0, 1, 2, 3]


def test_the_report_shows_the_average(here, capsys):
    assert cli.main(["report", "run"]) == 0
    assert any(line.split()[:2] == ["glue", "validation"] for line in capsys.readouterr().out.splitlines())


def test_test_sets_become_a_submission(here, capsys):
    arguments = ["eval", "run", "--split", "test", "--submission", "sent", "--tasks", "glue", "glue_mnli_mismatched"]
    assert cli.main(arguments) == 0
    said = capsys.readouterr().out
    assert "wrote sent/CoLA.tsv: 1 predictions" in said
    files = {path.name: path.read_text().splitlines() for path in (here / "sent").iterdir()}
    assert set(files) == {
        "CoLA.tsv", "SST-2.tsv", "MRPC.tsv", "STS-B.tsv", "QQP.tsv", "MNLI-m.tsv", "MNLI-mm.tsv", "QNLI.tsv", "RTE.tsv",
        "WNLI.tsv",
    }  # fmt: skip
    assert all(lines[0] == "index\tprediction" for lines in files.values())
    assert files["CoLA.tsv"][1].split("\t")[0] == "7"
    assert {line.split("\t")[1] for line in files["RTE.tsv"][1:]} <= {"entailment", "not_entailment"}


def test_one_task_reads_files_of_the_command_line(here, capsys):
    files = ["--data.files", "corpora/glue/RTE/train.tsv", "--data.eval-files", "corpora/glue/RTE/dev.tsv"]
    assert cli.main(
        ["train", "glue_config.py", "--workdir", "rte", "--data.train", "glue_rte", "--evaluate.tasks", "glue_rte",
         "--checkpoint.best", "glue_rte/accuracy", "--train.steps", "2", *files]
    ) == 0  # fmt: skip
    result = json.loads((here / "rte" / "eval" / "glue_rte" / "2.json").read_text())
    assert result["metrics"]["examples"] == 4.0
    capsys.readouterr()


def test_what_has_no_format_is_refused_before_anything_is_predicted(here, capsys):
    arguments = ["eval", "run", "--split", "test", "--submission", "sent", "--tasks", "glue_mnli", "glue_mnli_matched"]
    assert cli.main(arguments) == 2
    assert "both MNLI-m.tsv" in capsys.readouterr().err


def test_rates_are_shown_without_data(here, capsys):
    assert cli.main(["tasks", "glue", "--rates", "--modules", "tasks.glue"]) == 0
    assert "392,702" in capsys.readouterr().out
    assert cli.main(["tasks", "--rates", "--modules", "tasks.glue"]) == 2
