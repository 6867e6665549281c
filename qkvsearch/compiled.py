"""Functions compiled by numba, which leave the interpreter's lock to other threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

# All of fastmath but what lets a NaN pass for a number.
KEEPS_NANS = {"reassoc", "contract", "arcp", "nsz"}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in machine code, for arrays whose numbers are all finite."""
    return _compiled(function, True)


def compiled_for_any(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in machine code, for arrays that may hold NaNs, which stay NaNs."""
    return _compiled(function, KEEPS_NANS)


def _compiled(function: Callable[..., Any], fastmath: Any) -> Callable[..., Any]:
    """Kept on disk for the next process where a place allows it."""
    try:
        return njit(nogil=True, fastmath=fastmath, cache=True)(function)
    except RuntimeError:  # A read-only install and home, as in a container: compile every time.
        return njit(nogil=True, fastmath=fastmath)(function)
