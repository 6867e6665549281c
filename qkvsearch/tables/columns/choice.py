"""Which column of a table plays which role: as the caller says, by its name, or by its cells."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import pandas as pd

from qkvsearch.errors import DataError, listed_names
from qkvsearch.tables.columns import (
    A_NUMBER,
    EMAIL,
    Columns,
    check_column,
    named,
    require_column,
)
from qkvsearch.tables.columns.column_types import typed
from qkvsearch.tables.columns.dates import are_times
from qkvsearch.tables.columns.events import named_as_taking_back
from qkvsearch.tables.columns.facts import ColumnFacts, ColumnType
from qkvsearch.tables.columns.row_meaning import check_meaning, says_nothing
from qkvsearch.tables.columns.searched import holds_codes, why_unsearched
from qkvsearch.tables.files.encoded import EncodedTable
from qkvsearch.tables.ids import Ids, id_texts
from qkvsearch.tables.layouts import layout_hint
from qkvsearch.tables.report import ReadReport

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
        self.names = columns.not_ignored(table.columns)
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


# --- the columns of a log ---


LOG_TYPES: dict[str, ColumnType] = {
    "user": "text", "item": "text", "rating": "number", "weight": "number", "event": "text",
    "time": "date",
}  # fmt: skip


@dataclass(frozen=True)
class LogChoice:
    """The columns of a log. times_comparable: False if its times are ranks within each user."""

    user: str
    item: str
    rating: str | None = None
    weight: str | None = None
    event: str | None = None
    time: str | None = None
    times_comparable: bool = True


def choose_log_columns(
    table: EncodedTable, columns: Columns, report: ReadReport, item_ids: Ids | None
) -> LogChoice:
    """Choose the columns of a log, and describe the choice in `report`.

    item_ids: those of the catalog, among which an item has to be. Raises `DataError` where no
    column can be the user or the item.
    """
    choice = Choice(table, columns, report)
    in_catalog = None
    if item_ids is not None:
        in_catalog = partial(are_among, {text.casefold() for text in item_ids.texts})
    choice.by_caller("user", "item", "rating", "weight", "event", "time")
    choice.by_name("user")
    choice.by_name("item", in_catalog, min_share=0)
    choice.by_name("rating")
    choice.by_name("weight", can_be_numbers)
    choice.by_name("time", lambda cells: are_times(cells) | are_numbers(cells), min_share=0.499)
    comparable = True
    if "time" not in choice.roles and "time_rank_in_user" in choice.free():
        choice.assign("time", "time_rank_in_user", BY_NAME)
        comparable = False
    choice.by_cells("user", are_emails)
    if in_catalog is not None:
        choice.by_cells("item", in_catalog)
    for role in ("user", "item"):
        if role not in choice.roles:  # an error, or a column of items that the catalog lacks
            try:
                column = require_column(role, None, choice.free(), report.file, choice.names)
            except DataError as error:
                raise DataError(f"{error}{layout_hint(table, report)}") from None
            choice.assign(role, column, BY_NAME)
    if re.fullmatch(EMAIL, choice.roles["user"].strip()):
        raise DataError(
            f"{report.file}: the first row has an e-mail address and is read as the names of the "
            "columns: add a row of names above it"
        )
    choice.by_cells("time", lambda cells: are_times(cells) & (not named_as_taking_back(cells.name)))
    ids = [choice.roles["item"]]
    for name in named("event", choice.free()):
        if "event" not in choice.roles and not says_nothing(table, name, ids):
            choice.assign("event", name, BY_NAME)
    if columns.event_weights and "event" not in choice.roles:
        raise DataError(
            f"{report.file}: `event_weights` is of events, and no column looks like any; name it "
            "with `event_column`"
        )
    check_meaning(table, choice.free(), choice.roles, columns, report.file)
    choice.describe(unused=listed_names(choice.free()))
    report.columns.extend(
        ColumnFacts(name, role, LOG_TYPES[role]).of(*table.filled(name))
        for role, name in choice.roles.items()
    )
    return LogChoice(**choice.roles, times_comparable=comparable)


# --- the columns of a catalog ---


# What the name of a single column has where cells are separated by another sign than expected.
DELIMITER = re.compile(r"[,;|\t:^~/]")
# A short text with a word in it.
LIKE_A_TITLE = re.compile(r"(?=.*[^\W\d_]{2}).{2,120}")
BY_LOG = "by the items of the interactions"


@dataclass(frozen=True)
class CatalogChoice:
    """The columns of a catalog. id: None where the numbers of the rows are the ids. title: the id,
    None included, where no column is the title.
    """

    id: str | None
    title: str | None


def choose_catalog_columns(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, log: EncodedTable | None = None
) -> CatalogChoice:
    """Choose the columns of a catalog, and describe the choice in `report`.

    log: the interactions with these items, if any. Raises `DataError` where no column can be the
    id of the items of a log.
    """
    choice = Choice(frame, columns, report)
    choice.by_caller("id", "title")
    if log is not None and "id" not in choice.roles and (column := _id_in_log(choice, frame, log)):
        choice.assign("id", column, BY_LOG)
    choice.by_name("id")
    choice.by_name("title")
    if "id" not in choice.roles:
        codes = [name for name in choice.free() if _are_ids(frame[name])]
        if codes and len(choice.names) > 1:
            choice.assign("id", codes[0], BY_CELLS)
    is_one = len(choice.names) == 1 and DELIMITER.search(choice.names[0])
    if "id" not in choice.roles and (log is not None or is_one):
        require_column("id", None, choice.free(), report.file, choice.names)
    if "title" not in choice.roles:
        titles = [name for name in choice.free() if _are_titles(frame[name])]
        if titles:
            choice.assign("title", titles[0], BY_CELLS)
    choice.warn_of_no_header()
    id_ = choice.roles.get("id")
    choice.describe(id="" if id_ else "the number of the row (`id_column` names a column)")
    return CatalogChoice(id_, choice.roles.get("title", id_))


def _id_in_log(choice: Choice, frame: pd.DataFrame, log: EncodedTable) -> str | None:
    """Return the first column whose values a column of the log names items by, if there is one.

    A catalog may have several ids, such as a SKU and an EAN. Columns named as ids come first.
    """
    item = choice.columns.item
    items = [item] if item in log else named("item", list(log.columns))
    samples = [sample(log, str(name)) for name in items]
    ids = named("id", choice.free())
    for name in [*ids, *(name for name in choice.free() if name not in ids)]:
        values = set(id_texts(frame[name].dropna()).str.casefold())
        if any(len(cells) and are_among(values, cells).mean() > MIN_SHARE for cells in samples):
            return name
    return None


def _are_ids(column: pd.Series) -> bool:
    """Return whether a column has a code of its own in every row."""
    if len(column) < 2 or column.hasnans or not column.is_unique:
        return False
    cells = spread(column)
    return not are_times(cells).any() and holds_codes(typed(cells).cells)


def _are_titles(column: pd.Series) -> bool:
    """Return whether a column has short texts that search reads, most of which differ."""
    cells = spread(column.dropna())
    if cells.empty or cells.nunique() <= MIN_SHARE * len(cells) or are_times(cells).any():
        return False
    texts = typed(cells)
    is_title = cells.str.strip().str.fullmatch(LIKE_A_TITLE)
    return texts.type == "text" and not why_unsearched(texts.cells) and is_title.mean() > MIN_SHARE
