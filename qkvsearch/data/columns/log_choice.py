"""Which column of a log plays which role."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from qkvsearch.data.columns import EMAIL, Columns, named, require_column
from qkvsearch.data.columns.choice import (
    BY_NAME,
    Choice,
    are_among,
    are_emails,
    are_numbers,
    can_be_numbers,
)
from qkvsearch.data.columns.dates import are_times
from qkvsearch.data.columns.facts import ColumnFacts, ColumnType
from qkvsearch.data.columns.row_meaning import check_meaning, named_as_taking_back, says_nothing
from qkvsearch.data.files.encoded import EncodedTable
from qkvsearch.data.ids import Ids
from qkvsearch.data.layouts import layout_hint
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, listed_names

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
