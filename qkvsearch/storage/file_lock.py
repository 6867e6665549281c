"""A lock on an open file, by the system, which lets go of it when the process ends."""

from __future__ import annotations

import sys
from typing import IO, Any

if sys.platform == "win32":
    import portalocker as system

    REFUSED: tuple[type[Exception], ...] = (system.LockException, OSError)
    take = system.lock
else:
    import fcntl as system

    REFUSED = (OSError,)
    take = system.flock


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
