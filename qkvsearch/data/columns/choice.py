"""Which column of a table plays which role: as the caller says, by its name, or by its cells."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import pandas as pd

from qkvsearch.data.columns import (
    A_NUMBER,
    EMAIL,
    Columns,
    check_column,
    named,
)
from qkvsearch.data.columns.column_types import typed
from qkvsearch.data.files.encoded import EncodedTable
from qkvsearch.data.ids import id_texts
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import listed_names

# Number of cells, spread over the column, that are looked at.
SAMPLE_CELLS = 1_000
# More than this share of them has to be what the role needs.
MIN_SHARE = 0.5
Table: TypeAlias = pd.DataFrame | EncodedTable
Check: TypeAlias = Callable[[pd.Series], pd.Series]
BY_CALLER, BY_NAME, BY_CELLS = "your choice", "by name", "from its contents"


class Choice:
    """Roles that are assigned one after the other, each to a column that has none yet."""

    def __init__(self, table: Table, columns: Columns, report: ReadReport) -> None:
        self.table, self.columns, self.report = table, columns, report
        ignored = {name.strip().casefold() for name in columns.ignore}
        self.names = [name for name in table.columns if name.casefold() not in ignored]
        self.roles: dict[str, str] = {}
        self.reasons: dict[str, str] = {}

    def assign(self, role: str, column: str, reason: str) -> None:
        self.roles[role], self.reasons[role] = column, reason

    def free(self) -> list[str]:
        """Return the columns without a role."""
        return [name for name in self.names if name not in self.roles.values()]

    def by_caller(self, *roles: str) -> None:
        """Assign the columns that the caller names."""
        for role in roles:
            name = getattr(self.columns, role)
            if name is not None:
                column = check_column(name, self.names, self.report.file, f"`{role}_column`")
                self.assign(role, column, BY_CALLER)

    def by_name(self, role: str, fits: Check | None = None, min_share: float = MIN_SHARE) -> None:
        """Assign the first column with a usual name, if more than `min_share` of its cells fit."""
        if role in self.roles:
            return
        for name in named(role, self.free()):
            cells = sample(self.table, name)
            fitting = None if fits is None or cells.empty else fits(cells)
            if fitting is None or fitting.mean() > min_share:
                return self.assign(role, name, BY_NAME)
            row = self.report.where(cells[~fitting].index[0])
            self.report.notes.append(
                f"column {name} left out: it is named as the {role}, and row {row} does not fit"
            )

    def by_cells(self, role: str, fits: Check) -> None:
        """Assign the first free column of which enough cells fit."""
        if role in self.roles:
            return
        for name in self.free():
            cells = sample(self.table, name)
            if len(cells) and fits(cells).mean() > MIN_SHARE:
                return self.assign(role, name, BY_CELLS)

    def warn_of_no_header(self) -> None:
        """Warn where the names of the columns may be data: no role was found by one of them, and
        one is a number, or lines above them were left out.
        """
        if {BY_CALLER, BY_NAME} & {*self.reasons.values()}:
            return
        first = f"{listed_names(self.names, 3)}, and is read as the names of the columns"
        if any(re.fullmatch(A_NUMBER, name) for name in self.names):
            self.report.warnings.append(
                f"{self.report.file}: the first row looks like data, {first}; add a row of names "
                "above it"
            )
        elif self.report.above:
            self.report.warnings.append(
                f"{self.report.file}: {self.report.above!r} was left out as a title, and the row "
                f"below it may be data, {first}; give a name to each column, or quote the cells "
                "of a table of one column"
            )

    def describe(self, **others: str) -> None:
        """Write into the report which columns have which roles, and why."""
        by_reason: dict[str, list[str]] = {}
        for role, column in self.roles.items():
            by_reason.setdefault(self.reasons[role], []).append(f"{role} = {column}")
        phrases = [f"{', '.join(roles)} ({reason})" for reason, roles in by_reason.items()]
        phrases += [f"{what}: {columns}" for what, columns in others.items() if columns]
        self.report.chosen = "; ".join(phrases)


def sample(table: Table, column: str) -> pd.Series:
    """Return some of a column's cells that are not empty."""
    if not isinstance(table, pd.DataFrame):
        return table.sample(column, SAMPLE_CELLS)
    return spread(table[column].dropna())


def spread(cells: pd.Series) -> pd.Series:
    """Return some cells of a long column, spread over it."""
    return cells.iloc[:: max(1, len(cells) // SAMPLE_CELLS)]


def users_column(table: Table) -> str | None:
    """Return a column that is named as users are, or has e-mail addresses in it."""
    choice = Choice(table, Columns(), ReadReport(""))
    choice.by_name("user")
    choice.by_cells("user", are_emails)
    return choice.roles.get("user")


# --- which cells fit a role ---


def are_numbers(cells: pd.Series) -> pd.Series:
    return pd.to_numeric(cells, errors="coerce").notna()


def can_be_numbers(cells: pd.Series) -> pd.Series:
    """Return True for 1.234,50 as well, and for N/A."""
    return pd.Series(~typed(cells, "number").unfit, index=cells.index)


def are_emails(cells: pd.Series) -> pd.Series:
    return cells.str.strip().str.fullmatch(EMAIL).astype(bool)


def are_among(ids: set[str], cells: pd.Series) -> pd.Series:
    return id_texts(cells).str.casefold().isin(ids)
