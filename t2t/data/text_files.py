"""Files as text: unpacked (gzip, zstd), decoded, cut into lines and into the documents of plain text."""

import gzip
import io
import itertools
import logging
import pathlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from t2t.errors import UsageError

logger = logging.getLogger(__name__)

Unit = Literal["file", "line", "paragraph"]
"""What counts as one document in a plain text file."""

OnError = Literal["stop", "skip"]
"""What happens to a document that cannot be read: it ends the reading, or it is left out, counted and logged."""

PACKED = (".gz", ".zst")

NUL = "\0"
"""In no text; every second byte of English in UTF-16."""

LEAVE_OUT = "or leave such documents out: --data.on-error skip (t2t audit and t2t vocab train: --on-error skip)"
"""How to go on without what cannot be read."""

_CHUNK = 2**16  # bytes of a packed file that are unpacked at once
_MAX_WINDOW = 2**31  # bytes: what `zstd --long=31` needs


class CorpusError(UsageError):
    """Files that are missing, empty or not what they should be; the message names the file and the place."""


class MissingFileError(CorpusError):
    """Files that are not there, though they may have been before and may be again."""


@dataclass
class Skipped:
    """How many documents of some files were left out, and what was wrong with the first that could not be read."""

    empty: int = 0
    unreadable: int = 0
    first: str = ""

    def add(self, other: "Skipped") -> None:
        """Counts those of others too."""
        self.empty += other.empty
        self.unreadable += other.unreadable
        self.first = self.first or other.first

    def leave_out(self, error: CorpusError) -> None:
        """Counts a document that cannot be read."""
        self.unreadable += 1
        self.first = self.first or str(error)

    def log(self, files: str) -> None:
        """Says what was left out of the files so named, if anything was."""
        if self.empty:
            logger.info("%s: %s empty documents are left out", files, f"{self.empty:,}")
        if self.unreadable:
            number = f"{self.unreadable:,}"
            logger.warning("%s: %s documents cannot be read and are left out. The first: %s", files, number, self.first)


def open_bytes(path: pathlib.Path) -> io.BufferedIOBase:
    """The bytes of a file, unpacked if its name ends in .gz or .zst.

    Raises:
        CorpusError: zstd cannot be read in this environment.
        EOFError: nothing is in the file, as after a copy that was cut off; an empty text takes some bytes when packed.
    """
    suffix = path.suffix.lower()
    if suffix in PACKED and path.stat().st_size == 0:
        raise EOFError(f"it has 0 bytes, and a {suffix} file of no text has more; copy it again")
    if suffix == ".gz":
        return gzip.open(path)
    if suffix == ".zst":
        make, error = _zstd(path)
        return io.BufferedReader(_Zstd(path.open("rb"), make, error), buffer_size=2**20)
    return path.open("rb")


def _zstd(path: pathlib.Path) -> tuple[Callable[[], Any], type[Exception]]:
    """A maker of unpackers of one frame, and the error they raise."""
    try:
        from compression import zstd  # of Python 3.14

        return zstd.ZstdDecompressor, zstd.ZstdError
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError as error:
        raise CorpusError(f"{path}: reading .zst needs zstandard; install it with: pip install zstandard") from error
    return lambda: zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj(), zstandard.ZstdError


class _Zstd(io.RawIOBase):
    """The unpacked frames of a zstd file one after the other; a file that was cut off is an error."""

    def __init__(self, file: io.BufferedIOBase, make: Callable[[], Any], error: type[Exception]):
        self._file, self._make, self._error = file, make, error
        self._unpacker = make()
        self._is_inside = False
        self._packed, self._ready = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            packed = self._packed or self._file.read(_CHUNK)
            if not packed:
                if self._is_inside:
                    raise EOFError("it ends in the middle of a frame")
                return 0
            self._ready = self._unpack(packed)
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size

    def _unpack(self, packed: bytes) -> memoryview:
        try:
            unpacked = self._unpacker.decompress(packed)
        except self._error as error:
            raise OSError(str(error)) from error
        self._is_inside, self._packed = not self._unpacker.eof, b""
        if self._unpacker.eof:
            self._packed, self._unpacker = self._unpacker.unused_data, self._make()
        return memoryview(unpacked)

    def close(self) -> None:
        self._file.close()
        super().close()


def read_lines(path: pathlib.Path, *, on_error: OnError = "stop") -> Iterator[str]:
    """The lines of a text file, with their ends.

    With `on_error="skip"` bytes that are not UTF-8 become lone surrogates, which `check_characters` finds.

    Raises:
        CorpusError: the file is missing, damaged or, unless told to skip that, not UTF-8.
    """
    place = 0
    try:
        with open_bytes(path) as file:
            for line in file:
                text = line.decode("utf-8", "surrogateescape") if on_error == "skip" else _decode(path, line, place)
                yield text.removeprefix("\ufeff") if place == 0 else text
                place += len(line)
    except FileNotFoundError as error:
        raise MissingFileError(f"{path} has vanished: {error}") from error
    except (OSError, EOFError, zlib.error) as error:  # gzip says EOFError of a file that was cut off
        raise CorpusError(f"{path} cannot be read to its end: {error}") from error


def _decode(path: pathlib.Path, data: bytes, place: int) -> str:
    unpacked = " of the unpacked text" if path.suffix.lower() in PACKED else ""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path} is not UTF-8: byte {place + error.start}{unpacked} is 0x{data[error.start]:02x} ({error.reason}). "
            f"Convert it, for example: iconv -f latin1 -t utf-8 {path} > utf8-{path.name}; {LEAVE_OUT}"
        ) from error
    if NUL in text:
        raise CorpusError(
            f"{path}: byte {place + data.index(0)}{unpacked} is 0, which no text holds: it is UTF-16, or no text. "
            f"Convert it, for example: iconv -f utf-16le -t utf-8 {path} > utf8-{path.name}; {LEAVE_OUT}"
        )
    return text


def check_characters(text: str, place: str) -> None:
    """Refuses text that UTF-8 cannot hold, or that is none.

    Raises:
        CorpusError: at `place` there is half a character, by an escape of JSON, a byte that was not UTF-8, or one of 0.
    """
    if NUL in text:
        raise CorpusError(f"{place} holds a byte of 0: it is UTF-16, or no text.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        half = ord(text[error.start])
        if 0xDC80 <= half <= 0xDCFF:
            raise CorpusError(f"{place} is not UTF-8: it holds the byte 0x{half - 0xDC00:02x}.") from error
        raise CorpusError(
            f"{place} holds \\u{half:04x}, half of a surrogate pair: no character, and no UTF-8."
        ) from error


def read_units(path: pathlib.Path, unit: Unit, *, on_error: OnError = "stop") -> Iterator[tuple[str, str]]:
    """The documents of a plain text file, each with the words that say which it is.

    Raises:
        CorpusError: as `read_lines`.
    """
    if unit not in ("file", "line", "paragraph"):
        raise ValueError(f"unit={unit!r} must be 'file', 'line' or 'paragraph'.")
    lines = (line.rstrip("\r\n") for line in read_lines(path, on_error=on_error))
    if unit == "line":
        texts = lines
    elif unit == "file":
        texts = iter(["\n".join(lines)])
    else:
        blocks = itertools.groupby(lines, key=lambda line: bool(line.strip()))
        texts = ("\n".join(block) for has_text, block in blocks if has_text)
    return ((f"{unit} {number}", text) for number, text in enumerate(texts, start=1))
