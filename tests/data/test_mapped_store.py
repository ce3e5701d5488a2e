import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t.data import mapped_store, shards
from t2t.data.mapped_store import MappedStore, Pieces
from t2t.data.store import TokenStore
from t2t.data.text_files import CorpusError, MissingFileError


def mapped(directory, groups, pieces=None):
    """A store of shards that hold these rows."""
    made = [shards.write(directory, f"s{i}", TokenStore.collect(rows)) for i, rows in enumerate(groups)]
    return MappedStore(directory=directory, shards=tuple(made), pieces=pieces)


def documents(*lengths, first=0):
    ends = np.cumsum([first, *lengths])
    return [{"targets": np.arange(a, b, dtype=np.int32)} for a, b in zip(ends, ends[1:], strict=False)]


def test_rows_of_several_shards_are_numbered_through(tmp_path):
    groups = [documents(3, 1), [], documents(2, first=4), documents(0, 5, first=6)]
    store = mapped(tmp_path, groups)
    assert len(store) == 5
    expected = [row["targets"].tolist() for rows in groups for row in rows]
    assert [store[i]["targets"].tolist() for i in range(5)] == expected
    assert store.columns == ("targets",)
    assert np.concatenate(list(store.values("targets"))).tolist() == list(range(11))
    assert store.texts == {}
    for index in (-1, 5):
        with pytest.raises(IndexError, match=f"Example {index} of 5"):
            store[index]


@settings(max_examples=25)
@given(sizes=st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=5), length=st.integers(1, 12))
def test_pieces_are_those_of_the_whole_text(tmp_path_factory, sizes, length):
    groups, first = [], 0
    for lengths in sizes:
        groups.append(documents(*lengths, first=first))
        first += sum(lengths)
    store = mapped(tmp_path_factory.mktemp("s"), groups, Pieces(feature="targets", length=length))
    expected = [list(range(start, min(start + length, first))) for start in range(0, first, length)]
    assert [store[i]["targets"].tolist() for i in range(len(store))] == expected


def test_the_widest_type_of_all_shards_holds(tmp_path):
    store = mapped(tmp_path, [[{"id": np.int64(2**40)}], [{"id": np.int64(3)}]])
    assert [int(store[i]["id"]) for i in range(2)] == [2**40, 3]
    assert store[0]["id"].dtype == store[1]["id"].dtype == np.int64


def test_few_shards_are_mapped_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped_store, "MAX_MAPPED", 2)
    opened = []
    open_shard = mapped_store.open_shard
    monkeypatch.setattr(mapped_store, "open_shard", lambda path: (opened.append(path.name), open_shard(path))[1])
    store = mapped(tmp_path, [documents(1), documents(1), documents(1)])
    for index in (0, 1, 0, 1, 2, 1, 0):
        assert store[index]["targets"].tolist() == [0]
    assert opened == [f"s{i}.safetensors" for i in (0, 1, 2, 0)]


def test_shards_that_are_gone_or_damaged_are_named_with_the_way_out(tmp_path):
    store = mapped(tmp_path, [documents(2), documents(3), documents(4)])
    assert store[0]["targets"].tolist() == [0, 1]
    (tmp_path / "s1.safetensors").unlink()
    with pytest.raises(MissingFileError, match="s1.safetensors, a shard .*, has vanished: make it anew with t2t cache"):
        store[1]
    (tmp_path / "s2.safetensors").write_bytes(b"no shard")
    with pytest.raises(CorpusError, match="s2.safetensors is damaged .*: make it anew with t2t cache"):
        store[2]
    assert store[0]["targets"].tolist() == [0, 1]


def test_the_checksum_is_that_of_the_examples_in_memory(tmp_path):
    rows = [{"inputs": np.arange(k), "n": np.array(n)} for k, n in ((2, 3), (0, 4), (1, 2**40))]
    for name, cut in (("a", [rows[:2], [], rows[2:]]), ("b", [rows])):
        (tmp_path / name).mkdir()
        assert mapped(tmp_path / name, cut).checksum == TokenStore.collect(rows).checksum
    text = np.arange(11, dtype=np.int32)
    (tmp_path / "c").mkdir()
    pieces = mapped(tmp_path / "c", [documents(3, 1), documents(7, first=4)], Pieces(feature="targets", length=4))
    in_memory = [{"targets": text[start : start + 4]} for start in (0, 4, 8)]
    assert pieces.checksum == TokenStore.collect(in_memory).checksum
    other = TokenStore.collect([*in_memory[:2], {"targets": np.array([8, 9, 11])}])
    assert pieces.checksum != other.checksum


def test_a_large_cache_is_known_by_the_hashes_of_its_shards(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped_store, "READ_THROUGH", 10)
    monkeypatch.setattr(mapped_store, "open_shard", None)  # is not read
    stores = []
    for number, last in enumerate((1, 1, 2)):
        (tmp_path / str(number)).mkdir()
        stores.append(mapped(tmp_path / str(number), [documents(3), documents(last, first=3)]))
    assert stores[0].checksum == stores[1].checksum != stores[2].checksum
