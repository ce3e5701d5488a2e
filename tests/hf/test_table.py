"""Name tables on layouts small enough to write out."""

import numpy as np
import pytest

from t2t.hf import table
from t2t.hf.table import (
    CONVOLUTION,
    LINEAR,
    LINEAR_2,
    LINEAR_BY_HEADS,
    MATRIX,
    MATRIX_2,
    VECTOR,
    VECTOR_BY_HEADS,
    Entry,
    Ignored,
    Table,
)

SHAPES = {
    "embed/embedding": (5, 4),
    "encoder/prefix_0/a/kernel": (4, 2, 3),
    "encoder/layers_0/a/kernel": (2, 4, 2, 3),
    "encoder/layers_1/a/kernel": (2, 4, 2, 3),
    "encoder/suffix_0/a/kernel": (4, 2, 3),
}
TABLE = Table(
    base="base.",
    entries=(
        Entry("embed/embedding", "{base}words", MATRIX, copies=("head",)),
        Entry("encoder/{i}/a/kernel", "{base}layer.{i}.a", LINEAR),
        Entry("head/kernel", "head", LINEAR),
    ),
    ignored=(Ignored("*.buffer", "holds no parameter"),),
    old_names=((".gamma", ".weight"),),
)


def test_layouts_of_one_kernel():
    # [2 inputs, heads 2, head_dim 3], numbered so that each place is seen.
    kernel = np.arange(12).reshape(2, 2, 3)
    np.testing.assert_array_equal(MATRIX.to_theirs(kernel), [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]])
    np.testing.assert_array_equal(LINEAR.to_theirs(kernel), [[0, 6], [1, 7], [2, 8], [3, 9], [4, 10], [5, 11]])
    # [heads 2, head_dim 2, 3 outputs]
    np.testing.assert_array_equal(LINEAR_2.to_theirs(kernel), [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]])
    np.testing.assert_array_equal(MATRIX_2.to_theirs(kernel), [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]])
    np.testing.assert_array_equal(VECTOR.to_theirs(kernel[0]), [0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize("layout", [VECTOR, MATRIX, MATRIX_2, LINEAR, LINEAR_2, CONVOLUTION])
def test_layouts_go_both_ways(layout):
    kernel = np.random.default_rng(0).normal(size=(2, 3, 5))
    theirs = layout.to_theirs(kernel)
    assert theirs.shape == layout.shape(kernel.shape)
    np.testing.assert_array_equal(layout.to_ours(theirs, kernel.shape), kernel)


def test_parameters_joined_head_by_head():
    # Two kernels [1 input, heads 2, head_dim 3]: all of the first head of both, then all of the second.
    shapes = {"x/a": (1, 2, 3), "x/b": (1, 2, 3), "y/a": (2, 3), "y/b": (2, 3)}
    names = Table(
        entries=(Entry(("x/a", "x/b"), "x", LINEAR_BY_HEADS), Entry(("y/a", "y/b"), "y", VECTOR_BY_HEADS)),
    )
    kernels, biases = names.bind(shapes, base=False)
    first, second = np.arange(6).reshape(2, 3), np.arange(10, 16).reshape(2, 3)
    expected = [0, 1, 2, 10, 11, 12, 3, 4, 5, 13, 14, 15]
    np.testing.assert_array_equal(biases.join([first, second]), expected)
    np.testing.assert_array_equal(kernels.join([first[None], second[None]]), np.array(expected)[:, None])
    assert (biases.shape, kernels.shape) == ((12,), (12, 1))
    for position, array in enumerate((first, second)):
        np.testing.assert_array_equal(biases.part(np.array(expected), position), array)
        np.testing.assert_array_equal(kernels.part(np.array(expected)[:, None], position), array[None])


def test_depth_runs_through_prefix_pattern_and_suffix():
    bound = {b.key: [(s.path, s.index) for s in b.slots] for b in TABLE.bind(SHAPES, base=True)}
    assert bound == {
        "base.words": [("embed/embedding", None)],
        "base.layer.0.a": [("encoder/prefix_0/a/kernel", None)],
        "base.layer.1.a": [("encoder/layers_0/a/kernel", 0)],
        "base.layer.2.a": [("encoder/layers_1/a/kernel", 0)],
        "base.layer.3.a": [("encoder/layers_0/a/kernel", 1)],
        "base.layer.4.a": [("encoder/layers_1/a/kernel", 1)],
        "base.layer.5.a": [("encoder/suffix_0/a/kernel", None)],
    }


def test_the_task_of_the_head_chooses_among_names_of_one_parameter():
    entries = (Entry("head/kernel", "answers", LINEAR, task="span"), Entry("head/kernel", "labels", LINEAR))
    shapes = {"head/kernel": (4, 2)}
    assert [b.key for b in Table(entries=entries[1:]).bind(shapes, base=False, task="span")] == ["labels"]
    with pytest.raises(table.MisfitError, match="several .'head/kernel'."):
        Table(entries=entries).bind(shapes, base=False, task="span")
    for task in (None, "tokens"):
        assert [b.key for b in Table(entries=entries).bind(shapes, base=False, task=task)] == ["labels"]


def test_more_than_ten_blocks_are_in_the_order_of_numbers():
    shapes = {"encoder/layers_0/a/kernel": (12, 4, 3), "embed/embedding": (5, 4)}
    keys = [b.key for b in TABLE.bind(shapes, base=False)]
    assert keys == ["words", *(f"layer.{i}.a" for i in range(12))]


def test_a_head_of_its_own_is_no_copy_of_the_embedding():
    tied = TABLE.bind(SHAPES, base=True)[0]
    untied = TABLE.bind(SHAPES | {"head/kernel": (4, 5)}, base=True)[0]
    assert tied.copies == ("head",)
    assert untied.copies == ()


def test_parameters_without_an_entry_are_listed():
    with pytest.raises(table.MisfitError, match=r"without an entry \['encoder/final_norm/scale', 'pooler/bias'\]"):
        TABLE.bind(SHAPES | {"encoder/final_norm/scale": (4,), "pooler/bias": (4,)}, base=True)


def test_parameters_with_two_entries_are_listed():
    double = Table(entries=(*TABLE.entries, Entry("embed/embedding", "again", MATRIX)))
    with pytest.raises(table.MisfitError, match=r"with several \['embed/embedding'\]"):
        double.bind(SHAPES, base=False)


@pytest.mark.parametrize(("layout", "axis"), [(VECTOR, 0), (MATRIX, 1), (LINEAR, 0)])
def test_joined_parameters_are_taken_apart(layout, axis):
    names = ("q", "k", "v")
    shapes = {name: (2, 3) if layout is VECTOR else (4, 2, 3) for name in names}
    (binding,) = Table(entries=(Entry(names, "qkv", layout),)).bind(shapes, base=False)
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=shapes[name]) for name in names]
    joined = binding.join(parts)
    assert joined.shape == binding.shape
    np.testing.assert_array_equal(joined, np.concatenate([layout.to_theirs(part) for part in parts], axis=axis))
    for position, part in enumerate(parts):
        np.testing.assert_array_equal(binding.part(joined, position), part)


def test_parameters_joined_head_by_head_are_taken_apart():
    # Heads 2, head_dim 1, one input: query 1 2, key 3 4, value 5 6.
    names, shapes = ("q", "k", "v"), {name: (1, 2, 1) for name in ("q", "k", "v")}
    (binding,) = Table(entries=(Entry(names, "qkv", LINEAR_BY_HEADS),)).bind(shapes, base=False)
    parts = [np.array([first, first + 1]).reshape(1, 2, 1) for first in (1, 3, 5)]
    joined = binding.join(parts)
    np.testing.assert_array_equal(joined, [[1], [3], [5], [2], [4], [6]])
    assert joined.shape == binding.shape
    for position, part in enumerate(parts):
        np.testing.assert_array_equal(binding.part(joined, position), part)


def test_joined_parameters_of_which_some_are_missing_are_refused():
    with pytest.raises(table.MisfitError, match="only some"):
        Table(entries=(Entry(("q", "k"), "qk", MATRIX),)).bind({"q": (4, 3)}, base=False)


def test_entries_may_hang_on_other_parameters():
    entries = (
        Entry("encoder/{i}/up", "{base}wi", MATRIX, unless="encoder/{i}/gate"),
        Entry("encoder/{i}/up", "{base}wi_1", MATRIX, needs="encoder/{i}/gate"),
        Entry("encoder/{i}/gate", "{base}wi_0", MATRIX),
    )
    plain = Table(entries=entries).bind({"encoder/prefix_0/up": (2, 3)}, base=False)
    gated = Table(entries=entries).bind({"encoder/prefix_0/up": (2, 3), "encoder/prefix_0/gate": (2, 3)}, base=False)
    assert [b.key for b in plain] == ["wi"]
    assert {b.key: b.slots[0].path for b in gated} == {"wi_1": "encoder/prefix_0/up", "wi_0": "encoder/prefix_0/gate"}


def test_names_of_old_files_and_of_buffers():
    assert TABLE.canonical("base.norm.gamma") == "base.norm.weight"
    assert TABLE.ignores("base.layer.3.buffer")
    assert not TABLE.ignores("base.layer.3.a")
    sometimes = Table(entries=(), ignored=(Ignored("base.table", "has a place in some models", if_unused=True),))
    assert sometimes.ignores("base.table", unused=True)
    assert not sometimes.ignores("base.table")
    assert TABLE.is_of("head", table.HEAD_PATHS)
    assert not TABLE.is_of("base.layer.17.a", table.HEAD_PATHS) and not TABLE.is_of("unknown", table.HEAD_PATHS)
