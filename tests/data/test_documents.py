import numpy as np
import pytest

from t2t.data.documents import Documents, FormatStatistics, SequenceFrame


def test_empty_sentences_and_documents_are_left_out_and_numbers_stay():
    documents = Documents.of_lists([[], [[5, 6], [], [7]], [[]], [[8]]])
    assert documents.tokens.tolist() == [5, 6, 7, 8]
    assert documents.bounds.tolist() == [0, 2, 3, 4]
    assert documents.firsts.tolist() == [0, 2, 3]
    assert documents.numbers.tolist() == [1, 3]
    assert len(documents) == 2
    assert documents.sentences(0) == (0, 2)


@pytest.mark.parametrize("documents", [[], [[]], [[[]]]])
def test_no_documents(documents):
    made = Documents.of_lists(documents)
    assert len(made) == 0
    assert made.bounds.tolist() == made.firsts.tolist() == [0]


def test_numbers_that_do_not_add_up_are_refused():
    with pytest.raises(ValueError, match=r"3 tokens in sentences of 2, 1 sentences in documents of 1"):
        Documents.of(np.arange(3), np.array([2]), np.array([1]))
    with pytest.raises(ValueError, match=r"1 sentences in documents of 2"):
        Documents.of(np.arange(2), np.array([2]), np.array([2]))


def test_room_of_a_frame():
    frame = SequenceFrame(length=8, bos_id=1, eos_id=2)
    assert (frame.num_specials, frame.room) == (3, 5)
    assert SequenceFrame(length=8, bos_id=None, eos_id=2).room == 6
    with pytest.raises(ValueError, match="sequences of 4 tokens .* must be at least 5"):
        SequenceFrame(length=4, bos_id=1, eos_id=2)
    assert SequenceFrame(length=4, bos_id=None, eos_id=2).room == 2


def test_statistics_add_up():
    first = FormatStatistics(length=10, examples=3, tokens=24, cut=1, kinds={"follows": 2, "random": 1})
    both = first + FormatStatistics(length=10, examples=1, tokens=6, kinds={"random": 1})
    assert both == FormatStatistics(length=10, examples=4, tokens=30, cut=1, kinds={"follows": 2, "random": 2})
    assert both.padding == 0.25
    assert both.rows_for(75) == 10  # of 7.5 tokens each
    assert "4 examples of 7.5 tokens, padding 25.0% of rows of 10, 1 tokens cut off, follows 50.0%" in str(both)
    assert FormatStatistics(length=10).padding == 0
