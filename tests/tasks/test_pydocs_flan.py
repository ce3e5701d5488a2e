"""Instructions on the embedded corpus: three rows a task, and slowly the real ones."""

import importlib

import pytest

seqio = pytest.importorskip("seqio")

from t2t.data import examples, pydocs_examples, templates  # noqa: E402
from t2t.vocabulary import ByteVocabulary  # noqa: E402

KINDS = ("topic", "kind", "cloze", "summarize")
VARIANTS = ("zero_shot", "few_shot", "inverted")
LENGTHS = {"inputs": 4000, "targets": 1200}


@pytest.fixture
def tasks(monkeypatch):
    """`tasks.pydocs_flan` on three rows a task; registered anew on the real corpus afterwards."""
    made = {
        kind: tuple(
            pydocs_examples.Example(inputs=f"{kind}: Passage {i} of {kind}.", targets=f"answer {i}") for i in range(3)
        )
        for kind in KINDS
    }
    module = importlib.import_module("tasks.pydocs_flan")
    with monkeypatch.context() as patch:
        patch.setattr(pydocs_examples, "EXAMPLES", {kind: lambda split, rows=rows: rows for kind, rows in made.items()})
        patch.setattr(pydocs_examples, "topics", lambda: ("argparse", "asyncio"))
        yield importlib.reload(module)
    importlib.reload(module)


def read(name, split="train"):
    vocabulary = ByteVocabulary()
    task = examples.load_examples(name, split, vocabulary=vocabulary, lengths=LENGTHS, seed=0, texts=True)
    return task.store.texts["inputs_pretokenized"], task.store.texts["targets_pretokenized"]


def test_every_task_has_three_wordings_and_all_variants(tasks):
    for kind in KINDS:
        assert len(tasks.TEMPLATES[kind]) >= 3
        assert tasks.INVERTED[kind]
    mixture = seqio.MixtureRegistry.get("pydocs_flan")
    assert {task.name for task in mixture.tasks} == {f"pydocs_{kind}_{v}" for kind in KINDS for v in VARIANTS}
    assert {mixture.get_rate(task) for task in mixture.tasks} == {3}


def test_wordings_read_what_rows_have_and_hold_all_of_it(tasks):
    row = {"inputs": "A passage.", "targets": "its answer"}
    for kind in KINDS:
        for template in (*tasks.TEMPLATES[kind], *tasks.INVERTED[kind]):
            prompts = templates.Prompts(templates=(template,), options=tasks.OPTIONS[kind])
            prompts.check(row)
            asked, wanted = prompts.example(row, index=0)
            hidden = template in tasks.TEMPLATES[kind]
            assert ("A passage." in asked, wanted) == (hidden, "its answer" if hidden else "A passage.")
            assert ("its answer" in asked) != hidden


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_prompts_hold_the_passage_without_its_prefix(tasks, kind):
    for variant in VARIANTS:
        inputs, targets = read(f"pydocs_{kind}_{variant}", "validation")
        asked, wanted = (targets, inputs) if variant == "inverted" else (inputs, targets)
        for i in range(3):
            assert f"Passage {i} of {kind}." in asked[i]
            assert f"answer {i}" in wanted[i]
            assert f"{kind}: Passage" not in asked[i]
            assert asked[i].count("Passage ") == (3 if variant == "few_shot" else 1)


def test_options_are_listed_where_there_are_any(tasks):
    for kind, listed in (("topic", "argparse\n- asyncio"), ("kind", "module\n- class"), ("cloze", "and\n- are")):
        prompts = templates.Prompts(templates=tasks.TEMPLATES[kind][:1], options=tasks.OPTIONS[kind])
        assert f"\nOPTIONS:\n- {listed}" in prompts.example({"inputs": "a", "targets": "b"}, index=0)[0]


@pytest.mark.slow
def test_few_shot_prompts_of_the_real_corpus_keep_their_length():
    module = importlib.import_module("tasks.pydocs_flan")
    for kind in ("topic", "summarize"):
        inputs, targets = read(f"pydocs_{kind}_few_shot", "validation")
        alone, answers = read(f"pydocs_{kind}_zero_shot", "validation")
        assert all(len(i) <= max(module.MAX_CHARACTERS, len(one)) for i, one in zip(inputs, alone, strict=True))
        assert targets == answers
        assert sum(map(len, inputs)) > 1.5 * sum(map(len, alone))
