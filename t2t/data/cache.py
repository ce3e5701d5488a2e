"""The name under which the examples of a task are cached on disk: it changes with everything that decides them."""

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
import seqio

from t2t.data import vocabularies

FORMAT = 1
"""Raised when the files of the cache change their layout."""


def cache_name(task: seqio.Task, split: str, lengths: Mapping[str, int]) -> str:
    """File name for the examples of a task with its vocabulary bound, such as `pydocs_topic-train-0b1c....npz`.

    It covers the source (files by path, size and time of change, or the function that yields examples and the text of
    its module, but not what that function reads), the preprocessors with their settings and the text of their modules,
    vocabularies, lengths and Python's version.
    """
    facts = {
        "format": FORMAT,
        "python": sys.version,
        "split": split,
        "lengths": sorted(lengths.items()),
        "source": _describe_source(task.source, split),
        "preprocessors": [describe(preprocessor) for preprocessor in task.preprocessors],
        "features": {name: _describe_feature(feature) for name, feature in task.output_features.items()},
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    readable = re.sub(r"[^\w.-]", "_", task.name)
    return f"{readable}-{split}-{digest[:20]}.npz"


def describe(thing: Any) -> Any:
    """What a function, a preprocessor or one of its settings is, as JSON that is the same in every process."""
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
    return text if type(thing).__module__ == "builtins" else [text, _module_hash(type(thing))]


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


def _describe_source(source: seqio.DataSource, split: str) -> Any:
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
