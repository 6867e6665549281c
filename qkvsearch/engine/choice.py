"""Which columns to show of a catalog that nobody has asked for anything yet, and in which order
its items.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from qkvsearch.data.catalog_columns import CatalogColumns, StoredColumn
from qkvsearch.data.columns.facts import LIST_SEPARATOR
from qkvsearch.data.columns.names import NUMBERS, named, words_of
from qkvsearch.errors import QkvError, listed_names, suggest
from qkvsearch.index.interaction_log import Histories
from qkvsearch.storage import StoredCatalog
from qkvsearch.text.analysis import fold

USERS = "users"
# A text with more values than these is worth counting where each is on so many items.
MOST_VALUES, ITEMS_EACH = 50, 5
# And none where its values are on fewer items than these, or longer than so many characters.
LEAST_EACH, LONGEST_VALUE = 2, 40
MOST_COLUMNS = 6
# So many items are looked at before all are.
LOOKED_AT = 200
ADDRESS = re.compile(r"\w+://|www\.|/|[^\s@]+@[^\s@]+\.")
# The kinds of columns that are counted, what says most about an item first.
KINDS = ("list", "text", "number", "date", "yes/no")
# Of a date's name, the words that say that an item came then.
CAME = set(
    "added arrived available created issued launched listed posted premiere premiered published "
    "publication release released upload uploaded since new erschienen erscheinungsdatum "
    "veroffentlicht veroffentlichung hinzugefugt publie publication sortie ajoute publicado "
    "publicacion lanzamiento estreno publicacao lancamento pubblicato pubblicazione uscita".split()
)


def in_order(histories: Histories, rows: np.ndarray, sort: str) -> tuple[np.ndarray, list[str]]:
    """Row numbers of items, and notes: by a column's cells, from the least on, or after "-" from
    the greatest; by "users" those that most interacted with first. Empty cells are last, equal ones
    stay as they are. Raises `QkvError`, which names `sort`, for a column that is not there.
    """
    columns = histories.catalog.catalog_columns
    if sort == USERS:
        counts = histories.user_counts[rows]
        notes = [] if counts.any() else ["`sort`: nobody's interactions with these items are here."]
        return rows[np.argsort(-counts, kind="stable")], notes
    is_descending = sort.startswith("-") and not columns.has(sort)
    name = sort[is_descending:]
    if not columns.has(name):
        near = suggest(name, [*columns.names, USERS])
        raise QkvError(
            f"`sort`: no column {name!r}{near} (columns: {listed_names(columns.names)}; or {USERS})"
        )
    cells = histories.catalog.column_cells(columns.find(name).stored)
    keys = {
        code: (isinstance(cell, str), fold(cell) if isinstance(cell, str) else cell)
        for code, cell in enumerate(cells.distinct)
        if cell is not None
    }
    places = {key: place for place, key in enumerate(sorted(set(keys.values())))}
    ranks = np.full(len(cells.distinct), len(places))
    for code, key in keys.items():
        ranks[code] = len(places) - 1 - places[key] if is_descending else places[key]
    return rows[np.argsort(ranks[cells.codes[rows]], kind="stable")], []


def facet_columns(catalog: StoredCatalog) -> list[str]:
    """As `ItemRows.facet_columns`."""
    found = []
    for place, column in enumerate(catalog.catalog_columns):
        if column.stored in ("id", "title") or column.role in ("id", "title"):
            continue
        if column.type in ("list", "text") and _has_long_values(catalog, column):
            continue
        cells = catalog.column_cells(column.stored)
        counts = cells.counts(np.ones(len(cells.codes), dtype=bool))
        if len(counts) > 1 and _is_worth_counting(column, counts):
            found.append((KINDS.index(column.type), -sum(counts.values()), place, column.name))
    return [name for *_, name in sorted(found)[:MOST_COLUMNS]]


def _has_long_values(catalog: StoredCatalog, column: StoredColumn) -> bool:
    """Whether some of the items say so already: all texts would be long to read, and to keep."""
    n_items = len(catalog.ids("items"))
    rows = np.unique(np.linspace(0, n_items - 1, min(n_items, LOOKED_AT)).astype(np.int64))
    cells = [cell for (cell,) in catalog.cells(rows, [column.stored]) if cell is not None]
    return any(map(_is_long, (value for cell in cells for value in _values(column, cell))))


def _values(column: StoredColumn, cell: Any) -> list[str]:
    return str(cell).split(LIST_SEPARATOR) if column.type == "list" else [str(cell)]


def _is_long(value: str) -> bool:
    """Or an address."""
    return len(value) > LONGEST_VALUE or ADDRESS.match(value) is not None


def _is_worth_counting(column: StoredColumn, counts: Mapping[Any, int]) -> bool:
    if column.type == "number":
        return not NUMBERS & set(words_of(column.name))
    if column.type not in ("list", "text"):
        return True
    values: dict[str, int] = {}
    for cell, n in counts.items():
        for value in _values(column, cell):
            values[value] = values.get(value, 0) + n
    if any(map(_is_long, values)):
        return False
    each = sum(values.values()) / len(values)
    return each >= (LEAST_EACH if len(values) <= MOST_VALUES else ITEMS_EACH)


def newest_column(columns: CatalogColumns) -> str | None:
    """As `ItemRows.newest_column`.

    >>> columns = [("id", "TEXT"), ("title", "TEXT"), ("Release Year", "INTEGER")]
    >>> newest_column(CatalogColumns.of(columns, []))
    'Release Year'
    """
    dates = [column.name for column in columns if column.type == "date"]
    plain = named("time", dates)
    telling = [name for name in dates if name in plain or CAME & set(words_of(name))]
    years = [c.name for c in columns if c.type == "number" and "year" in words_of(c.name)]
    return next(iter([*telling, *(dates if len(dates) == 1 else []), *years]), None)
