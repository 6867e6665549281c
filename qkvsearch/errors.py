"""The errors a person can cause: each message says what is wrong, where, and what to do.

Parameters are named as Python spells them, in backticks: `recent`. The command line puts its own
spelling there, `--recent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from qkvsearch.terminal import in_one_line, shorten

# Of a word as short as one or two letters too many others are made.
SHORTEST_PART = 3


class QkvError(Exception):
    """Base of every error that comes from input or circumstances rather than from a bug. Its text
    is one line that a terminal can show, whatever is named in it.
    """

    def __str__(self) -> str:
        return in_one_line(super().__str__())


class DataError(QkvError, ValueError):
    """A file, a column or a value cannot be used as it is."""


class UnknownIdError(QkvError, LookupError):
    """An id or title that is not there; the message lists near matches."""


class WorkspaceError(QkvError):
    """A workspace is missing, damaged, from a newer version, or lacks what was asked of it."""


class DamagedError(WorkspaceError):
    """A file of a workspace is not as it was written. `file`: its path. `what`: what is wrong."""

    def __init__(self, file: Any, what: str, advice: str = "") -> None:
        self.file, self.what = file, what
        advice = (
            advice
            or "see what is damaged with qkvsearch info --verify, mend it with qkvsearch repair"
        )
        super().__init__(f"{file}: damaged: {what}; {advice}")


def need(
    library: str,
    extra: str,
    task: str,
    instead: str = "",
    name: str = "",
    error: type[QkvError] = QkvError,
) -> Any:
    """A library that comes with an extra of this package, imported.

    Raises `error`, which says what the `task` needs, by its `name`, how to install it, and what
    there is `instead`.
    """
    try:
        return import_module(library)
    except ImportError:
        called = name or library.partition(".")[0]
        raise error(f"{task} needs {called}: pip install 'qkvsearch[{extra}]'{instead}") from None


def suggest(word: str, known: list[str]) -> str:
    """A clause that names near matches, or those that the word is part of, or nothing.

    >>> suggest("genre", ["genres", "year", "title"]), suggest("price", ["Price (gross) in EUR"])
    ('; did you mean genres?', '; did you mean Price (gross) in EUR?')
    """
    from difflib import get_close_matches

    word, by_folded = word.casefold(), {name.casefold(): name for name in known}
    close = get_close_matches(word, by_folded, n=3, cutoff=0.6)
    if not close and len(word) >= SHORTEST_PART:
        close = [name for name in by_folded if word in name][:3]
    return f"; did you mean {', '.join(by_folded[name] for name in close)}?" if close else ""


def quantity(number: int, noun: str) -> str:
    """A number of things, for a message.

    >>> quantity(1, "former build"), quantity(1200, "user")
    ('1 former build', '1,200 users')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed_names(names: Sequence[str], most: int = 20, longest: int = 40) -> str:
    """Names for a message: not too many, and none too long.

    >>> listed_names(["a", "b" * 99, "c"], most=2)
    'a, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb… and 1 more'
    """
    shown = ", ".join(shorten(name, longest) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
