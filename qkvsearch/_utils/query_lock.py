"""Turns: of threads that answer queries at once one runs Python, and the others what is compiled.

Python runs in one thread at a time anyway, by its global lock (GIL). Each operation of NumPy lets
go of that lock and waits for it again: many times in a query, each time with another thread woken
on another core. So threads got less done together than one alone, and now and then one of them
waited long. Here they take turns, first come, first served, and let go of the turn where something
compiled takes long.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local

from qkvsearch._utils.deadline import check_deadline

_guard = Lock()
_waiting: deque[Lock] = deque()
_is_taken = False
_own = local()
# Without that lock there is nothing to take turns for.
_NEEDED = getattr(sys, "_is_gil_enabled", lambda: True)()


@contextmanager
def query_lock() -> Iterator[None]:
    """The caller's turn until the end of the block; within a turn of its own nothing more. Raises
    `DeadlineError` where the turn comes too late.
    """
    if not _NEEDED or getattr(_own, "has_turn", False) or getattr(_own, "takes_none", False):
        yield
        return
    _take()
    try:
        check_deadline()
        yield
    finally:
        _give()


@contextmanager
def released() -> Iterator[None]:
    """Others may have their turn until the end of the block, which runs compiled code."""
    if not getattr(_own, "has_turn", False):
        yield
        return
    _give()
    try:
        yield
    finally:
        _take()


def pause() -> None:
    """Let those who wait have their turn, between two steps of long work. Raises `DeadlineError`
    after the deadline.
    """
    check_deadline()
    if _waiting:
        with released():
            pass


@contextmanager
def without_turns() -> Iterator[None]:
    """The caller takes none until the end of the block: what nobody waits for holds up nobody."""
    before = getattr(_own, "takes_none", False)
    _own.takes_none = True
    try:
        yield
    finally:
        _own.takes_none = before


def _take() -> None:
    global _is_taken
    with _guard:
        own = Lock() if _is_taken else None
        if own is not None:
            own.acquire()
            _waiting.append(own)
        _is_taken = True
    if own is not None:
        own.acquire()  # until whoever had the turn hands it over
    _own.has_turn = True


def _give() -> None:
    global _is_taken
    _own.has_turn = False
    with _guard:
        if _waiting:
            _waiting.popleft().release()
        else:
            _is_taken = False
