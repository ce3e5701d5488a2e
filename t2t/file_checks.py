"""What is wrong with a file before anything in it is read, and how to mend it."""

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
    refuse_dangling(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file of weights: remove it, and {AGAIN}")
    with open(path, "rb") as file:
        start = file.read(len(POINTER))
    if not start:
        raise ValueError(f"{path} is an empty file: {AGAIN}")
    refuse_pointer(path, start)


def is_dangling(path: Path) -> bool:
    """Whether a path is a link to what is not there."""
    return path.is_symlink() and not os.path.exists(path)


def refuse_dangling(path: Path) -> None:
    """Nothing, where a path is no such link.

    Raises:
        FileNotFoundError: it is one.
    """
    if is_dangling(path):
        raise FileNotFoundError(
            f"{path} is a link to {os.readlink(path)}, which is not there: fetch what it stands for, or put a copy of "
            "the file in its place"
        )


def refuse_pointer(path: Path, start: bytes) -> None:
    """Nothing, where a file that begins so is no pointer of Git LFS.

    Raises:
        ValueError: it is one.
    """
    if start.startswith(POINTER):
        raise ValueError(
            f"{path} is a pointer of Git LFS, a few lines of text in place of the file: fetch it (git lfs pull), or "
            "download the repository with hf download NAME --local-dir DIR"
        )
