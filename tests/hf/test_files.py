"""Safetensors files: what is written is what is read, in any memory order, type and number of files."""

import json

import numpy as np
import pytest
import safetensors.numpy

from t2t.hf import files
from t2t.hf.tensors import TensorReader


def tensors(arrays: dict[str, np.ndarray]) -> list[files.Tensor]:
    return [files.Tensor(name, array.shape, lambda a=array: a) for name, array in arrays.items()]


ARRAYS = {
    "a": np.arange(12, dtype=np.float32).reshape(3, 4),
    "b": np.linspace(0, 1, 5, dtype=np.float32),
    "c": np.full((2, 3, 4), 0.1, np.float32),
}


def test_transposed_and_sliced_arrays_are_stored_in_their_logical_order(tmp_path):
    kernel = np.arange(12, dtype=np.float32).reshape(3, 4)
    views = {"transposed": kernel.T, "sliced": kernel[:, ::2], "fortran": np.asfortranarray(kernel)}
    files.write_file(tmp_path / "x.safetensors", tensors(views), dtype="float32")
    read = safetensors.numpy.load_file(tmp_path / "x.safetensors")
    for name, view in views.items():
        np.testing.assert_array_equal(read[name], view)


def test_the_format_is_pt(tmp_path):
    files.write_file(tmp_path / "x.safetensors", tensors(ARRAYS), dtype="float32")
    with safetensors.safe_open(tmp_path / "x.safetensors", "numpy") as file:
        assert file.metadata() == {"format": "pt"}


@pytest.mark.parametrize("dtype", list(files.DTYPES))
def test_dtypes(tmp_path, dtype):
    files.write(tmp_path, tensors(ARRAYS), dtype=dtype, max_shard_bytes=10**9)
    reader = TensorReader(tmp_path)
    for name, array in ARRAYS.items():
        assert reader(name).dtype == files.DTYPES[dtype]
        np.testing.assert_array_equal(reader(name), array.astype(files.DTYPES[dtype]))


def test_shards_and_their_index_agree(tmp_path):
    written = files.write(tmp_path, tensors(ARRAYS), dtype="float32", max_shard_bytes=70)
    assert written == [*(f"model-0000{i}-of-00002.safetensors" for i in (1, 2)), files.INDEX]
    index = json.loads((tmp_path / files.INDEX).read_text())
    shards = {name: set(safetensors.numpy.load_file(tmp_path / name)) for name in written[:-1]}
    assert {name: {k for k, v in index["weight_map"].items() if v == name} for name in shards} == shards
    assert index["metadata"] == {"total_size": 4 * 41, "total_parameters": 41}
    reader = TensorReader(tmp_path)
    assert reader.names == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert reader.shape(name) == array.shape
        np.testing.assert_array_equal(reader(name), array)


def test_no_shard_is_larger_than_asked_unless_one_tensor_is(tmp_path):
    many = {f"t{i}": np.zeros((10,), np.float32) for i in range(7)} | {"large": np.zeros((50,), np.float32)}
    files.write(tmp_path, tensors(many), dtype="float32", max_shard_bytes=100)
    sizes = [sum(a.nbytes for a in safetensors.numpy.load_file(p).values()) for p in tmp_path.glob("model-*")]
    assert sorted(sizes) == [40, 80, 80, 80, 200]


def test_shapes_that_differ_from_the_table_are_refused(tmp_path):
    wrong = files.Tensor("a", (4, 3), lambda: ARRAYS["a"])
    with pytest.raises(ValueError, match=r"a has shape \(3, 4\)"):
        files.write_file(tmp_path / "x.safetensors", [wrong], dtype="float32")


def test_missing_files_are_explained(tmp_path):
    (tmp_path / "model.h5").touch()
    with pytest.raises(FileNotFoundError, match="it holds model.h5: save the model as safetensors first"):
        TensorReader(tmp_path)
    (tmp_path / files.INDEX).write_text(json.dumps({"weight_map": {"a": "gone.safetensors"}}))
    with pytest.raises(FileNotFoundError, match="gone.safetensors"):
        TensorReader(tmp_path)


def test_damaged_files_are_named(tmp_path):
    files.write(tmp_path, tensors(ARRAYS), dtype="float32", max_shard_bytes=10**9)
    whole = (tmp_path / files.SINGLE).read_bytes()
    (tmp_path / files.SINGLE).write_bytes(whole[:-10])
    with pytest.raises(ValueError, match=f"{files.SINGLE} cannot be read as safetensors"):
        TensorReader(tmp_path)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("{", "no index of shards"),
        ("{}", "no index of shards"),
        ('{"weight_map": ["a"]}', "no index of shards"),
        ("", "is an empty file"),
        ("[" * 100_000, "no index of shards"),
        ('{"weight_map": {}}', "names no tensors: copy or download it again"),
        *((json.dumps({"weight_map": {"a": name}}), "no name of a file beside it") for name in ("", ".", "..", "a\0b")),
        ('{"weight_map": {"a": 3}}', "names 3"),
        ('{"weight_map": {"a": "../part.safetensors"}}', "no name of a file beside it"),
        ('{"weight_map": {"a": "/part.safetensors"}}', "no name of a file beside it"),
        (
            json.dumps({"weight_map": dict.fromkeys("abstuvwxyz", "part.safetensors")}),
            "their shards do not hold: s, t, u, v, w, x, y, z$",
        ),
    ],
)
def test_an_index_that_cannot_be_is_refused(tmp_path, index, message):
    files.write_file(tmp_path / "part.safetensors", tensors(ARRAYS), dtype="float32")
    (tmp_path / files.INDEX).write_text(index)
    with pytest.raises(ValueError, match=message):
        TensorReader(tmp_path)
