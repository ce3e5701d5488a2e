"""The directory of one token cache: its shards, what says that they are whole, and how half of them are gone on from.

    PLAN.json                     what the tokens were made of, and how shards are cut; written first
    g00000-00000.safetensors      the first shard of the first group of the source's files
    g00000-00000.json             its hash and counts, until the manifest takes them over
    g00000.json                   how many shards the group has, until then
    MANIFEST.json                 all of that, written last: a cache that has one is complete

Shards and their notes are written by whoever makes them, on one machine or on many; the groups say in which order they
stand. Where one group ends decides nothing about the examples.
"""

import concurrent.futures
import contextlib
import dataclasses
import fcntl
import json
import pathlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2t.data import shards
from t2t.data.mapped_store import REPAIR, MappedStore, Pieces
from t2t.data.shards import Shard
from t2t.data.store import TokenStore
from t2t.data.text_files import CorpusError, MissingFileError, Skipped
from t2t.errors import UsageError

PLAN, MANIFEST, LOCK = "PLAN.json", "MANIFEST.json", ".lock"

_WAYS_OUT = {
    PLAN: "how its shards are cut is not known any more, so delete the directory it is in, and run t2t cache again",
    MANIFEST: "what is known of the shards stood in it, so delete it and run t2t cache again, which makes all anew",
}
"""What to do where a file of a cache cannot be read."""

HASHED_AT_START = 2**31
"""Bytes of a cache whose shards are hashed whenever it is opened; of a larger one only their sizes are compared."""


class BusyError(ValueError):
    """Another process is making the cache."""


def remove_if_empty(directory: pathlib.Path) -> None:
    """Deletes a cache of which no shard was made, so that nobody takes it for one that was begun."""
    if not any(path.name.startswith("g") or path.name == MANIFEST for path in directory.rglob("*")):
        shutil.rmtree(directory)


@dataclass(frozen=True, kw_only=True)
class Group:
    """The neighbouring files of a source that one process reads."""

    name: str
    shards: int
    skipped: Skipped = dataclasses.field(default_factory=Skipped)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a complete cache holds."""

    examples: int
    shards: tuple[Shard, ...]
    groups: tuple[Group, ...]
    pieces: Pieces | None

    @property
    def skipped(self) -> Skipped:
        """What was left out of all groups."""
        total = Skipped()
        for group in self.groups:
            total.add(group.skipped)
        return total

    @property
    def values(self) -> dict[str, int]:
        """How many values each feature has over all shards."""
        total: dict[str, int] = {}
        for shard in self.shards:
            for name, number in shard.values.items():
                total[name] = total.get(name, 0) + number
        return total


def shard_name(group: str, number: int) -> str:
    """Name of the number-th shard of a group."""
    return f"{group}-{number:05}"


def group_name(number: int) -> str:
    """Name of the number-th group."""
    return f"g{number:05}"


@contextlib.contextmanager
def locked(directory: pathlib.Path) -> Iterator[None]:
    """Makes the directory, and keeps a second process from making the same cache.

    Raises:
        BusyError: one does already.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError(f"another process is making the cache {directory}: wait for it") from error
        yield


def begin(directory: pathlib.Path, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Writes the plan of a new cache, or returns that of one that was begun.

    Raises:
        CorpusError: the plan that is there cannot be read.
    """
    for path in directory.glob("*.unfinished"):  # of a process that was killed
        path.unlink()
    known = read_plan(directory)
    if known is None:
        shards.replace(directory / PLAN, _to_json(dict(plan)))
    return dict(plan) if known is None else known


def read_plan(directory: pathlib.Path) -> dict[str, Any] | None:
    """What a cache is made of; None where nothing was begun.

    Raises:
        CorpusError: the file is damaged.
    """
    content = _read_json(directory / PLAN)
    if content is not None and not {"facts", "shard_size"} <= set(content):
        raise CorpusError(f"{directory / PLAN} is damaged: {_WAYS_OUT[PLAN]}.")
    return content


def keep(directory: pathlib.Path, name: str, rows: TokenStore) -> Shard:
    """Writes a shard, then the note that says it is whole."""
    shard = shards.write(directory, name, rows)
    shards.replace(directory / f"{name}.json", _to_json(dataclasses.asdict(shard)))
    return shard


def end_group(directory: pathlib.Path, group: Group) -> None:
    """Notes that a group is read to its end."""
    shards.replace(directory / f"{group.name}.json", _to_json(dataclasses.asdict(group)))


@dataclass(frozen=True, kw_only=True)
class Finished:
    """What of a cache is there, looked through file by file."""

    shards: Mapping[str, Shard]
    """Those that match their hashes, by name."""
    groups: Mapping[str, Group]
    """Those that were read to their end, by name."""
    damaged: tuple[str, ...] = ()
    """What is wrong with each of the other shards that are known."""

    def has_all_of(self, group: str) -> bool:
        """Whether nothing is missing of a group."""
        ended = self.groups.get(group)
        return ended is not None and all(shard_name(group, number) in self.shards for number in range(ended.shards))


def find_finished(directory: pathlib.Path, *, threads: int = 1) -> Finished:
    """Looks for the shards of a cache that are whole; hashes them all."""
    manifest = read_manifest(directory)
    known = {} if manifest is None else {shard.name: shard for shard in manifest.shards}
    for note in _notes(directory):
        if "sha256" in note:
            known[note["name"]] = Shard(**note)
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        wrong = list(pool.map(lambda shard: shards.problem(directory, shard, hashed=True), known.values()))
    whole = {name: shard for (name, shard), text in zip(known.items(), wrong, strict=True) if text is None}
    damaged = tuple(text for text in wrong if text is not None)
    return Finished(shards=whole, groups=read_groups(directory), damaged=damaged)


def read_groups(directory: pathlib.Path) -> dict[str, Group]:
    """The groups that were read to their end, by name."""
    manifest = read_manifest(directory)
    groups = {} if manifest is None else {group.name: group for group in manifest.groups}
    return groups | {note["name"]: _group(note) for note in _notes(directory) if "skipped" in note}


def _notes(directory: pathlib.Path) -> Iterator[dict[str, Any]]:
    for path in sorted(directory.glob("g*.json")):
        with contextlib.suppress(CorpusError):  # half a note is none
            yield _read_json(path) or {}


def complete(
    directory: pathlib.Path, *, groups: Sequence[Group], kept: Mapping[str, Shard], pieces: Pieces | None
) -> Manifest:
    """Writes the manifest of a cache all of whose shards are there, and deletes what it makes superfluous.

    Raises:
        ValueError: a feature is missing in some shards.
    """
    names = [shard_name(group.name, number) for group in groups for number in range(group.shards)]
    ordered = tuple(kept[name] for name in names)
    features = {feature for shard in ordered for feature in shard.values}
    for shard in ordered:
        if shard.rows and features - set(shard.values):
            raise ValueError(f"Features {sorted(features - set(shard.values))} are in some examples only, not in all.")
    store = MappedStore(directory=directory, shards=ordered, pieces=pieces)
    manifest = Manifest(examples=len(store), shards=ordered, groups=tuple(groups), pieces=pieces)
    shards.replace(directory / MANIFEST, _to_json(dataclasses.asdict(manifest)))
    files = {shard.file for shard in ordered}
    for path in directory.glob("g*"):
        if path.name not in files:
            path.unlink()
    return manifest


def read_manifest(directory: pathlib.Path) -> Manifest | None:
    """What a cache holds; None where it is not complete.

    Raises:
        CorpusError: the file is damaged.
    """
    content = _read_json(directory / MANIFEST)
    if content is None:
        return None
    try:
        return Manifest(
            examples=content["examples"],
            shards=tuple(Shard(**shard) for shard in content["shards"]),
            groups=tuple(map(_group, content["groups"])),
            pieces=None if content["pieces"] is None else Pieces(**content["pieces"]),
        )
    except (KeyError, TypeError) as error:
        raise CorpusError(f"{directory / MANIFEST} is damaged ({error!r}): {_WAYS_OUT[MANIFEST]}.") from error


def open_store(directory: pathlib.Path) -> MappedStore:
    """The examples of a complete cache, whose files are looked at first.

    Raises:
        UsageError: it is not complete.
        MissingFileError: shards have vanished.
        CorpusError: shards are damaged.
    """
    manifest = read_manifest(directory)
    if manifest is None:
        raise UsageError(f"The token cache {directory} is not complete: run t2t cache again, which goes on with it.")
    hashed = sum(shard.size for shard in manifest.shards) <= HASHED_AT_START
    found = [shards.problem(directory, shard, hashed=hashed) for shard in manifest.shards]
    wrong = [text for text in found if text is not None]
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        kind = MissingFileError if "vanished" in wrong[0] else CorpusError
        raise kind(f"The token cache cannot be used: {wrong[0]}{more}: {REPAIR}.")
    return MappedStore(directory=directory, shards=manifest.shards, pieces=manifest.pieces)


def _group(content: Mapping[str, Any]) -> Group:
    return Group(**{**content, "skipped": Skipped(**content["skipped"])})


def _to_json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def _read_json(path: pathlib.Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise CorpusError(f"{path} is damaged ({error}): {_WAYS_OUT.get(path.name, REPAIR)}.") from error
    if not isinstance(content, dict):
        raise CorpusError(f"{path} is damaged, it holds no object: {_WAYS_OUT.get(path.name, REPAIR)}.")
    return content
