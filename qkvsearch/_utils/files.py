"""Files that appear complete or not at all: made beside their place, then renamed."""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from qkvsearch.errors import DataError

# Names by which a process has its own open files.
OWN = re.compile(r"/dev/(?:(stdout)|(stderr)|fd/(\d+))|/proc/self/fd/(\d+)")


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """An open file that takes the place of `path` when the block ends, whole and on disk. An error
    in the block, a full disk or a kill leaves what was there.

    The permissions stay, and so does a link: what it leads to is replaced. What is no file on disk,
    such as a pipe, a terminal or /dev/stdout, is written to as it is. Raises `DataError`.
    """
    try:
        with _opened_in_place(path) or _beside(_linked(path)) as file:
            yield file
    except OSError as error:
        raise DataError(f"{path}: cannot write: {error.strerror or error}") from None


def write_file(path: Path, content: bytes) -> None:
    """`replacing`, for content that is there as a whole."""
    with replacing(path) as file:
        file.write(content)


def is_on_disk(path: Path) -> bool:
    """Whether `path` is a file that can be replaced, or may become one."""
    return not OWN.fullmatch(str(path)) and (path.is_file() or not path.exists())


def _opened_in_place(path: Path) -> IO[bytes] | None:
    """What is no file on disk, open; None for one that is."""
    if is_on_disk(path):
        return None
    found = OWN.fullmatch(str(path))
    if found is None:
        return path.open("wb")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    stdout, _, *numbers = found.groups()
    number = next((int(one) for one in numbers if one), 1 if stdout else 2)
    return os.fdopen(os.dup(number), "wb")


def _linked(path: Path) -> Path:
    return path.resolve() if path.is_symlink() else path


@contextmanager
def _beside(target: Path) -> Iterator[IO[bytes]]:
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(None, "Permission denied")
    # Not by `tempfile`, whose files nobody else may read.
    unfinished = target.parent / f".qkvsearch-{os.urandom(8).hex()}"
    with _renamed(unfinished, target) as file:
        if mode is not None:
            unfinished.chmod(mode)
        yield file


@contextmanager
def _renamed(unfinished: Path, target: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """An open file that is called `target` once the disk has all of it; after an error, removed."""
    try:
        with open(unfinished, "xb", opener=partial(os.open, mode=mode)) as file:
            yield file
            sync(file)
        unfinished.replace(target)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


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


def write_synced(target: Path, data: bytes, mode: int = 0o666) -> None:
    """Write a file in place of `target`, whole and on the disk when this returns. mode: the
    permissions of a new file; those of an existing one stay.
    """
    beside = target.with_name(f".{target.name}-{os.getpid()}")
    beside.unlink(missing_ok=True)  # what was killed left it, or it is a link to elsewhere
    with _renamed(beside, target, mode) as file:
        with suppress(OSError):
            beside.chmod(stat.S_IMODE(target.stat().st_mode))
        file.write(data)
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
