"""Sources of public corpora: files that are fetched once, and texts put in order before any task reads them.

Making a source reads nothing and needs no network, so that tasks can be registered wherever they are not used.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from t2t.data import corpora

from t2t.data.host_tensorflow import tf  # isort: skip - TensorFlow's settings come before seqio
import seqio

from t2t.data import cache
from t2t.data.file_source import FileSource
from t2t.data.official_files import CORPORA, corpora_directory
from t2t.data.one_shard import OneShardSource


class FolderSource(FileSource):
    """A `FileSource` of a corpus that TFDS does not have; its folder is looked for when it is first read.

    Args:
        folder: of the corpus, below the directory of all corpora.
        files: globs of each split in the folder.
        how: the command that fetches the files, for who does not have them.
        settings: further ones of `FileSource`.
    """

    def __init__(self, folder: str, files: Mapping[str, Sequence[str]], *, how: str, **settings: Any) -> None:
        seqio.DataSource.__init__(self, splits=tuple(files))
        self.failure = None
        self.folder = folder
        self.reader = corpora.FileReader(**settings)
        self._patterns = files
        self._how = how

    @functools.cached_property
    def files(self) -> dict[str, list[str]]:
        """The files of each split.

        Raises:
            MissingFileError: a split has none; the message says how they are fetched.
        """
        root = corpora_directory() / self.folder
        try:
            return {
                split: [str(path) for path in corpora.find_files([str(root / pattern) for pattern in patterns])]
                for split, patterns in self._patterns.items()
            }
        except corpora.MissingFileError as error:
            raise corpora.MissingFileError(
                f"{error} Fetch the corpus once: {self._how}; or name the directory of your corpora in {CORPORA}."
            ) from error

    def __repr__(self) -> str:
        return f"FolderSource({self.folder!r})"


class CountedTfds(seqio.TfdsDataSource):
    """A source of TFDS that states how many examples it has, which TFDS would have to look up.

    Args:
        name: of the data set, with its version.
        num_examples: of each split.
    """

    def __init__(self, name: str, num_examples: Mapping[str, int]) -> None:
        super().__init__(name, splits=tuple(num_examples))
        self.num_examples = dict(num_examples)

    def num_input_examples(self, split: str) -> int:
        """As stated."""
        return self.num_examples[split]


class PreparedSource(OneShardSource):
    """The examples of a source after a function on data sets, such as one that takes markup out of their text.

    Tasks, vocabularies and caches see the prepared examples alone. Files of a user's own (`data.files`) take the place
    of both.

    Args:
        source: whose examples they are.
        prepare: makes the data set of examples from that of the source, in order and without chance.
        keeps_number: whether there are as many examples after it.
    """

    def __init__(
        self,
        source: seqio.DataSource,
        prepare: Callable[[tf.data.Dataset], tf.data.Dataset],
        *,
        keeps_number: bool = True,
    ) -> None:
        super().__init__(splits=())
        self.source = source
        self.prepare = prepare
        self.keeps_number = keeps_number

    @property
    def splits(self) -> Sequence[str]:
        """Those of the source."""
        return self.source.splits

    @property
    def failure(self) -> corpora.CorpusError | None:
        """What stopped the reading of files."""
        return getattr(self.source, "failure", None)

    def num_input_examples(self, split: str) -> int | None:
        """That of the source, if it stays."""
        return self.source.num_input_examples(split) if self.keeps_number else None

    def fingerprint(self, split: str) -> list[Any]:
        """What decides the examples of a split."""
        return [cache.describe_source(self.source, split), cache.describe(self.prepare)]

    def on(self, source: seqio.DataSource) -> "PreparedSource":
        """The same of another source of such examples."""
        return PreparedSource(source, self.prepare, keeps_number=self.keeps_number)

    def dataset(self, split: str) -> tf.data.Dataset:
        """The examples of a split."""
        return self.prepare(self.source.get_dataset(split=split, shuffle=False))
