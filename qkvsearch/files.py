"""Files that appear complete or not at all: made beside their place, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from qkvsearch.errors import DataError


@contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """A hidden folder beside `target`, removed at the end: make it there, then `os.replace` it.

    Folders above `target` are made. Raises `DataError` where nothing can be written there.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(
            prefix=f".{target.name}-", dir=target.parent, ignore_cleanup_errors=True
        )
    except OSError as error:
        raise DataError(f"{target.parent}: cannot write: {error.strerror}") from None
    with folder as name:
        yield Path(name)


def sync(file: IO[Any]) -> None:
    """Return when the disk has all that was written to an open file."""
    file.flush()
    os.fsync(file.fileno())


def replace_synced(file: Path, target: Path) -> None:
    """Rename a file once the disk has all of it: after a crash, `target` is whole."""
    with file.open("rb+") as written:
        sync(written)
    file.replace(target)


def write_synced(target: Path, data: bytes) -> None:
    """A file with these bytes in place of `target`, whole on the disk when this returns."""
    beside = target.with_name(f".{target.name}-{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(data)
            sync(file)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def sync_directory(path: Path) -> None:
    """Return when the disk has the names of all files in a folder."""
    if os.name == "nt":  # Windows cannot open a directory, and orders directory entries itself
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
