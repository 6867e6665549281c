"""The order of items by the cells of a column, or by their numbers of users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from qkvsearch.errors import QkvError, listed_names, suggest
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.tables.column_types import type_named

USERS = "users"


def sorted_rows(build: LoadedBuild, rows: np.ndarray, sort: str) -> tuple[np.ndarray, list[str]]:
    """Return row numbers of items in the order of a column's cells, ascending, or descending after
    "-", and notes; "users" puts items with most users first, "-users" those with fewest. Empty
    cells are last, equal ones keep their order. Raises `QkvError`, which names `sort`, for an
    unknown column.
    """
    columns = build.catalog.catalog_columns
    # A column may be named "-price".
    is_descending = sort.startswith("-") and not columns.has(sort)
    name = sort.removeprefix("-") if is_descending else sort
    if name == USERS:
        counts = build.histories.user_counts[rows]
        notes = []
        if not counts.any():
            notes.append("`sort`: there are no interactions with these items.")
        return rows[np.argsort(counts if is_descending else -counts, kind="stable")], notes
    if not columns.has(name):
        near = suggest(name, [*columns.names, USERS])
        raise QkvError(
            f"`sort`: no column {name!r}{near} (columns: {listed_names(columns.names)}; or {USERS})"
        )
    column = columns.find(name)
    cells = build.catalog.values.cells(column.stored)
    ranks = _ranks(cells.distinct, is_descending, type_named(column.type).order)
    return rows[np.argsort(ranks[cells.codes[rows]], kind="stable")], []


def _ranks(cells: Sequence[Any], is_descending: bool, order: Callable[[Any], Any]) -> np.ndarray:
    """Return the place of each cell in their order, int64 (n,), with empty cells last.

    Numbers come before texts. order: what a cell is ordered by.

    >>> by_text = type_named("text").order
    >>> _ranks(["b", 10, None, "A", "a"], is_descending=False, order=by_text).tolist()
    [2, 0, 3, 1, 1]
    """
    keys: dict[int, tuple[bool, Any]] = {}
    for code, cell in enumerate(cells):
        if cell is not None:
            keys[code] = isinstance(cell, str), order(cell)
    in_order = sorted(set(keys.values()), reverse=is_descending)
    rank_of = {key: rank for rank, key in enumerate(in_order)}
    ranks = np.full(len(cells), len(rank_of))
    for code, key in keys.items():
        ranks[code] = rank_of[key]
    return ranks
