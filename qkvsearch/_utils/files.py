"""Atomic writing of files: a file is written beside its target and then renamed."""

import errno
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

# A workspace is a folder with builds and at least one of the files in `MARKS`. The names of its own
# files begin with one of `OWN_NAMES`.
BUILDS, MARKS = "builds", ("root.json", "writer.lock")
OWN_NAMES = (
    *MARKS,
    "records.db",
    "records.json",
    "records.lock",
    "rules.json",
    ".root.json-",
    ".records.",
    ".rules.json-",
)
# Names of a process's own open files.
OWN_FILES = re.compile(r"/dev/(?:(stdout)|(stderr)|fd/(\d+))|/proc/self/fd/(\d+)")


def real_path(path: Path) -> Path:
    """Return an absolute path without symbolic links, except those that lead to one another. For
    these `Path.resolve` raises RuntimeError in some versions of Python.
    """
    return Path(os.path.realpath(path))


def is_of_a_workspace(path: Path) -> bool:
    """Return whether a workspace has, or may have, a file of its own at this path."""
    for folder in path.parents:
        name = path.relative_to(folder).parts[0].casefold()
        is_own = name == BUILDS or name.startswith(OWN_NAMES)
        if is_own and (folder / BUILDS).is_dir() and any((folder / own).exists() for own in MARKS):
            return True
    return False


def own_and_other_files(workspace: Path) -> tuple[list[str], list[str]]:
    """Return the names of a workspace's own files and folders, and of those beside them."""
    own: list[str] = []
    others: list[str] = []
    for path in sorted(workspace.iterdir()):
        is_own = path.name == BUILDS or path.name.startswith(OWN_NAMES)
        (own if is_own else others).append(path.name)
    return own, others


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that replaces `path`, complete and on disk, when the block ends. After an error
    in the block, a full disk or a kill, the old file is unchanged.

    This is for results, and refuses to replace the files of a workspace. Permissions are kept; of a
    symbolic link, the target is replaced. Pipes, terminals, /dev/stdout and the like are written to
    directly. Raises `DataError`.
    """
    try:
        target = real_path(path)
        if target.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if is_of_a_workspace(target):
            raise DataError(f"{path}: a workspace keeps its data there; name another file")
        with _open_stream(path) or _replacement(target) as file:
            yield file
    except OSError as error:
        raise DataError(f"{path}: cannot write: {error.strerror or error}") from None


def write_file(path: Path, content: bytes) -> None:
    """Replace a file atomically by this content. Raises `DataError`."""
    with replacing(path) as file:
        file.write(content)


def is_on_disk(path: Path) -> bool:
    """Return whether `path` is a regular file or does not exist, so that it can be replaced."""
    if OWN_FILES.fullmatch(str(path)):
        return False
    try:
        # One look: between two, another process may create or remove the file.
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return True  # Whoever opens a path that cannot be read says why.


def _open_stream(path: Path) -> IO[bytes] | None:
    """Open a pipe, a terminal or an open file of this process; return None for a regular file."""
    if is_on_disk(path):
        return None
    own_file = OWN_FILES.fullmatch(str(path))
    if own_file is None:
        return path.open("wb")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    stdout, _, *numbers = own_file.groups()
    descriptor = next((int(number) for number in numbers if number), 1 if stdout else 2)
    return os.fdopen(os.dup(descriptor), "wb")


@contextmanager
def _replacement(target: Path) -> Iterator[IO[bytes]]:
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(None, "Permission denied")
    # `tempfile` would make a file that only its owner may read.
    unfinished = target.parent / f".qkvsearch-{os.urandom(8).hex()}"
    with _renamed(unfinished, target) as file:
        if mode is not None:
            unfinished.chmod(mode)
        yield file


@contextmanager
def _renamed(unfinished: Path, target: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Open a file that is renamed to `target` once it is on disk, and removed after an error."""
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
    """Create a hidden folder beside `target`, in which to build it before `os.replace`.

    It is removed when the block ends. Parent folders of `target` are created. Raises `DataError` if
    that is impossible.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(
            prefix=f".{target.name}-", dir=target.parent, ignore_cleanup_errors=True
        )
    except OSError as error:
        raise DataError(f"{target.parent}: cannot write: {error.strerror or error}") from None
    with folder as name:
        yield Path(name)


def sync(file: IO[Any]) -> None:
    """Wait until everything written to an open file is on disk."""
    file.flush()
    os.fsync(file.fileno())


def write_synced(target: Path, data: bytes, mode: int = 0o666) -> None:
    """Replace a file atomically and wait until it is on disk. mode: permissions of a new file."""
    unfinished = target.with_name(f".{target.name}-{os.getpid()}")
    unfinished.unlink(missing_ok=True)  # left by a killed process, or a link to another place
    with _renamed(unfinished, target, mode) as file:
        with suppress(OSError):
            unfinished.chmod(stat.S_IMODE(target.stat().st_mode))
        file.write(data)
    sync_directory(target.parent)


def sync_directory(path: Path) -> None:
    """Wait until the names of all files in a folder are on disk."""
    if os.name == "nt":  # Windows cannot open a directory, and orders directory entries itself
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
