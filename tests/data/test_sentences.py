import time

import hypothesis
import hypothesis.strategies as st
import pytest

from t2t.data.sentences import split_sentences


def stripped(text, **options):
    return [sentence.strip() for sentence in split_sentences(text, **options)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["One ends here.", "Two does too!", "Is this three?", "Yes..."],
        ["He came.", '"Where to?" she asked.', "“Away.”", "(Nobody knew.)", "‘So?’"],
        ["Dr. Who met Mrs. J. Smith of the U.S. Navy.", "They left."],
        ["It is 3.14 or e.g. Pi, says Prof. Euler vs. Gauss.", "See fig. A."],
        ["It cost $5.", "Été.", "Ça va ?", "Žena."],
        ["Это так.", "Да!"],
        ["今天很好。", "我去！", "「真的？」", "好"],
        ["यह एक वाक्य है।", "दूसरा।"],
        ["مرحبا بك.", "كيف حالك."],
        ["no capital. here it goes on", "A line ends one"],
        ["Well...", "Really?!", "Yes."],
    ],
)
def test_sentences_by_hand(sentences):
    text = " ".join(sentences[:-1]) + "\n" + sentences[-1]
    assert stripped(text) == sentences


def test_a_stop_before_a_small_letter_or_a_number_ends_nothing():
    assert stripped("about 5 p.m. on, no. 7 of it. (see below) etc. and 3. 14") == [
        "about 5 p.m. on, no. 7 of it. (see below) etc. and 3. 14"
    ]


def test_lines_end_sentences_unless_they_are_broken_at_a_width():
    text = "A heading\n\nThis text is\nbroken. It goes\non.\n  \nAnother."
    assert stripped(text) == ["A heading", "This text is", "broken.", "It goes", "on.", "Another."]
    assert stripped(text, wrapped=True) == ["A heading", "This text is\nbroken.", "It goes\non.", "Another."]


def test_white_space_goes_with_the_sentence_behind_it():
    assert split_sentences("  One.  Two.\n\n Three\n") == ["  One.", "  Two.", "\n\n Three\n"]


@pytest.mark.parametrize("text", ["", " ", "\n \n\t"])
def test_white_space_alone_is_no_sentence(text):
    assert split_sentences(text) == split_sentences(text, wrapped=True) == []


@hypothesis.given(st.text(st.sampled_from("aB. !?\n\"'()。Dr1\u00a0"), max_size=40), st.booleans())
def test_sentences_together_are_the_text_and_none_is_blank(text, wrapped):
    made = split_sentences(text, wrapped=wrapped)
    assert "".join(made) == (text if text.strip() else "")
    assert all(sentence.strip() for sentence in made)


@pytest.mark.parametrize("piece", [".", "\n", " ", "。", ".)", "a.", '" ', "\n \n", "a.\t"])
def test_long_rows_of_marks_and_spaces_are_read_once(piece):
    started = time.process_time()
    text = f"Once {piece * (100_000 if len(piece) == 1 else 10_000)} B."
    for wrapped in (False, True):
        split_sentences(text, wrapped=wrapped)
    assert time.process_time() - started < 5  # reading it again and again takes minutes
