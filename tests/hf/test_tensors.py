"""Tensors are read from every kind of file that repositories hold, and nothing in a file is run."""

import collections
import json
import os
import pickle
import zipfile

import flax.serialization
import ml_dtypes
import numpy as np
import pytest

from t2t.hf import flax_files, torch_files
from t2t.hf.tensors import TensorReader

RNG = np.random.default_rng(0)
ARRAYS = {
    "a.weight": RNG.normal(size=(3, 4)).astype(np.float32),
    "a.bias": RNG.normal(size=(4,)).astype(np.float64),
    "n": np.array(7),
    "empty": np.zeros((0, 2), np.float32),
    "half": RNG.normal(size=(2, 3, 2)).astype(np.float16),
    "flags": np.array([True, False]),
}


def assert_same(reader: TensorReader, arrays: dict[str, np.ndarray]) -> None:
    assert reader.names == set(arrays)
    for name, array in arrays.items():
        assert reader.shape(name) == array.shape
        assert reader(name).dtype == array.dtype
        np.testing.assert_array_equal(reader(name), array)


@pytest.mark.hf
@pytest.mark.parametrize("as_zip", [True, False])
def test_state_dicts_of_torch(tmp_path, as_zip):
    import torch

    state = collections.OrderedDict((name, torch.from_numpy(array)) for name, array in ARRAYS.items())
    whole = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    state |= {"view": whole[1:3, 2:5], "transposed": whole.t(), "parameter": torch.nn.Parameter(whole[0])}
    state["brain"] = whole.to(torch.bfloat16)
    state._metadata = {"": {"version": 1}}
    torch.save(state, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=as_zip)
    numbers = whole.numpy()
    assert_same(
        TensorReader(tmp_path),
        ARRAYS
        | {"view": numbers[1:3, 2:5], "transposed": numbers.T, "parameter": numbers[0]}
        | {"brain": numbers.astype(ml_dtypes.bfloat16)},
    )


@pytest.mark.hf
def test_shards_of_torch(tmp_path):
    import torch

    for k, name in enumerate(("a.weight", "a.bias")):
        torch.save({name: torch.from_numpy(ARRAYS[name])}, tmp_path / f"pytorch_model-{k}.bin")
    index = {"weight_map": {"a.weight": "pytorch_model-0.bin", "a.bias": "pytorch_model-1.bin"}}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    assert_same(TensorReader(tmp_path), {name: ARRAYS[name] for name in ("a.weight", "a.bias")})
    index["weight_map"]["c"] = "pytorch_model-1.bin"
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="names tensors that their shards do not hold: c"):
        TensorReader(tmp_path)


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("as_zip", [True, False])
def test_pickles_run_nothing(tmp_path, as_zip):
    evil = pickle.dumps({"weight": Evil(str(tmp_path / "made"))})
    file = tmp_path / "pytorch_model.bin"
    if as_zip:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("archive/data.pkl", evil)
    else:
        file.write_bytes(pickle.dumps(torch_files.MAGIC) + pickle.dumps(1001) + pickle.dumps({}) + evil)
    with pytest.raises(ValueError, match=r"asks for (posix|nt)\.mkdir, which is no part of a state dict"):
        TensorReader(tmp_path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("content", [b"nonsense", pickle.dumps([1, 2]), pickle.dumps(torch_files.MAGIC)])
def test_what_is_no_state_dict_is_refused(tmp_path, content):
    (tmp_path / "pytorch_model.bin").write_bytes(content)
    with pytest.raises(ValueError, match="PyTorch state dict"):
        TensorReader(tmp_path)


FLAX = {
    "bert": {"embed": {"embedding": ARRAYS["a.weight"]}, "norm": {"scale": RNG.normal(size=(5,)).astype(np.float32)}},
    "head": {"kernel": RNG.normal(size=(3, 5)).astype(np.float32), "bias": np.zeros((5,), ml_dtypes.bfloat16)},
}


@pytest.mark.parametrize("chunk_bytes", [2**30, 16])
def test_parameters_of_flax(tmp_path, monkeypatch, chunk_bytes):
    monkeypatch.setattr(flax.serialization, "MAX_CHUNK_SIZE", chunk_bytes)
    content = flax.serialization.msgpack_serialize(FLAX)
    assert (b"chunked" in content) == (chunk_bytes == 16)
    (tmp_path / "flax_model.msgpack").write_bytes(content)
    expected = {
        "bert.embed.weight": FLAX["bert"]["embed"]["embedding"],
        "bert.norm.weight": FLAX["bert"]["norm"]["scale"],
        "head.weight": FLAX["head"]["kernel"].T,
        "head.bias": FLAX["head"]["bias"],
    }
    assert_same(TensorReader(tmp_path), expected)
    for length in (0, 1, 30, len(content) - 1):
        (tmp_path / "flax_model.msgpack").write_bytes(content[:length])
        with pytest.raises(ValueError, match="no file of Flax|empty file"):
            flax_files.open_file(tmp_path / "flax_model.msgpack")


def test_what_stands_in_place_of_the_weights_is_told(tmp_path):
    for name in ("link", "shard", "missing", "t5", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "link" / "model.safetensors").symlink_to("blobs/1234")
    with pytest.raises(FileNotFoundError, match="model.safetensors is a link to blobs/1234, which is not there"):
        TensorReader(tmp_path / "link")
    for name in ("shard", "missing"):
        index = {"weight_map": {"a": "part.safetensors"}}
        (tmp_path / name / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "shard" / "part.safetensors").symlink_to("blobs/1234")
    with pytest.raises(FileNotFoundError, match="part.safetensors is a link to blobs/1234"):
        TensorReader(tmp_path / "shard")
    with pytest.raises(FileNotFoundError, match=r"missing: part.safetensors. Copy or download them into .*missing, or"):
        TensorReader(tmp_path / "missing")
    (tmp_path / "t5" / "checkpoint").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n")
    with pytest.raises(ValueError, match=r"checkpoint is a pointer of Git LFS, .*git lfs pull"):
        TensorReader(tmp_path / "t5")
    for step in (1, 2):
        for ending in ("index", "data-00000-of-00001"):
            (tmp_path / "two" / f"model.ckpt-{step}.{ending}").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"two holds 2 checkpoints; leave the files of one, such as model.ckpt-\d.\*"):
        TensorReader(tmp_path / "two")


@pytest.mark.parametrize("content", [b"", b"\x10", b"<!doctype html>" * 9, b"\x02\0\0\0\0\0\0\0{}more"])
def test_damaged_safetensors_are_told_with_the_way_to_mend_them(tmp_path, content):
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"model.safetensors .*: copy or download it again|; copy or download it again"
    ):
        TensorReader(tmp_path)
