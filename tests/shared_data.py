"""Finds data shared between checkouts: real corpora, tokenizers and recorded outputs of reference implementations.

The folder is T2T_SHARED_DATA, else `../shared/data` beside the repository. It is no part of the repository: tests that
need it are skipped, with the reason, where it is missing.
"""

import os
import pathlib

import pytest

_BESIDE = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"


def shared_data(*parts: str) -> pathlib.Path:
    """Path of a file or folder under the shared data; skips the calling test (or module) where it is missing."""
    root = pathlib.Path(os.environ.get("T2T_SHARED_DATA", _BESIDE))
    path = root.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs {'/'.join(parts)} of the shared data: {path} is missing", allow_module_level=True)
    return path
