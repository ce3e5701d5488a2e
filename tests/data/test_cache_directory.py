import json

import numpy as np
import pytest

from t2t.data import cache_directory
from t2t.data.cache_directory import BusyError, Group
from t2t.data.mapped_store import Pieces
from t2t.data.store import TokenStore
from t2t.data.text_files import CorpusError, MissingFileError, Skipped
from t2t.errors import UsageError


def keep(directory, name, *lengths, feature="targets"):
    rows = [{feature: np.arange(length, dtype=np.int32)} for length in lengths]
    return cache_directory.keep(directory, name, TokenStore.collect(rows))


@pytest.fixture
def made(tmp_path):
    """A complete cache of two groups, three shards and eleven tokens."""
    cache_directory.begin(tmp_path, {"facts": {}, "shard_size": 7})
    names = ["g00000-00000", "g00000-00001", "g00001-00000"]
    kept = {name: keep(tmp_path, name, i + 2, 2) for i, name in enumerate(names)}
    groups = [Group(name="g00000", shards=2, skipped=Skipped(empty=3)), Group(name="g00001", shards=1)]
    for group in groups:
        cache_directory.end_group(tmp_path, group)
    pieces = Pieces(feature="targets", length=4)
    manifest = cache_directory.complete(tmp_path, groups=groups, kept=kept, pieces=pieces)
    return tmp_path, manifest


def test_a_manifest_says_what_is_there(made):
    path, manifest = made
    assert cache_directory.read_manifest(path) == manifest
    assert (manifest.examples, manifest.values, manifest.skipped) == (4, {"targets": 15}, Skipped(empty=3))
    files = [f"{shard}.safetensors" for shard in ("g00000-00000", "g00000-00001", "g00001-00000")]
    assert sorted(file.name for file in path.iterdir()) == ["MANIFEST.json", "PLAN.json", *files]
    store = cache_directory.open_store(path)
    assert [store[i]["targets"].tolist() for i in range(4)] == [[0, 1, 0, 1], [0, 1, 2, 0], [1, 0, 1, 2], [3, 0, 1]]


def test_what_was_begun_keeps_its_plan(tmp_path):
    assert cache_directory.read_plan(tmp_path) is None
    plan = {"facts": {"lengths": [["targets", 3]]}, "shard_size": 7}
    assert cache_directory.begin(tmp_path, plan) == plan
    (tmp_path / "g00000-00000.safetensors.123.unfinished").touch()
    assert cache_directory.begin(tmp_path, plan | {"shard_size": 9}) == plan
    assert [path.name for path in tmp_path.iterdir()] == ["PLAN.json"]
    (tmp_path / "PLAN.json").write_text("{}")
    with pytest.raises(CorpusError, match="PLAN.json is damaged: .* delete the directory"):
        cache_directory.read_plan(tmp_path)


def test_finished_shards_are_believed_by_their_hashes(tmp_path):
    for name in ("g00000-00000", "g00000-00001", "g00001-00000"):
        keep(tmp_path, name, 3)
    cache_directory.end_group(tmp_path, Group(name="g00000", shards=2))
    path = tmp_path / "g00001-00000.safetensors"
    path.write_bytes(path.read_bytes()[:-4] + b"\0\0\0\7")
    (tmp_path / "g00002-00000.json").write_text('{"name": "g0')
    (tmp_path / "g00003-00000.safetensors").touch()
    found = cache_directory.find_finished(tmp_path, threads=2)
    assert list(found.shards) == ["g00000-00000", "g00000-00001"]
    assert found.damaged == (f"{path} does not match its SHA-256",)
    assert [found.has_all_of(f"g0000{i}") for i in range(3)] == [True, False, False]
    (tmp_path / "g00000-00001.safetensors").unlink()
    assert not cache_directory.find_finished(tmp_path).has_all_of("g00000")


def test_damaged_and_vanished_shards_are_named_when_it_is_opened(made, monkeypatch):
    path, manifest = made
    second = path / manifest.shards[1].file
    whole = second.read_bytes()
    second.write_bytes(whole[:-4] + b"\0\0\0\7")
    with pytest.raises(CorpusError, match="g00000-00001.safetensors does not match its SHA-256: make it anew with t2t"):
        cache_directory.open_store(path)
    monkeypatch.setattr(cache_directory, "HASHED_AT_START", 10)
    assert len(cache_directory.open_store(path)) == 4
    second.write_bytes(whole[:-4])
    with pytest.raises(CorpusError, match="g00000-00001.safetensors has .* bytes instead of"):
        cache_directory.open_store(path)
    second.unlink()
    (path / manifest.shards[2].file).unlink()
    with pytest.raises(MissingFileError, match=r"g00000-00001.safetensors has vanished \(and 1 more\): make it anew"):
        cache_directory.open_store(path)
    assert cache_directory.find_finished(path).damaged == tuple(
        f"{path / shard.file} has vanished" for shard in manifest.shards[1:]
    )


def test_a_cache_without_manifest_or_with_half_of_one(made):
    path, _ = made
    content = json.loads((path / "MANIFEST.json").read_text())
    (path / "MANIFEST.json").write_text(json.dumps({"examples": content["examples"]}))
    for wrong in (json.dumps({"examples": content["examples"]}), "{", "[]"):
        (path / "MANIFEST.json").write_text(wrong)
        with pytest.raises(
            CorpusError, match="MANIFEST.json is damaged.*: .* run t2t cache again, which makes all anew"
        ):
            cache_directory.open_store(path)
    (path / "MANIFEST.json").unlink()
    with pytest.raises(UsageError, match="is not complete: run t2t cache again"):
        cache_directory.open_store(path)


@pytest.mark.parametrize("wrong", ["{", "[]", '{"facts": 1}'])
def test_a_cache_whose_plan_is_damaged_is_made_anew_as_a_whole(tmp_path, wrong):
    """Else its shards would be joined with others that are cut otherwise."""
    (tmp_path / "PLAN.json").write_text(wrong)
    with pytest.raises(
        CorpusError, match="PLAN.json is damaged.* delete the directory it is in, and run t2t cache again"
    ):
        cache_directory.begin(tmp_path, {"facts": {}, "shard_size": 3})


def test_features_are_in_all_shards(tmp_path):
    kept = {"g00000-00000": keep(tmp_path, "g00000-00000", 3), "g00000-00001": keep(tmp_path, "b", 3, feature="x")}
    with pytest.raises(ValueError, match=r"Features \['x'\] are in some examples only"):
        cache_directory.complete(tmp_path, groups=[Group(name="g00000", shards=2)], kept=kept, pieces=None)


def test_only_one_process_makes_a_cache(tmp_path):
    with cache_directory.locked(tmp_path / "a"):
        with pytest.raises(BusyError, match="another process is making the cache"):
            with cache_directory.locked(tmp_path / "a"):
                pass
        with cache_directory.locked(tmp_path / "b"):
            pass
    with cache_directory.locked(tmp_path / "a"):
        pass
