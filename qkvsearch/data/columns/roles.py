"""Which column is the id, the title, the user …: as given, or guessed by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qkvsearch.data.columns.names import named, named_as_text
from qkvsearch.errors import DataError, listed_names, suggest

A_NUMBER = r"[+-]?\d+([.,]\d+)*"


@dataclass(frozen=True)
class Columns:
    """Column names as the caller gives them, None is guessed; and how the columns are read.

    types: of columns by name, "number", "date", "yes/no", "list" or "text", instead of inferred.
    rating_scale: the lowest and the highest rating that can be given, instead of inferred.
    fold_ids: ids that differ in case alone are one. strict: what would be a warning is an error.
    delimiter: what is between the cells of a text file, instead of inferred.
    """

    id: str | None = None
    title: str | None = None
    text: Sequence[str] | None = None
    user: str | None = None
    item: str | None = None
    rating: str | None = None
    time: str | None = None
    weight: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    rating_scale: tuple[float, float] | None = None
    fold_ids: bool = False
    strict: bool = False
    delimiter: str | None = None

    def refuse(self, roles: Sequence[str], file: str) -> None:
        """Raise `DataError` for a column of a file that was not given."""
        for role in roles:
            if getattr(self, role) is not None:
                column = "text_columns" if role == "text" else f"{role}_column"
                raise DataError(f"`{column}` is a column of `{file}`, which were not given")


def find_column(role: str, given: str | None, names: Sequence[str], file: str) -> str | None:
    """The column that plays `role`, or None. Raises `DataError` where the given one does not exist.

    >>> find_column("user", None, ["movieId", "userId", "rating"], "ratings.csv")
    'userId'
    """
    if given is not None:
        return check_column(given, names, file, f"`{role}_column`")
    return next(iter(named(role, names)), None)


def require_column(
    role: str, given: str | None, names: Sequence[str], file: str, listed: Sequence[str] = ()
) -> str:
    """As `find_column`, but a column that cannot be guessed is an error that lists the columns,
    or those of `listed`.
    """
    found = find_column(role, given, names, file)
    if found is None:
        raise DataError(
            f"{file}: cannot tell which column is the {role}; name it with `{role}_column` "
            f"{_listing(listed or names)}"
        )
    return found


def find_text_columns(
    given: Sequence[str] | None, title: str, names: Sequence[str], file: str
) -> list[str]:
    """The columns that search reads: as given, else the title and usual columns of prose."""
    if given is not None:
        return [check_column(name, names, file, "`text_columns`") for name in given]
    return [title, *named_as_text([name for name in names if name != title])]


def check_column(given: str, names: Sequence[str], file: str, option: str) -> str:
    """`given` as the file spells it; upper and lower case count as equal."""
    if given in names:
        return given
    for name in names:
        if name.casefold() == given.strip().casefold():
            return name
    raise DataError(
        f"{file}: no column {given!r} ({option}){suggest(given, list(names))} {_listing(names)}"
    )


def _listing(names: Sequence[str]) -> str:
    listed = f"(columns: {listed_names(names)})"
    if any(re.fullmatch(A_NUMBER, name) for name in names):
        listed += ". The first row looks like data: add a row of names above it"
    if len(names) > 1:
        return listed
    return f"{listed}. With one column the delimiter may be another one: `delimiter` says which"
