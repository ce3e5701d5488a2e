"""What is wrong with a file of weights before anything in it is read, and how to mend it."""

import os
from pathlib import Path

AGAIN = "copy or download it again"
"""The way to mend a damaged file."""

POINTER = b"version https://git-lfs.github.com/spec/"
"""How the text begins that Git LFS leaves in place of a file that it has not fetched."""


def require(path: Path) -> None:
    """Nothing, where a path is a file that holds something of its own.

    Raises:
        FileNotFoundError: it is a link that leads nowhere, or is not there.
        ValueError: it is a folder, empty, or a pointer of Git LFS in place of the file.
        OSError: it may not be read.
    """
    if is_dangling(path):
        raise FileNotFoundError(dangling(path))
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file of weights: remove it, and {AGAIN}")
    with open(path, "rb") as file:
        start = file.read(len(POINTER))
    if not start:
        raise ValueError(f"{path} is an empty file: {AGAIN}")
    if start == POINTER:
        raise ValueError(
            f"{path} is a pointer of Git LFS, a few lines of text in place of the file: fetch it (git lfs pull), or "
            "download the repository with hf download NAME --local-dir DIR"
        )


def is_dangling(path: Path) -> bool:
    """Whether a path is a link to what is not there."""
    return path.is_symlink() and not os.path.exists(path)


def dangling(path: Path) -> str:
    """What to say of such a link."""
    return (
        f"{path} is a link to {os.readlink(path)}, which is not there: fetch what it stands for, or put a copy of the "
        "file in its place"
    )
