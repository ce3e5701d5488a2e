"""Pieces of sequences: names of tokens, bytes that make characters, and what each of them is."""

import numpy as np
import pytest
from data import toy

from t2t import vocabulary as vocabularies
from t2t.commands.pieces import Piece, Speller
from t2t.data.views import Mark, Strip


def strip(tokens, marks, **more) -> Strip:
    arrays = {name: np.array(values) for name, values in more.items()}
    segments = arrays.pop("segments", np.ones(len(tokens), int))
    return Strip(name="x", tokens=np.array(tokens), marks=np.array(marks), segments=segments, **arrays)


def test_words_are_pieces_by_themselves():
    speller = Speller(toy.word_vocabulary("<pad>", "</s>", "<mask>", "red", "blue", "tab\there"))
    found = speller.pieces(
        strip(
            [3, 2, 5, 1, 9, 0],
            [Mark.TEXT, Mark.MASKED, Mark.REPLACED, Mark.SPECIAL, Mark.TEXT, Mark.PADDING],
            segments=[1, 1, 1, 2, 2, 0],
            weights=[0.0, 1.0, 1.0, 0.0, 0.0, 0.0],
            expected=[3, 4, 3, -1, -1, -1],
            types=[0, 0, 1, 0, 0, 0],
        )
    )
    assert speller.space == " "
    assert found == [
        Piece(text="red", first=0, last=0, mark="text", example=1, type=0),
        Piece(text="<mask>", first=1, last=1, mark="masked", example=1, has_loss=True, type=0, expected="blue"),
        Piece(text="tab\\there", first=2, last=2, mark="replaced", example=1, has_loss=True, type=1, expected="red"),
        Piece(text="</s>", first=3, last=3, mark="special", example=2, type=0),
        Piece(text="<9>", first=4, last=4, mark="text", example=2, type=0),
    ]


def test_bytes_are_joined_where_they_are_alike():
    vocabulary = vocabularies.ByteVocabulary(sentinels=2)
    tokens = [*vocabulary.encode("né\n"), *vocabulary.sentinels, *vocabulary.encode("é")[:1], *vocabulary.encode("xy")]
    marks = [Mark.TEXT] * 4 + [Mark.SENTINEL] * 2 + [Mark.TEXT] * 2 + [Mark.KEPT]
    found = Speller(vocabulary).pieces(strip(tokens, marks, segments=[1] * 9))
    assert [(piece.text, piece.first, piece.last, piece.mark) for piece in found] == [
        ("né\\n", 0, 3, "text"),
        ("<extra_id_0>", 4, 4, "sentinel"),
        ("<extra_id_1>", 5, 5, "sentinel"),
        ("\\xc3x", 6, 7, "text"),
        ("y", 8, 8, "kept"),
    ]
    assert Speller(vocabulary).space == ""


@pytest.mark.parametrize("cut", [[1, 1, 2, 2], [1, 1, 1, 1]])
def test_bytes_of_different_examples_stay_apart(cut):
    vocabulary = vocabularies.ByteVocabulary()
    found = Speller(vocabulary).pieces(strip(vocabulary.encode("abcd"), [Mark.TEXT] * 4, segments=cut))
    assert [piece.text for piece in found] == (["ab", "cd"] if cut[3] == 2 else ["abcd"])
