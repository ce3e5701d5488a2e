import importlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

seqio = pytest.importorskip("seqio")

import numpy as np  # noqa: E402

from t2t.data import examples, pydocs, registry  # noqa: E402
from t2t.data.host_tensorflow import tf  # noqa: E402
from t2t.errors import UsageError  # noqa: E402
from t2t.vocabulary import ByteVocabulary  # noqa: E402

TEXTS = {
    "train": [{"text": "One two three four."}, {"text": "Five six."}, {"text": "Seven."}],
    "validation": [{"text": "Eight nine ten."}],
}


@pytest.fixture
def source():
    calls = []

    def texts(split):
        calls.append(split)
        return TEXTS[split]

    made = registry.TextSource(texts, splits=("train", "validation"), modules=[pydocs])
    made.calls = calls
    return made


@pytest.fixture
def vocabulary():
    return ByteVocabulary(mask=True)


@pytest.fixture
def names(source):
    names = registry.add_objectives("registry_test", source)
    yield names
    for name in names:
        seqio.TaskRegistry.remove(name)


def read(name, vocabulary, lengths, split="train", **kwargs):
    return examples.load_examples(name, split, vocabulary=vocabulary, lengths=lengths, seed=0, **kwargs)


def test_texts_are_made_when_asked_for_and_once(source):
    assert source.calls == []
    assert source.fingerprint("train") == source.fingerprint("train") != source.fingerprint("validation")
    assert source.calls == []
    assert source.num_input_examples("train") == 3
    rows = [row["text"].decode() for row in source.get_dataset("train", shuffle=False).as_numpy_iterator()]
    assert rows == ["One two three four.", "Five six.", "Seven."]
    assert source.calls == ["train"]


OWN_TASKS = """
import functools
from t2t.data import registry

def documents(split):
    return [{"text": "One."}]

def of_kind(split, *, kind):
    return [{"text": kind}]

class Shelf:
    def __init__(self, kind):
        self.kind = kind

    def documents(self, split):
        return [{"text": self.kind}]

def source(texts):
    return registry.TextSource(texts, splits=("train",))

SOURCES = {
    "function": source(documents),
    "one": source(functools.partial(of_kind, kind="one")),
    "two": source(functools.partial(of_kind, kind="two")),
    "default": source(lambda split, kind="one": of_kind(split, kind=kind)),
    "other default": source(lambda split, kind="two": of_kind(split, kind=kind)),
    "method": source(Shelf("one").documents),
    "other method": source(Shelf("two").documents),
    "set": source(functools.partial(of_kind, kind={"a", "b", "c", "d", "e", "f"})),
}
registry.add_objectives("own_tasks", SOURCES["function"])
"""


def fingerprints(sources):
    return {name: json.dumps(source.fingerprint("train")) for name, source in sources.items()}


@pytest.fixture
def own_tasks(tmp_path, monkeypatch):
    """A module of tasks as a user writes it, imported."""
    (tmp_path / "own_tasks.py").write_text(OWN_TASKS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("own_tasks")
    del sys.modules["own_tasks"]
    for name in [name for name in seqio.TaskRegistry.names() if name.startswith("own_tasks_")]:
        seqio.TaskRegistry.remove(name)


def test_fingerprints_tell_functions_and_what_they_hold_apart(own_tasks):
    made = fingerprints(own_tasks.SOURCES)
    assert len(set(made.values())) == len(made)
    assert not [name for name, text in made.items() if " at 0x" in text]


@pytest.mark.slow
def test_fingerprints_are_the_same_in_every_process(own_tasks):
    code = (
        "import json, own_tasks\n"
        "print(json.dumps({k: json.dumps(s.fingerprint('train')) for k, s in own_tasks.SOURCES.items()}))"
    )
    folders = [str(pathlib.Path(own_tasks.__file__).parent), str(pathlib.Path(registry.__file__).parents[2])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders), "PYTHONHASHSEED": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout.splitlines()[-1]) == fingerprints(own_tasks.SOURCES)


def test_cached_tokens_are_left_behind_when_the_module_is_edited(own_tasks, vocabulary, tmp_path):
    def text():
        made = read("own_tasks_causal_lm", vocabulary, {"targets": 16}, cache_dir=tmp_path / "cache")
        return vocabulary.decode(made.example(0, epoch=0)["targets"].tolist())

    assert text() == "One."
    path = tmp_path / "own_tasks.py"
    path.write_text(OWN_TASKS.replace("One.", "Another."), encoding="utf-8")
    importlib.reload(own_tasks)
    assert text() == "Another."
    assert len(list((tmp_path / "cache").iterdir())) == 2
    importlib.reload(own_tasks)
    assert text() == "Another."
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_modules_that_are_named_count_too():
    def fingerprint(*modules):
        return registry.TextSource(TEXTS.get, splits=("train",), modules=modules).fingerprint("train")

    assert fingerprint(pydocs) == fingerprint(pydocs) != fingerprint()


def test_shuffling_follows_the_seed(source):
    def order(seed):
        return [row["text"] for row in source.get_dataset("train", shuffle=True, seed=seed).as_numpy_iterator()]

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(8)}) > 1


def test_unknown_and_empty_splits_and_shards_are_refused(source):
    with pytest.raises(ValueError, match="train, validation"):
        source.get_dataset("test")
    with pytest.raises(ValueError, match="one shard"):
        source.get_dataset("train", shard_info=seqio.ShardInfo(0, 2))
    with pytest.raises(ValueError, match="empty"):
        registry.TextSource(lambda split: [], splits=("train",)).get_dataset("train")


def test_objectives_make_the_features_they_promise(names, vocabulary):
    assert names == tuple(f"registry_test_{kind}" for kind in ("span_corruption", "mlm", "causal_lm", "prefix_lm"))
    lengths = {"inputs": 12, "targets": 12}
    made = {name.removeprefix("registry_test_"): read(name, vocabulary, lengths).example(0, epoch=0) for name in names}
    assert {name: set(example) for name, example in made.items()} == {
        "span_corruption": {"inputs", "targets"},
        "mlm": {"inputs", "targets", "weights"},
        "causal_lm": {"targets"},
        "prefix_lm": {"inputs", "targets"},
    }
    for example in made.values():
        assert all(array.dtype == np.int32 and array.ndim == 1 for array in example.values())
    assert len(made["span_corruption"]["inputs"]) == 12
    assert made["span_corruption"]["inputs"][-1] == vocabulary.eos_id
    assert vocabulary.decode(made["causal_lm"]["targets"].tolist()) == "One two thre"
    text = [int(i) for name in ("inputs", "targets") for i in made["prefix_lm"][name] if i != vocabulary.eos_id]
    assert vocabulary.decode(text) == "One two thr"


def test_causal_text_has_ends_of_documents_inside(names, vocabulary):
    example = read("registry_test_causal_lm", vocabulary, {"targets": 64}).example(0, epoch=0)
    assert list(example["targets"]).count(vocabulary.eos_id) == 3  # one for each document, none where the piece is cut


def test_span_corruption_differs_by_epoch_and_repeats(names, vocabulary):
    task = read("registry_test_span_corruption", vocabulary, {"inputs": 30, "targets": 20})
    first, again, second = (task.example(0, epoch=epoch)["inputs"] for epoch in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)


def test_the_last_registration_holds(names, source, vocabulary):
    other = registry.TextSource(lambda split: [{"text": "Other."}], splits=("train",))
    assert registry.add_objectives("registry_test", other) == names
    assert len(read(names[2], vocabulary, {"targets": 8})) == 1
    registry.add_mixture("registry_test_mix", {names[0]: 1.0})
    mixture = registry.add_mixture("registry_test_mix", {names[0]: 1.0, names[3]: 2.0})
    assert {task.name for task in mixture.tasks} == {names[0], names[3]}
    seqio.MixtureRegistry.remove("registry_test_mix")


def test_text_to_text_adds_prefix_and_eos_and_keeps_the_answer(vocabulary):
    source = registry.TextSource(lambda split: [{"inputs": "2+2", "targets": "4"}], splits=("validation",))
    registry.add_text_to_text("registry_sum", source, metric_fns=[], prefix="add: ")
    task = read("registry_sum", vocabulary, {"inputs": 16, "targets": 4}, split="validation", texts=True)
    seqio.TaskRegistry.remove("registry_sum")
    example = task.example(0, epoch=0)
    assert vocabulary.decode(example["inputs"].tolist()) == "add: 2+2"
    assert example["targets"][-1] == vocabulary.eos_id
    assert task.store.texts["targets_pretokenized"] == ["4"]


def test_text_to_text_reads_the_columns_that_a_source_has(vocabulary):
    source = registry.TextSource(lambda split: [{"question": "2+2", "answer": "4", "id": "7"}], splits=("train",))
    registry.add_text_to_text("registry_qa", source, metric_fns=[], fields=("question", "answer"))
    example = read("registry_qa", vocabulary, {"inputs": 16, "targets": 4}).example(0, epoch=0)
    seqio.TaskRegistry.remove("registry_qa")
    assert [vocabulary.decode(example[name].tolist()) for name in ("inputs", "targets")] == ["2+2", "4"]


@pytest.mark.slow
def test_a_data_set_of_tfds_is_read_by_its_name(tmp_path):
    import tensorflow_datasets as tfds

    texts = ["One page.", "", "And another."]
    tfds.dataset_builders.store_as_tfds_dataset(
        name="pages",
        version="1.0.0",
        features=tfds.features.FeaturesDict({"text": tfds.features.Text()}),
        split_datasets={"train": tf.data.Dataset.from_tensor_slices({"text": texts})},
        data_dir=tmp_path,
        disable_shuffling=True,
    )
    source = seqio.TfdsDataSource("pages:1.0.0", tfds_data_dir=str(tmp_path), splits=["train"])
    names = registry.add_objectives("tfds_pages", source)
    task = examples.get_task("tfds_pages_causal_lm")
    for name in names:
        seqio.TaskRegistry.remove(name)
    vocabulary = ByteVocabulary()
    made = examples.load_examples(task, "train", vocabulary=vocabulary, lengths={"targets": 40}, seed=0)
    ids = made.example(0, epoch=0)["targets"].tolist()
    assert ids == [token for text in texts if text for token in (*vocabulary.encode(text), vocabulary.eos_id)]


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Makes modules of tasks by their texts, and imports or reloads them; forgets them in the end."""
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def load(name, text):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        made.append(name)
        return importlib.reload(sys.modules[name]) if name in sys.modules else importlib.import_module(name)

    yield load
    for name in made:
        sys.modules.pop(name, None)
    for name in [name for name in seqio.TaskRegistry.names() if name.startswith("owned")]:
        seqio.TaskRegistry.remove(name)
    seqio.MixtureRegistry.remove("owned_mix")


OWNED = """
from t2t.data import registry
rows = registry.TextSource(lambda split: [{"text": TEXT}], splits=("train",))
"""
REGISTERS = 'registry.add_objectives("owned", rows)\nregistry.add_mixture("owned_mix", {"owned_mlm": 1.0})\n'
REPLACES = f"with registry.replacing():\n    {REGISTERS.splitlines()[0]}\n"


def module_text(text, rest):
    return OWNED.replace("TEXT", repr(text)) + rest


def text_of(name="owned_mlm"):
    return seqio.TaskRegistry.get(name).source.rows("train")[0]["text"]


def test_a_module_may_register_its_names_again(modules):
    modules("shelf_one", module_text("first", REGISTERS))
    modules("shelf_one", module_text("second", REGISTERS))
    assert text_of() == "second"


@pytest.mark.parametrize("kind", ["task", "mixture"])
def test_another_module_may_not(modules, kind):
    modules("shelf_one", module_text("first", REGISTERS))
    wrong = REGISTERS if kind == "task" else REGISTERS.splitlines()[1]
    name = {"task": "owned_span_corruption", "mixture": "owned_mix"}[kind]
    with pytest.raises(UsageError, match=f"shelf_two registers '{name}', which is a name of shelf_one already"):
        modules("shelf_two", module_text("second", wrong))
    assert text_of() == "first"


@pytest.mark.parametrize("order", [("shelf_one", "shelf_two"), ("shelf_two", "shelf_one")])
def test_who_means_to_replace_holds_whichever_comes_first(modules, order):
    content = {"shelf_one": module_text("theirs", REGISTERS), "shelf_two": module_text("mine", REPLACES)}
    for name in order:
        modules(name, content[name])
    assert text_of() == "mine"


def test_a_name_that_was_removed_is_free(modules):
    modules("shelf_one", module_text("first", REGISTERS))
    for name in registry.add_objectives("unrelated", registry.TextSource(lambda split: [], splits=("train",))):
        seqio.TaskRegistry.remove(name)
    for suffix in ("span_corruption", "mlm", "causal_lm", "prefix_lm"):
        seqio.TaskRegistry.remove(f"owned_{suffix}")
    seqio.MixtureRegistry.remove("owned_mix")
    modules("shelf_two", module_text("second", REGISTERS))
    assert text_of() == "second"
