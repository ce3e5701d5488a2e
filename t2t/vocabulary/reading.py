"""Files of vocabularies as text, bytes or JSON, with errors that name the file and what it should hold."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from t2t import file_checks
from t2t.errors import UsageError

MAX_IDS = 2**24
"""More ids than any vocabulary has: a larger one is damage, and would fill the memory with what is not there."""

_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "true or false", int: "an integer",
          float: "a number", type(None): "null"}  # fmt: skip


def read_bytes(path: Path) -> bytes:
    """What a file holds.

    Raises:
        ValueError: a pointer of Git LFS stands in its place.
        FileNotFoundError: it is not there, or a link that leads nowhere.
    """
    file_checks.refuse_dangling(path)
    content = path.read_bytes()
    file_checks.refuse_pointer(path, content)
    return content


def read_text(path: Path) -> str:
    """The text that a file holds, in which every line ends as in Unix.

    Raises:
        ValueError: it is not UTF-8.
    """
    try:
        text = read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 ({error}): {file_checks.AGAIN}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_object(path: Path) -> dict[str, Any]:
    """What a file holds that is one JSON object.

    Raises:
        UsageError: it holds something else, or cannot be read.
    """
    again = f"expected is a JSON object, {{...}}: {file_checks.AGAIN}"
    try:
        content = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError, IsADirectoryError, PermissionError) as error:
        raise UsageError(f"{path} is not JSON ({error}); {again}") from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    if not isinstance(content, dict):
        raise UsageError(f"{path} holds {kind(content)}; {again}")
    return content


def kind(value: Any) -> str:
    """What a value of JSON is.

    >>> kind([]), kind(True), kind(None)
    ('a list', 'true or false', 'null')
    """
    return _KINDS[type(value)]


def check(path: Path, name: str, value: Any, kinds: Collection[type]) -> None:
    """Nothing, where the value that a file gives a name is of one of these kinds; 0 and 1 are true or false, too.

    Raises:
        ValueError: it is of another.
    """
    fits = type(value) in kinds or (bool in kinds and type(value) is int and value in (0, 1))
    if not fits:
        said = json.dumps(value, ensure_ascii=False)
        raise ValueError(
            f"{path} says {name}: {said:.100}; expected is {' or '.join(_KINDS[k] for k in kinds)}. Mend it there, or "
            f"{file_checks.AGAIN}"
        )


def check_ids(path: Path | str, ids: Mapping[Any, Any]) -> None:
    """Nothing, where every piece of a vocabulary has an id.

    Raises:
        ValueError: a piece is no text, or its id no number of a vocabulary.
    """
    for piece, token in ids.items():
        if not isinstance(piece, str) or type(token) is not int or not 0 <= token < MAX_IDS:
            said = json.dumps(token, ensure_ascii=False)
            raise ValueError(
                f"{path} gives {piece!r:.100} the id {said:.100}; ids are integers from 0 to {MAX_IDS - 1}: "
                f"{file_checks.AGAIN}"
            )
