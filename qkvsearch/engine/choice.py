"""Choose the columns of a catalog that are worth counting, and sort items by a column."""

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
# A text column with more values is counted only if each value has this many items on average.
MAX_VALUES, ITEMS_EACH = 50, 5
# No column is counted whose values have fewer items on average, or are longer.
MIN_ITEMS_EACH, MAX_VALUE_LENGTH = 2, 40
MAX_COLUMNS = 6
# The items of the sample that is read first.
SAMPLE_SIZE = 200
ADDRESS = re.compile(r"\w+://|www\.|/|[^\s@]+@[^\s@]+\.")
# The kinds of columns that are counted, the most informative first.
KINDS = ("list", "text", "number", "date", "yes/no")
# Words in the name of a date column that mean when an item appeared.
APPEARED = set(
    "added arrived available created issued launched listed posted premiere premiered published "
    "publication release released upload uploaded since new erschienen erscheinungsdatum "
    "veroffentlicht veroffentlichung hinzugefugt publie publication sortie ajoute publicado "
    "publicacion lanzamiento estreno publicacao lancamento pubblicato pubblicazione uscita".split()
)


def in_order(histories: Histories, rows: np.ndarray, sort: str) -> tuple[np.ndarray, list[str]]:
    """Return row numbers of items in the order of a column's cells, ascending, or descending after
    "-", and notes; "users" puts items with most users first. Empty cells are last, equal ones keep
    their order. Raises `QkvError`, which names `sort`, for an unknown column.
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
    key_ranks = {key: rank for rank, key in enumerate(sorted(set(keys.values())))}
    ranks = np.full(len(cells.distinct), len(key_ranks))
    for code, key in keys.items():
        ranks[code] = len(key_ranks) - 1 - key_ranks[key] if is_descending else key_ranks[key]
    return rows[np.argsort(ranks[cells.codes[rows]], kind="stable")], []


def facet_columns(catalog: StoredCatalog) -> list[str]:
    """Return the columns as `ItemRows.facet_columns` describes."""
    ranked = []
    for index, column in enumerate(catalog.catalog_columns):
        if column.stored in ("id", "title") or column.role in ("id", "title"):
            continue
        if column.type in ("list", "text") and _has_long_values(catalog, column):
            continue
        cells = catalog.column_cells(column.stored)
        counts = cells.counts(np.ones(len(cells.codes), dtype=bool))
        if len(counts) > 1 and _is_worth_counting(column, counts):
            ranked.append((KINDS.index(column.type), -sum(counts.values()), index, column.name))
    return [name for *_, name in sorted(ranked)[:MAX_COLUMNS]]


def _has_long_values(catalog: StoredCatalog, column: StoredColumn) -> bool:
    """Return True if a sample of the items has long values: reading all would be slow."""
    n_items = len(catalog.ids("items"))
    rows = np.unique(np.linspace(0, n_items - 1, min(n_items, SAMPLE_SIZE)).astype(np.int64))
    cells = [cell for (cell,) in catalog.cells(rows, [column.stored]) if cell is not None]
    return any(map(_is_long, (value for cell in cells for value in _values(column, cell))))


def _values(column: StoredColumn, cell: Any) -> list[str]:
    return str(cell).split(LIST_SEPARATOR) if column.type == "list" else [str(cell)]


def _is_long(value: str) -> bool:
    """Return True for a long text or an address."""
    return len(value) > MAX_VALUE_LENGTH or ADDRESS.match(value) is not None


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
    return each >= (MIN_ITEMS_EACH if len(values) <= MAX_VALUES else ITEMS_EACH)


def newest_column(columns: CatalogColumns) -> str | None:
    """Return the column as `ItemRows.newest_column` describes.

    >>> columns = [("id", "TEXT"), ("title", "TEXT"), ("Release Year", "INTEGER")]
    >>> newest_column(CatalogColumns.of(columns, []))
    'Release Year'
    """
    dates = [column.name for column in columns if column.type == "date"]
    plain = named("time", dates)
    telling = [name for name in dates if name in plain or APPEARED & set(words_of(name))]
    years = [c.name for c in columns if c.type == "number" and "year" in words_of(c.name)]
    return next(iter([*telling, *(dates if len(dates) == 1 else []), *years]), None)
