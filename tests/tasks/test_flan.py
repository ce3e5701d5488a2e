"""Instructions on public data sets: rows of TFDS's shape in every wording."""

import importlib

import pytest

seqio = pytest.importorskip("seqio")

from t2t.data import examples, mixtures, templates  # noqa: E402
from t2t.vocabulary import ByteVocabulary  # noqa: E402
from tests.tasks import benchmarks  # noqa: E402
from tests.tasks.test_benchmarks import Rows  # noqa: E402


@pytest.fixture(scope="module")
def flan():
    return importlib.import_module("tasks.flan")


def rows_of(base):
    known = {"glue_mnli": "glue_mnli_mismatched", "wmt14_ende": "wmt_t2t_ende", "wmt14_enfr": "wmt15_enfr"}
    return benchmarks.CASES[known.get(base, base)][0]


def test_there_are_ten_wordings_of_each_and_all_are_different(flan):
    for name, (_, _, questions, _, _) in flan.TASKS.items():
        assert len(set(questions)) == 10, name


def test_every_wording_shows_what_the_row_holds(flan):
    for name, (base, make, _, _, inverted) in flan.TASKS.items():
        task = seqio.TaskRegistry.get(f"flan_{name}_zero_shot")
        (fields,) = make(rows_of(base), "train")
        prompts = templates.prompts_of(task.preprocessors[0])
        prompts.check(task.source.kinds)
        for template in prompts.templates:
            one = templates.Prompts(templates=(template,), options=prompts.options)
            asked, wanted = one.example(fields, index=0)
            assert wanted == fields["targets"], name
            assert "{" not in asked, name
            shown = [value for key, value in fields.items() if key not in ("inputs", "targets")]
            assert sum(text in asked for text in shown) >= max(1, len(shown) - 1), (name, asked)
        assert bool(inverted) == (f"flan_{name}_inverted" in seqio.TaskRegistry.names())


def test_answers_of_labels_are_words_that_options_list(flan):
    for name, (_, make, _, _, _) in flan.TASKS.items():
        if isinstance(make, flan.Fields):
            task = seqio.TaskRegistry.get(f"flan_{name}_zero_shot")
            assert set(templates.prompts_of(task.preprocessors[0]).options) == set(make.words)


@pytest.mark.slow
def test_a_task_is_read_with_solved_examples(flan):
    rows = [{"premise": f"A {i}.", "hypothesis": f"B {i}.", "label": i % 3, "idx": i} for i in range(6)]
    task = seqio.TaskRegistry.get("flan_mnli_few_shot")
    source = task.source.on(Rows(rows))
    task = templates.with_solved(task.replace(source=source), source)
    made = examples.load_examples(
        task, "validation", vocabulary=ByteVocabulary(), lengths={"inputs": 900, "targets": 60}, seed=0, texts=True
    )
    assert made.store.texts["targets_pretokenized"] == ["yes", "it is not possible to tell", "no"] * 2
    asked = made.store.texts["inputs_pretokenized"]
    assert all(f"A {i}." in text and f"B {i}." in text for i, text in enumerate(asked))
    assert all(sum(f"A {i}." in text for i in range(6)) == 3 for text in asked)


def test_the_mixture_is_capped_and_known_without_data(flan):
    rates = mixtures.flat_rates("flan", {name: 100_000 for name in seqio.TaskRegistry.names()})
    assert len(set(rates.values())) == 1
    table = mixtures.stated_table("flan_zero_shot").splitlines()
    assert len(table) == 1 + len(flan.TASKS)
    assert any(line.split()[:2] == ["flan_cb_zero_shot", "250"] for line in table)
