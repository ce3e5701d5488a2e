import dataclasses
import functools
import json

import numpy as np
import pytest
import seqio

from t2t.data import cache, examples, registry, vocabularies
from t2t.data.host_tensorflow import tf
from t2t.data.preprocessors import CausalLM, Chunk, PrefixLM, SpanCorruption, tokenize
from t2t.data.registry import feature
from t2t.data.store import TokenStore
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
    assert first == read(spans, 0)
    assert first != read(spans, 1)
    assert first == read(load(span_task()), 0)
    assert first != read(load(span_task(), seed=5), 0)
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


def test_cached_examples_are_read_instead_of_the_source(tmp_path, monkeypatch, spans):
    first = load(span_task(), cache_dir=tmp_path)
    assert [path.suffix for path in tmp_path.iterdir()] == [".npz"]
    monkeypatch.setattr(examples, "read_examples", lambda *_: pytest.fail("the source was read again"))
    second = load(span_task(), cache_dir=tmp_path)
    for i in range(len(spans)):
        np.testing.assert_array_equal(first.store[i]["targets"], spans.store[i]["targets"])
        np.testing.assert_array_equal(second.store[i]["targets"], spans.store[i]["targets"])


def test_damaged_cache_is_made_anew(tmp_path, caplog):
    load(span_task(), cache_dir=tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    load(span_task(), cache_dir=tmp_path)
    assert "is damaged" in caplog.text
    assert len(path.read_bytes()) == len(whole)


def test_cache_name_covers_what_decides_the_examples():
    def name(task=None, vocabulary=BYTES, split="train", lengths=LENGTHS):
        bound = vocabularies.bind_vocabulary(task or span_task(), vocabulary)
        return cache.cache_name(examples.split_corruption(bound)[0], split, lengths)

    def chunked(density):
        spans = SpanCorruption(noise_density=density)
        features = {"inputs": feature(), "targets": feature()}
        steps = [tokenize, Chunk(corruption=spans), spans]
        return seqio.Task("spans", source(), output_features=features, preprocessors=steps)

    assert name() == name()
    different = [name(), name(vocabulary=ByteVocabulary(sentinels=5)), name(split="test"), name(chunked(0.2))]
    different.append(name(lengths={"inputs": 33, "targets": 12}))
    assert len(set(different)) == len(different)


def test_descriptions_are_the_same_in_every_process():
    def scale(x, factor):
        return x * factor

    factor = 3
    closure = lambda x: x * factor  # noqa: E731
    things = [functools.partial(scale, factor=2), closure, object(), SpanCorruption(), len, seqio.ByteVocabulary()]
    assert not [thing for thing in things if " at 0x" in json.dumps(cache.describe(thing))]
    assert cache.describe(functools.partial(scale, factor=2)) != cache.describe(functools.partial(scale, factor=3))
    before = cache.describe(closure)
    factor = 4
    assert cache.describe(closure) != before
    assert cache.describe(np.arange(3)) != cache.describe(np.arange(4))


def test_progress_is_shown():
    calls = []
    load(span_task(), progress=lambda name, count: calls.append((name, count)))
    assert calls[-1][0] == "spans"
    assert calls[-1][1] > 10


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


def test_tensorflow_sees_no_accelerator():
    assert tf.config.get_visible_devices("GPU") == []
    assert tf.config.get_visible_devices("TPU") == []
