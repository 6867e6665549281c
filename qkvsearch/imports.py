"""Import libraries that change the process, and restore it."""

from __future__ import annotations

import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

# threadpoolctl and scikit-learn set these. Elsewhere than on Linux they stay, since two copies of
# OpenMP in one process end it without them.
OPENMP = {"KMP_DUPLICATE_LIB_OK": "True", "KMP_INIT_AT_FORK": "FALSE"}
if sys.platform != "linux":
    OPENMP = {}

# The warning filters that libraries add as they are imported: action, message, category, and the
# modules that warn. Only these are removed, so that those that other threads add stay.
ADDED_FILTERS = {
    ("ignore", "the matrix subclass is not the recommended way", "builtins.Warning", ""),  # SciPy
    ("always", "", "scipy.SpecialFunctionWarning", ""),
    ("always", "", "builtins.DeprecationWarning", r"^sklearn\."),  # before scikit-learn 1.6
    ("ignore", "torch::jit::fuser::cuda", "builtins.Warning", ""),
    ("ignore", "", "torch.TracerWarning", "torch.(?!jit)"),
    ("once", "", "sympy.SymPyDeprecationWarning", ""),  # imported by PyTorch
    ("ignore", "", "urllib3.DependencyWarning", ""),  # requests and urllib3, imported by pymilvus
    ("always", "", "urllib3.SecurityWarning", ""),
    ("default", "", "urllib3.InsecurePlatformWarning", ""),
    ("default", "", "urllib3.SubjectAltNameWarning", ""),
    ("default", "", "urllib3.SNIMissingWarning", ""),
    ("default", "", "requests.FileModeWarning", ""),
}

WarningFilter = tuple[Any, ...]


class _Before:
    """The environment and the warning filters as they were before a block.

    variables: what the block sets in the environment.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.set = {**OPENMP, **variables}
        self.values = {name: os.environ.get(name) for name in self.set}
        self.list = warnings.filters
        self.filters = list(self.list)

    def restore(self) -> None:
        """Remove what the libraries left, and nothing that another thread has changed."""
        for name, value in self.set.items():
            if os.environ.get(name) == value:
                self._restore_variable(name)
        self._remove_filters(self.list)
        # Another thread may be in a block of `warnings.catch_warnings`, which has a copy.
        if warnings.filters is not self.list:
            self._remove_filters(warnings.filters)

    def _restore_variable(self, name: str) -> None:
        value = self.values[name]
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value

    def _remove_filters(self, filters: Any) -> None:
        for each in list(filters):
            if each not in self.filters and _description(each) in ADDED_FILTERS:
                with suppress(ValueError):  # another thread removed it
                    filters.remove(each)


def _description(each: WarningFilter) -> tuple[str, str, str, str]:
    """Return the action, message, category and modules of a warning filter as texts."""
    action, message, category, modules, _ = each
    package = category.__module__.partition(".")[0]
    return action, _pattern(message), f"{package}.{category.__name__}", _pattern(modules)


def _pattern(expression: Any) -> str:
    """Return a regular expression as a text, "" for none. Python's own filters have texts."""
    if expression is None:
        return ""
    return str(getattr(expression, "pattern", expression))


# One block at a time: of two interleaved ones, the second would take the variables of the first
# for those of the user. The same thread may begin a block within a block.
_lock = threading.RLock()
# The blocks that are open, all of the thread that holds the lock.
_open: list[_Before] = []


@contextmanager
def leaving_no_trace(*modules: str, variables: Mapping[str, str] | None = None) -> Iterator[None]:
    """Import these modules in a block; then restore the environment and the warning filters.

    If all modules are imported already, this does nothing. Without modules, it always sets and
    restores the variables. Blocks of several threads run one after another.

    variables: environment variables to set during the block.

    >>> with leaving_no_trace(variables={"QKVSEARCH_EXAMPLE": "1"}):
    ...     os.environ["QKVSEARCH_EXAMPLE"]
    '1'
    >>> "QKVSEARCH_EXAMPLE" in os.environ
    False
    """
    if modules and all(name in sys.modules for name in modules):
        yield
        return
    with _lock:
        before = _Before(variables or {})
        _open.append(before)
        try:
            os.environ.update(variables or {})
            yield
        finally:
            before.restore()
            _open.remove(before)


@contextmanager
def ignoring_warnings(message: str, category: type[Warning]) -> Iterator[None]:
    """Ignore warnings that begin with a message in this block, in all threads.

    `warnings.catch_warnings` would also undo what other threads change meanwhile.
    """
    added = "ignore", re.compile(message, re.IGNORECASE), category, None, 0
    was_there = added in warnings.filters
    warnings.filterwarnings("ignore", message, category)
    try:
        yield
    finally:
        if not was_there:
            with suppress(ValueError):  # another thread removed it
                warnings.filters.remove(added)  # type: ignore[attr-defined]


def _end_blocks_of_others() -> None:
    """End the block of a thread that is not in this child, and free its lock."""
    if _lock._is_owned():  # type: ignore[attr-defined]
        return  # by the thread that forked: it ends the block itself
    for before in reversed(_open):
        before.restore()
    _open.clear()
    _lock._at_fork_reinit()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_end_blocks_of_others)
