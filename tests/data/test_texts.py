"""Raw texts of tasks, as their sources have them."""

from t2t.data import registry, texts


def rows(split: str) -> list[dict[str, str]]:
    return [{"inputs": f"{split}: é one", "targets": "1"}, {"inputs": f"{split}: two", "targets": "2"}]


registry.add_text_to_text("texts_a", registry.TextSource(rows, splits=("train", "validation")), metric_fns=[])
registry.add_text_to_text("texts_b", registry.TextSource(rows, splits=("train",)), metric_fns=[])
registry.add_mixture("texts_both", {"texts_a": 1.0, "texts_b": 3.0})


def test_every_string_of_every_example_comes_in_order():
    assert list(texts.raw_texts("texts_a")) == ["train: é one", "1", "train: two", "2"]
    assert list(texts.raw_texts("texts_a", split="validation"))[0] == "validation: é one"


def test_a_mixture_gives_each_task_once_whatever_the_rates():
    assert list(texts.raw_texts("texts_both")) == 2 * ["train: é one", "1", "train: two", "2"]
    assert list(texts.raw_texts({"texts_b": 7.0})) == ["train: é one", "1", "train: two", "2"]
