"""The pairs of users and items that interacted, in compressed rows, by user and by item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qkvsearch._utils.compiled import compiled
from qkvsearch._utils.scratch import counts_of, scratch_array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Array = np.ndarray[Any, Any]


class Pairs(NamedTuple):
    """The rows of users with their items, or the rows of items with their users.

    The pairs of row r are those from `starts[r]` to `starts[r + 1]`. Compiled functions take it,
    with these types alone, so that each is compiled once.
    """

    # int64 (n_rows + 1,)
    starts: Array
    # int32 (n_pairs,): the item of each pair of a user, or the user of each pair of an item,
    # ascending within a row.
    columns: Array
    # float32 (n_pairs,), or (1,) where all confidences are equal.
    confidences: Array

    @property
    def lengths(self) -> np.ndarray:
        """The number of pairs of each row, (n_rows,)."""
        return np.diff(self.starts)

    def with_each_confidence(self) -> Pairs:
        """Return the same pairs with a confidence for each, where one stood for all."""
        each = np.broadcast_to(self.confidences, len(self.columns))
        return self._replace(confidences=np.ascontiguousarray(each))


def by_user_and_by_item(observed: csr_matrix) -> tuple[Pairs, Pairs]:
    """Return the observed pairs of a matrix (n_users, n_items): one row per user, and one row per
    item.

    The confidences are a single number if all are equal, which saves a third of the memory.
    """
    are_equal = bool(observed.data.min() == observed.data.max())
    # A copy, since a view would keep the matrix in memory.
    confidences = np.array(observed.data[:1]) if are_equal else observed.data
    starts = observed.indptr.astype(np.int64)
    items = observed.indices.astype(np.int32, copy=False)
    by_user = Pairs(starts, items, confidences)

    lengths = counts_of(items, observed.shape[1])
    item_starts = np.concatenate([[0], np.cumsum(lengths)])
    users = scratch_array(len(items), np.int32)
    item_confidences = confidences if are_equal else scratch_array(len(items), np.float32)
    by_item = Pairs(item_starts, users, item_confidences)
    transpose(by_user, item_starts[:-1].copy(), by_item)
    return by_user, by_item


@compiled
def transpose(pairs: Pairs, free: Array, transposed: Pairs) -> None:
    """Write compressed rows as compressed columns, by counting.

    `transposed.columns` gets the row of each pair, column after column and ascending in each, and
    `transposed.confidences` its value, where there is one for each pair.

    free (n_columns,): where each column begins; it is changed.
    """
    n_pairs = pairs.columns.shape[0]
    one_each = transposed.confidences.shape[0] == n_pairs and n_pairs > 1
    for row in range(pairs.starts.shape[0] - 1):
        for k in range(pairs.starts[row], pairs.starts[row + 1]):
            slot = free[pairs.columns[k]]
            free[pairs.columns[k]] = slot + 1
            transposed.columns[slot] = row
            if one_each:
                transposed.confidences[slot] = pairs.confidences[k]
