"""Facets: how many matches of a query have each value of a column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qkvsearch.rank.display import unit_of
from qkvsearch.store import StoredCatalog
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.tables.column_types import type_named

Facets = dict[str, dict[str, int]]


def facets(catalog: StoredCatalog, columns: Sequence[StoredColumn], matches: np.ndarray) -> Facets:
    """Count by column how many matching items have each value, the most frequent first; many
    distinct numbers, and dates, are counted in ranges in their order. matches: bool (n_items,).

    An item with a list counts for each entry. Empty cells are not counted.
    """
    return {column.name: _counted(catalog, column, matches) for column in columns}


def _counted(catalog: StoredCatalog, column: StoredColumn, matches: np.ndarray) -> dict[str, int]:
    cells = catalog.values.cells(column.stored)
    counts = cells.counts(matches)
    unit = unit_of(catalog, column)
    return type_named(column.type).counted(counts, cells.distinct, unit)
