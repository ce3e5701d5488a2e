import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from t2t.data.documents import Documents, SequenceFrame
from t2t.data.sentence_blocks import finish_blocks, sentence_blocks, separated
from tests.reference import segment_pairs as reference

CLS, SEP = 1, 2

corpora = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), min_size=1, max_size=6)


def numbered(sizes):
    """Documents of sentences of these sizes, all tokens different."""
    token, documents = 10, []
    for document in sizes:
        documents.append([])
        for size in document:
            documents[-1].append(list(range(token, token + size)))
            token += size
    return documents


def blocks_of(documents, room, *, across):
    made = Documents.of_lists(documents)
    text = separated(made, SEP)
    return [text[a:b].tolist() for a, b in sentence_blocks(made, room=room, across_documents=across)]


def test_by_hand():
    documents = numbered([[2, 3, 1], [2], [4]])  # 10 11 | 12 13 14 | 15 ; 16 17 ; 18 19 20 21
    full = [[10, 11, 12, 13, 14], [15, SEP, 16, 17], [18, 19, 20, 21]]
    assert blocks_of(documents, 5, across=True) == full
    doc = [[10, 11, 12, 13, 14], [15], [16, 17], [18, 19, 20, 21]]
    assert blocks_of(documents, 5, across=False) == doc
    assert blocks_of(documents, 9, across=True) == [[10, 11, 12, 13, 14, 15, SEP, 16, 17], [18, 19, 20, 21]]


def test_longer_sentences_are_cut_into_pieces_and_the_last_is_filled_up():
    documents = numbered([[1, 9, 2]])
    expected = [[10], [11, 12, 13, 14], [15, 16, 17, 18], [19, 20, 21]]
    assert blocks_of(documents, 4, across=True) == blocks_of(documents, 4, across=False) == expected


@hypothesis.given(corpora, st.integers(1, 12), st.booleans())
def test_blocks_are_the_reference_and_hold_every_token_once(sizes, room, across):
    documents = numbered(sizes)
    made = blocks_of(documents, room, across=across)
    assert made == reference.blocks(documents, room=room, separator=SEP, across_documents=across)
    assert all(len(block) <= room for block in made)
    text = [token for block in made for token in block if token != SEP]
    assert text == [token for document in documents for sentence in document for token in sentence]
    owner = {token: number for number, document in enumerate(documents) for s in document for token in s}
    if not across:
        assert all(len({owner[token] for token in block}) == 1 for block in made)
    ends = {block[-1] for block in made}
    for document in documents:
        for sentence in document:
            if len(sentence) <= room:
                assert not ends & set(sentence[:-1])


@hypothesis.given(corpora, st.integers(3, 12))
def test_full_sentences_leave_less_padding(sizes, room):
    documents = numbered(sizes)
    assert len(blocks_of(documents, room, across=True)) <= len(blocks_of(documents, room, across=False))


def test_finished_sequences():
    documents = Documents.of_lists(numbered([[2, 1], [2]]))
    frame = SequenceFrame(length=7, bos_id=CLS, eos_id=SEP)
    blocks = sentence_blocks(documents, room=frame.room + 1, across_documents=True)
    made = finish_blocks(separated(documents, SEP), blocks, frame=frame)
    assert made.tokens.tolist() == [CLS, 10, 11, 12, SEP, CLS, 13, 14, SEP]
    assert made.lengths.tolist() == [5, 4]
    whole = finish_blocks(separated(documents, SEP), np.array([[0, 6]]), frame=frame)
    assert whole.tokens.tolist() == [CLS, 10, 11, 12, SEP, 13, 14, SEP]
    bare = finish_blocks(
        np.array([5, 6]), np.array([[0, 1], [1, 2]]), frame=SequenceFrame(length=9, bos_id=None, eos_id=3)
    )
    assert bare.tokens.tolist() == [5, 3, 6, 3]


def test_nothing_and_no_room():
    empty = Documents.of_lists([])
    assert sentence_blocks(empty, room=3, across_documents=True).shape == (0, 2)
    assert len(separated(empty, SEP)) == 0
    with pytest.raises(ValueError, match="room=0"):
        sentence_blocks(empty, room=0, across_documents=True)
