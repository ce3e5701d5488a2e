"""Examples of seqio tasks with random access: the deterministic part read once, the corruption applied on reading."""

import difflib
import logging
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t2t.data import preprocessors, vocabularies  # isort: skip - TensorFlow's settings come first
import numpy as np
import seqio

from t2t.data import cache, corruption
from t2t.data.features import Example
from t2t.data.mapped_store import MappedStore
from t2t.data.reading import reading
from t2t.data.store import Progress, TokenStore
from t2t.errors import UsageError
from t2t.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

SHOWN_NAMES = 20
"""Names that an error lists; of more it says the number."""

Task = seqio.Task
"""seqio's task, for annotations in code that does not import seqio."""


@dataclass(frozen=True, kw_only=True)
class TaskExamples:
    """The examples of one task and split. `example(i, epoch=e)` is a pure function of (seed, e, i)."""

    name: str
    split: str
    store: TokenStore | MappedStore
    corruption: preprocessors.BoundCorruption | None
    seed: int

    def __len__(self) -> int:
        return len(self.store)

    @property
    def features(self) -> frozenset[str]:
        """Names of the features of an example."""
        made = () if self.corruption is None else self.corruption.names
        return frozenset([*self.store.columns, *made])

    def example(self, index: int, *, epoch: int) -> Example:
        """Example `index` as it is corrupted in an epoch; one without corruption is the same in all."""
        features = self.store[index]
        if self.corruption is None:
            return features
        draw = self.corruption.corruption.draw(epoch)
        return self.corruption.example(features, corruption.example_rng(self.seed, draw, index))

    def examples(self, indices: Sequence[int], *, epoch: int) -> list[Example]:
        """`[example(i, epoch=epoch) for i in indices]`, examples of the same raw length corrupted together: faster."""
        if self.corruption is None or not self.corruption.corruption.works_on_batches:
            return [self.example(index, epoch=epoch) for index in indices]
        name, draw = self.corruption.corruption.feature, self.corruption.corruption.draw(epoch)
        groups: dict[int, list[int]] = {}
        for place, index in enumerate(indices):
            groups.setdefault(len(self.store[index][name]), []).append(place)
        made: list[Example] = [{}] * len(indices)
        for places in groups.values():
            chosen = [indices[place] for place in places]
            raw = [self.store[index] for index in chosen]
            tokens = np.stack([features[name] for features in raw])
            batch = self.corruption.batch(tokens, seed=self.seed, epoch=draw, indices=np.array(chosen))
            for row, place in enumerate(places):
                made[place] = {**raw[row], **{feature: values[row] for feature, values in batch.items()}}
        return made


def load_examples(
    task: str | seqio.Task,
    split: str,
    *,
    vocabulary: Vocabulary | None,
    lengths: Mapping[str, int],
    seed: int,
    texts: bool = False,
    cache_dir: str | pathlib.Path | None = None,
    progress: Progress | None = None,
) -> TaskExamples:
    """Read one split of a task into memory.

    Args:
        task: the task or its registered name.
        split: one of the task's splits.
        vocabulary: takes the place of the task's placeholder; None if the task has its own.
        lengths: tokens per row of each feature, for the preprocessors that cut documents to fit.
        seed: of the corruption.
        texts: whether to keep the task's texts too (`inputs_pretokenized`, ...), for evaluation by generation.
        cache_dir: folder where tokenised examples are kept for the next run, and where those that `t2t cache` made are
            looked for; not used with `texts`.
        progress: called now and then with the task's name and the number of examples read.

    Raises:
        UsageError: no such split, lengths that the corruption cannot fill, no examples, or a cache that does not fit.
        ValueError: no such task, a task whose corruption is not its last preprocessor, or a source that cannot be read.
    """
    task = get_task(task)
    deterministic, fitted = fit(task, split, vocabulary=vocabulary, lengths=lengths)
    store = _cached_store(deterministic, split, lengths, texts, cache_dir, progress)
    if not len(store):
        raise UsageError(
            f"Task '{task.name}' has no examples in split '{split}': the source is empty, or all are dropped."
        )
    if fitted is not None and fitted.corruption.learns:
        fitted = fitted.learn(store.values(fitted.corruption.feature))
    return TaskExamples(name=task.name, split=split, store=store, corruption=fitted, seed=seed)


def fit(
    task: seqio.Task, split: str, *, vocabulary: Vocabulary | None, lengths: Mapping[str, int]
) -> tuple[seqio.Task, preprocessors.BoundCorruption | None]:
    """The part of a task that runs once, its vocabulary bound, and the corruption that follows, for these lengths.

    Raises:
        UsageError: no such split, or lengths or a vocabulary that the corruption cannot work with.
        ValueError: its corruption is not its last preprocessor.
    """
    if split not in task.splits:
        raise UsageError(f"Task '{task.name}' has no split '{split}'; it has {', '.join(map(repr, task.splits))}.")
    bound = task if vocabulary is None else vocabularies.bind_vocabulary(task, vocabulary)
    deterministic, objective = split_corruption(bound.replace(name=task.name))
    try:
        fitted = None if objective is None else objective.bind(lengths, bound.output_features)
    except ValueError as error:
        raise UsageError(f"Task '{task.name}': {error}") from error
    return deterministic, fitted


def get_task(task: str | seqio.Task | seqio.Mixture) -> seqio.Task:
    """The task itself, or the one registered under a name.

    Raises:
        ValueError: no such task, or a mixture.
    """
    provider = get_provider(task)
    if isinstance(provider, seqio.Mixture):
        raise ValueError(f"'{provider.name}' is a mixture; name one of its tasks: {[t.name for t in provider.tasks]}.")
    return provider


def get_provider(name: str | seqio.Task | seqio.Mixture) -> seqio.Task | seqio.Mixture:
    """The task or mixture registered under a name.

    Raises:
        ValueError: no such name; the message proposes similar ones.
    """
    if not isinstance(name, str):
        return name
    known = sorted({*seqio.TaskRegistry.names(), *seqio.MixtureRegistry.names()})
    if name not in known:
        similar = difflib.get_close_matches(name, known, n=3)
        if similar:
            hint = f"Did you mean {' or '.join(map(repr, similar))}?"
        elif len(known) <= SHOWN_NAMES:
            hint = f"Registered: {', '.join(known)}."
        else:
            hint = f"t2t tasks lists the {len(known)} that are registered."
        raise ValueError(
            f"No task or mixture is called '{name}'. {hint} Tasks register when data.modules are imported."
        )
    return seqio.get_mixture_or_task(name)


def registered() -> list[seqio.Task | seqio.Mixture]:
    """Every task, then every mixture, each by name."""
    tasks = [seqio.TaskRegistry.get(name) for name in sorted(seqio.TaskRegistry.names())]
    return [*tasks, *(seqio.MixtureRegistry.get(name) for name in sorted(seqio.MixtureRegistry.names()))]


def split_corruption(task: seqio.Task) -> tuple[seqio.Task, preprocessors.Corruption | None]:
    """The task without its corruption, and the corruption.

    Raises:
        ValueError: there are several corruptions, or something comes after it.
    """
    places = [i for i, step in enumerate(task.preprocessors) if isinstance(step, preprocessors.Corruption)]
    if not places:
        return task, None
    if places != [len(task.preprocessors) - 1]:
        raise ValueError(
            f"The corruption of task '{task.name}' must be its last preprocessor, and the only corruption."
        )
    # What the corruption makes is not there yet when the deterministic part is done.
    features = {name: replace(feature, required=False) for name, feature in task.output_features.items()}
    rest = task.replace(preprocessors=list(task.preprocessors[:-1]), output_features=features)
    return rest, task.preprocessors[-1]


def _cached_store(
    task: seqio.Task,
    split: str,
    lengths: Mapping[str, int],
    texts: bool,
    cache_dir: str | pathlib.Path | None,
    progress: Progress | None,
) -> TokenStore | MappedStore:
    def read() -> TokenStore:
        return TokenStore.collect(read_examples(task, split, lengths), name=task.name, texts=texts, progress=progress)

    if cache_dir is None or texts:
        return read()
    found = cache.find(pathlib.Path(cache_dir), task, split, lengths)
    if found is not None:
        logger.info("The examples of '%s' are read from %s", task.name, found.directory)
        return found
    path = pathlib.Path(cache_dir) / cache.cache_name(task, split, lengths)
    if path.exists():
        try:
            return TokenStore.load(path)
        except ValueError as error:
            logger.warning("%s", error)
    store = read()
    if len(store):
        try:
            store.save(path)
        except OSError as error:  # a full disk: the run has its examples
            logger.warning("The examples of '%s' are not kept for other runs: %s", task.name, error)
    return store


def read_examples(task: seqio.Task, split: str, lengths: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """The examples of a task in the order of its source, as NumPy, not trimmed.

    Raises:
        ValueError: the source cannot be read; says which task and what TensorFlow or the source said.
    """
    from t2t.data import direct  # which needs sources of files, and they need this module

    with reading(task, split):
        examples = direct.read(task, split, lengths)
        if examples is None:
            dataset = task.get_dataset(
                sequence_length=lengths,
                split=split,
                shuffle=False,
                seed=0,  # the deterministic part has nothing to draw
                trim_output_features=False,
                try_in_mem_cache=False,
            )
            examples = dataset.as_numpy_iterator()
        yield from examples
