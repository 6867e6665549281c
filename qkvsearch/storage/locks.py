"""Locks: one writer at a time, whom others wait for; and builds that readers hold open."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from qkvsearch.errors import WorkspaceError

if sys.platform == "win32":
    import portalocker as system

    REFUSED: tuple[type[Exception], ...] = (system.LockException, OSError)
    take = system.lock
else:
    import fcntl as system

    REFUSED = (OSError,)
    take = system.flock

WRITER = "writer.lock"
# In seconds: how often a lock is asked for where waiting for it has an end, and after how long
# whom it waits for is said.
PAUSE, MOMENT = 0.05, 1.0
# What this process holds: by workspace and thread, how many times over.
_held: dict[tuple[str, int], int] = {}


@contextmanager
def writer_lock(
    workspace: Path,
    command: str,
    wait: float | None = None,
    say: Callable[[str], None] | None = None,
) -> Iterator[bool]:
    """The right to change a workspace; a thread that has it may ask for it again, and is told that
    it is not the first time.

    The system lets go of it when a process ends, however that ends, so that no lock is left behind
    and no clock decides. wait: seconds, None for as long as it takes. `say` is told whom it waits
    for. Raises `WorkspaceError`, which names the owner, where `wait` is over.
    """
    key = (str(workspace.resolve()), threading.get_ident())
    if key in _held:
        yield False
        return
    try:
        workspace.mkdir(0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(f"{workspace}: cannot write: {error.strerror}") from None
    with exclusive(workspace / WRITER, wait, say) as file:
        _held[key] = 1
        try:
            _sign(file, command)
            yield True
        finally:
            del _held[key]
            _sign(file, "")


def is_writing(workspace: Path) -> bool:
    """Whether this thread has the right to change a workspace."""
    return (str(workspace.resolve()), threading.get_ident()) in _held


@contextmanager
def exclusive(
    path: Path,
    wait: float | None = None,
    say: Callable[[str], None] | None = None,
    mode: int = 0o666,
) -> Iterator[IO[Any]]:
    """A file that nobody else has locked, made if it is not there. Raises `WorkspaceError`."""
    try:
        file = os.fdopen(_opened(path, mode), "a+", encoding="utf-8")
    except OSError as error:
        raise WorkspaceError(f"{path}: cannot write: {error.strerror}") from None
    with file:
        _wait_for(file, path, wait, say)
        try:
            yield file
        finally:
            unlock(file)


def _opened(path: Path, mode: int) -> int:
    """A descriptor, but not where a link leads: what is there may be anything."""
    no_link = getattr(os, "O_NOFOLLOW", 0)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | no_link, mode)


def _wait_for(
    file: IO[Any], path: Path, wait: float | None, say: Callable[[str], None] | None
) -> None:
    if _is_free(file, MOMENT if wait is None else min(wait, MOMENT)):
        return
    if say is not None and wait != 0:
        say(f"Waiting for {_owner(path)}.")
    if wait is None:
        if not lock(file):  # the system's queue: nobody starves
            raise WorkspaceError(f"{path}: this file system has no locks; use a local folder")
    elif not _is_free(file, wait - MOMENT):
        raise WorkspaceError(
            f"{path.parent}: {_owner(path)} is writing here, and did not end within {wait:g} "
            "seconds (`wait`); try again later"
        )


def _is_free(file: IO[Any], seconds: float) -> bool:
    """Whether the lock could be had within that time."""
    end = time.monotonic() + seconds
    while not lock(file, wait=False):
        if time.monotonic() >= end:
            return False
        time.sleep(PAUSE)
    return True


def hold_build(manifest: Path) -> IO[Any]:
    """An open file: as long as it is open, nobody removes the build whose manifest it is."""
    file = manifest.open("rb")
    lock(file, shared=True)  # whoever asks `is_held` has it for a moment
    return file


def is_held(manifest: Path) -> bool:
    """Whether some reader has the build of this manifest open."""
    try:
        with manifest.open("rb") as file:
            return not lock(file, wait=False)
    except OSError:  # it is gone, or what stands there is no file
        return False


def _sign(file: IO[Any], command: str) -> None:
    """Say who has the lock, for those who wait; nobody goes by it."""
    with suppress(OSError):
        file.truncate(0)
        since = time.strftime("%H:%M:%S")
        owner = {"pid": os.getpid(), "command": command, "since": since} if command else {}
        os.write(file.fileno(), json.dumps(owner).encode())  # with nothing left to be written later


def _owner(path: Path) -> str:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return f"{found['command']} (process {found['pid']}, since {found['since']})"
    except (OSError, ValueError, LookupError, TypeError):
        return "another writer"


def lock(file: IO[Any], *, shared: bool = False, wait: bool = True) -> bool:
    """Whether the lock was had: alone, or together with others who share it. wait: until it is
    free. False as well on a file system without locks.
    """
    flags = (system.LOCK_SH if shared else system.LOCK_EX) | (0 if wait else system.LOCK_NB)
    try:
        take(file, flags)
    except REFUSED:
        return False
    return True


def unlock(file: IO[Any]) -> None:
    """Let go of it; whoever closes the file lets go of it as well."""
    take(file, system.LOCK_UN)
