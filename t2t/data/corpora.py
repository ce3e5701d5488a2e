"""A user's own text files, plain or packed, as documents or records.

Nothing here needs TensorFlow. `t2t.data.file_source` makes seqio tasks of these files.

    txt, text, md        one document a file, line or paragraph (`unit`; paragraphs end at blank lines)
    jsonl, ndjson, json  one JSON object a line, the text in one of its fields
    csv, tsv             a header, then one record a line; csv with quotes as spreadsheets write them, tsv without
    parquet, arrow       one record a row; needs pyarrow
    tfrecord             tf.train.Example; the names of shards, x.tfrecord-00000-of-00008, are known
    array_record         tf.train.Example; needs array_record
    a folder             all files of these kinds below it, or the files of a data set that `datasets` saved there

Text, JSON, tables and TFRecord may end in .gz or .zst (which needs zstandard). Text is UTF-8, with or without a byte
order mark; empty documents are left out and counted.
"""

import collections
import functools
import glob
import json
import logging
import os
import pathlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from t2t.data import record_files, text_files
from t2t.data.text_files import CorpusError, MissingFileError, OnError, Skipped, Unit

__all__ = [
    "CorpusError",
    "FileReader",
    "MissingFileError",
    "OnError",
    "Skipped",
    "Unit",
    "find_files",
    "kind",
    "read_records",
    "read_rows",
    "read_texts",
]

logger = logging.getLogger(__name__)

TEXT = (".txt", ".text", ".md")
RECORDS = record_files.SUFFIXES

DESCRIPTIONS = ("dataset_info.json", "dataset_dict.json", "state.json", "features.json")
"""Files that stand beside data sets and hold no text of theirs."""

_SHARD = re.compile(r"-\d+-of-\d+$")


def find_files(patterns: Sequence[str]) -> list[pathlib.Path]:
    """The files that paths, globs (`**` reaches into folders) and folders name, each once, in the order given.

    The files of a glob and of a folder come sorted; a folder's hidden files and those of other kinds are left out, and
    how many there are is logged. Links to folders are followed, and what they lead to a second time is left out.

    Raises:
        CorpusError: a pattern that matches no file, a file of a kind that cannot be read, or a folder that cannot, of a
            glob too.
    """
    found: list[pathlib.Path] = []
    for pattern in patterns:
        if not str(pattern):
            raise CorpusError("An empty name stands among the files; write . for the working directory.")
        path = pathlib.Path(pattern)
        if path.is_dir():
            files = _files_of_folder(path)
        elif path.is_file():
            files = [path]
        else:
            files = _files_of_glob(str(pattern))
        if not files:
            raise MissingFileError(f"No file matches '{pattern}' (in {pathlib.Path.cwd()}).")
        for path in files:
            kind(path)
        found += files
    if not found:
        raise CorpusError("No files are named.")
    return _without_repeats(found)


def _files_of_glob(pattern: str) -> list[pathlib.Path]:
    """The files of a glob, each under its shortest name: links that lead in a circle give it dozens."""
    _check_folders_of_glob(pattern)
    names = sorted(glob.glob(pattern, recursive=True), key=lambda name: (len(name), name))
    paths = _without_repeats([path for path in map(pathlib.Path, names) if path.is_file()])
    return sorted(paths, key=str)


def _check_folders_of_glob(pattern: str) -> None:
    """Refuses a glob that would look into a folder which cannot be read: it leaves those out without a word."""
    parts = pathlib.PurePath(pattern).parts
    for number, part in enumerate(parts):
        if not glob.has_magic(part):
            continue
        before = str(pathlib.PurePath(*parts[:number]))
        for folder in filter(os.path.isdir, glob.glob(before, recursive=True)):
            for _, folders, _ in os.walk(folder, onerror=_refuse):
                folders[:] = [name for name in folders if part == "**" and not name.startswith(".")]


def _without_repeats(paths: Sequence[pathlib.Path]) -> list[pathlib.Path]:
    """The first of all paths that name a file in the same folder, however that was reached."""
    folders = {folder: os.path.realpath(folder) for folder in {path.parent for path in paths}}
    found: dict[tuple[str, str], pathlib.Path] = {}
    for path in paths:
        found.setdefault((folders[path.parent], path.name), path)
    return list(found.values())


def kind(path: pathlib.Path) -> str:
    """The suffix that says how a file is read, without .gz, .zst and the number of a shard.

    >>> kind(pathlib.Path("c4-train.00000-of-01024.json.gz")), kind(pathlib.Path("c4.tfrecord-00000-of-01024"))
    ('.json', '.tfrecord')

    Raises:
        CorpusError: no known suffix.
    """
    suffix = _kind(path)
    if suffix is None:
        known = ", ".join(TEXT + RECORDS)
        raise CorpusError(
            f"{path}: cannot tell the format from the name; known are {known}, and {' or '.join(text_files.PACKED)} "
            f"after all but {', '.join(record_files.UNPACKED)}."
        )
    return suffix


def _kind(path: pathlib.Path) -> str | None:
    name = path.name.lower()
    packing = next((suffix for suffix in text_files.PACKED if name.endswith(suffix)), "")
    suffix = pathlib.PurePath(_SHARD.sub("", name.removesuffix(packing))).suffix
    if suffix not in TEXT + RECORDS or (packing and suffix in record_files.UNPACKED):
        return None
    return suffix


def _files_of_folder(folder: pathlib.Path) -> list[pathlib.Path]:
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(str(path.parent) for path in folder.glob("*/state.json"))
        raise CorpusError(f"{folder} holds several parts of a data set; name one: {' or '.join(splits)}.")
    if (folder / "state.json").is_file():
        return _files_of_data_set(folder)
    files: list[pathlib.Path] = []
    others = 0
    for place, names in _walk(folder):
        for path in (pathlib.Path(place, name) for name in names if not name.startswith(".")):
            is_known = _kind(path) is not None and path.name not in DESCRIPTIONS and path.is_file()
            files += [path] if is_known else []
            others += not is_known
    if not files:
        raise MissingFileError(f"No file of a known kind is in {folder}; known are {', '.join(TEXT + RECORDS)}.")
    files.sort()
    kinds = ", ".join(f"{number:,} {suffix}" for suffix, number in collections.Counter(map(_kind, files)).items())
    left_out = f"; {others:,} others are left out" if others else ""
    _tell(f"{folder}: {len(files):,} files ({kinds}){left_out}")
    return files


def _walk(folder: pathlib.Path) -> Iterator[tuple[str, list[str]]]:
    """Each folder at and below one, with its files: the folder's own first, then what links lead to, all once."""
    seen: set[str] = set()
    linked = [str(folder)]
    while linked:
        for place, folders, names in os.walk(linked.pop(0), onerror=_refuse):
            if (real := os.path.realpath(place)) in seen:
                folders.clear()
                continue
            seen.add(real)
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            links = [path for path in (os.path.join(place, name) for name in folders) if os.path.islink(path)]
            linked += [path for path in links if not _is_within(folder, os.path.realpath(path))]
            yield place, names


def _is_within(folder: pathlib.Path, real: str) -> bool:
    """Whether a folder is below another or is it: a link to that leads in a circle."""
    return pathlib.Path(os.path.realpath(folder)).is_relative_to(real)


def _refuse(error: OSError) -> None:
    raise CorpusError(f"The folder {error.filename} cannot be read: {error.strerror}.") from error


@functools.cache
def _tell(text: str) -> None:
    logger.info("%s", text)  # once: a run looks for its files several times


def _files_of_data_set(folder: pathlib.Path) -> list[pathlib.Path]:
    """The files of what `datasets.Dataset.save_to_disk` wrote."""
    try:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        files = [folder / file["filename"] for file in state["_data_files"]]
        is_chosen = bool(state.get("_indices_data_files") or state.get("_indices_files"))
    except (ValueError, KeyError, TypeError) as error:
        raise CorpusError(f"{folder / 'state.json'} is not as `datasets` writes it: {error!r}.") from error
    if is_chosen:
        raise CorpusError(f"{folder} holds a choice of rows; save it after dataset.flatten_indices().")
    return files


@dataclass(frozen=True, kw_only=True)
class FileReader:
    """How files are read; it can be sent to another process.

    Args:
        field: column of the text in files of records; there every record is one document.
        unit: what counts as one document in plain text files.
        fields: fields of records that are wanted instead of a text, such as ("inputs", "targets").
        key: name under which a document is handed on.
        on_error: what happens to documents that cannot be read. What is wrong with a whole file always stops.
    """

    field: str = "text"
    unit: Unit = "paragraph"
    fields: tuple[str, ...] = ()
    key: str = "text"
    on_error: OnError = "stop"

    def rows(self, files: Sequence[pathlib.Path], skipped: Skipped | None = None) -> Iterator[dict[str, str]]:
        """The documents or records of these files, in order.

        Raises:
            CorpusError: files that are missing, damaged, of another kind, or lack the field.
        """
        skipped = Skipped() if skipped is None else skipped
        for path in files:
            yield from self._records(path, skipped) if self.fields else self._documents(path, skipped)

    def _documents(self, path: pathlib.Path, skipped: Skipped) -> Iterator[dict[str, str]]:
        for text in self._texts(path, skipped):
            if text.strip():
                yield {self.key: text}
            else:
                skipped.empty += 1

    def _texts(self, path: pathlib.Path, skipped: Skipped) -> Iterator[str]:
        suffix = kind(path)
        if suffix in RECORDS:
            yield from (record[self.field] for record in self._readable(path, suffix, [self.field], skipped))
            return
        for place, text in text_files.read_units(path, self.unit, on_error=self.on_error):
            if self.on_error == "skip":
                try:
                    text_files.check_characters(text, f"{path}, {place}")
                except CorpusError as error:
                    skipped.leave_out(error)
                    continue
            yield text

    def _records(self, path: pathlib.Path, skipped: Skipped) -> Iterator[dict[str, str]]:
        suffix = kind(path)
        if suffix in TEXT:
            raise CorpusError(
                f"{path} is plain text, but records with the fields {', '.join(self.fields)} are needed: use jsonl."
            )
        yield from self._readable(path, suffix, self.fields, skipped)

    def _readable(
        self, path: pathlib.Path, suffix: str, fields: Sequence[str], skipped: Skipped
    ) -> Iterator[dict[str, str]]:
        for record in record_files.read_records(path, suffix, fields, on_error=self.on_error):
            if isinstance(record, CorpusError):
                skipped.leave_out(record)
            else:
                yield record


def read_texts(
    patterns: Sequence[str], *, field: str = "text", unit: Unit = "paragraph", on_error: OnError = "stop"
) -> Iterator[str]:
    """Every document of these files, in order; what is left out is logged at the end.

    Args:
        patterns: paths, globs and folders.
        field: column of the text in files of records; there every record is one document.
        unit: what counts as one document in plain text files.
        on_error: what happens to documents that cannot be read.

    Raises:
        CorpusError: files that are missing, hold no text at all, are not UTF-8, or lack the field.
    """
    if unit not in ("file", "line", "paragraph"):
        raise ValueError(f"unit={unit!r} must be 'file', 'line' or 'paragraph'.")
    reader = FileReader(field=field, unit=unit, on_error=on_error)
    return (row["text"] for row in read_rows(patterns, reader))


def read_records(
    patterns: Sequence[str], *, fields: Sequence[str], on_error: OnError = "stop"
) -> Iterator[dict[str, str]]:
    """Every record of files of records, with these fields, as texts.

    Raises:
        CorpusError: files that are missing, plain text or not UTF-8, hold no record, or lack a field.
    """
    return read_rows(patterns, FileReader(fields=tuple(fields), on_error=on_error))


def read_rows(patterns: Sequence[str], reader: FileReader) -> Iterator[dict[str, str]]:
    """The documents or records of these files as a reader reads them, in order; what is left out is logged at the end.

    Raises:
        CorpusError: as `FileReader.rows`, and where there is no document at all.
    """
    names = ", ".join(map(str, patterns[:3])) + (f" and {len(patterns) - 3} more" if len(patterns) > 3 else "")
    skipped, row = Skipped(), None
    for row in reader.rows(find_files(patterns), skipped):
        yield row
    skipped.log(names)
    if row is None:
        first = f" The first that cannot be read: {skipped.first}" if skipped.first else ""
        raise CorpusError(f"{names} hold no {'record' if reader.fields else 'text'}.{first}")
