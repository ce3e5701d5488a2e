import pytest

from t2t.data import questions

ROW = {
    "id": "testid",
    "context": "Some context.",
    "question": "A question?",
    "answers": {"text": ["The answer.", "Another answer."]},
}


def test_punctuation_is_set_apart_as_t5_does():
    """The cases of the reference implementation's test_pad_punctuation."""
    text = '"This  is a string with "punctuation (1845-1986) ".'
    assert questions.pad_punctuation(text) == ' " This is a string with " punctuation ( 1845 - 1986 ) " . '
    assert questions.pad_punctuation("hard\u00a0space\u2003here") == "hard\u00a0space\u2003here"


def test_letters_of_every_script_stay_together():
    assert questions.pad_signs("naïve_x 12,5 हिन्दी。") == "naïve_x 12 , 5 हिन्दी 。 "


def test_squad_as_the_reference_implementation_prints_it():
    assert questions.passage_question(ROW, "train") == [
        {
            "inputs": "question: A question ? context: Some context . ",
            "targets": "The answer . ",
            "answers": ["The answer . ", "Another answer . "],
            "id": "testid",
        }
    ]
    without = questions.passage_question(ROW, "train", context=False)[0]
    assert without["inputs"] == "squad trivia question: A question ? "


def test_a_question_without_an_answer():
    made = questions.passage_question({**ROW, "answers": {"text": []}}, "train")[0]
    assert (made["targets"], made["answers"]) == ("unanswerable", [])


def test_closed_books_show_the_question_alone():
    row = {"question": "Who?", "question_id": "tc_1", "answer": {"value": "Bob", "aliases": ["Bob", "Bobby"]}}
    assert questions.trivia_question(row, "train") == [
        {"inputs": "trivia_qa question: Who?", "targets": "Bob", "answers": ["Bob", "Bobby"], "id": "tc_1"}
    ]
    assert questions.natural_question({"question": "who", "answer": "Al"}, "train")[0]["answers"] == ["Al"]


@pytest.mark.parametrize("is_target", [True, False])
def test_a_target_is_all_answers(is_target):
    made = questions.all_answers("x", example={"answers": ["x", "y"]}, is_target=is_target)
    assert made == (["x", "y"] if is_target else "x")
