"""The cases are those of the reference implementation's tests of wsc_simple, dpr and wnli_simple."""

import pytest

from t2t.data import pronouns
from t2t.errors import UsageError

MITCHELL = {
    "text": "Mitchell asked Tom if he could lend some money.",
    "span1_text": "Tom",
    "span2_text": "he",
    "span2_index": 4,
    "idx": 1,
}


def test_the_pronoun_is_marked_and_the_noun_is_the_target():
    asked = "wsc: Mitchell asked Tom if *he* could lend some money."
    assert pronouns.referent(MITCHELL, "validation") == [{"inputs": asked, "targets": "Tom", "label": -1, "idx": 1}]
    assert pronouns.referent({**MITCHELL, "label": 1}, "train")[0] == {
        "inputs": asked, "targets": "Tom", "label": 1, "idx": 1,
    }  # fmt: skip
    assert pronouns.referent({**MITCHELL, "label": 0}, "train") == []
    assert pronouns.referent({**MITCHELL, "label": False}, "validation")[0]["label"] == 0


def test_two_rows_of_wsc_are_mended_as_t5_does():
    good = 'The boy continued to whip the pony. John laughed out loud. "Good for him," he said. '
    made = pronouns.referent({**MITCHELL, "text": good, "label": 1}, "train")[0]["inputs"]
    assert made == 'wsc: The boy continued to whip the pony. John laughed out loud. "Good for *him* ," he said.'
    iron = "Some day they might want to use it , but really for now, what more could they wish for?"
    made = pronouns.referent({**MITCHELL, "text": iron, "label": 1}, "train")[0]["inputs"]
    assert made == "wsc: Some day they might want to use *it* , but really for now, what more could they wish for?"


@pytest.mark.parametrize("place", [0, 3, 9])
def test_a_pronoun_elsewhere_is_refused(place):
    with pytest.raises(UsageError, match=f"span2_text is 'he', which is not word {place} of"):
        pronouns.referent({**MITCHELL, "span2_index": place}, "validation")


@pytest.mark.parametrize(
    ("sentence", "pronoun", "candidates", "label", "inputs", "targets"),
    [
        (
            "Mitchell asked Tom if he could lend some money.", "he", ["Mitchell", "Tom"], 1,
            "wsc: Mitchell asked Tom if *he* could lend some money.", "Tom",
        ),
        (
            "Bill beat Tom at Scrabble because that newbie had all the luck.", "that newbie", ["Bill", "Tom"], 0,
            "wsc: Bill beat Tom at Scrabble because *that newbie* had all the luck.", "Bill",
        ),
        (
            "Carl borrowed a book from Richard, but the book was unreadable to him.", "him", ["Carl", "Richard"], 0,
            "wsc: Carl borrowed a book from Richard, but the book was unreadable to *him*.", "Carl",
        ),
    ],
)  # fmt: skip
def test_definite_pronouns(sentence, pronoun, candidates, label, inputs, targets):
    row = {"sentence": sentence, "pronoun": pronoun, "candidates": candidates, "label": label}
    assert pronouns.definite_pronoun(row, "train") == [{"inputs": inputs, "targets": targets}]


@pytest.mark.parametrize(
    ("premise", "hypothesis", "inputs", "targets"),
    [
        (
            "Lily spoke to Donna breaking her silence.",
            "Lily spoke to Donna breaking Donna's silence.",
            "wsc: Lily spoke to Donna breaking *her* silence.",
            "Donna",
        ),
        (
            "The fish ate the worm. It was tasty.",
            "The worm was tasty.",
            "wsc: The fish ate the worm. *It* was tasty.",
            "The worm",
        ),
        (
            "Edward dropped adhesive tape onto his window sill, and when he pulled the tape off, some of the glue was "
            "stuck on it.",
            "Some of the glue was stuck on the window sill.",
            "wsc: Edward dropped adhesive tape onto his window sill, and when he pulled the tape off, some of the glue "
            "was stuck on *it* .",
            "the window sill",
        ),
        (
            "Al stole Bob's wallet and car, and then he was driving it really fast to get away.",
            "He was driving the car really fast to get away.",
            "wsc: Al stole Bob's wallet and car, and then he was driving *it* really fast to get away.",
            "the car",
        ),
    ],
)
def test_wnli_becomes_a_question_for_the_referent(premise, hypothesis, inputs, targets):
    row = {"sentence1": premise, "sentence2": hypothesis, "label": 1, "idx": 4}
    assert pronouns.entailed_referent(row, "validation") == [
        {"inputs": inputs, "targets": targets, "label": 1, "idx": 4}
    ]


def test_wnli_without_a_pronoun_is_refused():
    with pytest.raises(UsageError, match="no pronoun is in 'The fish ate.'"):
        pronouns.entailed_referent({"sentence1": "The fish ate.", "sentence2": "B."}, "validation")


@pytest.mark.parametrize(
    ("prediction", "wanted", "number"),
    [
        ("bunny", "the fuzzy bunny", 1),
        ("The Fuzzy Bunny", "bunny", 1),
        ("wolf", "bunny", 0),
        ("Bob", "Bob's hat", 0),
        ("Bob's hat", "his hat", 0),
        ("", "bunny", -1),
        ("the", "bunny", -1),
    ],
)
def test_a_prediction_names_the_referent(prediction, wanted, number):
    example = {"targets_pretokenized": wanted, "label": 1}
    assert pronouns.predicted_referent(prediction, example=example, is_target=False) == number
    assert pronouns.predicted_referent(wanted, example=example, is_target=True) == 1
