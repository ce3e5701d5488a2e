"""Examples of tasks that can be read without TensorFlow: those that seqio gives, without the second it takes to begin.

They are the tasks of t2t on texts in memory, on files or on rows of benchmarks: named by `seqio.preprocessors.rekey`,
or a prefix put before them; tokenised by `preprocessors.tokenize` with vocabularies of ours; then cut by
`preprocessors.Chunk`, ended by EOS as seqio does it, or left as they are.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from t2t.data.host_tensorflow import tf  # isort: skip - TensorFlow's settings come before seqio
import seqio

from t2t.data import corpora, token_blocks, token_work
from t2t.data.file_source import FileSource
from t2t.data.one_shard import reads_as
from t2t.data.registry import TextSource
from t2t.data.supervised import SupervisedSource
from t2t.data.token_blocks import Cut, Row
from t2t.data.vocabularies import SeqioVocabulary

Examples = Iterator[dict[str, Any]]

JOINED = 2**16
"""Tokens of documents that are joined at a time."""


def read(task: seqio.Task, split: str, lengths: Mapping[str, int]) -> Examples | None:
    """The examples of a task without its corruption, in order and not trimmed; None if TensorFlow must read them."""
    steps, source = list(task.preprocessors), task.source
    place = next((i for i, step in enumerate(steps) if token_work.is_tokenize(step)), None)
    if place is None:
        return None
    before = [token_work.without_tensorflow(step) for step in steps[:place]]
    after = _after(steps[place + 1 :], task, lengths)
    if None in before or after is None:
        return None
    rows, first = _rows(source, split)
    if rows is None or not (isinstance(source, SupervisedSource) or all(isinstance(v, str) for v in first.values())):
        return None
    try:
        named = functools.reduce(lambda row, step: step(row), before, first)
    except KeyError:  # which seqio tells in its own words
        return None
    features = {name: feature for name, feature in task.output_features.items() if name in named}
    missing = [name for name, feature in task.output_features.items() if feature.required and name not in named]
    if missing or not all(_is_plain(feature) for feature in features.values()):
        return None
    copies = not isinstance(steps[place], functools.partial) or steps[place].keywords.get("copy_pretokenized", True)
    names = tuple(first)
    return after(_tokenized(({name: row[name] for name in names} for row in rows), before, features, copies=copies))


def _rows(source: seqio.DataSource, split: str) -> tuple[Iterable[Row] | None, Row]:
    """The rows of a split, and one of them or its like."""
    if reads_as(source, FileSource):
        names = source.reader.fields or (source.reader.key,)
        return corpora.read_rows(source.files[split], source.reader), dict.fromkeys(names, "")
    if reads_as(source, SupervisedSource) and split in source.splits:
        return source.examples(split), dict.fromkeys(source.kinds, "")
    if reads_as(source, TextSource) and (rows := source.rows(split)):
        return rows, rows[0]
    return None, {}


def _is_plain(feature: seqio.Feature) -> bool:
    return isinstance(feature.vocabulary, SeqioVocabulary) and feature.dtype == tf.int32 and feature.rank == 1


def _tokenized(
    rows: Iterable[Row],
    before: Sequence[Callable[[Row], Row]],
    features: Mapping[str, seqio.Feature],
    *,
    copies: bool,
) -> Examples:
    for batch in token_blocks.batches(rows, token_blocks.TOGETHER):
        for step in before:
            batch = [step(row) for row in batch]
        encoded = {
            name: feature.vocabulary.vocabulary.encode_batch([row[name] for row in batch])
            for name, feature in features.items()
        }
        for place, row in enumerate(batch):
            texts = {f"{name}_pretokenized": row[name] for name in features} if copies else {}
            tokens = {name: np.array(ids[place], np.int32) for name, ids in encoded.items()}
            yield {**row, **texts, **tokens}


def _after(
    steps: Sequence[Callable], task: seqio.Task, lengths: Mapping[str, int]
) -> Callable[[Examples], Examples] | None:
    """What happens to tokens; None if it is not known here."""
    if not steps:
        return lambda rows: rows
    if len(steps) > 1:
        return None
    if token_work.is_chunk(steps[0]):
        return functools.partial(_cut, cut=token_work.cut_of(steps[0], task, lengths))
    ends = {name: feature.vocabulary.eos_id for name, feature in task.output_features.items() if feature.add_eos}
    if steps[0] not in token_work.ENDINGS or None in ends.values():
        return None
    limits = lengths if steps[0] is seqio.preprocessors.append_eos_after_trim else {}
    return functools.partial(_end, ends=ends, limits=limits)


def _end(rows: Examples, *, ends: Mapping[str, int], limits: Mapping[str, int]) -> Examples:
    for row in rows:
        ended = {name: (row[name], eos, limits.get(name)) for name, eos in ends.items() if name in row}
        yield row | {
            name: np.append(tokens if limit is None else tokens[: limit - 1], np.int32(eos))
            for name, (tokens, eos, limit) in ended.items()
        }


def _cut(rows: Examples, *, cut: Cut) -> Examples:
    pieces = (dict(piece) for row in rows for piece in cut(row))
    if cut.length is None or not cut.across_documents:
        return pieces
    return _joined((piece[cut.feature] for piece in pieces), cut.feature, cut.length)


def _joined(documents: Iterable[np.ndarray], feature: str, length: int) -> Examples:
    """The pieces of the text of all documents; only the last may be shorter."""
    waiting: list[np.ndarray] = []
    size = 0
    for document in documents:
        waiting.append(document)
        size += len(document)
        if size >= JOINED:
            text = np.concatenate(waiting)
            ready = len(text) - len(text) % length
            yield from ({feature: piece} for piece in text[:ready].reshape(-1, length))
            waiting, size = [text[ready:]], len(text) - ready
    text = np.concatenate(waiting) if waiting else np.zeros(0, np.int32)
    yield from ({feature: text[start : start + length]} for start in range(0, len(text), length))
