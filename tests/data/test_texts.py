"""Raw texts of tasks, as their sources have them."""

import functools

from t2t.data import preprocessors, registry, texts

import seqio  # isort: skip - t2t.data sets up TensorFlow


def rows(split: str) -> list[dict[str, str]]:
    return [{"inputs": f"{split}: é one", "targets": "1"}, {"inputs": f"{split}: two", "targets": "2"}]


registry.add_text_to_text("texts_a", registry.TextSource(rows, splits=("train", "validation")), metric_fns=[])
registry.add_text_to_text("texts_b", registry.TextSource(rows, splits=("train",)), metric_fns=[])
registry.add_mixture("texts_both", {"texts_a": 1.0, "texts_b": 3.0})


PAGE = {"text": "One page.", "url": "https://example.org", "answer": "Yes.", "targets": "No."}


def read_of_page(*steps):
    source = registry.TextSource(lambda split: [PAGE], splits=("train",))
    features = {"inputs": registry.feature(), "targets": registry.feature()}
    return list(texts.raw_texts(seqio.Task("page", source, output_features=features, preprocessors=list(steps))))


def test_only_fields_that_a_task_reads_come():
    rekey = functools.partial(seqio.preprocessors.rekey, key_map={"inputs": None, "targets": "text"})
    assert read_of_page(rekey, preprocessors.tokenize) == ["One page."]
    pairs = preprocessors.TextToText(prefix="answer: ", inputs="text", targets="answer")
    assert read_of_page(pairs, preprocessors.tokenize) == ["One page.", "Yes."]
    assert read_of_page(preprocessors.tokenize) == ["No."]


def test_of_a_source_without_the_features_every_string_comes(monkeypatch):
    monkeypatch.delitem(PAGE, "targets")
    own = lambda dataset: dataset.map(lambda row: {"inputs": row["text"], "targets": row["answer"]})  # noqa: E731
    assert read_of_page(own, preprocessors.tokenize) == ["One page.", "https://example.org", "Yes."]


def test_every_string_of_every_example_comes_in_order():
    assert list(texts.raw_texts("texts_a")) == ["train: é one", "1", "train: two", "2"]
    assert list(texts.raw_texts("texts_a", split="validation"))[0] == "validation: é one"


def test_a_mixture_gives_each_task_once_whatever_the_rates():
    assert list(texts.raw_texts("texts_both")) == 2 * ["train: é one", "1", "train: two", "2"]
    assert list(texts.raw_texts({"texts_b": 7.0})) == ["train: é one", "1", "train: two", "2"]


def test_what_several_tasks_read_of_one_source_comes_once():
    source = registry.TextSource(lambda split: [PAGE], splits=("train",))
    names = registry.add_objectives("texts_page", source)
    assert list(texts.raw_texts(dict.fromkeys(names, 1.0))) == ["One page."]
    registry.add_objectives("texts_page", source, field="answer")
    registry.add_text_to_text("texts_page_mlm", source, metric_fns=[])
    assert list(texts.raw_texts(dict.fromkeys(names, 1.0))) == ["Yes.", "No."]
    for name in names:
        seqio.TaskRegistry.remove(name)
