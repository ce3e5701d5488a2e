"""Windows that overlap: `t2t.data.overlapping`."""

import numpy as np
import pytest

from t2t.data import host_tensorflow
from t2t.data.overlapping import OverlappingChunk
from t2t.data.permutation_lm import PermutationLM
from tests.data import toy

tf = host_tensorflow.tf

VOCABULARY = toy.word_vocabulary("[PAD]", "[UNK]", "[CLS]", "[SEP]", *toy.words(60))
FEATURES = toy.features(VOCABULARY, "inputs", "targets")


def windows(documents: list[list[int]], *, length: int, reuse: float = 0.5) -> list[list[int]]:
    spec = {"targets": tf.TensorSpec([None], tf.int32), "other": tf.TensorSpec([], tf.string)}
    rows = [{"targets": np.array(tokens, np.int32), "other": "x"} for tokens in documents]
    dataset = tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=spec)
    chunk = OverlappingChunk(corruption=PermutationLM(reuse=reuse))
    pieces = chunk(dataset, {"inputs": length, "targets": length}, FEATURES)
    made = list(pieces.as_numpy_iterator())
    assert all(set(row) == {"targets"} for row in made)
    return [row["targets"].tolist() for row in made]


def test_each_begins_where_the_part_ends_that_is_remembered():
    """Rows of 8 hold 6 raw tokens; a half of a row is 4."""
    found = windows([[1, 2, 3], [], [4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]], length=8)
    assert found == [[1, 2, 3, 4, 5, 6], [5, 6, 7, 8, 9, 10], [9, 10, 11, 12, 13, 14]]
    found = windows([list(range(10))], length=8, reuse=0.3)
    assert found == [list(range(start, start + 6)) for start in (0, 2, 4)]


def test_a_text_shorter_than_a_window_stays():
    assert windows([[1, 2], [3]], length=8) == [[1, 2, 3]]
    assert windows([list(range(6))], length=8) == [list(range(6))]
    assert windows([list(range(9))], length=8) == [list(range(6))]


def test_many_documents_are_one_text():
    found = windows([[k] for k in range(1100)], length=8)
    assert found == [list(range(start, start + 6)) for start in range(0, 1095, 4)]


def test_an_objective_without_windows_is_refused():
    with pytest.raises(ValueError, match="has no reuse"):
        OverlappingChunk(corruption=PermutationLM())
