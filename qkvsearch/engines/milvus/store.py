"""The keys of a build in Milvus, in a collection for each segment."""

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


@dataclass(frozen=True)
class MilvusKeys:
    """The keys of a build on a server, or in a file.

    parts: the segments, base first. item_rows: int64 (n_stored,), the item of each stored row, −1
    for a deleted one. stored: int64 (n_items,), the stored row of each item. widths: the length of
    the keys of each head.
    """

    uri: str
    parts: Sequence[StoredPiece]
    item_rows: np.ndarray
    stored: np.ndarray
    widths: Mapping[str, int]

    @property
    def n_items(self) -> int:
        return len(self.stored)

    def check(self) -> None:
        """Raise `WorkspaceError` where a collection is missing or differs from the written one."""
        for part in self.parts:
            check(self.uri, part.collection, part.n_rows, self.widths)

    def nearest(self, head: str, query: np.ndarray, k: int, allowed: Filter) -> np.ndarray:
        if not allowed.is_all:
            assert allowed.mask is not None
            items = np.flatnonzero(allowed.mask)
            if len(items) <= k:
                return items
        filters = self._filters(allowed)
        limit = k if allowed.is_all or filters is not None else FURTHER * k
        while True:
            positions, scores, bound = self._search(head, query, min(limit, MAX_HITS), filters)
            if allowed.mask is not None:
                is_allowed = allowed.mask[positions]
                positions, scores = positions[is_allowed], scores[is_allowed]
            is_sure = bound == -np.inf or np.count_nonzero(scores >= bound) >= k
            if not is_sure and limit >= MAX_HITS and allowed.mask is not None:
                positions, scores = self._among(head, query, k, np.flatnonzero(allowed.mask))
            if is_sure or limit >= MAX_HITS:
                # Equal scores by row, as in a ranking.
                return positions[np.lexsort((positions, -scores))][:k]
            limit *= FURTHER

    def above(self, head: str, query: np.ndarray, threshold: float) -> np.ndarray:
        limit = KEYS_PER_READ
        while True:
            positions, scores, bound = self._search(head, query, min(limit, MAX_HITS), None)
            if bound <= threshold:
                return positions[scores > threshold]
            if limit >= MAX_HITS:
                raise QkvError(
                    f"more than {MAX_HITS:,} items match by {head}, and Milvus finds no more at a "
                    "time: ask without facets, or for fewer items"
                )
            limit *= FURTHER

    def rows(self, head: str, positions: np.ndarray) -> np.ndarray:
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
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the best items, (n,), their scores, (n,), and a bound of all other scores."""
        positions, scores, bound = [], [], -np.inf
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
            positions.append(self.item_rows[rows + part.start])
            scores.append(values)
        items, values = np.concatenate(positions), np.concatenate(scores)
        return items[items >= 0], values[items >= 0], bound

    def _among(
        self, head: str, query: np.ndarray, k: int, items: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the best of many items, which are named in batches, and their scores."""
        batches = [items[start : start + MAX_NAMED] for start in range(0, len(items), MAX_NAMED)]
        found = [self._search(head, query, k, self._named(batch))[:2] for batch in batches]
        positions, scores = zip(*found, strict=True)
        return np.concatenate(positions), np.concatenate(scores)

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
