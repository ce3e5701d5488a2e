import functools

import numpy as np
import pytest

from t2t.data import labelled_texts
from t2t.data.labelled_texts import LabelledTexts
from t2t.errors import UsageError

QQP = LabelledTexts(name="qqp", fields=("q1", "q2", "q3"), labels=("not_duplicate", "duplicate"))
ROW = {"q1": "How so?", "q2": "Why not?", "q3": "Who?", "idx": 10, "label": 0}


def test_fields_come_in_their_order_with_their_names():
    """The cases of the reference implementation's test_glue."""
    assert QQP(ROW, "train") == [
        {"inputs": "qqp q1: How so? q2: Why not? q3: Who?", "targets": "not_duplicate", "idx": 10}
    ]
    two = LabelledTexts(name="qqp", fields=("q3", "q1"), labels=QQP.labels)
    assert two(ROW, "train")[0]["inputs"] == "qqp q3: Who? q1: How so?"


@pytest.mark.parametrize("label", [-1, None, "-1", "-", "", "<unk>"])
def test_a_missing_label_is_unknown(label):
    assert QQP({**ROW, "label": label}, "test")[0]["targets"] == "<unk>"


@pytest.mark.parametrize(
    ("value", "labels", "number"),
    [
        (1, ("no", "yes"), 1),
        ("1", ("no", "yes"), 1),
        ("yes", ("no", "yes"), 1),
        (True, ("False", "True"), 1),
        ("true", ("False", "True"), 1),
        (0, ("False", "True"), 0),
        ("0", ("1", "0"), 1),  # a name goes before a number
    ],
)
def test_labels_are_ids_names_or_truth(value, labels, number):
    assert labelled_texts.label_id(value, labels) == number


@pytest.mark.parametrize("value", ["maybe", 2, 1.5, "true"])
def test_another_label_is_refused(value):
    with pytest.raises(UsageError, match="it can be no, yes, or a number below 2"):
        labelled_texts.label_id(value, ("no", "yes"))


def test_markup_of_multirc_is_taken_out():
    multirc = LabelledTexts(name="multirc", fields=("paragraph",), labels=("False", "True"), strips_markup=True)
    row = {
        "paragraph": "<b>Sent 1: </b>One.<br><b>Sent 2: </b>Two <i>.",
        "label": 1,
        "idx": {"paragraph": 5, "answer": 3},
    }
    assert multirc(row, "train") == [
        {
            "inputs": "multirc paragraph: Sent 1: One. Sent 2: Two <i>.",
            "targets": "True",
            "idx/paragraph": 5,
            "idx/answer": 3,
        }
    ]


def test_a_number_that_is_none_is_refused():
    with pytest.raises(UsageError, match="idx is 'dev-3'; it must be a whole number"):
        QQP({**ROW, "idx": "dev-3"}, "train")


def test_every_fifth_is_itself_and_what_lies_between_is_rounded():
    fifths = [f"{number / 5:.1f}" for number in range(26)]
    assert [labelled_texts.fifths(float(text)) for text in fifths] == fifths
    # As the published code computes it, in float32: half of a fifth goes to the even one.
    for value in np.linspace(0, 5, 501, dtype=np.float32):
        wanted = f"{float(np.round(value * np.float32(5)) / np.float32(5)):.1f}"
        assert labelled_texts.fifths(float(value)) == wanted
        assert abs(float(wanted) - value) <= 0.1 + 1e-6


def test_similarity_of_a_test_set_is_unknown():
    row = {"sentence1": "A.", "sentence2": "B.", "idx": 1}
    assert labelled_texts.similarity(row, "test")[0]["targets"] == "<unk>"
    assert labelled_texts.similarity({**row, "label": -1.0}, "test")[0]["targets"] == "<unk>"
    assert labelled_texts.similarity({**row, "label": "2.61"}, "train")[0]["targets"] == "2.6"
    with pytest.raises(UsageError, match="must be a number from 0 to 5"):
        labelled_texts.similarity({**row, "label": "high"}, "train")


def test_predictions_outside_the_labels_are_none():
    read = functools.partial(labelled_texts.predicted_label, labels=("entailment", "not_entailment"))
    assert [read(text) for text in ("entailment", " not_entailment\n", "Entailment", "entail", "", "<unk>")] == [
        0, 1, -1, -1, -1, -1,
    ]  # fmt: skip
    assert [labelled_texts.predicted_number(text) for text in ("3.4", "about 3", "<unk>")] == [3.4, -1.0, -1.0]


def test_groups_are_those_of_the_example():
    example = {
        "idx/paragraph": np.array(4),
        "idx/question": np.array(9),
        "idx": np.array(7),
        "idx/passage": 1,
        "idx/query": 2,
    }
    read = functools.partial(
        labelled_texts.grouped_label, labels=("False", "True"), by=("idx/paragraph", "idx/question"), example=example
    )
    assert read("True", is_target=True) == {"value": 1, "group": (4, 9)}
    assert read("Perhaps", is_target=False) == {"value": -1}
    pairs = functools.partial(labelled_texts.grouped_label, labels=("a", "b"), by=("idx",), together=2, example=example)
    assert pairs("b", is_target=True) == {"value": 1, "group": (3,)}
    answers = {**example, "answers": ["one", "two"]}
    assert labelled_texts.grouped_answer("one", example=answers, is_target=True) == {
        "value": ["one", "two"],
        "group": (1, 2),
    }


def test_highlights_of_record_become_sentences():
    """The case of the reference implementation's test_record, and one whose sentences end."""
    row = {
        "query": "It was @placeholder.",
        "entities": ["A", "B", "C"],
        "passage": 'One\n@highlight\nTwo!\n@highlight\n"Three"\n@highlight\nFour.',
        "answers": ["A", "C"],
        "idx": {"passage": 1, "query": 2},
    }
    inputs = 'record query: It was @placeholder. entities: A, B, C passage: One. Two! "Three" Four.'
    made = list(labelled_texts.cloze_answers(row, "train"))
    assert made == [
        {"inputs": inputs, "targets": answer, "answers": ["A", "C"], "idx/passage": 1, "idx/query": 2}
        for answer in ("A", "C")
    ]
    assert len(list(labelled_texts.cloze_answers(row, "validation"))) == 1
    unanswered = list(labelled_texts.cloze_answers({**row, "answers": []}, "test"))
    assert [(one["targets"], one["answers"]) for one in unanswered] == [("<unk>", [])]
