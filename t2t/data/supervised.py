r"""Supervised tasks from the rows of benchmarks: rows of TFDS and of official files give the same examples.

    Format(examples=LabelledTexts(name="rte", fields=("sentence1", "sentence2"), labels=("entailment", ...)))

A format is pure Python: the function of a row, as TFDS has it, to its examples, and the function of an official file to
such rows. `SupervisedSource` applies it to a source of rows; `on_files` gives the same task a user's own files
(`--data.files`). The functions know the row's fields and labels too, for tasks that are no text-to-text.
"""

import dataclasses
import itertools
import logging
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from t2t.data import preprocessors, registry  # isort: skip - sets up TensorFlow
import seqio

from t2t.data import cache, corpora, official_files
from t2t.data.host_tensorflow import tf
from t2t.data.official_files import Example, Row
from t2t.data.one_shard import OneShardSource
from t2t.errors import UsageError

logger = logging.getLogger(__name__)

Kind = Literal["number", "text", "texts"]
"""What an example holds besides inputs and targets: a whole number, a text, or several texts."""

_SPECS = {
    "number": tf.TensorSpec([], tf.int64),
    "text": tf.TensorSpec([], tf.string),
    "texts": tf.TensorSpec([None], tf.string),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Format:
    """How the rows of a benchmark become examples.

    Args:
        examples: the examples of a row, given the row and its split; a row may have none or several.
        extras: what an example holds besides inputs and targets.
        rows: the rows of an official file.
    """

    examples: Callable[[Row, str], Iterable[Example]]
    extras: Mapping[str, Kind] = dataclasses.field(default_factory=dict)
    rows: Callable[[pathlib.Path, corpora.OnError], Iterator[Row]] = official_files.records

    def apply(self, rows: Iterable[Row], split: str) -> Iterator[Example]:
        """The examples of all rows of a split.

        Raises:
            UsageError: a row lacks a field or has a label that does not exist; says which row.
        """
        for number, row in enumerate(rows):
            try:
                made = list(self.examples(row, split))
            except KeyError as error:
                there = ", ".join(map(str, row)) or "nothing"
                raise UsageError(f"row {number} of {split} has no field {error}; there is {there}") from error
            except UsageError as error:
                raise UsageError(f"row {number} of {split}: {error}") from error
            for example in made:
                yield {
                    "inputs": example["inputs"],
                    "targets": example["targets"],
                    **{name: _value(example[name], kind) for name, kind in self.extras.items()},
                }


def _value(value: Any, kind: Kind) -> Any:
    return np.array(value, object) if kind == "texts" else value


class FileRows(OneShardSource):
    """The rows of a user's files; `rows(split)` reads them."""

    def __init__(self, files: Mapping[str, Sequence[str]], form: Format, *, on_error: corpora.OnError = "stop"):
        super().__init__(splits=tuple(files))
        self.files = {split: official_files.find(patterns) for split, patterns in files.items()}
        self._form, self._on_error = form, on_error

    def num_input_examples(self, split: str) -> None:
        """Unknown before reading."""

    def fingerprint(self, split: str) -> list[Any]:
        """The files with size and time of change, and what reads them."""
        stats = [(str(path), path.stat()) for path in self.files[split]]
        how = [cache.describe(self._form.rows), self._on_error]
        return [[path, s.st_size, s.st_mtime_ns] for path, s in stats] + how

    def rows(self, split: str) -> Iterator[Row]:
        """The rows of all files of a split, in order.

        Raises:
            CorpusError: a file that is not what it should be, or no row at all.
        """
        chained = itertools.chain.from_iterable(self._form.rows(path, self._on_error) for path in self.files[split])
        row = None
        for row in chained:
            yield row
        if row is None:
            raise corpora.CorpusError(f"{', '.join(map(str, self.files[split][:3]))} hold no row.")

    def dataset(self, split: str) -> tf.data.Dataset:
        """Rows differ in shape from file to file; `SupervisedSource` makes data sets of their examples."""
        raise NotImplementedError


class SupervisedSource(OneShardSource):
    """The examples of a benchmark as {"inputs": text, "targets": text, ...}.

    Args:
        source: of the rows: TFDS's, or any with a method `rows(split)`.
        form: what makes examples of them.
        num_examples: of each split, as published, so that rates of a mixture need no download; after preprocessing,
            which may leave rows out or make several examples of one.
        local: the official files of each split, globs below the directory of all corpora (`T2T_CORPORA`); where they
            are there, they are read in place of the source.
    """

    def __init__(
        self,
        source: seqio.DataSource,
        form: Format,
        *,
        num_examples: Mapping[str, int] | None = None,
        local: Mapping[str, str] | None = None,
    ):
        super().__init__(splits=())
        self.source, self.form = source, form
        self.num_examples, self.local = dict(num_examples or {}), dict(local or {})

    @property
    def splits(self) -> Sequence[str]:
        """Those of the rows."""
        return self.source.splits

    def num_input_examples(self, split: str) -> int | None:
        """As published; None where nobody said."""
        return self.num_examples.get(split)

    def fingerprint(self, split: str) -> list[Any]:
        """What decides the examples of a split."""
        extras = [f"{name}: {kind}" for name, kind in self.form.extras.items()]
        return [cache.describe_source(self._source_of(split), split), cache.describe(self.form.examples), extras]

    def on(self, source: seqio.DataSource) -> "SupervisedSource":
        """The same of other rows, whose number is not known."""
        return SupervisedSource(source, self.form)

    def on_files(self, files: Mapping[str, Sequence[str]], *, on_error: corpora.OnError = "stop") -> "SupervisedSource":
        """The same of a user's files in the official format.

        Raises:
            CorpusError: there is no such file.
        """
        return self.on(FileRows(files, self.form, on_error=on_error))

    def examples(self, split: str) -> Iterator[Example]:
        """The examples of a split, in order."""
        return self.form.apply(self._rows(split), split)

    def _rows(self, split: str) -> Iterator[Row]:
        source = self._source_of(split)
        if hasattr(source, "rows"):
            return iter(source.rows(split))
        return map(plain, source.get_dataset(split=split, shuffle=False).as_numpy_iterator())

    def _source_of(self, split: str) -> seqio.DataSource:
        """Official files where they are, else the source."""
        pattern = self.local.get(split)
        root = official_files.corpora_directory()
        if pattern is None or not any(root.glob(pattern)):
            return self.source
        logger.info("%s of a benchmark is read from %s", split, root / pattern)
        return FileRows({split: [str(root / pattern)]}, self.form)

    def dataset(self, split: str) -> tf.data.Dataset:
        """The examples of a split, in order."""
        signature = {name: _SPECS[kind] for name, kind in self.kinds.items()}
        return tf.data.Dataset.from_generator(lambda: self.examples(split), output_signature=signature)

    @property
    def kinds(self) -> dict[str, Kind]:
        """What an example holds."""
        return {"inputs": "text", "targets": "text", **self.form.extras}


def plain(value: Any) -> Any:
    """A row of TFDS with Python's own values: texts for bytes, lists for arrays.

    Example:
        >>> plain({"answers": {"text": np.array([b"a"], object)}, "label": np.int64(1)})
        {'answers': {'text': ['a']}, 'label': 1}
    """
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if hasattr(value, "to_list"):  # ragged tensors
        value = value.to_list()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value


def tfds(name: str, splits: Mapping[str, str] | Sequence[str] = ("train", "validation", "test")) -> seqio.DataSource:
    """Rows of a data set of TFDS; making it needs no network.

    Args:
        name: with its version, such as "glue/rte:2.0.0".
        splits: names that tasks use, or what each is called by TFDS.
    """
    return seqio.TfdsDataSource(name, splits=dict(splits) if isinstance(splits, Mapping) else tuple(splits))


def add(
    name: str,
    source: seqio.DataSource,
    form: Format,
    *,
    metric_fns: Sequence[Callable[..., Any]],
    postprocess_fn: Callable[..., Any] | None = None,
    num_examples: Mapping[str, int] | None = None,
    local: Mapping[str, str] | None = None,
) -> seqio.Task:
    """Register a supervised task.

    Args:
        name: of the task.
        source: of its rows.
        form: what makes examples of them.
        metric_fns: functions (targets, predictions) -> {name: value} of what `postprocess_fn` makes.
        postprocess_fn: of a text, given `example` and `is_target`; None leaves texts as they are.
        num_examples: of each split, as published.
        local: the official files of each split below the directory of all corpora.
    """
    return registry.add_task(
        name,
        SupervisedSource(source, form, num_examples=num_examples, local=local),
        output_features={"inputs": registry.feature(), "targets": registry.feature()},
        preprocessors=[preprocessors.tokenize, seqio.preprocessors.append_eos_after_trim],
        postprocess_fn=postprocess_fn,
        metric_fns=list(metric_fns),
    )
