"""The manifest of hashes: any change to any file is found, and `sha256sum` agrees."""

import pathlib
import subprocess

import pytest

from t2t.train import manifest


@pytest.fixture
def directory(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "a").write_bytes(b"first")
    (tmp_path / "data.json").write_text("{}")
    manifest.write(tmp_path)
    return tmp_path


def test_untouched_directory_has_no_problems_and_sha256sum_agrees(directory: pathlib.Path):
    assert manifest.problems(directory) == []
    subprocess.run(["sha256sum", "-c", "--strict", "--quiet", manifest.NAME], cwd=directory, check=True)


@pytest.mark.parametrize("name", ["state/a", "data.json"])
def test_changed_file_is_named(directory: pathlib.Path, name: str):
    (directory / name).write_bytes(b"other")
    assert manifest.problems(directory) == [f"{name} does not match its hash in {manifest.NAME}"]


def test_missing_and_unlisted_files_are_named(directory: pathlib.Path):
    (directory / "data.json").rename(directory / "other.json")
    assert manifest.problems(directory) == [
        f"data.json is listed in {manifest.NAME} and missing",
        f"other.json is not listed in {manifest.NAME}",
    ]


def test_every_flipped_byte_of_the_manifest_itself_is_found(directory: pathlib.Path):
    whole = (directory / manifest.NAME).read_bytes()
    for index in range(len(whole)):
        (directory / manifest.NAME).write_bytes(whole[:index] + bytes([whole[index] ^ 1]) + whole[index + 1 :])
        assert manifest.problems(directory), f"a flip of byte {index} went unseen"


def test_missing_manifest_is_a_problem(tmp_path: pathlib.Path):
    assert manifest.problems(tmp_path) == [f"{manifest.NAME} is missing"]
