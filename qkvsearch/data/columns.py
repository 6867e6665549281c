"""Which column is the id, the title, the user …: as told, or by the names people usually give."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qkvsearch.errors import DataError, suggest

# In order of preference; compared without case, spaces, dashes and underscores.
COMMON_NAMES = {
    "id": "id itemid videoid movieid filmid productid articleid docid talkid bookid asin isbn "
    "item video movie",
    "title": "title name headline itemtitle videotitle movietitle originaltitle label",
    "user": "user userid username uid customer customerid reviewer reviewerid viewer member "
    "account visitor visitorid person",
    "item": "item itemid video videoid movie movieid film filmid product productid article "
    "articleid doc docid book bookid talk talkid asin isbn id",
    "rating": "rating score stars rate overall grade",
    "time": "timestamp time date datetime unixtime unixreviewtime watchedat viewedat createdat "
    "eventtime",
}
TEXT_NAMES = (
    "title name headline tags keywords genres genre categories category subjects description "
    "overview summary abstract plot body text content channel channeltitle author speaker artist "
    "director cast"
).split()


@dataclass(frozen=True)
class Columns:
    """Column names as told by the person; None is to be guessed."""

    id: str | None = None
    title: str | None = None
    text: Sequence[str] | None = None
    user: str | None = None
    item: str | None = None
    rating: str | None = None
    time: str | None = None

    def refuse(self, roles: Sequence[str], file: str) -> None:
        """Raise `DataError` for a column that was told of a file that was not given."""
        for role in roles:
            if getattr(self, role) is not None:
                option = "text-columns" if role == "text" else f"{role}-column"
                raise DataError(f"--{option} is a column of --{file}, which were not given")


def find_column(role: str, told: str | None, names: Sequence[str], file: str) -> str | None:
    """The column that plays `role`, or None. Raises `DataError` where a told one is not there.

    >>> find_column("user", None, ["movieId", "userId", "rating"], "ratings.csv")
    'userId'
    """
    if told is not None:
        return check_column(told, names, file, f"--{role}-column")
    folded = {_fold(name): name for name in reversed(names)}
    common = COMMON_NAMES[role].split()
    return next((folded[name] for name in common if name in folded), None)


def require_column(role: str, told: str | None, names: Sequence[str], file: str) -> str:
    """As `find_column`, but one that cannot be guessed is an error that lists what is there."""
    found = find_column(role, told, names, file)
    if found is None:
        raise DataError(
            f"{file}: cannot tell which column is the {role}; name it with --{role}-column "
            f"{_listing(names)}"
        )
    return found


def find_text_columns(
    told: Sequence[str] | None, title: str, names: Sequence[str], file: str
) -> list[str]:
    """The columns that search reads: as told, else the title and whatever is usually prose."""
    if told is not None:
        return [check_column(name, names, file, "--text-columns") for name in told]
    prose = {name: _fold(name) for name in names if _fold(name) in TEXT_NAMES and name != title}
    return [title, *sorted(prose, key=lambda name: TEXT_NAMES.index(prose[name]))]


def check_column(told: str, names: Sequence[str], file: str, option: str) -> str:
    """`told` as it is spelled in the file, whatever its case."""
    if told in names:
        return told
    for name in names:
        if name.casefold() == told.strip().casefold():
            return name
    raise DataError(
        f"{file}: no column {told!r} ({option}){suggest(told, list(names))} {_listing(names)}"
    )


def _listing(names: Sequence[str]) -> str:
    listed = f"(columns: {', '.join(names)})"
    if len(names) > 1:
        return listed
    return (
        f"{listed}. With one column the delimiter may be another: columns are split at , ; | or "
        "tab, in a .tsv file at tabs alone"
    )


def _fold(name: str) -> str:
    return re.sub(r"[\s_\-.]+", "", name).casefold()
