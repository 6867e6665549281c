"""Errors that users can cause; each message says what is wrong, where, and what to do.

Parameters are named as in Python, in backticks: `recent`. The command line replaces these names by
its options: `--recent`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from qkvsearch.imports import leaving_no_trace
from qkvsearch.terminal import in_one_line, shorten

# Shorter words are contained in too many names.
MIN_SUBSTRING = 3


class QkvError(Exception):
    """Base of all errors that are caused by input or circumstances, not by a bug.

    Its text is one line that is safe to show in a terminal, whatever it quotes.

    >>> str(QkvError("no item 'a\\x1b[2J'"))
    "no item 'a\\\\u001b[2J'"
    """

    def __str__(self) -> str:
        return in_one_line(super().__str__())


class DataError(QkvError, ValueError):
    """A file, a column or a value cannot be used as it is."""


class UnknownIdError(QkvError, LookupError):
    """An id or title that does not exist; the message lists near matches."""


class WorkspaceError(QkvError):
    """A workspace is missing, damaged, of another version, or lacks what a command needs."""


class BusyError(WorkspaceError):
    """Somebody else is writing to the workspace, and did not end in time: try again later."""


class NotBuiltError(WorkspaceError):
    """The workspace was built without what is asked for."""


class DamagedError(WorkspaceError):
    """A file of a workspace has changed. `file`: its path. `what`: what is wrong."""

    def __init__(self, file: Any, what: str, advice: str = "") -> None:
        self.file, self.what = file, what
        advice = advice or "qkvsearch info --verify lists the damage, qkvsearch repair repairs it"
        super().__init__(f"{file}: damaged: {what}; {advice}")


# What somebody who does not own the workspace is told of errors whose causes are for the log.
BUSY = "somebody else is changing the workspace: try again in some seconds"
UNAVAILABLE = (
    "the workspace cannot answer this now; whoever runs the server finds the cause in its log"
)
BUG = "an internal error; whoever runs the server finds the cause in its log"


def is_of_workspace(error: Exception) -> bool:
    """Return whether an error is of the workspace, and not the fault of who asks. Its message names
    files: it is for the log.
    """
    return isinstance(error, WorkspaceError) and not isinstance(error, NotBuiltError)


def for_others(error: QkvError) -> str:
    """Return the message of an error for somebody who does not own the workspace."""
    if isinstance(error, BusyError):
        return BUSY
    return UNAVAILABLE if is_of_workspace(error) else str(error)


def need(
    library: str,
    extra: str,
    task: str,
    instead: str = "",
    name: str = "",
    error: type[QkvError] = QkvError,
    variables: Mapping[str, str] | None = None,
) -> Any:
    """Import and return a library that belongs to an extra of this package.

    If it is missing, raise `error` with the `task`, the `name` of the library, how to install it,
    and the alternative `instead`. variables: environment variables to set during
    the import.
    """
    try:
        with leaving_no_trace(library, variables=variables):
            return import_module(library)
    except ImportError:
        called = name or library.partition(".")[0]
        raise error(f"{task} needs {called}: {install(extra)}{instead}") from None


def install(extra: str) -> str:
    """Return the command that installs an extra of this package, in its folder in a checkout."""
    is_source = (Path(__file__).parents[1] / "pyproject.toml").is_file()
    return f"pip install {'-e ' if is_source else ''}'{'.' if is_source else 'qkvsearch'}[{extra}]'"


def suggest(word: str, names: list[str]) -> str:
    """Return a clause that suggests near matches, or names that contain the word; else "".

    >>> suggest("genre", ["genres", "year", "title"]), suggest("price", ["Price (gross) in EUR"])
    ('; did you mean genres?', '; did you mean Price (gross) in EUR?')
    """
    from difflib import get_close_matches

    word, by_folded = word.casefold(), {name.casefold(): name for name in names}
    close = get_close_matches(word, by_folded, n=3, cutoff=0.6)
    if not close and len(word) >= MIN_SUBSTRING:
        close = [name for name in by_folded if word in name][:3]
    return f"; did you mean {', '.join(by_folded[name] for name in close)}?" if close else ""


def quantity(number: int, noun: str) -> str:
    """Format a number of things for a message.

    >>> quantity(1, "previous build"), quantity(1200, "user")
    ('1 previous build', '1,200 users')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """Format a time for a message.

    >>> duration(1), duration(0.5)
    ('1 second', '0.5 seconds')
    """
    return f"{seconds:g} {'second' if seconds == 1 else 'seconds'}"


class Count(int):
    """A number in a sentence, and the form of the words that go with it.

    >>> "{n} {n:row is|rows are} empty".format(n=Count(1))
    '1 row is empty'
    >>> "{n} {n:row is|rows are} empty".format(n=Count(1200))
    '1,200 rows are empty'
    """

    def __format__(self, form: str) -> str:
        if not form:
            return f"{int(self):,}"
        one, several = form.split("|")
        return one if self == 1 else several


def listed_names(names: Sequence[str], max_names: int = 20, max_length: int = 40) -> str:
    """List names for a message: not too many, and none too long.

    >>> listed_names(["a", "b" * 99, "c"], max_names=2)
    'a, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb… and 1 more'
    """
    shown = ", ".join(shorten(name, max_length) for name in names[:max_names])
    n_hidden = len(names) - max_names
    return shown if n_hidden <= 0 else f"{shown} and {n_hidden:,} more"
