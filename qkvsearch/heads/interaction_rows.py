"""Rows of arrays that are made of interactions, one for each item."""

from __future__ import annotations

import numpy as np

from qkvsearch._utils.scratch import counts_of
from qkvsearch.tables.interactions import Interactions


def rows_where(is_kept: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a copy with zeros in the rows of the items, bool (n_items,), that are not kept."""
    kept = np.array(rows)
    kept[~is_kept] = 0
    return kept


def counts_by_item(log: Interactions, which: np.ndarray | None = None) -> np.ndarray:
    """Count the interactions with each item, int32 (n_items,). which: bool (n,), only these."""
    return counts_of(log.items, len(log.item_ids), which).astype(np.int32)
