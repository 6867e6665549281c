"""Locks: one writer at a time in a workspace, and builds that readers have open.

The operating system releases a lock when its process ends, so no lock is left behind. A
forked child inherits no writer's lock, since it would keep it after the end of its parent.
"""

import errno
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from weakref import WeakSet

from qkvsearch._utils.deadline import check_deadline
from qkvsearch._utils.files import is_on_disk, real_path
from qkvsearch._utils.forks import in_child
from qkvsearch.errors import BusyError, DamagedError, WorkspaceError, duration
from qkvsearch.store.checksums import file_status

if sys.platform == "win32":
    import portalocker as system

    REFUSED: tuple[type[Exception], ...] = (system.LockException, OSError)
    HELD: type[Exception] = system.AlreadyLocked
    take = system.lock
else:
    import fcntl as system

    REFUSED = (OSError,)
    HELD = BlockingIOError
    take = system.flock

WRITER = "writer.lock"
# In seconds: the pause between two attempts to get a lock, and the wait before a message says who
# has it.
PAUSE, MOMENT = 0.05, 1.0
# How many seconds a reader waits for a program that has locked the manifest of a build.
READERS_WAIT = 5.0
# The open lock files by the workspaces and the threads of this process that may write them. A file
# that is closed counts no more: a thread was interrupted before it could remove it.
_writing: dict[tuple[str, int], IO[Any]] = {}
# The files that are locked, or that a thread waits for.
_lock_files: WeakSet[IO[Any]] = WeakSet()


@contextmanager
def writer_lock(
    workspace: Path,
    command: str,
    wait: float | None = None,
    notify: Callable[[str], None] | None = None,
) -> Iterator[bool]:
    """Hold the right to change a workspace. Yields False where the thread has it already.

    wait: seconds to wait for another writer, None for as long as it takes. notify: called with a
    message that names the other writer. Raises `BusyError`, which names them too, after `wait`
    seconds, and `WorkspaceError` where nothing can be locked.
    """
    if is_writing(workspace):
        yield False
        return
    try:
        workspace.mkdir(0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(f"{workspace}: cannot write: {error.strerror or error}") from None
    key = _writer(workspace)
    with exclusive(workspace / WRITER, command, wait, notify) as file:
        try:
            _writing[key] = file
            yield True
        finally:
            _writing.pop(key, None)


def is_writing(workspace: Path) -> bool:
    """Return whether this thread has the right to change a workspace."""
    file = _writing.get(_writer(workspace))
    return file is not None and not file.closed


def _writer(workspace: Path) -> tuple[str, int]:
    return str(real_path(workspace)), threading.get_ident()


@contextmanager
def exclusive(
    path: Path,
    command: str,
    wait: float | None = None,
    notify: Callable[[str], None] | None = None,
    mode: int = 0o666,
) -> Iterator[IO[Any]]:
    """Hold a file that nobody else has locked, created if it is missing. command: what those who
    wait are told. wait, notify: as in `writer_lock`. mode: permissions of a new file. Raises
    `WorkspaceError`, and `BusyError` for a file that others hold.
    """
    try:
        if not is_on_disk(path):
            raise OSError(errno.EINVAL, "it is a folder, a pipe or a device; remove it")
        # A link is an error: it may lead anywhere.
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        file = os.fdopen(os.open(path, flags, mode), "a+", encoding="utf-8")
    except OSError as error:
        raise WorkspaceError(f"{path}: cannot write: {error.strerror or error}") from None
    with file:
        _lock_files.add(file)
        _wait_for(file, path, wait, notify)
        try:
            _require_in_place(file, path)
            _write_owner(file, command)
            yield file
        finally:
            _write_owner(file, "")
            take(file, system.LOCK_UN)


def _require_in_place(file: IO[Any], path: Path) -> None:
    """Raise `WorkspaceError` for a lock file that its last owner has removed: others would lock a
    new one.
    """
    try:
        is_in_place = os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        is_in_place = False
    if not is_in_place:
        raise WorkspaceError(f"{path}: the program that was writing here has removed it; try again")


def _wait_for(
    file: IO[Any], path: Path, wait: float | None, notify: Callable[[str], None] | None
) -> None:
    if is_free(file, MOMENT if wait is None else min(wait, MOMENT)):
        return
    if notify is not None and wait != 0:
        notify(f"Waiting for {_owner(path)}.")
    if wait is None:
        if not lock(file):  # the system's queue: nobody starves
            raise WorkspaceError(f"{path}: this file system has no locks; use a local folder")
    elif not is_free(file, wait - MOMENT):
        raise BusyError(
            f"{path.parent}: {_owner(path)} is writing here, and did not end within "
            f"{duration(wait)} (`wait`); try again later"
        )


def is_free(file: IO[Any], seconds: float, *, shared: bool = False) -> bool:
    """Return whether the lock could be taken within that time. Raises `DeadlineError`."""
    end = time.monotonic() + seconds
    while not lock(file, shared=shared, wait=False):
        check_deadline()
        if time.monotonic() >= end:
            return False
        time.sleep(PAUSE)
    return True


def hold_build(manifest: Path) -> IO[Any]:
    """Return the open manifest of a build. Nobody removes the build while the file is open.

    `is_in_use` locks it for a moment. Raises `BusyError` where another program keeps it locked.
    """
    file_status(manifest)  # opening a pipe would wait for a writer
    file = manifest.open("rb")
    try:
        end = time.monotonic() + READERS_WAIT
        while _is_held(file):
            check_deadline()
            if time.monotonic() >= end:
                raise BusyError(
                    f"{manifest}: another program has locked this file, and the build cannot be "
                    "read; end that program, or try again later"
                )
            time.sleep(PAUSE)
    except BaseException:
        file.close()
        raise
    return file


def _is_held(file: IO[Any]) -> bool:
    """Return whether somebody has locked a file against readers, and lock it as one otherwise.

    A file system without locks locks nothing, and nobody else has a lock there.
    """
    try:
        take(file, system.LOCK_SH | system.LOCK_NB)
    except HELD:
        return True
    except REFUSED:
        return False
    return False


def is_in_use(manifest: Path) -> bool:
    """Return whether a reader has the build of this manifest open."""
    try:
        file_status(manifest)
        with manifest.open("rb") as file:
            return not lock(file, wait=False)
    except (DamagedError, OSError):  # it is gone, or no file
        return False


def _write_owner(file: IO[Any], command: str) -> None:
    """Write who has the lock, for the messages to those who wait."""
    with suppress(OSError):
        file.truncate(0)
        since = time.strftime("%H:%M:%S")
        owner = {"pid": os.getpid(), "command": command, "since": since} if command else {}
        os.write(file.fileno(), json.dumps(owner).encode())  # unbuffered


def _owner(path: Path) -> str:
    try:
        owner = json.loads(path.read_text(encoding="utf-8"))
        return f"{owner['command']} (process {owner['pid']}, since {owner['since']})"
    except (OSError, ValueError, LookupError, TypeError):
        return "another writer"


def lock(file: IO[Any], *, shared: bool = False, wait: bool = True) -> bool:
    """Lock an open file, and return whether that succeeded; a file system may have no locks."""
    flags = (system.LOCK_SH if shared else system.LOCK_EX) | (0 if wait else system.LOCK_NB)
    try:
        take(file, flags)
    except REFUSED:
        return False
    return True


def _leave_to_the_parent() -> None:
    """Forget the locks in a child, and close its copies of the locked files."""
    _writing.clear()
    with suppress(OSError):
        nothing = os.open(os.devnull, os.O_RDWR)
        for file in list(_lock_files):
            if not file.closed:
                # Its number stays taken, so that to close the file later closes no other one.
                os.dup2(nothing, file.fileno(), inheritable=False)
        os.close(nothing)


in_child(_leave_to_the_parent)
