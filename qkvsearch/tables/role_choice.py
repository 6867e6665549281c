"""Which column of a table plays which role: as the caller says, by its name, or by its cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import pandas as pd

from qkvsearch._utils.caching import cached_property
from qkvsearch.errors import DataError, listed_names
from qkvsearch.tables.column_facts import ColumnFacts
from qkvsearch.tables.column_types.inference import typed
from qkvsearch.tables.columns import (
    A_NUMBER,
    EMAIL,
    Columns,
    check_column,
    folded,
    named,
    require_column,
)
from qkvsearch.tables.columns.dates import are_times
from qkvsearch.tables.columns.events import named_as_taking_back
from qkvsearch.tables.columns.row_meaning import check_meaning, is_constant_within
from qkvsearch.tables.columns.searched import holds_codes, why_unsearched
from qkvsearch.tables.ids import Ids, id_texts
from qkvsearch.tables.layouts import layout_hint
from qkvsearch.tables.report import FILE_ROWS, ReadReport
from qkvsearch.tables.table import Table

# Number of cells, spread over the column, that are looked at.
SAMPLE_CELLS = 1_000
# More than this share of them has to be what the role needs.
MIN_SHARE = 0.5
# A column of such a name may as well have amounts, so its cells have to say that it is an id.
A_NUMBERS_NAME = frozenset(("nr", "no", "nummer", "numer", "numero", "номер", "番号", "번호"))
# A catalog is a frame, and a log a table.
FrameOrTable: TypeAlias = pd.DataFrame | Table
BY_CALLER, BY_NAME, BY_CELLS = "your choice", "by name", "from its contents"
BY_LOG = "by the items of the interactions"
# Which columns a rule is tried on: those with a usual name for the role, or all that have no role,
# in the order of the file or those with a usual name first.
NAMED, FREE, NAMED_FIRST = "named", "free", "named first"


class RoleRule(NamedTuple):
    """A rule by which a column gets a role that no column has yet.

    tried: the columns that it is tried on, `NAMED`, `FREE` or `NAMED_FIRST`. reason: why a column
    has the role, for the report. condition, example: for the documentation. cells: which cells fit
    the role; more than `min_share` of them have to. column: whether a column as a whole fits.
    """

    role: str
    tried: str
    reason: str
    condition: str
    example: str
    cells: Callable[[RoleChoice, pd.Series], pd.Series] | None = None
    min_share: float = MIN_SHARE
    column: Callable[[RoleChoice, str], bool] | None = None


class RoleChoice:
    """Roles that are assigned one after the other, each to a column that has none yet.

    item_ids: for a log, the ids of the catalog in lower case. log: for a catalog, the interactions
    with its items. None where there is no such other table.
    """

    def __init__(
        self,
        table: FrameOrTable,
        columns: Columns,
        report: ReadReport,
        *,
        item_ids: Set[str] | None = None,
        log: Table | None = None,
    ) -> None:
        self.table = table
        self.columns = columns
        self.report = report
        self.item_ids = item_ids
        self.log = log
        self.names = columns.not_ignored(table.columns)
        self.roles: dict[str, str] = {}
        self.reasons: dict[str, str] = {}

    @cached_property
    def items_of_log(self) -> list[pd.Series]:
        """Some cells of each column of the log that may be that of the items."""
        if self.log is None:
            return []
        item = self.columns.item
        names = [item] if item in self.log else named("item", list(self.log.columns))
        return [sample(self.log, str(name)) for name in names]

    def cells_of(self, name: str) -> pd.Series:
        """Return a column of a catalog, which is a frame."""
        assert isinstance(self.table, pd.DataFrame)
        return self.table[name]

    def assign(self, role: str, column: str, reason: str) -> None:
        self.roles[role] = column
        self.reasons[role] = reason

    def free(self) -> list[str]:
        """Return the columns without a role."""
        taken = self.roles.values()
        return [name for name in self.names if name not in taken]

    def by_caller(self, *roles: str) -> None:
        """Assign the columns that the caller names."""
        for role in roles:
            name = getattr(self.columns, role)
            if name is not None:
                column = check_column(name, self.names, self.report.file, f"`{role}_column`")
                self.assign(role, column, BY_CALLER)

    def apply(self, rules: Iterable[RoleRule]) -> None:
        """Try the rules in order. Each assigns its role to the first column that fits, unless a
        column has it already.
        """
        for rule in rules:
            if rule.role in self.roles:
                continue
            for name in self._candidates(rule):
                if self._fits(rule, name):
                    self.assign(rule.role, name, rule.reason)
                    break

    def _candidates(self, rule: RoleRule) -> list[str]:
        """Return the free columns that a rule is tried on."""
        free = self.free()
        if rule.tried == FREE:
            return free
        usual = named(rule.role, free)
        if rule.tried == NAMED:
            return usual
        return [*usual, *(name for name in free if name not in usual)]

    def _fits(self, rule: RoleRule, name: str) -> bool:
        if rule.column is not None and not rule.column(self, name):
            return False
        if rule.cells is None:
            return True
        cells = sample(self.table, name)
        if cells.empty:
            return rule.tried == NAMED
        fitting = rule.cells(self, cells)
        if fitting.mean() > rule.min_share:
            return True
        if rule.tried == NAMED:
            row = self.report.where(cells[~fitting].index[0])
            self.report.notes.append(
                f"column {name} left out: it is named as the {rule.role}, and row {row} does not "
                "fit"
            )
        return False

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


def sample(table: FrameOrTable, column: str) -> pd.Series:
    """Return some of a column's cells that are not empty."""
    if not isinstance(table, pd.DataFrame):
        return table.sample(column, SAMPLE_CELLS)
    return spread(table[column].dropna())


def spread(cells: pd.Series) -> pd.Series:
    """Return some cells of a long column, spread over it."""
    return cells.iloc[:: max(1, len(cells) // SAMPLE_CELLS)]


def users_column(table: FrameOrTable) -> str | None:
    """Return a column that is named as users are, or has e-mail addresses in it."""
    choice = RoleChoice(table, Columns(), ReadReport(""))
    choice.apply(rule for rule in LOG_RULES if rule.role == "user")
    return choice.roles.get("user")


# --- which cells fit a role ---


def are_numbers(cells: pd.Series) -> pd.Series:
    return pd.to_numeric(cells, errors="coerce").notna()


def can_be_numbers(cells: pd.Series) -> pd.Series:
    """Return True for 1.234,50 as well, and for N/A."""
    return pd.Series(~typed(cells, "number").unfit, index=cells.index)


def are_emails(cells: pd.Series) -> pd.Series:
    return cells.str.strip().str.fullmatch(EMAIL).astype(bool)


def are_among(ids: Set[str], cells: pd.Series) -> pd.Series:
    return id_texts(cells).str.casefold().isin(ids)


# --- the columns of a log ---


LOG_TYPES: dict[str, str] = {
    "user": "text",
    "item": "text",
    "rating": "number",
    "weight": "number",
    "event": "text",
    "time": "date",
}
# A column of times that are ranks: the first interaction of a user has 1, the next one 2.
TIME_RANKS = "time_rank_in_user"


def _in_catalog(choice: RoleChoice, cells: pd.Series) -> pd.Series:
    if choice.item_ids is None:
        return pd.Series(True, cells.index)
    return are_among(choice.item_ids, cells)


def _differs_within_items(choice: RoleChoice, name: str) -> bool:
    items = [choice.roles["item"]] if "item" in choice.roles else []
    assert isinstance(choice.table, Table)
    return not is_constant_within(choice.table, name, items)


# The rules by which the columns of a log get their roles, in order.
LOG_RULES = (
    RoleRule(
        "user",
        NAMED,
        BY_NAME,
        "It has a usual name.",
        "`user_id`, `customer_email`, `Kunden-Nr.`",
    ),
    RoleRule(
        "item",
        NAMED,
        BY_NAME,
        "It has a usual name and, with a catalog, a cell that is an id of it.",
        "`item`, `product_id`, `SKU`",
        cells=_in_catalog,
        min_share=0,
    ),
    RoleRule("rating", NAMED, BY_NAME, "It has a usual name.", "`rating`, `stars`"),
    RoleRule(
        "weight",
        NAMED,
        BY_NAME,
        "It has a usual name, and most cells are numbers.",
        "`quantity`, `minutes_watched`",
        cells=lambda choice, cells: can_be_numbers(cells),
    ),
    RoleRule(
        "time",
        NAMED,
        BY_NAME,
        "It has a usual name, and half of the cells are times or numbers.",
        "`timestamp`, `ordered_at`",
        cells=lambda choice, cells: are_times(cells) | are_numbers(cells),
        min_share=0.499,
    ),
    RoleRule(
        "time",
        FREE,
        BY_NAME,
        f"Its name is `{TIME_RANKS}`.",
        f"`{TIME_RANKS}`",
        column=lambda choice, name: name == TIME_RANKS,
    ),
    RoleRule(
        "user",
        FREE,
        BY_CELLS,
        "Most cells are e-mail addresses.",
        "ann@example.com, bob@example.com",
        cells=lambda choice, cells: are_emails(cells),
    ),
    RoleRule(
        "item",
        FREE,
        BY_CELLS,
        "There is a catalog, and most cells are ids of it.",
        "m013, m025",
        cells=_in_catalog,
        column=lambda choice, name: choice.item_ids is not None,
    ),
    RoleRule(
        "item",
        NAMED,
        BY_NAME,
        "It has a usual name, though no cell is an id of the catalog; its rows are skipped.",
        "`item`: another catalog's ids",
    ),
    RoleRule(
        "time",
        FREE,
        BY_CELLS,
        "Most cells are times, and it is not named as of refunds or cancellations.",
        "2024-03-01, 2024-03-02",
        cells=lambda choice, cells: are_times(cells),
        column=lambda choice, name: not named_as_taking_back(name),
    ),
    RoleRule(
        "event",
        NAMED,
        BY_NAME,
        "It has a usual name, and its cells differ within the rows of an item.",
        "`event_type`, `action`",
        column=_differs_within_items,
    ),
)


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
    table: Table, columns: Columns, report: ReadReport, item_ids: Ids | None
) -> LogChoice:
    """Choose the columns of a log, and describe the choice in `report`.

    item_ids: those of the catalog, among which an item has to be. Raises `DataError` where no
    column can be the user or the item.
    """
    ids = None if item_ids is None else {text.casefold() for text in item_ids.texts}
    choice = RoleChoice(table, columns, report, item_ids=ids)
    choice.by_caller(*LOG_TYPES)
    choice.apply(LOG_RULES)
    for role in ("user", "item"):
        if role not in choice.roles:
            try:
                require_column(role, None, choice.free(), report.file, choice.names)
            except DataError as error:
                raise DataError(f"{error}{layout_hint(table, report)}") from None
    if re.fullmatch(EMAIL, choice.roles["user"].strip()):
        raise DataError(
            f"{report.file}: the first row has an e-mail address and is read as the names of the "
            "columns: add a row of names above it"
        )
    if columns.event_weights and "event" not in choice.roles:
        raise DataError(
            f"{report.file}: `event_weights` is of events, and no column looks like any; name it "
            "with `event_column`"
        )
    check_meaning(table, choice.free(), choice.roles, columns, report.file)
    choice.describe(unused=listed_names(choice.free()))
    for role, name in choice.roles.items():
        n_filled, n_cells, example = table.filled(name)
        report.columns.append(
            ColumnFacts(name, role, LOG_TYPES[role]).of(n_filled, n_cells, example)
        )
        report.empty_cells[name] = n_cells - n_filled
    are_ranks = choice.roles.get("time") == TIME_RANKS and choice.reasons["time"] == BY_NAME
    return LogChoice(**choice.roles, times_comparable=not are_ranks)


# --- the columns of a catalog ---


# What the name of a single column has where cells are separated by another sign than expected.
DELIMITER = re.compile(r"[,;|\t:^~/]")
# A short text with a word in it.
LIKE_A_TITLE = re.compile(r"(?=.*[^\W\d_]{2}).{2,120}")


@dataclass(frozen=True)
class CatalogChoice:
    """The columns of a catalog. id: None where the numbers of the rows are the ids. title: the id,
    None included, where no column is the title.
    """

    id: str | None
    title: str | None


def choose_catalog_columns(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, log: Table | None = None
) -> CatalogChoice:
    """Choose the columns of a catalog, and describe the choice in `report`.

    log: the interactions with these items, if any. Raises `DataError` where no column can be the
    id of the items of a log.
    """
    choice = RoleChoice(frame, columns, report, log=log)
    choice.by_caller("id", "title")
    choice.apply(CATALOG_RULES)
    is_one = len(choice.names) == 1 and DELIMITER.search(choice.names[0])
    if "id" not in choice.roles and (log is not None or is_one):
        require_column("id", None, choice.free(), report.file, choice.names)
    choice.warn_of_no_header()
    id_ = choice.roles.get("id")
    choice.describe(id="" if id_ else "the number of the row (`id_column` names a column)")
    return CatalogChoice(id_, choice.roles.get("title", id_))


def _are_ids(column: pd.Series) -> bool:
    """Return whether a column has a code of its own in every row of each file."""
    if len(column) < 2 or column.hasnans or not is_unique_in_files(column):
        return False
    cells = spread(column.drop_duplicates())
    return not are_times(cells).any() and holds_codes(typed(cells).cells)


def _collection_numbers(choice: RoleChoice) -> str | None:
    """Return the column with the numbers of a collection, one in each row; None for none."""
    for name in named("collection_number", choice.free()):
        column = choice.cells_of(name)
        if not column.hasnans and is_unique_in_files(column):
            return name
    return None


def is_unique_in_files(column: pd.Series) -> bool:
    """Return whether no two rows of a file have the same cell in a column of one file or several:
    two tables about the same items have their ids once each.
    """
    if column.is_unique:
        return True
    files = column.index.to_numpy() // FILE_ROWS
    return (
        files[0] != files[-1]
        and not pd.DataFrame({"file": files, "cell": column}).duplicated().any()
    )


def _are_numbered(column: pd.Series) -> bool:
    """Return whether a column has another whole number in every row."""
    is_whole = column.str.strip().str.fullmatch(r"\d+")
    return len(column) > 1 and column.is_unique and bool(is_whole.fillna(False).all())


def _are_titles(column: pd.Series) -> bool:
    """Return whether a column has short texts that search reads, most of which differ."""
    cells = spread(column.dropna())
    if cells.empty or cells.nunique() <= MIN_SHARE * len(cells) or are_times(cells).any():
        return False
    texts = typed(cells)
    is_title = cells.str.strip().str.fullmatch(LIKE_A_TITLE)
    return texts.type == "text" and not why_unsearched(texts.cells) and is_title.mean() > MIN_SHARE


def _names_items_of_log(choice: RoleChoice, name: str) -> bool:
    """Return whether most items of the log are in a column. A catalog may have several ids, such as
    a SKU and an EAN.
    """
    if choice.log is None:
        return False
    ids = set(id_texts(choice.cells_of(name).dropna()).str.casefold())
    return any(
        len(items) > 0 and are_among(ids, items).mean() > MIN_SHARE for items in choice.items_of_log
    )


# The rules by which the columns of a catalog get their roles, in order.
CATALOG_RULES = (
    RoleRule(
        "id",
        NAMED_FIRST,
        BY_LOG,
        "There are interactions, and most of their items are in it. Usual names come first.",
        "`EAN` beside `SKU`",
        column=_names_items_of_log,
    ),
    RoleRule("id", NAMED, BY_NAME, "It has a usual name.", "`id`, `SKU`, `Artikel-Nr.`"),
    RoleRule(
        "id",
        FREE,
        BY_NAME,
        "It is named as the numbers of a collection, and no row has the number of another one.",
        "`Accession No.`, `Object ID`, `藏品编号`",
        column=lambda choice, name: name == _collection_numbers(choice),
    ),
    RoleRule("title", NAMED, BY_NAME, "It has a usual name.", "`title`, `Name`, `名称`"),
    RoleRule(
        "id",
        FREE,
        BY_CELLS,
        "It has a code of its own in every row of a file, and is not the only column.",
        "A-1042, A-1043",
        column=lambda choice, name: len(choice.names) > 1 and _are_ids(choice.cells_of(name)),
    ),
    RoleRule(
        "title",
        FREE,
        BY_CELLS,
        "It has texts of up to 120 characters, which mostly differ and which search reads.",
        "Spirited Away, Princess Mononoke",
        column=lambda choice, name: _are_titles(choice.cells_of(name)),
    ),
    RoleRule(
        "id",
        FREE,
        BY_NAME,
        "It is named as a number, and has another whole number in every row.",
        "`Nr` or `№` with 1, 2, 3",
        column=lambda choice, name: (
            folded(name) in A_NUMBERS_NAME and _are_numbered(choice.cells_of(name))
        ),
    ),
)
