import collections
import dataclasses
import functools

import numpy as np
import pytest
import seqio

from t2t.data import examples, registry, vocabularies
from t2t.data.preprocessors import CausalLM, Chunk, MaskedTokens, PrefixLM, SpanCorruption, tokenize
from t2t.data.registry import feature
from t2t.data.store import TokenStore
from t2t.errors import UsageError
from t2t.vocabulary import ByteVocabulary

BYTES = ByteVocabulary()
LENGTHS = {"inputs": 32, "targets": 12}
DOCUMENTS = [f"document number {i} of several " * (1 + i % 3) for i in range(20)]


def source(documents=tuple(DOCUMENTS)):
    return registry.TextSource(lambda split: [{"targets": text} for text in documents], splits=["train"])


def span_task(name="spans", documents=tuple(DOCUMENTS)):
    steps = [tokenize, Chunk(corruption=SpanCorruption()), SpanCorruption()]
    features = {"inputs": feature(), "targets": feature()}
    return seqio.Task(name, source(documents), output_features=features, preprocessors=steps)


def load(task, **settings):
    defaults = {"vocabulary": BYTES, "lengths": LENGTHS, "seed": 4}
    return examples.load_examples(task, "train", **defaults | settings)


@pytest.fixture(scope="module")
def spans():
    return load(span_task())


def test_the_deterministic_part_is_read_once_and_holds_raw_tokens(spans):
    text = "".join(DOCUMENTS)
    tokens = np.concatenate([spans.store[i]["targets"] for i in range(len(spans))])
    assert BYTES.decode(tokens.tolist()) == text
    assert list(spans.store[0]) == ["targets"]
    assert spans.name == "spans"


def test_corruption_is_a_function_of_seed_epoch_and_index(spans):
    def read(loaded, epoch):
        return [loaded.example(i, epoch=epoch)["inputs"].tolist() for i in range(len(loaded))]

    first = read(spans, 0)
    assert first == read(dataclasses.replace(spans), 0)
    assert first != read(spans, 1)
    assert first != read(dataclasses.replace(spans, seed=5), 0)
    assert all(len(inputs) <= 32 and inputs[-1] == BYTES.eos_id for inputs in first)


@pytest.mark.parametrize("objective", [SpanCorruption(), SpanCorruption(random_roll=True), CausalLM(), PrefixLM()])
def test_examples_corrupted_together_equal_those_corrupted_one_by_one(objective):
    store = TokenStore.collect({"targets": np.arange(5, 5 + 17 + i % 3, dtype=np.int32)} for i in range(9))
    features = {
        name: dataclasses.replace(feature(), vocabulary=vocabularies.SeqioVocabulary(BYTES)) for name in objective.makes
    }
    bound = objective.bind({"inputs": 32, "targets": 20}, features)
    loaded = examples.TaskExamples(name="a", split="train", store=store, corruption=bound, seed=6)
    indices = [4, 8, 1, 0, 7]
    for together, index in zip(loaded.examples(indices, epoch=2), indices, strict=True):
        alone = loaded.example(index, epoch=2)
        assert together.keys() == alone.keys()
        for name in alone:
            np.testing.assert_array_equal(together[name], alone[name])


TEXTS = ("How doth the little busy bee", "Improve each shining hour!!!", "And gather")


def stored(objective):
    """The examples of an objective on two long texts and a short one."""
    store = TokenStore.collect({"targets": np.array(BYTES.encode(text), np.int32)} for text in TEXTS)
    features = {
        name: dataclasses.replace(feature(), vocabulary=vocabularies.SeqioVocabulary(BYTES)) for name in LENGTHS
    }
    bound = objective.bind({}, features)
    return examples.TaskExamples(name="stored", split="train", store=store, corruption=bound, seed=4)


def in_epochs(loaded, epochs, index):
    """The bytes of an example in each epoch, alone and read together with others."""
    alone = [loaded.example(index, epoch=epoch) for epoch in range(epochs)]
    together = [loaded.examples([2, 1, 0], epoch=epoch)[2 - index] for epoch in range(epochs)]
    made = [
        [b"".join(example[name].tobytes() for name in sorted(example)) for example in read]
        for read in (alone, together)
    ]
    assert made[0] == made[1]
    return made[0]


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("index", [0, 2])
def test_static_duplicated_and_dynamic_masks(unit, index):
    rate = {"rate": 0.5} if unit == "token" else {"rate": 0.4, "count": "independent"}
    static = in_epochs(stored(MaskedTokens(unit=unit, copies=1, **rate)), 5, index)
    assert len(set(static)) == 1
    duplicated = in_epochs(stored(MaskedTokens(unit=unit, copies=10, **rate)), 40, index)
    assert duplicated == 4 * duplicated[:10]
    dynamic = in_epochs(stored(MaskedTokens(unit=unit, **rate)), 12, index)
    assert dynamic[:10] == duplicated[:10]
    if unit == "token":
        assert collections.Counter(duplicated) == dict.fromkeys(duplicated, 4)
        assert len(set(dynamic)) == 12


def test_static_masks_differ_by_example_and_seed():
    loaded = stored(MaskedTokens(copies=1, rate=0.5))
    weights = [loaded.example(i, epoch=3)["weights"].tolist() for i in (0, 1)]
    assert weights[0] != weights[1]
    assert dataclasses.replace(loaded, seed=5).example(0, epoch=3)["weights"].tolist() != weights[0]


def test_copies_of_span_corruption():
    loaded = stored(SpanCorruption(noise_density=0.5, copies=2))
    made = [loaded.example(1, epoch=epoch)["inputs"].tolist() for epoch in range(4)]
    assert made[:2] == made[2:]
    assert made[0] != made[1]


def test_what_must_know_the_split_is_told_its_tokens():
    objective = MaskedTokens(smoothing=0.5)
    features = {"inputs": feature(), "targets": feature()}
    steps = [tokenize, Chunk(corruption=objective), objective]
    task = seqio.Task("smoothed", source(TEXTS), output_features=features, preprocessors=steps)
    loaded = load(task, lengths={"inputs": 29, "targets": 29})
    expected = np.bincount([byte + 3 for byte in "".join(TEXTS).encode()], minlength=BYTES.size)
    np.testing.assert_array_equal(loaded.corruption.corruption.counts, expected)
    assert loaded.example(0, epoch=0)["weights"].sum() == 5  # ceil(0.15 * 29)


def test_a_task_without_corruption_is_the_same_in_all_epochs():
    task = seqio.Task(
        "plain",
        source(),
        output_features={"targets": feature()},
        preprocessors=[tokenize, seqio.preprocessors.append_eos],
    )
    loaded = load(task, texts=True)
    assert loaded.corruption is None
    assert loaded.example(3, epoch=0)["targets"].tolist() == [*BYTES.encode(DOCUMENTS[3]), BYTES.eos_id]
    assert loaded.store.texts["targets_pretokenized"] == DOCUMENTS


@pytest.fixture
def reads(monkeypatch):
    """Puts three examples in place of the source; tells how often it was read."""
    calls = []

    def read_examples(task, split, lengths):
        calls.append((task.name, split))
        return [{"targets": np.array([5 + i, 6], np.int32)} for i in range(3)]

    monkeypatch.setattr(examples, "read_examples", read_examples)
    return calls


def test_cached_examples_are_read_instead_of_the_source(tmp_path, reads):
    for _ in range(2):
        loaded = load(span_task(), cache_dir=tmp_path)
        assert [loaded.store[i]["targets"].tolist() for i in range(3)] == [[5, 6], [6, 6], [7, 6]]
    assert reads == [("spans", "train")]
    assert [path.name.startswith("spans-train-") for path in tmp_path.iterdir()] == [True]
    load(span_task(), cache_dir=tmp_path, lengths={"inputs": 40, "targets": 12})
    assert len(reads) == len(list(tmp_path.iterdir())) == 2


def test_damaged_cache_is_made_anew(tmp_path, caplog, reads):
    load(span_task(), cache_dir=tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    assert len(load(span_task(), cache_dir=tmp_path)) == 3
    assert "is damaged" in caplog.text
    assert path.read_bytes() == whole
    assert len(reads) == 2


def test_a_full_disk_under_the_cache_loses_no_examples(tmp_path, caplog, reads):
    (tmp_path / "file").touch()
    assert len(load(span_task(), cache_dir=tmp_path / "file")) == 3
    assert "The examples of 'spans' are not kept for other runs" in caplog.text


def test_lengths_without_room_for_text_are_refused():
    assert len(load(span_task(), lengths={"inputs": 2, "targets": 12})) == sum(map(len, DOCUMENTS))
    with pytest.raises(UsageError, match="leave no room for text under SpanCorruption"):
        load(span_task(), lengths={"inputs": 1, "targets": 12})


def test_progress_is_shown(reads):
    calls = []
    load(span_task(), progress=lambda name, count: calls.append((name, count)))
    assert calls == [("spans", 3)]


def test_names_are_checked():
    seqio.TaskRegistry.add_provider("test_examples_spans", span_task("test_examples_spans"))
    try:
        with pytest.raises(ValueError, match="called 'test_example_spans'. Did you mean 'test_examples_spans'"):
            load("test_example_spans")
        with pytest.raises(ValueError, match="'test_examples_spans' has no split 'test'; it has 'train'"):
            examples.load_examples("test_examples_spans", "test", vocabulary=BYTES, lengths=LENGTHS, seed=0)
        mixture = seqio.Mixture("both", [("test_examples_spans", 1.0)])
        with pytest.raises(ValueError, match=r"'both' is a mixture; name one of its tasks: \['test_examples_spans'\]"):
            examples.get_task(mixture)
    finally:
        seqio.TaskRegistry.remove("test_examples_spans")


def test_corruption_comes_last_and_alone():
    features = {"inputs": feature(), "targets": feature()}

    def task(*steps):
        return seqio.Task("wrong", source(), output_features=features, preprocessors=list(steps))

    for steps in [(tokenize, SpanCorruption(), seqio.preprocessors.append_eos), (SpanCorruption(), SpanCorruption())]:
        with pytest.raises(ValueError, match="must be its last preprocessor, and the only corruption"):
            load(task(*steps))


def test_nothing_to_read_is_an_error():
    with pytest.raises(ValueError, match="'spans' has no examples in split 'train'"):
        load(span_task(documents=("",)))


def test_a_source_that_fails_is_reported_with_its_task(tmp_path):
    lines = seqio.TextLineDataSource({"train": str(tmp_path / "gone.txt")})
    steps = [functools.partial(seqio.preprocessors.rekey, key_map={"targets": "text"}), tokenize]

    def as_text(dataset):
        return dataset.map(lambda line: {"text": line})

    task = seqio.Task("gone", lines, output_features={"targets": feature()}, preprocessors=[as_text, *steps])
    with pytest.raises(ValueError, match="Reading split 'train' of task 'gone' failed.*gone.txt"):
        load(task, lengths={"targets": 8})


def test_tasks_with_a_vocabulary_of_their_own_need_none():
    features = {"targets": seqio.Feature(vocabulary=seqio.ByteVocabulary(), add_eos=True)}
    task = seqio.Task(
        "own", source(), output_features=features, preprocessors=[seqio.preprocessors.tokenize, CausalLM()]
    )
    loaded = load(task, vocabulary=None, lengths={"targets": 200})
    assert loaded.example(0, epoch=0)["targets"].tolist() == [b + 3 for b in DOCUMENTS[0].encode()] + [1]
