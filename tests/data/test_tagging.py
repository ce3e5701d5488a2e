import pytest

from t2t.data import tagging
from t2t.data.tagging import TaggedTokens
from t2t.errors import UsageError

NER = TaggedTokens(name="ner", field="ner", labels=tagging.NER_LABELS)


def test_labels_are_ids_or_names():
    made = NER({"tokens": ["Al", "Bo", "ran"], "ner": [1, "I-PER", 0]}, "train")
    assert made == [{"inputs": "ner: Al Bo ran", "targets": "B-PER I-PER O"}]
    free = TaggedTokens(name="ner", field="tags", labels=None)
    assert free({"tokens": ["x"], "tags": ["B-product"]}, "train")[0]["targets"] == "B-product"


def test_other_labels_and_numbers_are_refused():
    with pytest.raises(UsageError, match="a label in ner is 'B-product'; it can be O, B-PER"):
        NER({"tokens": ["x"], "ner": ["B-product"]}, "train")
    with pytest.raises(UsageError, match="a label in ner is 9"):
        NER({"tokens": ["x"], "ner": [9]}, "train")
    with pytest.raises(UsageError, match="2 tokens have 1 labels in ner"):
        NER({"tokens": ["x", "y"], "ner": [0]}, "train")


def test_predictions_are_cut_and_filled_up():
    made, counts = tagging.aligned(
        [["O", "B-PER"], ["O"], ["O", "O"]],
        [["O"], ["B-PER", "O", "B-X"], ["O", "what"]],
        labels=tagging.NER_LABELS,
        missing="O",
    )
    assert made == [["O", "O"], ["B-PER"], ["O", "O"]]
    assert counts == {"wrong_lengths": 2, "invalid_predictions": 2}
