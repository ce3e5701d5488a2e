import importlib
import subprocess
import sys

import pytest

seqio = pytest.importorskip("seqio")

from t2t.data import examples, masked_objectives, pydocs, pydocs_examples  # noqa: E402
from t2t.vocabulary import ByteVocabulary  # noqa: E402

SUPERVISED = ("topic", "kind", "cloze", "summarize")
ROWS = {
    "topic": [("topic: The ___ of a boat.", "boat"), ("topic: It turns it.", "helm"), ("topic: It floats.", "boat")],
    "kind": [("kind: Cast it.", "function"), ("kind: A net.", "class"), ("kind: It is cast.", "function")],
    "cloze": [("cloze: a net ___ fish", "of"), ("cloze: go ___ sea", "to"), ("cloze: made ___ rope", "of")],
    "summarize": [
        ("summarize: Cast a net into the sea.", "Cast a net."),
        ("summarize: b c", "d"),
        ("summarize: e", "f"),
    ],
}
LENGTHS = {"inputs": 32, "targets": 12}


@pytest.fixture
def tasks(monkeypatch):
    """`tasks.pydocs` on three examples a task; registered anew on the real corpus afterwards."""
    made = {
        kind: tuple(pydocs_examples.Example(inputs=inputs, targets=targets) for inputs, targets in rows)
        for kind, rows in ROWS.items()
    }
    documents = tuple(
        pydocs.Document(text=f"Document {i} of {split}.", kind="module", module="m")
        for split in pydocs.SPLITS
        for i in range(3)
    )
    module = importlib.import_module("tasks.pydocs")
    with monkeypatch.context() as patch:
        patch.setattr(pydocs, "split_documents", lambda split: tuple(d for d in documents if split in d.text))
        patch.setattr(pydocs_examples, "EXAMPLES", {kind: lambda split, rows=rows: rows for kind, rows in made.items()})
        yield importlib.reload(module)
    importlib.reload(module)


def read(name, split="train", **settings):
    vocabulary = ByteVocabulary(mask=True)
    return vocabulary, examples.load_examples(name, split, vocabulary=vocabulary, lengths=LENGTHS, seed=0, **settings)


@pytest.mark.parametrize("objective", ["span_corruption", "mlm", "causal_lm", "prefix_lm", "mlm_span", "rtd"])
def test_pretraining_tasks_read_the_documents_of_a_split(tasks, objective):
    vocabulary, task = read(f"pydocs_{objective}", "test")
    example = task.example(0, epoch=0)
    assert all(0 < len(array) <= LENGTHS.get(name, 32) for name, array in example.items())
    if objective == "causal_lm":
        assert vocabulary.decode(example["targets"].tolist()) == "Document 0 o"


@pytest.mark.parametrize("kind", SUPERVISED)
def test_supervised_tasks_keep_prefix_and_answer(tasks, kind):
    vocabulary, task = read(f"pydocs_{kind}", "validation", texts=True)
    inputs, targets = ROWS[kind][0]
    example = task.example(0, epoch=0)
    assert vocabulary.decode(example["inputs"].tolist()) == inputs[: LENGTHS["inputs"] - 1]
    assert vocabulary.decode(example["targets"].tolist()) == targets
    assert task.store.texts["targets_pretokenized"] == [targets for _, targets in ROWS[kind]]


@pytest.mark.parametrize("kind", SUPERVISED[:3])
def test_metrics_and_baseline_are_accuracies(tasks, kind):
    (metric,) = seqio.TaskRegistry.get(f"pydocs_{kind}").metric_fns
    targets = [targets for _, targets in ROWS[kind]]
    assert metric(targets, targets) == {"accuracy": 100.0}
    assert tasks.baseline(f"pydocs_{kind}") == {"accuracy": pytest.approx(200 / 3)}
    assert tasks.baseline(f"pydocs_{kind}", "validation", 1)["accuracy"] in (0.0, 100.0)  # of that example alone


def test_summaries_are_scored_by_rouge_against_the_first_words(tasks):
    pytest.importorskip("rouge_score")
    assert set(tasks.baseline("pydocs_summarize", "test")) == {"rouge1", "rouge2", "rougeLsum"}
    with pytest.raises(ValueError, match="pydocs_topic, pydocs_kind"):
        tasks.baseline("pydocs_mlm")


def test_the_mixture_is_proportional_with_a_cap(tasks, monkeypatch):
    def rates():
        mixture = seqio.MixtureRegistry.get("pydocs_multitask")
        return {task.name: mixture.get_rate(task) for task in mixture.tasks}

    assert rates() == {"pydocs_topic": 3, "pydocs_kind": 3, "pydocs_cloze": 3}
    many = pydocs_examples.EXAMPLES["cloze"]("train") * 2000
    # Undone here: after the fixture has undone its own change, this one would bring its examples back.
    with monkeypatch.context() as patch:
        patch.setattr(pydocs_examples, "EXAMPLES", {**pydocs_examples.EXAMPLES, "cloze": lambda split: many})
        importlib.reload(tasks)
        assert rates() == {"pydocs_topic": 3, "pydocs_kind": 3, "pydocs_cloze": tasks.MIXTURE_CAP}


@pytest.mark.slow
def test_importing_registers_and_reads_nothing():
    code = (
        "import tasks.pydocs, seqio; from t2t.data import pydocs; assert not pydocs.documents.cache_info().currsize; "
        "print(*[name for name in seqio.TaskRegistry.names() if name.startswith('pydocs')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    objectives = ("span_corruption", "mlm", "causal_lm", "prefix_lm")
    assert {f"pydocs_{name}" for name in (*objectives, *masked_objectives.OBJECTIVES, *SUPERVISED)} <= set(
        done.stdout.split()
    )


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "highest"), [("topic", 14.0), ("kind", 42.0), ("cloze", 9.0)])
def test_baselines_on_the_real_corpus_leave_room(kind, highest):
    module = importlib.import_module("tasks.pydocs")
    for split in ("validation", "test"):
        assert 0 < module.baseline(f"pydocs_{kind}", split)["accuracy"] < highest
