"""What stands in place of a file of weights is told, and how to get the file."""

import pytest

from t2t import file_checks

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n"


def test_a_file_with_content_is_fine(tmp_path):
    file = tmp_path / "weights"
    file.write_bytes(b"x")
    file_checks.require(file)
    (tmp_path / "link").symlink_to(file)
    file_checks.require(tmp_path / "link")


@pytest.mark.parametrize(
    ("content", "message"), [("", "is an empty file: copy"), (POINTER, r"fetch it \(git lfs pull\)")]
)
def test_what_holds_nothing_of_its_own_is_refused(tmp_path, content, message):
    file = tmp_path / "weights"
    file.write_text(content)
    with pytest.raises(ValueError, match=message):
        file_checks.require(file)


def test_folders_and_links_that_lead_nowhere_are_refused(tmp_path):
    with pytest.raises(ValueError, match="is a folder, not a file of weights"):
        file_checks.require(tmp_path)
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match="is a link to nowhere, which is not there: fetch"):
        file_checks.require(tmp_path / "link")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(FileNotFoundError, match="is a link to .*circle, which is not there"):
        file_checks.require(tmp_path / "circle")
    with pytest.raises(FileNotFoundError, match="nothing"):
        file_checks.require(tmp_path / "nothing")
