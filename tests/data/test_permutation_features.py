"""Batches of permutation examples: `t2t.data.permutation_features`."""

import numpy as np
import pytest

from t2t.data.features import OverlongError
from t2t.data.permutation_features import PermutationFeatures


def converter(length: int = 8, predictions: int | None = 3, **options) -> PermutationFeatures:
    return PermutationFeatures(lengths={"inputs": length, "targets": length}, predictions=predictions, **options)


def example(tokens, targets, order, **more) -> dict[str, np.ndarray]:
    tokens = np.array(tokens, np.int32)
    made = {
        "inputs": tokens,
        "targets": tokens,
        "weights": np.array(targets, np.int32),
        "order": np.array(order, np.int32),
        "token_types": np.array([0] * (len(tokens) - 1) + [2], np.int32),
    }
    return made | {name: np.array([value], np.int32) for name, value in more.items()}


FIRST = example([10, 11, 12], [1, 0, 1], [2, -1, 0])
SECOND = example([20, 21], [0, 1], [-1, 1])


def test_packed_rows_keep_their_orders_apart():
    batch = converter().convert([[FIRST, SECOND], []])
    expected = [
        [1, 0, 0, 1, 1, 1, 1, 1],
        [1, 0, 1, 1, 1, 1, 1, 1],
        [1, 0, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 0, 1, 1, 1, 1],
        [1, 1, 1, 0, 1, 1, 1, 1],
    ]
    np.testing.assert_array_equal(batch["permutation_mask"][0, :5], expected)
    assert batch["permutation_mask"].dtype == np.int8
    np.testing.assert_array_equal(batch["encoder_input_tokens"][0], [10, 11, 12, 20, 21, 0, 0, 0])
    np.testing.assert_array_equal(batch["encoder_token_types"][0], [0, 0, 2, 0, 2, 0, 0, 0])
    np.testing.assert_array_equal(batch["encoder_segment_ids"], [[1, 1, 1, 2, 2, 0, 0, 0], [0] * 8])
    np.testing.assert_array_equal(batch["encoder_predict_positions"], [[0, 2, 4], [0, 0, 0]])
    np.testing.assert_array_equal(batch["encoder_predict_targets"], [[10, 12, 21], [0, 0, 0]])
    np.testing.assert_array_equal(batch["encoder_predict_weights"], [[1, 1, 1], [0, 0, 0]])
    assert "encoder_reversed" not in batch
    assert {value.dtype for value in converter().convert([[]]).values()} == {value.dtype for value in batch.values()}


def test_a_target_without_a_query_is_still_hidden():
    """A row has room for one query of two targets; neither reads the other but in its order."""
    batch = converter(predictions=1).convert([[FIRST]])
    assert batch["encoder_predict_weights"].sum() == 1
    np.testing.assert_array_equal(batch["permutation_mask"][0, :3, :3], [[1, 0, 0], [1, 0, 1], [1, 0, 1]])


def test_one_example_a_row_where_the_model_asks_for_it():
    packs, single = converter(), converter(one_a_row=True)
    assert (packs.capacity, packs.sizes(FIRST)) == ((8, 3), (3, 2))
    assert (single.capacity, single.sizes(FIRST)) == ((8, 3, 1), (3, 2, 1))


def test_rows_say_whether_they_are_reversed():
    both = converter(bidirectional=True, one_a_row=True)
    backward, forward = ({"reversed": np.array([value], np.int32)} for value in (1, 0))
    rows = [[FIRST | backward], [SECOND | forward], [], [SECOND]]
    batch = both.convert(rows)
    np.testing.assert_array_equal(batch["encoder_reversed"], [1, 0, 0, 0])
    assert batch["encoder_reversed"].dtype == np.int32


def test_the_overlap_must_be_that_of_the_memory():
    windows = converter(reuse=4, one_a_row=True)
    made = {"inputs", "targets", "weights", "order", "token_types"}
    assert windows.convert([[example([1, 2], [1, 0], [0, 1], reuse=4)]])["encoder_input_tokens"].shape == (1, 8)
    with pytest.raises(ValueError, match=r"begin \[5\] tokens behind .* remembers the first 4"):
        windows.convert([[example([1, 2], [1, 0], [0, 1], reuse=5)]])
    with pytest.raises(ValueError, match="do not overlap, and the model has a memory_reuse"):
        windows.check_task("toy", made)
    windows.check_task("toy", {*made, "reuse"})
    with pytest.raises(ValueError, match="overlap, and the model has no memory_reuse"):
        converter().check_task("toy", {*made, "reuse"})
    with pytest.raises(ValueError, match="bidirectional=True"):
        converter().check_task("toy", {*made, "reversed"})
    converter(bidirectional=True).check_task("toy", {*made, "reversed"})
    converter().check_task("toy", {"inputs", "targets"})  # what a corruption adds is not known yet


def test_other_examples_are_refused():
    with pytest.raises(ValueError, match=r"lengths\['predictions'\].*here 1"):
        converter(predictions=None)
    with pytest.raises(ValueError, match=r"Task 'toy' .* lacks \['order', 'token_types'\].*PermutationLM"):
        converter().check_task("toy", {"inputs", "targets", "weights"})
    with pytest.raises(ValueError, match="An example has the features"):
        converter().trim({"inputs": np.arange(3), "targets": np.arange(3)})
    with pytest.raises(ValueError, match="must be equal"):
        converter().trim(FIRST | {"order": np.arange(2)})
    with pytest.raises(OverlongError, match="3 tokens and a row 2"):
        converter(2).trim(FIRST)
    assert converter().trim(FIRST) == (FIRST, 0)
