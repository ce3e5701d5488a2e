import numpy as np

from t2t.data import layout
from t2t.data.layout import Side

ROWS = [[{}, {}], [], [{}, {}, {}]]  # only the number of examples of each row matters


def test_tokens_stand_one_example_after_the_other():
    side = Side.of(ROWS, [2, 1, 0, 3, 1], 5)
    tokens = np.array([5, 6, 7, 8, 9, 10, 11])
    np.testing.assert_array_equal(side.fill(tokens, -1), [[5, 6, 7, -1, -1], [-1] * 5, [8, 9, 10, 11, -1]])
    np.testing.assert_array_equal(side.segment_ids(), [[1, 1, 2, 0, 0], [0] * 5, [2, 2, 2, 3, 0]])
    np.testing.assert_array_equal(side.within, [0, 1, 0, 0, 1, 2, 0])
    np.testing.assert_array_equal(side.shift_right(tokens, 99), [99, 5, 99, 99, 8, 9, 99])


def test_batch_without_examples_is_all_padding():
    side = Side.of([[], []], [], 3)
    np.testing.assert_array_equal(side.fill(np.zeros(0, np.int32), 7), [[7] * 3] * 2)
    np.testing.assert_array_equal(side.segment_ids(), [[0] * 3] * 2)


def test_places_with_loss_are_gathered_and_thinned_evenly():
    targets = np.arange(10, 26, dtype=np.int32).reshape(2, 8)
    weights = np.array([[0, 1, 0, 0, 2, 0, 0, 0], [1, 1, 1, 1, 1, 0, 1, 1]], np.float32)
    found = layout.gather_places(targets, weights, 3)
    np.testing.assert_array_equal(found["encoder_predict_positions"], [[1, 4, 0], [0, 2, 4]])
    np.testing.assert_array_equal(found["encoder_predict_targets"], [[11, 14, 0], [18, 20, 22]])
    np.testing.assert_array_equal(found["encoder_predict_weights"], [[1, 2, 0], [1, 1, 1]])
    np.testing.assert_array_equal(weights, [[0, 1, 0, 0, 2, 0, 0, 0], [1, 0, 1, 0, 1, 0, 0, 0]])
