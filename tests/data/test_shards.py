import hashlib
import json
import mmap
import pathlib

import numpy as np
import pytest
from safetensors import numpy as safetensors

from t2t.data import shards
from t2t.data.shards import DamagedShardError
from t2t.data.store import TokenStore


def rows(number=5):
    return [
        {"targets": np.arange(i, dtype=np.int32) + 7, "label": np.int32(i), "id": np.int64(2**40 + i), "score": 0.5 * i}
        for i in range(number)
    ]


@pytest.fixture
def shard(tmp_path):
    return shards.write(tmp_path, "g00000-00000", TokenStore.collect(rows()))


def test_a_shard_gives_back_its_rows(tmp_path, shard):
    store = shards.open_shard(tmp_path / shard.file)
    assert len(store) == 5
    for i, row in enumerate(rows()):
        for name, value in row.items():
            np.testing.assert_array_equal(store[i][name], value)
    assert store[2]["targets"].dtype == np.int32
    assert store[2]["id"].dtype == np.int64
    assert store[2]["score"].dtype == np.float32
    assert not store[2]["targets"].flags.writeable
    base = store.columns["targets"].values
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, mmap.mmap)  # mapped, not read
    assert store.columns["targets"].values.flags.aligned


def test_what_is_known_of_a_shard(tmp_path, shard):
    path = tmp_path / "g00000-00000.safetensors"
    content = path.read_bytes()
    assert (shard.name, shard.rows, shard.size) == ("g00000-00000", 5, len(content))
    assert shard.sha256 == hashlib.sha256(content).hexdigest()
    assert shard.values == {"targets": 10, "label": 5, "id": 5, "score": 5}
    assert shard.dtypes == {"targets": "I32", "label": "I32", "id": "I64", "score": "F32"}
    assert [path.name for path in tmp_path.iterdir()] == [shard.file]


def test_other_programs_open_it(tmp_path, shard):
    arrays = safetensors.load_file(tmp_path / shard.file)
    assert arrays["offsets/targets"].tolist() == [0, 0, 1, 3, 6, 10]
    assert arrays["values/targets"].tolist() == [7, 7, 8, 7, 8, 9, 7, 8, 9, 10]


@pytest.mark.parametrize("number", [0, 1])
def test_few_rows(tmp_path, number):
    shard = shards.write(tmp_path, "a", TokenStore.collect(rows(number)))
    store = shards.open_shard(tmp_path / shard.file)
    assert len(store) == number == shard.rows
    assert [row["targets"].tolist() for row in map(store.__getitem__, range(number))] == [[]] * number


def test_problems(tmp_path, shard):
    path = tmp_path / shard.file
    whole = path.read_bytes()
    assert shards.problem(tmp_path, shard, hashed=True) is None
    flipped = bytearray(whole)
    flipped[-1] ^= 1
    path.write_bytes(flipped)
    assert shards.problem(tmp_path, shard, hashed=False) is None
    assert "g00000-00000.safetensors does not match its SHA-256" in shards.problem(tmp_path, shard, hashed=True)
    path.write_bytes(whole[:-1])
    assert f"has {len(whole) - 1} bytes instead of {len(whole)}" in shards.problem(tmp_path, shard, hashed=False)
    path.unlink()
    assert shards.problem(tmp_path, shard, hashed=False) == f"{path} has vanished"


def damage_header(content, **changes):
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["values/targets"] |= changes
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:20],
        lambda content: content[:-30],
        lambda content: b"\xff" * 40,
        lambda content: damage_header(content, shape=[11]),
        lambda content: damage_header(content, dtype="I16"),
        lambda content: damage_header(content, data_offsets=[0, 10**9]),
    ],
)
def test_damaged_files_are_refused(tmp_path, shard, damage):
    path = tmp_path / shard.file
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DamagedShardError, match="g00000-00000.safetensors is damaged"):
        shards.open_shard(path)


def test_a_full_disk_is_named_and_nothing_stays(tmp_path, monkeypatch):
    def write(path, content):
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pathlib.Path, "write_bytes", write)
    with pytest.raises(OSError, match=r"No space left on device: .*a\.safetensors'"):
        shards.replace(tmp_path / "a.safetensors", b"content")
    assert not list(tmp_path.iterdir())
