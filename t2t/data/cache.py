"""The name under which the examples of a task are cached on disk: it changes with everything that decides them.

`load_examples` keeps small corpora in a file of that name; `t2t cache` makes a directory of it, which `find` opens.
"""

import functools
import hashlib
import inspect
import json
import pathlib
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from t2t.data import host_tensorflow  # noqa: F401 # isort: skip - its settings come before seqio
import seqio

from t2t.data import cache_directory, vocabularies
from t2t.data.mapped_store import MappedStore
from t2t.errors import UsageError

FORMAT = 1
"""Raised when the files of the cache change their layout."""

DIGITS = 20
"""Of the hash in a name."""


def cache_name(task: seqio.Task, split: str, lengths: Mapping[str, int]) -> str:
    """File name for the examples of a task with its vocabulary bound, such as `pydocs_topic-train-0b1c....npz`.

    It covers the source (files by path, size and time of change, or the function that yields examples and the text of
    its module, but not what that function reads), the preprocessors with their settings and the text of their modules,
    vocabularies, lengths and Python's version.
    """
    return f"{_name_of(task.name, split, cache_facts(task, split, lengths))}.npz"


def cache_facts(task: seqio.Task, split: str, lengths: Mapping[str, int]) -> dict[str, Any]:
    """What the name of a cache covers, as JSON."""
    facts = {
        "format": FORMAT,
        "python": sys.version,
        "split": split,
        "lengths": sorted(lengths.items()),
        "source": describe_source(task.source, split),
        "preprocessors": [describe(preprocessor) for preprocessor in task.preprocessors],
        "features": {name: _describe_feature(feature) for name, feature in task.output_features.items()},
    }
    return json.loads(json.dumps(facts, sort_keys=True))


def directory_of(directory: pathlib.Path, task: str, split: str, facts: Mapping[str, Any]) -> pathlib.Path:
    """Where `t2t cache` puts the shards of a task below the directory of all caches."""
    return directory / _name_of(task, split, facts)


def find(directory: pathlib.Path, task: seqio.Task, split: str, lengths: Mapping[str, int]) -> MappedStore | None:
    """The examples that `t2t cache` has made of a task; None where it has made nothing of it.

    Raises:
        UsageError: what it made does not fit: it is not complete or damaged, or all of it has another vocabulary, other
            lengths or another text.
    """
    facts = cache_facts(task, split, lengths)
    path = directory_of(directory, task.name, split, facts)
    if (path / cache_directory.PLAN).is_file():
        return cache_directory.open_store(path)
    others = [other for other in sorted(directory.glob(_name_of(task.name, split, None))) if other.is_dir()]
    plans = {other: cache_directory.read_plan(other) for other in others}
    differences = [f"{other} {_difference(plan['facts'], facts)}" for other, plan in plans.items() if plan]
    if differences:
        raise UsageError(
            f"No token cache fits task '{task.name}': {'; '.join(differences)}. Make one for this config with "
            f"t2t cache --output {directory}, or unset T2T_CACHE to read the text into memory."
        )
    return None


def _difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What a cache was made of, in words, as far as it is not what is wanted now."""
    words = {
        "features": "another vocabulary",
        "lengths": f"other lengths ({dict(then.get('lengths', ()))})",
        "source": "another text, or files that have changed since",
        "preprocessors": "other preprocessors, or another version of them",
        "python": "another version of Python",
        "format": "another version of t2t",
    }
    return f"was made with {' and '.join(text for name, text in words.items() if then.get(name) != now[name])}"


def _name_of(task: str, split: str, facts: Mapping[str, Any] | None) -> str:
    """The name of a cache; without facts, a pattern of all caches of a task and split."""
    digest = "?" * DIGITS
    if facts is not None:
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:DIGITS]
    readable = re.sub(r"[^\w.-]", "_", task)
    return f"{readable}-{split}-{digest}"


def describe(thing: Any) -> Any:
    """What a function, a preprocessor or one of its settings is, as JSON that is the same in every process.

    What a thing's text does not tell (files that it reads) it says by a method `cache_facts`.
    """
    if isinstance(thing, functools.partial) or inspect.isroutine(thing) or inspect.isclass(thing):
        return _describe_callable(thing)
    if inspect.ismodule(thing):
        return [thing.__name__, _module_hash(thing)]
    if isinstance(thing, np.ndarray):
        return [str(thing.dtype), thing.shape, hashlib.sha256(thing.tobytes()).hexdigest()]
    if isinstance(thing, seqio.Vocabulary):
        return _describe_vocabulary(thing)
    if isinstance(thing, set | frozenset):
        return sorted(map(repr, thing))  # their own order differs from process to process
    state = getattr(thing, "__dict__", "") if type(thing).__repr__ is object.__repr__ else ""
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", f"{thing!r}{state}")
    used = map(describe, getattr(type(thing), "uses", ()))
    facts = thing.cache_facts() if hasattr(thing, "cache_facts") else ()
    return text if type(thing).__module__ == "builtins" else [text, _module_hash(type(thing)), *facts, *used]


def _describe_callable(thing: Any) -> list[Any]:
    if isinstance(thing, functools.partial):
        keywords = {name: describe(value) for name, value in thing.keywords.items()}
        return [describe(thing.func), [describe(argument) for argument in thing.args], keywords]
    if inspect.ismethod(thing):
        return [describe(thing.__func__), describe(thing.__self__)]
    function = inspect.unwrap(thing)
    held: list[Any] = []
    if inspect.isfunction(function):
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        held = [*inspect.getclosurevars(function).nonlocals.values(), *defaults]
    return [getattr(function, "__module__", None), function.__qualname__, _module_hash(function), *map(describe, held)]


def describe_source(source: seqio.DataSource, split: str) -> Any:
    """What decides the examples of a split of a source, as JSON: what it says of itself, else its files."""
    fingerprint = getattr(source, "fingerprint", None)
    if fingerprint is not None:
        return fingerprint(split)
    shards = []
    for shard in source.list_shards(split):
        path = pathlib.Path(str(shard))
        stat = path.stat() if path.exists() else None
        shards.append([str(shard), stat and stat.st_size, stat and stat.st_mtime_ns])
    function = getattr(source, "_dataset_fn", None)
    return [type(source).__qualname__, shards, source.num_input_examples(split), function and describe(function)]


def _describe_feature(feature: seqio.Feature) -> list[Any]:
    return [_describe_vocabulary(feature.vocabulary), feature.add_eos, str(feature.dtype), feature.rank]


def _describe_vocabulary(vocabulary: seqio.Vocabulary) -> list[Any]:
    if isinstance(vocabulary, vocabularies.SeqioVocabulary):
        return [vocabulary.vocabulary.fingerprint]
    return [type(vocabulary).__qualname__, re.sub(r" at 0x[0-9a-fA-F]+", "", str(vocabulary)), vocabulary.vocab_size]


@functools.cache
def _file_hash(path: str, changed: int) -> str:
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def _module_hash(thing: Any) -> str | None:
    """Of the file of a module, or of the module that defines a function or class."""
    module = thing if inspect.ismodule(thing) else sys.modules.get(getattr(thing, "__module__", None) or "")
    path = getattr(module, "__file__", None)
    return _file_hash(path, pathlib.Path(path).stat().st_mtime_ns) if path and pathlib.Path(path).exists() else None
