"""A list of SHA-256 hashes beside the files of a directory, in the format of `sha256sum`.

Orbax loads a file with a flipped bit without a word; a checkpoint is therefore read only after every one of its files
has been found as it was written. `sha256sum -c MANIFEST.sha256` does the same check by hand.
"""

import hashlib
from pathlib import Path

NAME = "MANIFEST.sha256"


def write(directory: Path) -> None:
    """Writes the hash of every file under `directory` into its manifest."""
    lines = [f"{_sha256(directory / name)}  {name}\n" for name in _files(directory)]
    (directory / NAME).write_text("".join(lines), encoding="utf-8")


def problems(directory: Path) -> list[str]:
    """What differs between `directory` and its manifest, one line for each file; empty if nothing does."""
    manifest = directory / NAME
    if not manifest.is_file():
        return [f"{NAME} is missing"]
    found, listed = [], set()
    for line in manifest.read_text(encoding="utf-8", errors="replace").removesuffix("\n").split("\n"):
        expected, separator, name = line.partition("  ")
        listed.add(name)
        if not separator or not name:
            found.append(f"{NAME} holds a line that is no hash: {line[:80]!r}")
        elif not (directory / name).is_file():
            found.append(f"{name} is listed in {NAME} and missing")
        elif _sha256(directory / name) != expected:
            found.append(f"{name} does not match its hash in {NAME}")
    return found + [f"{name} is not listed in {NAME}" for name in _files(directory) if name not in listed]


def _files(directory: Path) -> list[str]:
    names = [path.relative_to(directory) for path in directory.rglob("*") if path.is_file()]
    return sorted(str(name) for name in names if str(name) != NAME and not name.name.startswith("."))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
