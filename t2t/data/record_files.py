"""Records of files: JSON lines, tables, parquet, Arrow (data sets of Hugging Face on disk), TFRecord, ArrayRecord.

A reader yields each record with the words that say where it stands. A record that cannot be read is yielded as the
error that says why, so that whoever reads may go on; what is wrong with a whole file is raised.
"""

import csv
import itertools
import json
import pathlib
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from t2t.data import example_proto
from t2t.data.text_files import CorpusError, MissingFileError, OnError, check_characters, open_bytes, read_lines

JSON = (".jsonl", ".ndjson", ".json")
TABLES = (".csv", ".tsv")
TF_RECORDS = (".tfrecord", ".tfrecords")
ARRAY_RECORDS = (".array_record", ".arrayrecord")
COLUMNS = (".parquet", ".arrow")
UNPACKED = (*COLUMNS, *ARRAY_RECORDS)
"""Kinds that pack their content themselves."""

SUFFIXES = (*JSON, *TABLES, *COLUMNS, *TF_RECORDS, *ARRAY_RECORDS)

Placed = tuple[str, dict[str, Any] | CorpusError]
"""Where a record stands, and what it holds, or why that cannot be read."""

_AT_ONCE = 256  # records of an ArrayRecord file

csv.field_size_limit(sys.maxsize)  # documents are longer than the 131,072 characters csv allows


def read_records(
    path: pathlib.Path, suffix: str, fields: Sequence[str], *, on_error: OnError = "stop"
) -> Iterator[dict[str, str] | CorpusError]:
    """The fields of every record of a file as texts; with `on_error="skip"` errors in place of records without them.

    Args:
        path: of the file.
        suffix: which of `SUFFIXES` it has.
        fields: the fields to read.
        on_error: what to do with records that cannot be read.

    Raises:
        CorpusError: the file cannot be read or, unless those are skipped, a record cannot.
    """
    if suffix in JSON:
        records = _read_json(path, on_error)
    elif suffix in TABLES:
        records = _read_table(path, fields, suffix, on_error)
    else:
        reader = {".parquet": _read_parquet, ".arrow": _read_arrow}.get(suffix)
        reader = reader or (_read_tf_records if suffix in TF_RECORDS else _read_array_records)
        records = _naming_the_vanished(path, reader(path, fields))
    for place, record in records:
        try:
            texts = _texts(record, fields, f"{path}, {place}")
        except CorpusError as error:
            if on_error == "stop":
                raise
            texts = error
        yield texts


def read_whole(path: pathlib.Path, suffix: str, *, on_error: OnError = "stop") -> Iterator[Placed]:
    """Every record of JSON lines, a table or parquet with all its fields, as they are.

    Raises:
        CorpusError: the file cannot be read, or is of another kind.
    """
    if suffix in JSON:
        return _read_json(path, on_error)
    if suffix in TABLES:
        return _read_table(path, (), suffix, on_error)
    if suffix == ".parquet":
        return _naming_the_vanished(path, _read_parquet(path, None))
    raise CorpusError(
        f"{path}: cannot tell the format from the name; known are {', '.join((*JSON, *TABLES, '.parquet'))}."
    )


def _texts(record: dict[str, Any] | CorpusError, fields: Sequence[str], place: str) -> dict[str, str]:
    if isinstance(record, CorpusError):
        raise record
    for field in fields:
        if field not in record:
            raise CorpusError(f"{place}: no field '{field}'; there is {_listed(record)}.")
        if not isinstance(record[field], str):
            raise CorpusError(f"{place}: field '{field}' is {_shortened(record[field])}, not a text.")
        check_characters(record[field], f"{place}: field '{field}'")
    return {field: record[field] for field in fields}


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _listed(fields: Iterable[Any]) -> str:
    return ", ".join(repr(field) for field in fields if field is not None) or "none"


def _check_columns(path: pathlib.Path, columns: Sequence[str], fields: Sequence[str]) -> None:
    missing = [field for field in fields if field not in columns]
    if missing:
        raise CorpusError(f"{path}: no column {_listed(missing)}; there is {_listed(columns)}.")


def _naming_the_vanished(path: pathlib.Path, records: Iterator[Placed]) -> Iterator[Placed]:
    if not path.is_file():
        raise MissingFileError(f"{path} has vanished.")
    yield from records


def _read_json(path: pathlib.Path, on_error: OnError) -> Iterator[Placed]:
    for number, line in enumerate(read_lines(path, on_error=on_error), start=1):
        place = f"line {number}"
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:  # ValueError besides of numbers of thousands of digits
            yield place, CorpusError(f"{path}, {place}: not JSON ({error}).")
            continue
        if isinstance(record, dict):
            yield place, record
        else:
            yield place, CorpusError(f"{path}, {place}: {type(record).__name__} instead of an object {{...}}.")


def _read_table(path: pathlib.Path, fields: Sequence[str], suffix: str, on_error: OnError) -> Iterator[Placed]:
    style = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if suffix == ".tsv" else {"strict": True}
    reader = csv.DictReader(read_lines(path, on_error=on_error), **style)
    try:
        _check_header(path, list(reader.fieldnames or ()), fields)
        for record in reader:
            place = f"line {reader.line_num}"
            yield place, _too_long(f"{path}, {place}", record, style.get("delimiter", ",")) or record
    except csv.Error as error:
        raise CorpusError(f"{path}, line {reader.reader.line_num}: {error}.") from error


def _check_header(path: pathlib.Path, columns: Sequence[str], fields: Sequence[str]) -> None:
    for field in fields:
        if columns.count(field) != 1:
            problem = f"several columns {field!r}" if field in columns else f"no column {field!r}"
            raise CorpusError(f"{path}: {problem}; the first line names {_listed(columns)}.")


def _too_long(place: str, record: dict[Any, Any], delimiter: str) -> CorpusError | None:
    """What is wrong with a row whose further cells, which no column names, are not empty: a text was cut in two."""
    further = [cell for cell in record.get(None, ()) if cell.strip()]
    if not further:
        return None
    named = len(record) - 1
    how = "put the text in quotes" if delimiter == "," else "write it as jsonl"
    return CorpusError(
        f"{place}: {named + len(record[None])} cells where the first line names {named}; the rest begins with "
        f"{_shortened(further[0])}. Where a text holds {delimiter!r}, {how}."
    )


def _pyarrow(path: pathlib.Path) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        kind = path.suffix.lstrip(".").lower()
        raise CorpusError(f"{path}: reading {kind} needs pyarrow; install it with: pip install pyarrow") from error
    return pyarrow


def _read_parquet(path: pathlib.Path, fields: Sequence[str] | None) -> Iterator[Placed]:
    """The rows of a file with these columns; None takes all."""
    pyarrow = _pyarrow(path)
    from pyarrow import parquet

    rows = itertools.count()
    try:
        with parquet.ParquetFile(path) as file:
            fields = file.schema_arrow.names if fields is None else fields
            _check_columns(path, file.schema_arrow.names, fields)
            for batch in file.iter_batches(columns=list(fields)):
                yield from _rows(path, batch, rows)
    except (pyarrow.ArrowException, OSError) as error:
        raise CorpusError(f"{path} cannot be read as parquet: {error}") from error


def _read_arrow(path: pathlib.Path, fields: Sequence[str]) -> Iterator[Placed]:
    """Arrow's stream format, in which `datasets` saves, or its file format."""
    pyarrow = _pyarrow(path)
    from pyarrow import ipc

    rows = itertools.count()
    try:
        with pyarrow.OSFile(str(path)) as file:
            is_file = file.read(6) == b"ARROW1"
            file.seek(0)
            reader = ipc.open_file(file) if is_file else ipc.open_stream(file)
            _check_columns(path, reader.schema.names, fields)
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches)) if is_file else reader
            for batch in batches:
                yield from _rows(path, batch.select(list(fields)), rows)
    except (pyarrow.ArrowException, OSError) as error:
        raise CorpusError(f"{path} cannot be read as Arrow: {error}") from error


def _rows(path: pathlib.Path, batch: Any, numbers: Iterator[int]) -> Iterator[Placed]:
    try:
        records = batch.to_pylist()
    except UnicodeDecodeError:  # Arrow does not look: find out which rows
        records = [_row(path, batch.slice(i, 1)) for i in range(batch.num_rows)]
    for record in records:
        place = f"row {next(numbers)}"
        yield place, CorpusError(f"{path}, {place} is not UTF-8.") if record is None else record


def _row(path: pathlib.Path, batch: Any) -> dict[str, Any] | None:
    try:
        return batch.to_pylist()[0]
    except UnicodeDecodeError:
        return None


def _read_tf_records(path: pathlib.Path, fields: Sequence[str]) -> Iterator[Placed]:
    """TFRecord of tf.train.Example; a record whose content differs from its checksum is one that cannot be read."""
    numbers = itertools.count()
    try:
        with open_bytes(path) as file:
            while header := file.read(12):
                place = f"record {next(numbers)}"
                if len(header) < 12 or struct.unpack("<I", header[8:])[0] != example_proto.masked_crc(header[:8]):
                    raise CorpusError(f"{path}, {place}: no TFRecord, or a damaged one.")
                size = struct.unpack("<Q", header[:8])[0]
                data = file.read(size + 4)
                if len(data) < size + 4:
                    raise EOFError("it ends in the middle of a record")
                if struct.unpack("<I", data[-4:])[0] != example_proto.masked_crc(data[:-4]):
                    yield place, CorpusError(f"{path}, {place}: it is damaged, for its checksum is another.")
                    continue
                yield place, _example(data[:-4], fields, f"{path}, {place}")
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"{path} cannot be read to its end: {error}") from error


def _read_array_records(path: pathlib.Path, fields: Sequence[str]) -> Iterator[Placed]:
    try:
        from array_record.python import array_record_module
    except ImportError as error:
        raise CorpusError(
            f"{path}: reading ArrayRecord needs array_record; install it with: pip install array-record"
        ) from error
    try:
        reader = array_record_module.ArrayRecordReader(str(path))
        try:
            for start in range(0, reader.num_records(), _AT_ONCE):
                records = reader.read(start, min(start + _AT_ONCE, reader.num_records()))
                for number, data in enumerate(records, start=start):
                    place = f"record {number}"
                    yield place, _example(data, fields, f"{path}, {place}")
        finally:
            reader.close()
    except (RuntimeError, ValueError, IndexError, OSError) as error:
        if isinstance(error, CorpusError):
            raise
        raise CorpusError(f"{path} cannot be read as ArrayRecord: {error}") from error


def _example(data: bytes, fields: Sequence[str], place: str) -> dict[str, Any] | CorpusError:
    """The features of a tf.train.Example: those of `fields` as texts where they are single bytes."""
    try:
        features = example_proto.parse(data, fields)
    except ValueError as error:
        return CorpusError(f"{place}: no tf.train.Example ({error}).")
    return {name: _text(value) for name, value in features.items()}


def _text(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], bytes):
        return value[0].decode("utf-8", "surrogateescape")
    return value
