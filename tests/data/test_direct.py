"""What is read without TensorFlow equals what seqio reads, to the byte."""

import functools

import numpy as np
import pytest

seqio = pytest.importorskip("seqio")

from t2t.data import direct, examples, file_source, preprocessors, registry  # noqa: E402
from t2t.data.host_tensorflow import tf  # noqa: E402
from t2t.data.vocabularies import bind_vocabulary  # noqa: E402
from t2t.vocabulary import ByteVocabulary  # noqa: E402

BYTES = ByteVocabulary(mask=True)
DOCUMENTS = ["One two three.", "", "Four.", "Fünf \x01 sechs", "a longer document, of several pieces", "z"] * 3
PAIRS = [{"inputs": "2+2", "targets": "4"}, {"inputs": "a much longer sum", "targets": ""}]
LENGTHS = {"inputs": 12, "targets": 12}
tokenize_alone = functools.partial(preprocessors.tokenize, copy_pretokenized=False)


def rows(*rows):
    return registry.TextSource(lambda split: list(rows), splits=("train",))


TEXTS = rows(*({"text": text, "title": "dropped"} for text in DOCUMENTS))
named = functools.partial(seqio.preprocessors.rekey, key_map={"targets": "text"})


def task(source, *steps, add_eos=True, features=("inputs", "targets")):
    made = {name: seqio.Feature(registry.feature().vocabulary, add_eos=add_eos, required=False) for name in features}
    return bind_vocabulary(seqio.Task("direct", source, output_features=made, preprocessors=list(steps)), BYTES)


def chunk(corruption, **settings):
    return preprocessors.Chunk(corruption=corruption, **settings)


CASES = {
    "tokens": (TEXTS, named, preprocessors.tokenize),
    "ended": (TEXTS, named, tokenize_alone, seqio.preprocessors.append_eos),
    "joined": (TEXTS, named, tokenize_alone, chunk(preprocessors.SpanCorruption())),
    "apart": (TEXTS, named, tokenize_alone, chunk(preprocessors.PrefixLM(), across_documents=False)),
    "joined and ended": (TEXTS, named, tokenize_alone, chunk(preprocessors.CausalLM(), end_documents=True)),
    "pairs": (rows(*PAIRS), preprocessors.tokenize, seqio.preprocessors.append_eos_after_trim),
    "pairs with prefix": (
        rows(*PAIRS), preprocessors.TextToText(prefix="add: "), preprocessors.tokenize,
        seqio.preprocessors.append_eos_after_trim,
    ),
}  # fmt: skip


def by_seqio(one, lengths):
    dataset = one.get_dataset(lengths, "train", shuffle=False, seed=0, trim_output_features=False)
    return list(dataset.as_numpy_iterator())


def same(made, expected):
    made = [{k: v.encode() if isinstance(v, str) else v for k, v in example.items()} for example in made]
    assert [example.keys() for example in made] == [example.keys() for example in expected]
    for one, other in zip(made, expected, strict=True):
        for name, value in one.items():
            np.testing.assert_array_equal(value, other[name])
            assert np.asarray(value).dtype.kind in "SO" or value.dtype == other[name].dtype


@pytest.mark.parametrize("name", CASES)
def test_examples_are_those_of_seqio(name, monkeypatch):
    one = task(*CASES[name])
    monkeypatch.setattr(direct, "JOINED", 20)
    made = list(direct.read(one, "train", LENGTHS))
    assert len(made) >= 2
    same(made, by_seqio(one, LENGTHS))


def test_without_eos_none_is_put():
    one = task(rows(*PAIRS), tokenize_alone, seqio.preprocessors.append_eos, add_eos=False)
    assert list(direct.read(one, "train", LENGTHS))[0]["targets"].tolist() == BYTES.encode("4")


def test_files_are_read_too(tmp_path):
    (tmp_path / "a.txt").write_text("\n\n".join(DOCUMENTS), encoding="utf-8")
    source = file_source.FileSource({"train": [str(tmp_path / "a.txt")]})
    one = task(source, named, tokenize_alone, chunk(preprocessors.CausalLM()))
    same(list(direct.read(one, "train", LENGTHS)), by_seqio(one, LENGTHS))


def other_names(dataset):
    return dataset.map(lambda row: {"targets": row["text"]})


class Louder(registry.TextSource):
    """Reads in its own way."""

    def get_dataset(self, *args, **settings):
        return super().get_dataset(*args, **settings).map(lambda row: {"text": tf.strings.upper(row["text"])})


def numbered(split):
    return [{"text": "a", "number": 3}]


@pytest.mark.parametrize(
    "steps",
    [
        (TEXTS, named),
        (TEXTS, other_names, tokenize_alone),
        (TEXTS, named, tokenize_alone, seqio.preprocessors.append_eos, seqio.preprocessors.append_eos),
        (TEXTS, named, tokenize_alone, other_names),
        (Louder(lambda split: [{"text": "a"}], splits=("train",)), named, tokenize_alone),
        (registry.TextSource(numbered, splits=("train",)), named, tokenize_alone),
        (rows({"other": "a"}), named, tokenize_alone),
        (rows(), named, tokenize_alone),
        (seqio.FunctionDataSource(lambda split, shuffle_files=False: None, splits=["train"]), named, tokenize_alone),
    ],
)
def test_all_else_is_left_to_tensorflow(steps):
    assert direct.read(task(*steps), "train", LENGTHS) is None


def test_features_that_are_missing_or_of_another_kind_are_left_to_tensorflow():
    steps = [named, tokenize_alone]
    for changed in ({"required": True}, {"dtype": tf.int64}):
        feature = {name: seqio.Feature(registry.feature().vocabulary, **changed) for name in ("inputs", "targets")}
        one = bind_vocabulary(seqio.Task("direct", TEXTS, output_features=feature, preprocessors=steps), BYTES)
        assert direct.read(one, "train", LENGTHS) is None
    theirs = {"targets": seqio.Feature(seqio.ByteVocabulary())}
    assert direct.read(seqio.Task("x", TEXTS, output_features=theirs, preprocessors=steps), "train", LENGTHS) is None


def test_texts_are_kept_for_evaluation():
    one = task(*CASES["pairs with prefix"])
    made = examples.load_examples(one, "train", vocabulary=None, lengths=LENGTHS, seed=0, texts=True)
    assert made.store.texts["inputs_pretokenized"] == [f"add: {row['inputs']}" for row in PAIRS]
    assert made.store.texts["targets_pretokenized"] == ["4", ""]
