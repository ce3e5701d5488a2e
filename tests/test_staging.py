"""The files of a directory change together or not at all."""

import errno

import pytest

from t2t import staging


def contents(directory):
    return {str(p.relative_to(directory)): p.read_text() for p in directory.rglob("*") if p.is_file()}


@pytest.fixture
def old(tmp_path):
    for name in ("a", "b", "sub/a", "mine"):
        (tmp_path / "old" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "old" / name).write_text(f"old {name}")
    return tmp_path / "old"


def test_new_files_take_their_places_and_stale_ones_go(old):
    with staging.replacing(old, stale=["?", "sub/*"]) as folder:
        (folder / "a").write_text("new")
        (folder / "other").mkdir()
        (folder / "other" / "c").write_text("new")
        assert contents(old)["a"] == "old a"
    assert contents(old) == {"a": "new", "other/c": "new", "mine": "old mine"}
    assert not (old / "sub").exists()


def test_a_folder_that_holds_more_than_stale_files_stays(old):
    (old / "sub" / "mine").write_text("mine")
    with staging.replacing(old, stale=["sub/a"]):
        pass
    assert "sub/mine" in contents(old) and "sub/a" not in contents(old)


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_changes_nothing(old, failure):
    before = contents(old)
    with pytest.raises(failure), staging.replacing(old, stale=["*"]) as folder:
        (folder / "a").write_text("new")
        raise failure
    assert contents(old) == before and not (old / staging.FOLDER).exists()


def test_what_was_not_there_is_not_there_after_a_failure(tmp_path):
    with pytest.raises(ValueError, match="no"), staging.replacing(tmp_path / "deep" / "er") as folder:
        (folder / "a").write_text("new")
        raise ValueError("no")
    assert list(tmp_path.iterdir()) == []
    with staging.replacing(tmp_path / "deep" / "er") as folder:
        (folder / "a").write_text("new")
    assert contents(tmp_path) == {"deep/er/a": "new"}


def test_what_a_killed_process_has_left_is_no_part_of_the_next(old):
    (old / staging.FOLDER).mkdir()
    (old / staging.FOLDER / "half").write_text("half")
    with staging.replacing(old) as folder:
        assert list(folder.iterdir()) == []
    assert "half" not in contents(old) and not (old / staging.FOLDER).exists()


def test_a_full_disk_says_where_and_how_much_room_there_was(old):
    before = contents(old)
    with pytest.raises(OSError, match=r"old has no room for its files: [\d,]+ bytes were left.* Make room"):
        with staging.replacing(old) as folder:
            (folder / "a").write_text("new")
            raise OSError(errno.ENOSPC, "No space left on device")
    assert contents(old) == before
