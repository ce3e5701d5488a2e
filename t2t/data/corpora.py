"""A user's own text files: txt, jsonl, csv, tsv and parquet, plain or gzipped, as documents or records.

Nothing here needs TensorFlow. `t2t.data.file_source` makes seqio tasks of these files.

    txt, text, md    one document a file, line or paragraph (`unit`; paragraphs end at blank lines)
    jsonl, ndjson    one JSON object a line, the text in one of its fields
    csv, tsv         a header, then one record a line; csv with quotes as spreadsheets write them, tsv without quoting
    parquet          one record a row; needs pyarrow

All but parquet may end in .gz. Text is UTF-8, with or without a byte order mark; blank documents are left out.
"""

import csv
import glob
import gzip
import io
import itertools
import json
import pathlib
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from t2t.errors import UsageError

Unit = Literal["file", "line", "paragraph"]
"""What counts as one document in a plain text file."""

TEXT = (".txt", ".text", ".md")
RECORDS = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")

csv.field_size_limit(sys.maxsize)  # documents are longer than the 131,072 characters csv allows


class CorpusError(UsageError):
    """Files that are missing, empty or not what they should be; the message names the file and the place."""


class MissingFileError(CorpusError):
    """Files that are not there, though they may have been before and may be again."""


def find_files(patterns: Sequence[str]) -> list[pathlib.Path]:
    """The files that paths and globs name (`**` reaches into folders), each once, in the order given, sorted in a glob.

    Raises:
        CorpusError: a pattern that matches no file, or a file of a kind that cannot be read.
    """
    found: dict[pathlib.Path, None] = {}
    for pattern in patterns:
        paths = [pathlib.Path(path) for path in sorted(glob.glob(str(pattern), recursive=True))]
        if pathlib.Path(pattern).is_dir():
            raise CorpusError(f"{pattern} is a folder; name its files, such as '{pathlib.Path(pattern) / '*.txt'}'.")
        files = [path for path in paths if path.is_file()]
        if not files:
            raise MissingFileError(f"No file matches '{pattern}' (in {pathlib.Path.cwd()}).")
        for path in files:
            kind(path)
            found[path] = None
    if not found:
        raise CorpusError("No files are named.")
    return list(found)


def kind(path: pathlib.Path) -> str:
    """The suffix that says how a file is read, without .gz.

    Raises:
        CorpusError: no known suffix.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = suffixes[-1:] == [".gz"]
    suffix = suffixes[-1 - zipped] if len(suffixes) > zipped else ""
    if suffix not in TEXT + RECORDS or (zipped and suffix == ".parquet"):
        known = ", ".join(TEXT + RECORDS)
        raise CorpusError(
            f"{path}: cannot tell the format from the name; known are {known}, and .gz after all but parquet."
        )
    return suffix


def read_texts(patterns: Sequence[str], *, field: str = "text", unit: Unit = "paragraph") -> Iterator[str]:
    """Every document of these files, in order.

    Args:
        patterns: paths and globs.
        field: column of the text in jsonl, csv, tsv and parquet files; there every record is one document.
        unit: what counts as one document in plain text files.

    Raises:
        CorpusError: files that are missing, hold no text at all, are not UTF-8, or lack the field.
    """
    if unit not in ("file", "line", "paragraph"):
        raise ValueError(f"unit={unit!r} must be 'file', 'line' or 'paragraph'.")
    empty = True
    for path in find_files(patterns):
        if kind(path) in TEXT:
            texts = _read_units(path, unit)
        else:
            texts = (record[field] for record in _read_records(path, [field]))
        for text in texts:
            if text.strip():
                empty = False
                yield text
    if empty:
        raise CorpusError(f"{_names(patterns)} hold no text.")


def read_records(patterns: Sequence[str], *, fields: Sequence[str]) -> Iterator[dict[str, str]]:
    """Every record of jsonl, csv, tsv and parquet files, with these fields, as texts.

    Raises:
        CorpusError: files that are missing, plain text or not UTF-8, hold no record, or lack a field.
    """
    record = None
    for path in find_files(patterns):
        if kind(path) in TEXT:
            raise CorpusError(
                f"{path} is plain text, but records with the fields {', '.join(fields)} are needed: use jsonl."
            )
        for record in _read_records(path, fields):
            yield record
    if record is None:
        raise CorpusError(f"{_names(patterns)} hold no record.")


def _names(patterns: Sequence[str]) -> str:
    return ", ".join(map(str, patterns))


def _open(path: pathlib.Path) -> io.BufferedIOBase:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def _read_lines(path: pathlib.Path) -> Iterator[str]:
    """The lines of a text file, with their ends."""
    place = 0
    try:
        with _open(path) as file:
            for line in file:
                yield _decode(path, line, place).removeprefix("\ufeff" if place == 0 else "")
                place += len(line)
    except FileNotFoundError as error:
        raise MissingFileError(f"{path} has vanished: {error}") from error
    except (OSError, EOFError, zlib.error) as error:  # gzip says EOFError of a file that was cut off
        raise CorpusError(f"{path} cannot be read to its end: {error}") from error


def _decode(path: pathlib.Path, data: bytes, place: int) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        unpacked = " of the unpacked text" if path.suffix.lower() == ".gz" else ""
        raise CorpusError(
            f"{path} is not UTF-8: byte {place + error.start}{unpacked} is 0x{data[error.start]:02x} ({error.reason}). "
            f"Convert it, for example: iconv -f latin1 -t utf-8 {path} > utf8-{path.name}"
        ) from error


def _read_units(path: pathlib.Path, unit: Unit) -> Iterator[str]:
    lines = (line.rstrip("\r\n") for line in _read_lines(path))
    if unit == "line":
        return lines
    if unit == "file":
        return iter(["\n".join(lines)])
    blocks = itertools.groupby(lines, key=lambda line: bool(line.strip()))
    return ("\n".join(block) for has_text, block in blocks if has_text)


def _read_records(path: pathlib.Path, fields: Sequence[str]) -> Iterator[dict[str, str]]:
    suffix = kind(path)
    if suffix == ".parquet":
        records = _read_parquet(path, fields)
    elif suffix in (".csv", ".tsv"):
        records = _read_table(path, fields, suffix)
    else:
        records = _read_json(path)
    for number, record in records:
        for field in fields:
            if field not in record:
                raise CorpusError(f"{path}, {number}: no field '{field}'; there is {_listed(record)}.")
            if not isinstance(record[field], str):
                raise CorpusError(f"{path}, {number}: field '{field}' is {record[field]!r}, not a text.")
            _check_characters(record[field], f"{path}, {number}: field '{field}'")
        yield {field: record[field] for field in fields}


def _check_characters(text: str, place: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:  # JSON's escapes can spell what UTF-8 cannot
        half = f"\\u{ord(text[error.start]):04x}"
        raise CorpusError(f"{place} holds {half}, half of a surrogate pair: no character, and no UTF-8.") from error


def _listed(fields: Iterable[Any]) -> str:
    return ", ".join(repr(field) for field in fields if field is not None) or "none"


def _read_json(path: pathlib.Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(_read_lines(path), start=1):
        if line.strip():
            try:
                record = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                raise CorpusError(f"{path}, line {number}: not JSON ({error}).") from error
            if not isinstance(record, dict):
                raise CorpusError(f"{path}, line {number}: {type(record).__name__} instead of an object {{...}}.")
            yield f"line {number}", record


def _read_table(path: pathlib.Path, fields: Sequence[str], suffix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    style = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if suffix == ".tsv" else {"strict": True}
    reader = csv.DictReader(_read_lines(path), **style)
    missing = [field for field in fields if field not in (reader.fieldnames or ())]
    if missing:
        raise CorpusError(
            f"{path}: no column {_listed(missing)}; the first line names {_listed(reader.fieldnames or ())}."
        )
    try:
        for record in reader:
            yield f"line {reader.line_num}", record
    except csv.Error as error:
        raise CorpusError(f"{path}, line {reader.reader.line_num}: {error}.") from error


def _read_parquet(path: pathlib.Path, fields: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise CorpusError(f"{path}: reading parquet needs pyarrow; install it with: pip install pyarrow") from error
    try:
        with parquet.ParquetFile(path) as file:
            columns = file.schema_arrow.names
            missing = [field for field in fields if field not in columns]
            if missing:
                raise CorpusError(f"{path}: no column {_listed(missing)}; there is {_listed(columns)}.")
            rows = itertools.count()
            for batch in file.iter_batches(columns=list(fields)):
                for record in batch.to_pylist():
                    yield f"row {next(rows)}", record
    except (pyarrow.ArrowException, OSError) as error:
        raise CorpusError(f"{path} cannot be read as parquet: {error}") from error
