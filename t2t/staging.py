"""Directories whose files change together: the new ones are complete before an old one goes."""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDER = ".partial"
"""Where the files of a directory are written first."""


@contextlib.contextmanager
def replacing(directory: Path, *, stale: Sequence[str] = ()) -> Iterator[Path]:
    """An empty folder to write into, whose files take their places in the directory once the block ends.

    Until then the directory stays as it is, and so it does if the block fails or is interrupted; if it was not there,
    it is not there afterwards. A killed process leaves the folder behind, for the next one to remove. The disk must
    hold the old files and the new ones. config.json comes last: a new directory without one is not complete.

    Args:
        directory: made if missing; files that are neither new nor stale stay.
        stale: patterns of earlier files to remove where no new ones have their names; folders go with their last file.

    Raises:
        OSError: of whatever cannot be written; a full disk says how much room there was.
    """
    made = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    folder = directory / FOLDER
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        yield folder
        _put(folder, directory, stale)
        made.clear()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OSError(
            error.errno,
            f"{directory} has no room for its files: {shutil.disk_usage(directory).free:,} bytes were left beside "
            "what is written already. Make room, or choose a directory of another disk",
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for parent in made:  # the innermost first
            with contextlib.suppress(OSError):
                parent.rmdir()


def _put(folder: Path, directory: Path, stale: Sequence[str]) -> None:
    found = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    new = sorted(found, key=lambda path: (path == Path("config.json"), path))
    for path in new:
        (directory / path).parent.mkdir(exist_ok=True)
        os.replace(folder / path, directory / path)
    for path in {path for pattern in stale for path in directory.glob(pattern)}:
        if path.relative_to(directory) not in new:
            path.unlink()
            if path.parent != directory:
                with contextlib.suppress(OSError):  # it holds more
                    path.parent.rmdir()
