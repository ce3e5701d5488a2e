"""Names of the Hugging Face Hub in place of directories: downloaded once, kept in the Hub's own cache."""

import contextlib
import fnmatch
import os
import re
from collections.abc import Sequence
from pathlib import Path

from t2t.errors import UsageError

NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
"""A repository's name: google-t5/t5-small, or gpt2."""

TEXTS = ("*.json", "*.txt", "*.model")
"""The files of a repository that a model may need besides its weights."""

WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "flax_model*.msgpack")
"""The formats of weights; the first that a repository has is downloaded."""

TIMEOUT = 10.0
"""Seconds in which the Hub must answer what a repository holds."""


class HubError(ValueError):
    """The Hub did not give what it holds; later it may."""


def find(path: str | os.PathLike[str], *, patterns: Sequence[str] | None = None) -> Path:
    """The directory of that path or, where there is none, of the repository of that name.

    The Hub is asked once, without retries: where it does not answer, the repository may still be in the cache.

    Args:
        path: of a directory, or a name.
        patterns: of the files to download; None is whatever a model needs.

    Raises:
        UsageError: there is neither.
        HubError: the Hub cannot be reached, and the repository is not in the cache.
    """
    directory, name = Path(path), str(path)
    try:
        is_there = directory.exists()
    except OSError as error:  # a name too long for any file, or in a folder that may not be read
        raise UsageError(f"there is no directory {name[:100]}: {error.strerror}") from error
    if is_there or not NAME.fullmatch(name) or name.startswith("runs/"):
        return directory
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError as error:
        raise UsageError(
            f"there is no directory {name}, and to look for it on the Hugging Face Hub huggingface-hub is needed: "
            "pip install huggingface-hub"
        ) from error
    try:
        held = [file.rfilename for file in huggingface_hub.model_info(name, timeout=TIMEOUT).siblings or ()]
    except errors.HFValidationError as error:
        raise UsageError(f"there is no directory {name}, and no repository can have that name") from error
    except _network_errors() as error:
        return _find_in_cache(name, patterns, error)
    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=list(patterns or wanted(held))))
    except _network_errors() as error:
        raise HubError(f"{name} could not be downloaded from the Hugging Face Hub: {error}") from error


def wanted(held: Sequence[str]) -> tuple[str, ...]:
    """The patterns of the files to download of those that a repository holds: weights in its first format.

    Example:
        >>> wanted(["config.json", "flax_model.msgpack", "pytorch_model.bin"])
        ('*.json', '*.txt', '*.model', 'pytorch_model*.bin')
    """
    for kind in WEIGHTS:
        if any("/" not in file and fnmatch.fnmatch(file, kind) for file in held):
            return (*TEXTS, kind)
    return (*TEXTS, *WEIGHTS)


def _network_errors() -> tuple[type[Exception], ...]:
    """What huggingface-hub raises where the Hub does not answer or refuses: it has changed its HTTP library twice.

    The error of an answer descends from the library's own errors, which are those of connections too.
    """
    from huggingface_hub import errors

    of_library = [kind for kind in errors.HfHubHTTPError.__mro__ if kind.__module__ != "builtins"]
    return (*of_library, errors.LocalEntryNotFoundError, ConnectionError, TimeoutError)


def _find_in_cache(name: str, patterns: Sequence[str] | None, failure: Exception) -> Path:
    """The directory of a repository that was downloaded before, whole; `failure` is why the Hub was of no use."""
    import huggingface_hub
    from huggingface_hub import errors

    # The cache knows what belongs to a repository, so it is asked for one format of weights at a time.
    for asked in [list(patterns)] if patterns else [[*TEXTS, kind] for kind in WEIGHTS]:
        with contextlib.suppress(errors.LocalEntryNotFoundError):
            directory = Path(huggingface_hub.snapshot_download(name, allow_patterns=asked, local_files_only=True))
            if patterns or any(directory.glob(asked[-1])):
                return directory
    if isinstance(failure, errors.RepositoryNotFoundError):
        raise UsageError(
            f"there is no directory {name}, and no repository of that name on the Hub that may be read (a private one "
            "needs hf auth login)"
        ) from failure
    raise HubError(
        f"there is no directory {name}, and the Hugging Face Hub cannot be reached ({failure}); nor is {name} in its "
        "cache. Download it where there is a network (hf download NAME --local-dir DIR) and give the directory"
    ) from failure
