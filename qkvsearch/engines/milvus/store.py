"""The keys of a build in Milvus, in a collection for each segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qkvsearch._utils.query_lock import released
from qkvsearch.engines.milvus.collections import ROW, check
from qkvsearch.engines.milvus.connection import connect, one_line_errors
from qkvsearch.engines.milvus.remote_rows import RemoteRows
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.scores.approximate import Filter

# The limit of hits of one search in Milvus.
MAX_HITS = 16_384
# The limit of items that a filter names one by one.
MAX_NAMED = 8_192
# Keys that are read at a time, some MB.
KEYS_PER_READ = 2_048
# How many more hits are asked for where some of them are not allowed.
FURTHER = 4


class StoredPiece(NamedTuple):
    """A segment: its collection, its number of rows, and the number of its first row among all."""

    collection: str
    n_rows: int
    start: int


class Hits(NamedTuple):
    """What a search found, (n,) each."""

    items: np.ndarray
    scores: np.ndarray
    # No item that was not found scores higher; −∞ where all were found.
    bound: float = -np.inf

    def only(self, which: np.ndarray) -> Hits:
        """Return some of the hits, bool (n,)."""
        return Hits(self.items[which], self.scores[which], self.bound)

    def have_best(self, k: int) -> bool:
        """Return whether the k best items are among the hits, or all items are."""
        if self.bound == -np.inf:
            return True
        return int(np.count_nonzero(self.scores >= self.bound)) >= k


@dataclass(frozen=True)
class MilvusKeys:
    """The keys of a build on a server, or in a file."""

    uri: str
    # The segments, base first.
    parts: Sequence[StoredPiece]
    # int64 (n_stored,): the item of each stored row, −1 for a deleted one.
    item_rows: np.ndarray
    # int64 (n_items,): the stored row of each item.
    stored: np.ndarray
    # The length of the keys of each head.
    widths: Mapping[str, int]

    @property
    def n_items(self) -> int:
        return len(self.stored)

    def check(self) -> None:
        """Raise `WorkspaceError` where a collection is missing or differs from the written one."""
        for part in self.parts:
            check(self.uri, part.collection, part.n_rows, self.widths)

    def nearest(self, head: str, query: np.ndarray, k: int, allowed: Filter) -> np.ndarray:
        """Return the k allowed items with the highest scores, equal ones by row.

        Where a filter would name too many items, Milvus is asked for more hits than k, until k of
        them are allowed and no other item can be better.
        """
        allowed_items = None
        if not allowed.is_all:
            assert allowed.mask is not None
            allowed_items = np.flatnonzero(allowed.mask)
            if len(allowed_items) <= k:
                return allowed_items
        filters = self._filters(allowed)
        limit = k if allowed.is_all or filters is not None else FURTHER * k
        hits = self._allowed_hits(head, query, limit, filters, allowed)
        while not hits.have_best(k) and limit < MAX_HITS:
            limit *= FURTHER
            hits = self._allowed_hits(head, query, limit, filters, allowed)
        if not hits.have_best(k) and allowed_items is not None:
            hits = self._among(head, query, k, allowed_items)
        in_order = np.lexsort((hits.items, -hits.scores))
        return hits.items[in_order][:k]

    def above(self, head: str, query: np.ndarray, threshold: float) -> np.ndarray:
        """Return the items whose score is above a threshold. Raises `QkvError` where they are more
        than Milvus finds.
        """
        limit = KEYS_PER_READ
        hits = self._search(head, query, limit, None)
        while hits.bound > threshold:
            if limit >= MAX_HITS:
                raise QkvError(
                    f"more than {MAX_HITS:,} items match by {head}, and Milvus finds no more at a "
                    "time: ask without facets, or for fewer items"
                )
            limit *= FURTHER
            hits = self._search(head, query, limit, None)
        return hits.items[hits.scores > threshold]

    def rows(self, head: str, positions: np.ndarray) -> np.ndarray:
        """Return the keys of items (n,) in a head, float32 (n, d)."""
        keys = np.empty((len(positions), self.widths[head]), np.float32)
        stored = self.stored[positions]
        for part in self.parts:
            in_part = np.flatnonzero((stored >= part.start) & (stored < part.start + part.n_rows))
            for start in range(0, len(in_part), KEYS_PER_READ):
                batch = in_part[start : start + KEYS_PER_READ]
                keys[batch] = self._keys(head, part, stored[batch] - part.start)
        return keys

    def _keys(self, head: str, part: StoredPiece, rows: np.ndarray) -> np.ndarray:
        """Return the keys of a collection's rows (n,), in their order."""
        distinct, index = np.unique(rows, return_inverse=True)
        with one_line_errors(self.uri, f"cannot read {part.collection}"), released():
            client = connect(self.uri)
            answer = client.get(part.collection, distinct.tolist(), output_fields=[ROW, head])
        if len(answer) != len(distinct):
            raise WorkspaceError(
                f"{self.uri}: the collection {part.collection} has {len(answer):,} of "
                f"{len(distinct):,} rows that were written: build the workspace again"
            )
        order = np.argsort([row[ROW] for row in answer])
        keys = np.array([row[head] for row in answer], np.float32)
        return np.asarray(keys[order][index])

    def _search(
        self, head: str, query: np.ndarray, limit: int, filters: Sequence[str] | None
    ) -> Hits:
        """Search all segments for up to `limit` hits each. filters: for each segment."""
        limit = min(limit, MAX_HITS)
        items, scores, bound = [], [], -np.inf
        for i, part in enumerate(self.parts):
            with one_line_errors(self.uri, f"cannot search {part.collection}"), released():
                [hits] = connect(self.uri).search(
                    part.collection,
                    data=[query],
                    anns_field=head,
                    limit=min(limit, part.n_rows),
                    filter="" if filters is None else filters[i],
                    search_params={"metric_type": "IP"},
                    output_fields=[ROW],
                )
                # Without an object for each hit.
                rows = np.array(hits.ids, np.int64)
                values = np.array(hits.distances, np.float32)
            if len(rows) >= limit:
                bound = max(bound, float(values.min()))
            items.append(self.item_rows[rows + part.start])
            scores.append(values)
        found = Hits(np.concatenate(items), np.concatenate(scores), bound)
        return found.only(found.items >= 0)  # not deleted

    def _allowed_hits(
        self,
        head: str,
        query: np.ndarray,
        limit: int,
        filters: Sequence[str] | None,
        allowed: Filter,
    ) -> Hits:
        """Search all segments, and leave out the items that are not allowed."""
        hits = self._search(head, query, limit, filters)
        return hits if allowed.mask is None else hits.only(allowed.mask[hits.items])

    def _among(self, head: str, query: np.ndarray, k: int, items: np.ndarray) -> Hits:
        """Search among many items, which are named in batches."""
        batches = [items[start : start + MAX_NAMED] for start in range(0, len(items), MAX_NAMED)]
        found = [self._search(head, query, k, self._named(batch)) for batch in batches]
        return Hits(
            np.concatenate([hits.items for hits in found]),
            np.concatenate([hits.scores for hits in found]),
        )

    def _filters(self, allowed: Filter) -> list[str] | None:
        """Return a filter for each segment; None for no filter, and for too many items to name."""
        if allowed.is_all:
            return None
        assert allowed.mask is not None
        items = np.flatnonzero(allowed.mask)
        return self._named(items) if len(items) <= MAX_NAMED else None

    def _named(self, items: np.ndarray) -> list[str]:
        """Return for each segment the filter that names these items."""
        stored = self.stored[items]
        return [
            f"{ROW} in {(rows - part.start).tolist()}"
            for part in self.parts
            for rows in [stored[(stored >= part.start) & (stored < part.start + part.n_rows)]]
        ]


def rows_of(uri: str, collection: str, head: str, n_rows: int, width: int) -> RemoteRows:
    """Return the keys of a head in one collection, in the order of its rows."""
    rows = np.arange(n_rows)
    store = MilvusKeys(uri, [StoredPiece(collection, n_rows, 0)], rows, rows, {head: width})
    return RemoteRows(store, head, width)
