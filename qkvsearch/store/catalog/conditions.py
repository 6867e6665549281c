"""Which items of a build meet a condition."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import numpy as np

from qkvsearch.store.catalog.item_table import ItemTable
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.where import Where, cache_key, matching_in_all

# How many conditions have their mask cached, one byte for each item.
MAX_MASKS = 16


class ConditionMasks:
    """The masks of conditions over the catalog's columns; those of the last ones are cached."""

    def __init__(self, items: ItemTable) -> None:
        self._items = items
        self._masks: dict[Hashable, np.ndarray] = {}

    def clear(self) -> None:
        """Forget all masks."""
        self._masks.clear()

    def mask(self, where: Where) -> np.ndarray:
        """Return bool (n_items,), True where the condition holds. The array is read-only: the next
        query with this condition gets the same one. Raises `QkvError`.
        """
        key = cache_key(where)
        mask = None if key is None else self._masks.get(key)
        if mask is None:
            mask = self._computed(where)
            if key is not None:
                self._masks[key] = mask
                for oldest in list(self._masks)[:-MAX_MASKS]:
                    self._masks.pop(oldest, None)  # another thread may have dropped it
        return mask

    def _computed(self, where: Where) -> np.ndarray:
        items = self._items

        def cells(column: StoredColumn) -> Iterator[Any]:
            return (cell for _, cell in items.column(column.stored) if cell is not None)

        mask = np.zeros(len(items.rows), dtype=bool)
        with ExitStack() as stack:
            # Connections of their own: the authorizer would also stop other threads.
            tables = [
                (stack.enter_context(closing(catalog.separate())), "items")
                for catalog in items.segments
            ]
            matches = matching_in_all(tables, items.catalog_columns, where, cells)
        for catalog, rows in zip(items.segments, matches, strict=True):
            found = catalog.item_rows_of(rows)
            mask[found[found >= 0]] = True
        mask.flags.writeable = False
        return mask
