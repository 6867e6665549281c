"""Which column of a table plays which role: as the caller says, by its name, or by its cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import pandas as pd

from qkvsearch.data.columns import (
    A_NUMBER,
    Columns,
    check_column,
    find_text_columns,
    named,
    named_as_text,
    require_column,
)
from qkvsearch.data.columns.column_types import typed
from qkvsearch.data.columns.dates import are_times
from qkvsearch.data.columns.facts import ColumnFacts, ColumnType
from qkvsearch.data.files.encoded import EncodedTable
from qkvsearch.data.ids import Ids, id_texts
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import listed_names
from qkvsearch.terminal import shorten

# Number of cells, spread over the column, that are looked at.
SAMPLE_CELLS = 1_000
# More than this share of them has to be what the role needs.
MIN_SHARE = 0.5
Table: TypeAlias = pd.DataFrame | EncodedTable
Check: TypeAlias = Callable[[pd.Series], pd.Series]
EMAIL = r"[^@\s]+@[^@\s]+\.[^@\s.]+"
# Neither prose nor a price.
LIKE_AN_ID = r"(?!\d+[.,]\d+$)\S{1,64}"
# Several words, and no sentences of prose.
LIKE_A_TITLE = r"(?=.{3,120}$)(?=.*[^\W\d_]{2})\S+(\s+\S+)+"
BY_CALLER, BY_NAME, BY_CELLS = "your choice", "by name", "from its contents"
BY_LOG = "by the items of the interactions"
LOG_TYPES: dict[str, ColumnType] = {
    "user": "text", "item": "text", "rating": "number", "weight": "number", "time": "date",
}  # fmt: skip


@dataclass(frozen=True)
class LogChoice:
    """The columns of a log. times_comparable: False if its times are ranks within each user."""

    user: str
    item: str
    rating: str | None = None
    weight: str | None = None
    time: str | None = None
    times_comparable: bool = True


@dataclass(frozen=True)
class CatalogChoice:
    """The columns of a catalog. The title may be the id; text: those that search reads."""

    id: str
    title: str
    text: list[str]


class _Choice:
    """Roles that are assigned one after the other, each to a column that has none yet."""

    def __init__(self, table: Table, columns: Columns, report: ReadReport) -> None:
        self.table, self.columns, self.report = table, columns, report
        self.names = list(table.columns)
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
            cells = _sample(self.table, name)
            fitting = None if fits is None or cells.empty else fits(cells)
            if fitting is None or fitting.mean() > min_share:
                return self.assign(role, name, BY_NAME)
            row, cell = next(cells[~fitting].items())
            self.report.notes.append(
                f"column {name} left out: it is named as the {role}, and row {row} has "
                f"{shorten(cell)!r}"
            )

    def by_cells(self, role: str, fits: Check) -> None:
        """Assign the first free column of which enough cells fit."""
        if role in self.roles:
            return
        for name in self.free():
            cells = _sample(self.table, name)
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


def choose_log_columns(
    table: EncodedTable, columns: Columns, report: ReadReport, item_ids: Ids | None
) -> LogChoice:
    """Choose the columns of a log, and describe the choice in `report`.

    item_ids: those of the catalog, among which an item has to be. Raises `DataError` where no
    column can be the user or the item.
    """
    choice = _Choice(table, columns, report)
    in_catalog = None
    if item_ids is not None:
        in_catalog = partial(_are_among, {text.casefold() for text in item_ids.texts})
    choice.by_caller("user", "item", "rating", "weight", "time")
    choice.by_name("user")
    choice.by_name("item", in_catalog, min_share=0)
    choice.by_name("rating")
    choice.by_name("weight", _can_be_numbers)
    choice.by_name("time", lambda cells: are_times(cells) | _are_numbers(cells))
    comparable = True
    if "time" not in choice.roles and "time_rank_in_user" in choice.free():
        choice.assign("time", "time_rank_in_user", BY_NAME)
        comparable = False
    choice.by_cells("user", _are_emails)
    if in_catalog is not None:
        choice.by_cells("item", in_catalog)
    for role in ("user", "item"):
        if role not in choice.roles:  # an error, or a column of items that the catalog lacks
            column = require_column(role, None, choice.free(), report.file, choice.names)
            choice.assign(role, column, BY_NAME)
    choice.by_cells("time", are_times)
    choice.describe(unused=listed_names(choice.free()))
    report.columns.extend(
        ColumnFacts(name, role, LOG_TYPES[role]).of(*table.filled(name))
        for role, name in choice.roles.items()
    )
    return LogChoice(**choice.roles, times_comparable=comparable)


def choose_catalog_columns(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, log: EncodedTable | None = None
) -> CatalogChoice:
    """Choose the columns of a catalog, and describe the choice in `report`.

    log: the interactions with these items, if any. Raises `DataError` where no column can be the
    id.
    """
    choice = _Choice(frame, columns, report)
    choice.by_caller("id", "title")
    if log is not None and "id" not in choice.roles and (column := _id_in_log(choice, frame, log)):
        choice.assign("id", column, BY_LOG)
    choice.by_name("id")
    choice.by_name("title")
    if len(choice.names) > 1:
        choice.by_cells("id", partial(_are_ids, frame))
    if "id" not in choice.roles:
        require_column("id", None, choice.free(), report.file, choice.names)
    if columns.text is None:
        prose = named_as_text(choice.names)
        choice.by_cells("title", partial(_are_titles, prose))
        choice.by_cells("title", partial(_are_titles, ()))
    choice.warn_of_no_header()
    id_ = choice.roles["id"]
    title = choice.roles.get("title", id_)
    text = find_text_columns(columns.text, title, choice.names, report.file)
    choice.describe(searched=listed_names(text))
    return CatalogChoice(id_, title, text)


def _id_in_log(choice: _Choice, frame: pd.DataFrame, log: EncodedTable) -> str | None:
    """Return the first column whose values a column of the log names items by, if there is one.

    A catalog may have several ids, such as a SKU and an EAN. Columns named as ids come first.
    """
    item = choice.columns.item
    items = [item] if item in log else named("item", list(log.columns))
    samples = [_sample(log, str(name)) for name in items]
    ids = named("id", choice.free())
    for name in [*ids, *(name for name in choice.free() if name not in ids)]:
        values = set(id_texts(frame[name].dropna()).str.casefold())
        if any(len(cells) and _are_among(values, cells).mean() > MIN_SHARE for cells in samples):
            return name
    return None


def _sample(table: Table, column: str) -> pd.Series:
    """Return some of a column's cells that are not empty."""
    if not isinstance(table, pd.DataFrame):
        return table.sample(column, SAMPLE_CELLS)
    cells = table[column].dropna()
    return cells.iloc[:: max(1, len(cells) // SAMPLE_CELLS)]


def has_users(table: Table) -> bool:
    """Return whether a column is named as users are, or has e-mail addresses in it."""
    choice = _Choice(table, Columns(), ReadReport(""))
    choice.by_name("user")
    choice.by_cells("user", _are_emails)
    return "user" in choice.roles


# --- which cells fit a role ---


def _are_numbers(cells: pd.Series) -> pd.Series:
    return pd.to_numeric(cells, errors="coerce").notna()


def _can_be_numbers(cells: pd.Series) -> pd.Series:
    """Return True for 1.234,50 as well, and for N/A."""
    return pd.Series(~typed(cells, "number").unfit, index=cells.index)


def _are_emails(cells: pd.Series) -> pd.Series:
    return cells.str.strip().str.fullmatch(EMAIL).astype(bool)


def _are_among(ids: set[str], cells: pd.Series) -> pd.Series:
    return id_texts(cells).str.casefold().isin(ids)


def _are_ids(frame: pd.DataFrame, cells: pd.Series) -> pd.Series:
    """Return which cells look like ids; none where two rows have the same or one is a date."""
    column = frame[cells.name]
    if len(column) < 2 or column.hasnans or not column.is_unique or are_times(cells).any():
        return pd.Series(False, index=cells.index)
    return cells.str.strip().str.fullmatch(LIKE_AN_ID).astype(bool)


def _are_titles(prose: Sequence[str], cells: pd.Series) -> pd.Series:
    """Return which cells have a few words; none in a column of `prose`, or of repeated cells."""
    if cells.name in prose or cells.nunique() <= MIN_SHARE * len(cells) or are_times(cells).any():
        return pd.Series(False, index=cells.index)
    return cells.str.strip().str.fullmatch(LIKE_A_TITLE).astype(bool)
