"""Which column of a table plays which role: as told, else by its name, else by its cells."""

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

# So many cells, spread over the column, tell what is in it.
LOOKED_AT = 1_000
# More than this share of the cells looked at has to be what the role needs.
ENOUGH = 0.5
Table: TypeAlias = pd.DataFrame | EncodedTable
Check: TypeAlias = Callable[[pd.Series], pd.Series]
EMAIL = r"[^@\s]+@[^@\s]+\.[^@\s.]+"
# Neither prose nor a price.
LIKE_AN_ID = r"(?!\d+[.,]\d+$)\S{1,64}"
# Several words, and no sentences of prose.
LIKE_A_TITLE = r"(?=.{3,120}$)(?=.*[^\W\d_]{2})\S+(\s+\S+)+"
TOLD, BY_NAME, BY_CELLS = "told", "by name", "by what is in it"
BY_LOG = "by the items of the interactions"
LOG_TYPES: dict[str, ColumnType] = {
    "user": "text", "item": "text", "rating": "number", "weight": "number", "time": "date",
}  # fmt: skip


@dataclass(frozen=True)
class LogChoice:
    """The columns of a log; times_comparable: its times are no ranks within each user."""

    user: str
    item: str
    rating: str | None = None
    weight: str | None = None
    time: str | None = None
    times_comparable: bool = True


@dataclass(frozen=True)
class CatalogChoice:
    """The columns of a catalog; the title may be the id."""

    id: str
    title: str
    text: list[str]


class _Choice:
    """Roles given one after the other, each to a column that is still free."""

    def __init__(self, table: Table, columns: Columns, report: ReadReport) -> None:
        self.table, self.columns, self.report = table, columns, report
        self.names = list(table.columns)
        self.found: dict[str, str] = {}
        self.how: dict[str, str] = {}

    def told(self, *roles: str) -> None:
        for role in roles:
            given = getattr(self.columns, role)
            if given is not None:
                column = check_column(given, self.names, self.report.file, f"`{role}_column`")
                self.take(role, column, TOLD)

    def take(self, role: str, column: str, how: str) -> None:
        self.found[role], self.how[role] = column, how

    def free(self) -> list[str]:
        return [name for name in self.names if name not in self.found.values()]

    def by_name(self, role: str, fits: Check | None = None, least: float = ENOUGH) -> None:
        """The first column so named of whose cells more than the least share fit."""
        if role in self.found:
            return
        for name in named(role, self.free()):
            cells = _some_cells(self.table, name)
            fitting = None if fits is None or cells.empty else fits(cells)
            if fitting is None or fitting.mean() > least:
                return self.take(role, name, BY_NAME)
            row, cell = next(cells[~fitting].items())
            self.report.notes.append(
                f"column {name} left out: it is named as the {role}, and row {row} has "
                f"{shorten(cell)!r}"
            )

    def by_cells(self, role: str, fits: Check) -> None:
        """The first free column of whose cells enough fit."""
        if role in self.found:
            return
        for name in self.free():
            cells = _some_cells(self.table, name)
            if len(cells) and fits(cells).mean() > ENOUGH:
                return self.take(role, name, BY_CELLS)

    def warn_of_no_header(self) -> None:
        """Warn where the names of the columns may be data: no role was found by one of them, and
        one is a number, or lines above them were left out.
        """
        if {TOLD, BY_NAME} & {*self.how.values()}:
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

    def say(self, **more: str) -> None:
        """In the report, which columns were taken for what, and how."""
        by_way: dict[str, list[str]] = {}
        for role, column in self.found.items():
            by_way.setdefault(self.how[role], []).append(f"{role} = {column}")
        said = [f"{', '.join(taken)} ({how})" for how, taken in by_way.items()]
        said += [f"{what}: {columns}" for what, columns in more.items() if columns]
        self.report.chosen = "; ".join(said)


def choose_log_columns(
    table: EncodedTable, columns: Columns, report: ReadReport, item_ids: Ids | None
) -> LogChoice:
    """Adds to `report` which columns were chosen and how, and those that nothing uses.

    item_ids: those of the catalog, among which an item has to be. Raises `DataError` where no
    column can be the user or the item.
    """
    choice = _Choice(table, columns, report)
    known = (
        None if item_ids is None else partial(_are_known, {t.casefold() for t in item_ids.texts})
    )
    choice.told("user", "item", "rating", "weight", "time")
    choice.by_name("user")
    choice.by_name("item", known, least=0)
    choice.by_name("rating")
    choice.by_name("weight", _read_as_numbers)
    choice.by_name("time", lambda cells: are_times(cells) | _are_numbers(cells))
    comparable = True
    if "time" not in choice.found and "time_rank_in_user" in choice.free():
        choice.take("time", "time_rank_in_user", BY_NAME)
        comparable = False
    choice.by_cells("user", _are_emails)
    if known is not None:
        choice.by_cells("item", known)
    for role in ("user", "item"):
        if role not in choice.found:  # which raises, but for an item of no known id
            free = choice.free()
            found = require_column(role, None, free, report.file, choice.names)
            choice.take(role, found, BY_NAME)
    choice.by_cells("time", are_times)
    choice.say(unused=listed_names(choice.free()))
    report.columns.extend(
        ColumnFacts(name, role, LOG_TYPES[role]).of(*table.filled(name))
        for role, name in choice.found.items()
    )
    return LogChoice(**choice.found, times_comparable=comparable)


def choose_catalog_columns(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, log: EncodedTable | None = None
) -> CatalogChoice:
    """Adds to `report` which columns were chosen and how. log: the interactions that name these
    items, if any. Raises `DataError` where no column can be the id.
    """
    choice = _Choice(frame, columns, report)
    choice.told("id", "title")
    if log is not None and "id" not in choice.found and (shared := _id_in_log(choice, frame, log)):
        choice.take("id", shared, BY_LOG)
    choice.by_name("id")
    choice.by_name("title")
    if len(choice.names) > 1:
        choice.by_cells("id", partial(_are_ids, frame))
    if "id" not in choice.found:
        require_column("id", None, choice.free(), report.file, choice.names)
    if columns.text is None:
        prose = named_as_text(choice.names)
        choice.by_cells("title", partial(_are_titles, prose))
        choice.by_cells("title", partial(_are_titles, ()))
    choice.warn_of_no_header()
    id_ = choice.found["id"]
    title = choice.found.get("title", id_)
    text = find_text_columns(columns.text, title, choice.names, report.file)
    choice.say(searched=listed_names(text))
    return CatalogChoice(id_, title, text)


def _id_in_log(choice: _Choice, frame: pd.DataFrame, log: EncodedTable) -> str | None:
    """The first column, those named as ids before others, by whose values a column of the log names
    items: a catalog may have several ids, such as a SKU and an EAN.
    """
    told = choice.columns.item
    items = [told] if told in log else named("item", list(log.columns))
    cells = [_some_cells(log, str(name)) for name in items]
    ids = named("id", choice.free())
    for name in [*ids, *(name for name in choice.free() if name not in ids)]:
        known = set(id_texts(frame[name].dropna()).str.casefold())
        if any(len(some) and _are_known(known, some).mean() > ENOUGH for some in cells):
            return name
    return None


def _some_cells(table: Table, column: str) -> pd.Series:
    """Some of a column's cells that are not empty."""
    if not isinstance(table, pd.DataFrame):
        return table.some_cells(column, LOOKED_AT)
    cells = table[column].dropna()
    return cells.iloc[:: max(1, len(cells) // LOOKED_AT)]


def has_users(table: Table) -> bool:
    """Whether a column is named as users are, or has e-mail addresses in it."""
    choice = _Choice(table, Columns(), ReadReport(""))
    choice.by_name("user")
    choice.by_cells("user", _are_emails)
    return "user" in choice.found


def _are_numbers(cells: pd.Series) -> pd.Series:
    return pd.to_numeric(cells, errors="coerce").notna()


def _read_as_numbers(cells: pd.Series) -> pd.Series:
    """True as well for 1.234,50 and for what says that there is nothing."""
    return pd.Series(~typed(cells, "number").unfit, index=cells.index)


def _are_emails(cells: pd.Series) -> pd.Series:
    return cells.str.strip().str.fullmatch(EMAIL).astype(bool)


def _are_known(ids: set[str], cells: pd.Series) -> pd.Series:
    return id_texts(cells).str.casefold().isin(ids)


def _are_ids(frame: pd.DataFrame, cells: pd.Series) -> pd.Series:
    """Where every row has a cell of its own, those without spaces, and neither prices nor dates."""
    column = frame[cells.name]
    if len(column) < 2 or column.hasnans or not column.is_unique or are_times(cells).any():
        return pd.Series(False, index=cells.index)
    return cells.str.strip().str.fullmatch(LIKE_AN_ID).astype(bool)


def _are_titles(prose: Sequence[str], cells: pd.Series) -> pd.Series:
    """Where most cells differ, those of a few words; not in a column of `prose`."""
    if cells.name in prose or cells.nunique() <= ENOUGH * len(cells) or are_times(cells).any():
        return pd.Series(False, index=cells.index)
    return cells.str.strip().str.fullmatch(LIKE_A_TITLE).astype(bool)
