"""Names of the Hugging Face Hub in place of directories: downloaded once, kept in the Hub's own cache."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from t2t.errors import UsageError

NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
"""A repository's name: google-t5/t5-small, or gpt2."""

PATTERNS = ("*.json", "*.txt", "*.model", "*.safetensors", "pytorch_model*.bin", "flax_model*.msgpack")
"""The files of a repository that a model may need."""


def find(path: str | os.PathLike[str], *, patterns: Sequence[str] | None = None) -> Path:
    """The directory of that path or, where there is none, of the repository of that name.

    Args:
        path: of a directory, or a name.
        patterns: of the files to download; None is whatever a model needs.

    Raises:
        UsageError: there is neither, or the repository cannot be reached.
    """
    directory, name = Path(path), str(path)
    if directory.exists() or not NAME.fullmatch(name) or name.startswith("runs/"):
        return directory
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError as error:
        raise UsageError(
            f"there is no directory {name}, and to look for it on the Hugging Face Hub huggingface-hub is needed: "
            "pip install 't2t[hf]'"
        ) from error
    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=list(patterns or wanted(name))))
    except errors.LocalEntryNotFoundError as error:
        raise UsageError(
            f"there is no directory {name}, and the Hugging Face Hub cannot be reached; nor is {name} in its cache. "
            "Download it where there is a network (hf download NAME --local-dir DIR) and give the directory"
        ) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise UsageError(f"there is no directory {name}, and no repository of that name on the Hub") from error


def wanted(name: str) -> tuple[str, ...]:
    """The patterns of the files to download: weights in the first format that the repository has."""
    import huggingface_hub

    try:
        listed = huggingface_hub.list_repo_files(name)
    except (OSError, ValueError):  # offline: whatever is in the cache
        return PATTERNS
    for kind in ("*.safetensors", "pytorch_model*.bin", "flax_model*.msgpack"):
        first = kind.partition("*")[0]
        if any(file.startswith(first) and file.endswith(kind.rpartition("*")[2]) for file in listed):
            return ("*.json", "*.txt", "*.model", kind)
    return PATTERNS
