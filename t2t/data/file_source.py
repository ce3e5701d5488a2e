"""seqio tasks on a user's own files.

    registry.add_objectives("books", FileSource({"train": ["books/*.txt"], "validation": ["held_out.txt"]}))

registers books_span_corruption, books_mlm, books_causal_lm and books_prefix_lm; `with_files` gives a registered task
other text and leaves its objective as it is (`t2t train CONFIG --data.files ...`).
"""

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t.data import corpora

from t2t.data.host_tensorflow import tf  # isort: skip - TensorFlow's settings come before seqio
import seqio

from t2t.data import templates
from t2t.data.examples import get_task, split_corruption
from t2t.data.one_shard import OneShardSource
from t2t.data.supervised import SupervisedSource
from t2t.data.texts import fields_read
from t2t.data.translation_pairs import TranslationPairs


class FileSource(OneShardSource):
    """A source of documents {key: text} or, with `fields`, of records with these, read from files as they come.

    Args:
        files: paths, globs and folders of each split.
        field: column of the text in files of records (jsonl, csv, tsv, parquet, arrow, tfrecord, array_record).
        unit: what counts as one document in plain text files.
        fields: fields of records that are wanted instead of a text, such as ("inputs", "targets").
        key: name under which a document is handed on.
        on_error: what happens to documents that cannot be read.

    Raises:
        corpora.CorpusError: files that are missing or of an unknown kind.
    """

    def __init__(
        self,
        files: Mapping[str, Sequence[str]],
        *,
        field: str = "text",
        unit: corpora.Unit = "paragraph",
        fields: Sequence[str] = (),
        key: str = "text",
        on_error: corpora.OnError = "stop",
    ) -> None:
        super().__init__(splits=tuple(files))
        self.files = {split: [str(path) for path in corpora.find_files(patterns)] for split, patterns in files.items()}
        self.reader = corpora.FileReader(field=field, unit=unit, fields=tuple(fields), key=key, on_error=on_error)
        self.failure: corpora.CorpusError | None = None  # what stopped the reading, which TensorFlow would garble

    def num_input_examples(self, split: str) -> int | None:
        """Unknown before reading."""
        del split

    def fingerprint(self, split: str) -> list[Any]:
        """What decides the examples of a split: its files with size and time of change, and how they are read."""
        stats = [(path, corpora.find_files([path])[0].stat()) for path in self.files[split]]
        how = [self.reader.field, self.reader.unit, list(self.reader.fields), self.reader.on_error]
        return [[path, s.st_size, s.st_mtime_ns] for path, s in stats] + how

    def groups(self, split: str, *, size: int) -> list[list[pathlib.Path]]:
        """The files of a split in order, neighbours together until they have `size` bytes.

        Raises:
            corpora.CorpusError: a file has vanished.
        """
        groups: list[list[pathlib.Path]] = []
        room = 0
        for path in corpora.find_files(self.files[split]):
            if room <= 0:
                groups.append([])
                room = size
            groups[-1].append(path)
            room -= path.stat().st_size
        return groups

    def dataset(self, split: str) -> tf.data.Dataset:
        """The examples of a split as strings."""
        files = self.files[split]  # a folder's are looked for now
        names = self.reader.fields or (self.reader.key,)
        signature = {name: tf.TensorSpec([], tf.string) for name in names}
        return tf.data.Dataset.from_generator(lambda: self._read(files), output_signature=signature)

    def _read(self, files: Sequence[str]) -> Iterator[dict[str, str]]:
        self.failure = None
        try:
            yield from corpora.read_rows(files, self.reader)
        except corpora.CorpusError as failure:
            self.failure = failure
            raise


def with_files(
    task: str | seqio.Task,
    *,
    files: Sequence[str] = (),
    eval_files: Sequence[str] = (),
    field: str = "text",
    unit: corpora.Unit = "paragraph",
    on_error: corpora.OnError = "stop",
) -> seqio.Task:
    """The task with a user's files as its train and validation split, everything else kept; it is not registered.

    Pretraining tasks (those that end in a corruption) read documents, under the name by which their own source has
    them; tasks of benchmarks (`SupervisedSource`) read the files in which these are published; other supervised ones,
    and translations, read records with the fields that the task takes of its own source, such as inputs and targets.
    Solved examples of instructions come from `files`; without any, from the task's own rows.

    Raises:
        ValueError: a name that is no task, or no files at all.
        corpora.CorpusError: files that are missing or of an unknown kind.
    """
    splits = {split: named for split, named in {"train": files, "validation": eval_files}.items() if named}
    if not splits:
        raise ValueError("with_files needs files or eval_files.")
    task = get_task(task)
    if isinstance(task.source, SupervisedSource):
        source = task.source.on_files(splits, on_error=on_error)
        return templates.with_solved(task.replace(source=source), source) if files else task.replace(source=source)
    _, corruption = split_corruption(task)
    if corruption is None or isinstance(task.preprocessors[0], TranslationPairs):
        source = FileSource(splits, fields=tuple(fields_read(task)), on_error=on_error)
    else:
        source = FileSource(splits, field=field, unit=unit, key=fields_read(task)[0], on_error=on_error)
    task = task.replace(source=source)
    return templates.with_solved(task, source) if files else task
