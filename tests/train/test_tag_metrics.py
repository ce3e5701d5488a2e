import pytest

from t2t.data import tagging
from t2t.train import tag_metrics

pytest.importorskip("seqeval")


def test_entities_are_seqevals():
    """seqeval's own example: one of two entities is found, and one of two found is right."""
    right = [["O", "O", "O", "B-MISC", "I-MISC", "I-MISC", "O"], ["B-PER", "I-PER", "O"]]
    ours = [["O", "O", "B-MISC", "I-MISC", "I-MISC", "I-MISC", "O"], ["B-PER", "I-PER", "O"]]
    made = tag_metrics.entities(tagging.NER_LABELS)(right, ours)
    assert made == {
        "precision": 50.0,
        "recall": 50.0,
        "f1": 50.0,
        "accuracy": pytest.approx(80.0),
        "wrong_lengths": 0.0,
        "invalid_predictions": 0.0,
    }


def test_what_is_missing_is_no_entity():
    made = tag_metrics.entities(tagging.NER_LABELS)([["B-PER", "O", "B-LOC"]], [["B-PER", "nonsense"]])
    assert (made["precision"], made["recall"]) == (100.0, 50.0)
    assert (made["wrong_lengths"], made["invalid_predictions"]) == (1.0, 1.0)
    nothing = tag_metrics.entities(tagging.NER_LABELS)([["O"]], [["O"]])
    assert (nothing["f1"], nothing["accuracy"]) == (0.0, 100.0)


def test_missing_parts_of_speech_are_wrong():
    made = tag_metrics.tags(("NOUN", "VERB"))([["NOUN", "VERB", "NOUN"], ["VERB"]], [["NOUN", "NOUN"], ["VERB", "X"]])
    assert made == {"accuracy": 50.0, "wrong_lengths": 2.0, "invalid_predictions": 1.0}
