"""The errors a person can cause: each message says what is wrong, where, and what to do.

Parameters are named as Python spells them, in backticks: `recent`. The command line puts its own
spelling there, `--recent`.
"""


class QkvError(Exception):
    """Base of every error that comes from input or circumstances rather than from a bug."""


class DataError(QkvError, ValueError):
    """A file, a column or a value cannot be used as it is."""


class UnknownIdError(QkvError, LookupError):
    """An id or title that is not there; the message lists near matches."""


class WorkspaceError(QkvError):
    """A workspace is missing, damaged, from a newer version, or lacks what was asked of it."""


def suggest(word: str, known: list[str]) -> str:
    """A clause that names near matches, or nothing.

    >>> suggest("genre", ["genres", "year", "title"])
    '; did you mean genres?'
    """
    from difflib import get_close_matches

    by_folded = {name.casefold(): name for name in known}
    close = get_close_matches(word.casefold(), by_folded, n=3, cutoff=0.6)
    return f"; did you mean {', '.join(by_folded[name] for name in close)}?" if close else ""
