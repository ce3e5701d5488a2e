import numpy as np
import pytest

from t2t import vocabulary as vocabularies
from t2t.data import sentence_ends
from tests.data import toy

WORDS = toy.word_vocabulary(
    "<s>", "<pad>", "</s>", "<unk>", "a", ".", "...", '."', "?!", "。", '"', "U.S.", "-.", "<x>"
)


def test_pieces_that_are_marks_end_sentences():
    pieces = WORDS.pieces()
    table = sentence_ends.sentence_ends(WORDS)
    assert {piece for piece, ends in zip(pieces, table, strict=True) if ends} == {".", "...", '."', "?!", "。"}
    only_stops = sentence_ends.sentence_ends(WORDS, ".")
    assert {piece for piece, ends in zip(pieces, only_stops, strict=True) if ends} == {".", "...", '."'}


def test_bytes_know_their_marks():
    vocabulary = vocabularies.ByteVocabulary()
    table = sentence_ends.sentence_ends(vocabulary)
    assert {vocabulary.pieces()[i] for i in np.flatnonzero(table)} == {".", "!", "?"}


def test_a_vocabulary_without_marks_is_refused():
    with pytest.raises(ValueError, match="no piece .* '§'"):
        sentence_ends.sentence_ends(WORDS, "§")


def ends_in(text: str) -> list[str]:
    """The sentences of a text as bytes."""
    vocabulary = vocabularies.ByteVocabulary()
    tokens = np.array(vocabulary.encode(text), np.int32)
    table, starts = sentence_ends.sentence_ends(vocabulary), vocabulary.word_marks.starts(tokens)
    ends = np.flatnonzero(sentence_ends.find_ends(tokens, table=table, starts=starts)) + 1
    return [vocabulary.decode(part) for part in np.split(tokens, ends) if len(part)]


def test_sentences_end_before_words():
    assert ends_in("Read it. Done") == ["Read it.", " Done"]
    assert ends_in("os.path is 3.14 long. So?!") == ["os.path is 3.14 long.", " So?!"]
    assert ends_in("Well... no. no") == ["Well...", " no.", " no"]
    assert ends_in("no mark") == ["no mark"]


def test_marks_that_are_words_of_their_own_end_a_sentence_once():
    tokens = np.array(WORDS.encode("a . ?! a ... a"), np.int32)
    table, starts = sentence_ends.sentence_ends(WORDS), np.ones(len(tokens), bool)
    assert sentence_ends.find_ends(tokens, table=table, starts=starts).astype(int).tolist() == [0, 0, 1, 0, 1, 0]
