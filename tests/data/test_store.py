import numpy as np
import pytest

from t2t.data.store import TokenStore


def examples():
    yield {
        "targets": np.array([5, 0, 7], np.int64),
        "label": np.int32(2),
        "text": b"caf\xc3\xa9",
        "score": np.float64(0.5),
    }
    yield {"targets": np.array([], np.int64), "label": np.int32(3), "text": b"b", "score": np.float64(1.5)}
    yield {"targets": np.array([9], np.int64), "label": np.int32(4), "text": b"c", "score": np.float64(2.5)}


def test_reads_any_example():
    store = TokenStore.collect(examples())
    assert len(store) == 3
    assert [store[i]["targets"].tolist() for i in range(3)] == [[5, 0, 7], [], [9]]
    assert [int(store[i]["label"]) for i in range(3)] == [2, 3, 4]
    assert store[0]["targets"].dtype == store[0]["label"].dtype == np.int32
    assert store[0]["score"].dtype == np.float32
    with pytest.raises(IndexError, match="Example 3 of 3"):
        store[3]


def test_examples_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        TokenStore.collect(examples())[0]["targets"][0] = 1


def test_texts_are_kept_if_asked_for():
    assert TokenStore.collect(examples()).texts == {}
    assert TokenStore.collect(examples(), texts=True).texts == {"text": ["café", "b", "c"]}
    lists = TokenStore.collect([{"answers": np.array([b"a", b"b"], object), "n": np.int32(1)}], texts=True)
    assert lists.texts == {"answers": [["a", "b"]]}


def test_identifiers_beyond_32_bits_stay_whole():
    assert int(TokenStore.collect([{"id": np.int64(2**40)}])[0]["id"]) == 2**40


def test_features_must_be_regular():
    with pytest.raises(ValueError, match="'x' has 2 axes"):
        TokenStore.collect([{"x": np.zeros((2, 2), np.int32)}])
    with pytest.raises(ValueError, match="missing in the first 1"):
        TokenStore.collect([{"x": np.zeros(2, np.int32)}, {"x": np.zeros(2, np.int32), "y": np.zeros(2, np.int32)}])
    with pytest.raises(ValueError, match="present in 1 of 2"):
        TokenStore.collect([{"x": np.zeros(2, np.int32), "y": np.zeros(2, np.int32)}, {"x": np.zeros(2, np.int32)}])


def test_progress_is_reported(monkeypatch):
    monkeypatch.setattr("t2t.data.store.REPORT_EVERY", 2)
    calls = []
    TokenStore.collect(examples(), name="books", progress=lambda name, count: calls.append((name, count)))
    assert calls == [("books", 2), ("books", 3)]


def test_many_examples_are_joined_in_blocks(monkeypatch):
    monkeypatch.setattr("t2t.data.store._BLOCK", 2)
    store = TokenStore.collect({"x": np.arange(i, dtype=np.int32)} for i in range(7))
    assert [store[i]["x"].tolist() for i in range(7)] == [list(range(i)) for i in range(7)]


def test_file_gives_back_the_numbers(tmp_path):
    store = TokenStore.collect(examples())
    store.save(tmp_path / "folder" / "a.npz")
    again = TokenStore.load(tmp_path / "folder" / "a.npz")
    assert len(again) == 3
    for i in range(3):
        for name, value in store[i].items():
            np.testing.assert_array_equal(again[i][name], value)
            assert again[i][name].dtype == value.dtype
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["a.npz"]


def test_damaged_file_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    TokenStore.collect(examples()).save(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="a.npz is damaged"):
        TokenStore.load(path)
