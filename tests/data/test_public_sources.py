import functools
import json

import pytest

seqio = pytest.importorskip("seqio")

from t2t.data import corpora, examples, public_sources, registry, token_work  # noqa: E402
from t2t.data.host_tensorflow import tf  # noqa: E402
from t2t.data.vocabularies import bind_vocabulary  # noqa: E402
from t2t.vocabulary import ByteVocabulary  # noqa: E402

FILES = {"train": ["train-*.jsonl"], "validation": ["validation-*.jsonl"]}


def folder(**settings):
    return public_sources.FolderSource("letters", FILES, how="wget letters.zip", **settings)


@pytest.fixture
def letters(tmp_path, monkeypatch):
    monkeypatch.setenv(public_sources.CORPORA, str(tmp_path))
    (tmp_path / "letters").mkdir()
    for name, rows in {"train-0": ["a", "", "b"], "train-1": ["c"], "validation-0": ["d"]}.items():
        text = "".join(json.dumps({"text": row}) + "\n" for row in rows)
        (tmp_path / "letters" / f"{name}.jsonl").write_text(text)
    return tmp_path / "letters"


def texts(source, split="train"):
    return [row["text"].decode() for row in source.get_dataset(split, shuffle=False).as_numpy_iterator()]


def doubled(dataset):
    return dataset.map(lambda row: {"text": tf.strings.join([row["text"], row["text"]])})


def test_a_folder_is_looked_for_when_it_is_read(letters):
    source = folder()
    assert source.splits == ("train", "validation")
    assert texts(source) == ["a", "b", "c"]
    assert texts(source, "validation") == ["d"]
    assert texts(folder(fields=("text",))) == ["a", "", "b", "c"]
    assert len(source.groups("train", size=1)) == 2
    assert source.fingerprint("train") != source.fingerprint("validation")


def test_files_that_were_not_fetched_are_named_with_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv(public_sources.CORPORA, str(tmp_path))
    source = folder()
    for read in (lambda: source.files, lambda: source.get_dataset("train"), lambda: source.fingerprint("train")):
        with pytest.raises(corpora.MissingFileError, match=r"letters.train-\*.*wget letters.zip; or .* T2T_CORPORA"):
            read()
    monkeypatch.delenv(public_sources.CORPORA)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(corpora.MissingFileError, match=r"corpora.letters.train-"):
        _ = folder().files


def test_prepared_examples_are_all_that_is_seen(letters):
    source = public_sources.PreparedSource(folder(), doubled)
    assert source.splits == ("train", "validation")
    assert texts(source) == ["aa", "bb", "cc"]
    assert source.num_input_examples("train") is None  # files do not know
    shuffled = {row["text"] for row in source.get_dataset("train", seed=1).as_numpy_iterator()}
    assert shuffled == {b"aa", b"bb", b"cc"}
    with pytest.raises(ValueError, match="one shard"):
        source.get_dataset("train", shard_info=seqio.ShardInfo(0, 2))
    rows = registry.TextSource(lambda split: [{"text": "x"}] * 3, splits=("train",))
    other = source.on(rows)
    assert (texts(other), other.num_input_examples("train")) == (["xx"] * 3, 3)
    assert public_sources.PreparedSource(rows, doubled, keeps_number=False).num_input_examples("train") is None


def test_caches_know_source_and_preparation(letters):
    def fingerprint(source, prepare):
        return json.dumps(public_sources.PreparedSource(source, prepare).fingerprint("train"))

    made = fingerprint(folder(), doubled)
    assert made == fingerprint(folder(), doubled)
    assert made != fingerprint(folder(), functools.partial(doubled))
    (letters / "train-0.jsonl").write_text('{"text": "other"}\n')
    assert made != fingerprint(folder(), doubled)


def test_a_task_on_prepared_files(letters, tmp_path):
    source = public_sources.PreparedSource(folder(), doubled)
    names = registry.add_objectives("letters_test", source)
    task = bind_vocabulary(seqio.TaskRegistry.get("letters_test_causal_lm"), ByteVocabulary())
    for name in names:
        seqio.TaskRegistry.remove(name)
    made = examples.load_examples(task, "train", vocabulary=None, lengths={"targets": 9}, seed=0)
    assert [ByteVocabulary().decode([token]) for token in made.example(0, epoch=0)["targets"]] == [
        *"aa",
        "",
        *"bb",
        "",
        *"cc",
        "",
    ]
    rest, _ = examples.split_corruption(task)
    assert token_work.divide(rest, "train", {"targets": 9}, size=100) is not None
    (letters / "train-1.jsonl").write_text("{")
    with pytest.raises(corpora.CorpusError, match=r"train-1\.jsonl"):
        examples.load_examples(task, "train", vocabulary=None, lengths={"targets": 9}, seed=0)
