"""Formats on sources, on files, through seqio and without it."""

import functools

import numpy as np
import pytest

seqio = pytest.importorskip("seqio")

from t2t.data import (  # noqa: E402
    cache,
    examples,
    file_source,
    labelled_texts,
    official_files,
    registry,
    supervised,
    token_cache,
    vocabularies,
)
from t2t.data.host_tensorflow import tf  # noqa: E402
from t2t.data.labelled_texts import LabelledTexts  # noqa: E402
from t2t.data.mapped_store import MappedStore  # noqa: E402
from t2t.errors import UsageError  # noqa: E402
from t2t.vocabulary import ByteVocabulary  # noqa: E402

LABELS = ("no", "yes")
LENGTHS = {"inputs": 40, "targets": 8}
FORM = supervised.Format(examples=LabelledTexts(name="toy", fields=("text",), labels=LABELS), extras={"idx": "number"})


def tensors(split):
    """Rows as TFDS has them."""
    texts = {"train": ["one", "twö"], "validation": ["three"]}[split]
    rows = {"text": texts, "label": np.arange(len(texts), dtype=np.int64), "idx": np.arange(len(texts), dtype=np.int32)}
    return tf.data.Dataset.from_tensor_slices(rows)


SOURCE = seqio.FunctionDataSource(
    lambda split, shuffle_files, seed=None: tensors(split), splits=("train", "validation"),
    num_input_examples={"train": 2, "validation": 1},
)  # fmt: skip


@pytest.fixture
def task():
    made = supervised.add(
        "toy_labels",
        SOURCE,
        FORM,
        metric_fns=[],
        postprocess_fn=functools.partial(labelled_texts.predicted_label, labels=LABELS),
        num_examples={"train": 2},
    )
    yield made
    seqio.TaskRegistry.remove("toy_labels")


def test_rows_of_tensors_become_examples(task):
    assert list(task.source.examples("train")) == [
        {"inputs": "toy text: one", "targets": "no", "idx": 0},
        {"inputs": "toy text: twö", "targets": "yes", "idx": 1},
    ]
    assert task.source.num_input_examples("train") == 2
    assert task.source.num_input_examples("validation") is None


def test_seqio_and_the_direct_way_give_the_same(task):
    vocabulary = ByteVocabulary()
    made = examples.load_examples(task, "train", vocabulary=vocabulary, lengths=LENGTHS, seed=0)
    dataset = vocabularies.bind_vocabulary(task, vocabulary).get_dataset(LENGTHS, "train", shuffle=False)
    rows = list(dataset.as_numpy_iterator())
    assert len(rows) == len(made) == 2
    for index, row in enumerate(rows):
        ours = made.example(index, epoch=0)
        assert ours["idx"] == row["idx"] == index
        for name in ("inputs", "targets"):
            assert ours[name].tolist() == row[name].tolist()
    assert vocabulary.decode(made.example(1, epoch=0)["inputs"]) == "toy text: twö"


def test_files_take_the_place_of_the_source(task, tmp_path):
    (tmp_path / "train.tsv").write_text("text\tlabel\nfour\tyes\nfive\t0\n", encoding="utf-8")
    own = file_source.with_files(task, files=[str(tmp_path / "*.tsv")])
    made = examples.load_examples(own, "train", vocabulary=ByteVocabulary(), lengths=LENGTHS, seed=0, texts=True)
    assert made.store.texts["targets_pretokenized"] == ["yes", "no"]
    assert own.splits == ("train",)
    before = own.source.fingerprint("train")
    (tmp_path / "train.tsv").write_text("text\tlabel\nfour\tyes\n", encoding="utf-8")
    assert own.source.fingerprint("train") != before
    with pytest.raises(UsageError, match="No file matches"):
        file_source.with_files(task, files=[str(tmp_path / "none.tsv")])


def test_a_file_without_rows_or_with_a_wrong_one_is_refused(task, tmp_path):
    (tmp_path / "train.tsv").write_text("text\tlabel\n", encoding="utf-8")
    own = file_source.with_files(task, files=[str(tmp_path / "train.tsv")])
    with pytest.raises(UsageError, match="hold no row"):
        examples.load_examples(own, "train", vocabulary=ByteVocabulary(), lengths=LENGTHS, seed=0)
    (tmp_path / "train.tsv").write_text("text\tlabel\nfour\tmaybe\n", encoding="utf-8")
    own = file_source.with_files(task, files=[str(tmp_path / "train.tsv")])
    with pytest.raises(UsageError, match="row 0 of train: the label is 'maybe'"):
        examples.load_examples(own, "train", vocabulary=ByteVocabulary(), lengths=LENGTHS, seed=0)


def test_official_files_in_the_folder_of_corpora_go_first(tmp_path, monkeypatch):
    source = supervised.SupervisedSource(SOURCE, FORM, local={"train": "toy/train.tsv"})
    monkeypatch.setenv(official_files.CORPORA, str(tmp_path))
    assert len(list(source.examples("train"))) == 2
    from_tfds = source.fingerprint("train")
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "train.tsv").write_text("text\tlabel\nfour\tyes\n", encoding="utf-8")
    assert [one["inputs"] for one in source.examples("train")] == ["toy text: four"]
    assert source.fingerprint("train") != from_tfds


def test_the_name_of_a_cache_tells_formats_apart():
    other = supervised.Format(examples=LabelledTexts(name="other", fields=("text",), labels=LABELS))
    names = {
        str(supervised.SupervisedSource(SOURCE, form).fingerprint("train"))
        for form in (FORM, other, supervised.Format(examples=FORM.examples))
    }
    assert len(names) == 3
    assert cache.describe(FORM.examples) == cache.describe(LabelledTexts(name="toy", fields=("text",), labels=LABELS))


def test_several_texts_may_be_none(task):
    form = supervised.Format(
        examples=lambda row, split: [{"inputs": row["text"], "targets": "x", "answers": ["a"] * row["label"]}],
        extras={"answers": "texts"},
    )
    registry.add_task(
        "toy_answers", supervised.SupervisedSource(SOURCE, form),
        output_features=task.output_features, preprocessors=task.preprocessors, metric_fns=[],
    )  # fmt: skip
    made = examples.load_examples(
        "toy_answers", "train", vocabulary=ByteVocabulary(), lengths=LENGTHS, seed=0, texts=True
    )
    assert made.store.texts["answers"] == [[], ["a"]]
    assert made.features == {"inputs", "targets"}
    seqio.TaskRegistry.remove("toy_answers")


def test_more_shards_and_splits_are_refused(task):
    with pytest.raises(ValueError, match="split='test': this source has train, validation"):
        task.source.get_dataset("test")
    with pytest.raises(ValueError, match="read as one shard"):
        task.source.get_dataset("train", shard_info=seqio.ShardInfo(0, 2))


@pytest.mark.slow
def test_a_cache_on_disk_holds_the_same(tmp_path):
    form = supervised.Format(
        examples=lambda row, split: [{"inputs": row["text"], "targets": "x", "answers": ["a"], "idx": row["idx"]}],
        extras={"answers": "texts", "idx": "number"},
    )
    made = supervised.add("toy_cached", SOURCE, form, metric_fns=[])
    vocabulary = ByteVocabulary()
    fitted, _ = examples.fit(made, "train", vocabulary=vocabulary, lengths=LENGTHS)
    settings = token_cache.Settings(workers=1, shard_size=1000)
    token_cache.make(fitted, "train", lengths=LENGTHS, directory=tmp_path, settings=settings)
    read = functools.partial(examples.load_examples, made, "train", vocabulary=vocabulary, lengths=LENGTHS, seed=0)
    ours, kept = read(), read(cache_dir=tmp_path)
    assert isinstance(kept.store, MappedStore)
    assert len(ours) == len(kept) == 2
    for index in range(2):
        one, other = ours.example(index, epoch=0), kept.example(index, epoch=0)
        assert {name: value.tolist() for name, value in one.items()} == {
            name: value.tolist() for name, value in other.items()
        }
    seqio.TaskRegistry.remove("toy_cached")
