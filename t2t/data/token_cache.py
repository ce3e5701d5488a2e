"""Token caches: the tokens of a task made once, by several processes or machines, into shards on disk (`t2t cache`).

Examples do not depend on how many workers made them, nor on where shards begin: example i of a cache is example i of
the task read into memory. A cache that was not finished is gone on with; shards that are there are believed by their
hashes.
"""

import dataclasses
import logging
import pathlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from t2t.data import preprocessors  # noqa: F401 # isort: skip - sets up TensorFlow
import seqio

from t2t.data import cache, cache_directory, token_work, workers
from t2t.data.cache_directory import Finished, Group, Manifest
from t2t.data.examples import read_examples
from t2t.data.host_tensorflow import tf
from t2t.data.mapped_store import MappedStore
from t2t.data.shards import Shard
from t2t.data.store import TokenStore
from t2t.data.text_files import Skipped
from t2t.data.token_blocks import BlockReader, BlockWriter, blocks, token_bytes
from t2t.data.token_work import Work
from t2t.errors import UsageError

logger = logging.getLogger(__name__)

SHARD_SIZE = 2**25
"""Characters of text that a shard holds, or bytes of tokens where they are not made from text."""

TOKENS = "tokens"
"""Folder of the tokens that a task goes on with, until it is done."""

Job = tuple[str, Any]
"""A group of a source: its name, and what its reader takes."""

Runner = Callable[[BlockReader, BlockWriter, list[Job]], Iterator[Shard]]
"""Makes the shards of groups, and yields what it knows of each when it is done."""

OnShard = Callable[[Shard], None]
"""Called whenever a shard is done."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a cache is made; nothing of it changes an example."""

    workers: int = 1
    """Processes that tokenise here."""
    shard_size: int = SHARD_SIZE
    """Of a new cache; one that was begun keeps its own."""
    runner: Runner | None = None
    """Who makes the shards instead, where the source can be read there too."""
    on_shard: OnShard = lambda shard: None

    def __post_init__(self) -> None:
        if self.workers < 1 or self.shard_size < 1:
            raise ValueError(f"workers={self.workers} and shard_size={self.shard_size} must be positive.")


@dataclass(frozen=True, kw_only=True)
class Made:
    """A complete cache."""

    directory: pathlib.Path
    manifest: Manifest
    kept: int
    """Shards that were there before."""


def make(
    task: seqio.Task, split: str, *, lengths: Mapping[str, int], directory: pathlib.Path, settings: Settings
) -> Made:
    """Makes the cache of a split, or what is missing of it.

    Args:
        task: with its vocabulary bound and without its corruption (`t2t.data.examples.fit`).
        split: one of its splits.
        lengths: tokens per row of each feature.
        directory: of all caches; `load_examples(cache_dir=directory)` finds this one.
        settings: how it is made.

    Raises:
        UsageError: there are no examples, or the runner cannot read the source.
        CorpusError: the source cannot be read.
        BusyError: another process is making the same cache.
        WorkerDiedError: a worker ended; what others have finished is kept.
    """
    facts = cache.cache_facts(task, split, lengths)
    path = cache.directory_of(directory, task.name, split, facts)
    with cache_directory.locked(path):
        plan = {"task": task.name, "split": split, "shard_size": settings.shard_size, "facts": facts}
        size = cache_directory.begin(path, plan)["shard_size"]
        settings = dataclasses.replace(settings, shard_size=size)
        found = cache_directory.find_finished(path, threads=settings.workers)
        for problem in found.damaged:
            logger.warning("%s and is made anew", problem)
        manifest = cache_directory.read_manifest(path)
        if manifest is None or found.damaged:
            try:
                manifest = _make(task, split, lengths, path, found, settings)
            except BaseException:
                cache_directory.remove_if_empty(path)
                raise
            manifest.skipped.log(f"'{task.name}'")
        shutil.rmtree(path / TOKENS, ignore_errors=True)
        if not manifest.examples:
            shutil.rmtree(path)
            raise UsageError(
                f"Task '{task.name}' has no examples in split '{split}': the source is empty, or all are dropped."
            )
    return Made(directory=path, manifest=manifest, kept=len(found.shards))


def _make(
    task: seqio.Task, split: str, lengths: Mapping[str, int], path: pathlib.Path, found: Finished, settings: Settings
) -> Manifest:
    work = token_work.divide(task, split, lengths, size=settings.shard_size)
    if settings.runner is not None and (work is None or not work.can_be_shared):
        raise UsageError(
            f"Other machines cannot read the source of task '{task.name}': they need files (--data.files). Leave "
            "--runner out to make the cache here, in several processes."
        )
    if work is None:
        logger.info("'%s' is made in one process: it cannot be cut at t2t.data.preprocessors.tokenize", task.name)
        return _write(path, read_examples(task, split, lengths), found, settings)
    if not work.rest:
        return _tokenize(path, work, found, settings)
    tokens = path / TOKENS
    with cache_directory.locked(tokens):
        cache_directory.begin(tokens, {"facts": "tokens of the directory above", "shard_size": settings.shard_size})
        found_tokens = cache_directory.find_finished(tokens, threads=settings.workers)
        skipped = _tokenize(tokens, work, found_tokens, settings).skipped
    store = cache_directory.open_store(tokens)
    examples: Iterable[Mapping[str, Any]] = ()
    if len(store):
        rest = task.replace(source=_TokenSource(split, store, work), preprocessors=list(work.rest))
        examples = read_examples(rest, split, lengths)
    return _write(path, examples, found, settings, skipped=skipped)


def _tokenize(path: pathlib.Path, work: Work, found: Finished, settings: Settings) -> Manifest:
    """The shards of all groups, made by workers."""
    kept = dict(found.shards)
    reader = BlockReader(directory=path, rows=work.rows, size=settings.shard_size, kept=frozenset(kept))
    writer = BlockWriter(directory=path, tokenizer=work.tokenizer)
    jobs = [job for job in work.groups if not found.has_all_of(job[0])]
    run = settings.runner or _run_here(settings.workers)
    for shard in run(reader, writer, jobs):
        kept[shard.name] = shard
        settings.on_shard(shard)
    ended = cache_directory.read_groups(path)
    names = [name for name, _ in work.groups]
    missing = [name for name in names if not Finished(shards=kept, groups=ended).has_all_of(name)]
    if missing:
        raise ValueError(
            f"{path} lacks shards of {len(missing)} of {len(names)} groups ({missing[0]}, ...): all who make them must "
            "write to the directory that is read here. The same command goes on with what there is."
        )
    return cache_directory.complete(path, groups=[ended[name] for name in names], kept=kept, pieces=work.pieces)


def _run_here(number: int) -> Runner:
    def run(reader: BlockReader, writer: BlockWriter, jobs: list[Job]) -> Iterator[Shard]:
        return workers.run(writer, (block for job in jobs for block in reader(job)), workers=number)

    return run


def _write(
    path: pathlib.Path,
    examples: Iterable[Mapping[str, Any]],
    found: Finished,
    settings: Settings,
    *,
    skipped: Skipped | None = None,
) -> Manifest:
    """The shards of examples as they come; of those that are there already nothing is written."""
    kept = dict(found.shards)
    group, number = cache_directory.group_name(0), 0
    for block in blocks(examples, settings.shard_size, token_bytes):
        name = cache_directory.shard_name(group, number)
        number += 1
        if name not in kept:
            kept[name] = cache_directory.keep(path, name, TokenStore.collect(block))
            settings.on_shard(kept[name])
    ended = Group(name=group, shards=number, skipped=skipped or Skipped())
    return cache_directory.complete(path, groups=[ended], kept=kept, pieces=None)


class _TokenSource(seqio.DataSource):
    """The tokens that workers have made, for what is left to do with them."""

    supports_arbitrary_sharding = False

    def __init__(self, split: str, store: MappedStore, work: Work) -> None:
        super().__init__(splits=(split,))
        self._store = store
        self._work = work

    def list_shards(self, split: str) -> list[str]:
        """One."""
        return [split]

    def num_input_examples(self, split: str) -> int:
        """Number of documents."""
        del split
        return len(self._store)

    def get_dataset(
        self,
        split: str = "train",
        shuffle: bool = False,
        seed: int | None = None,
        shard_info: seqio.ShardInfo | None = None,
        **_: Any,
    ) -> tf.data.Dataset:
        """The documents in order."""
        del split, shuffle, seed, shard_info
        dtypes = {name: self._work.dtypes.get(name, tf.int32) for name in self._store.columns}
        first = self._store[0]
        signature = {name: tf.TensorSpec([None] * first[name].ndim, dtype) for name, dtype in dtypes.items()}

        def rows() -> Iterator[dict[str, Any]]:
            for index in range(len(self._store)):
                yield {name: value.astype(dtypes[name].as_numpy_dtype) for name, value in self._store[index].items()}

        return tf.data.Dataset.from_generator(rows, output_signature=signature)
