"""The keys of a build in Milvus: a `KeyStore` over the collections of its segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from qkvsearch._utils.query_lock import released
from qkvsearch.engines.milvus.collections import LEXICAL, ROW, check, dimension, fields_of
from qkvsearch.engines.milvus.connection import connect, told
from qkvsearch.errors import WorkspaceError
from qkvsearch.retrieval.remote_keys import Allowed, RemoteRows

# The most that Milvus finds in one search.
MOST_FOUND = 16_384
# So many items that are left are named one by one.
MOST_NAMED = 8_192
# Keys that are read at a time, some MB.
KEYS_AT_A_TIME = 2_048
# How many more are asked for where what was found is not all allowed.
FURTHER = 4


class StoredPiece(NamedTuple):
    """A segment: its collection, how many rows it has, and the first one's number among all."""

    collection: str
    n_rows: int
    start: int


@dataclass(frozen=True)
class MilvusKeys:
    """uri: of the server, or of the file. parts: the segments, base first. place: int64
    (n_stored,), the item row of each stored row, −1 for one that departed. stored: int64
    (n_items,), the other way. widths: components of each dense head's keys. condition_of: of
    a condition (`where`) and the fields of a collection, by type, the filter that says the same;
    None where there is none.
    """

    uri: str
    parts: Sequence[StoredPiece]
    place: np.ndarray
    stored: np.ndarray
    widths: Mapping[str, int]
    condition_of: Callable[[Any, Mapping[str, str]], str | None] = lambda where, fields: None

    @property
    def n_items(self) -> int:
        return len(self.stored)

    @cached_property
    def _fields(self) -> dict[str, dict[str, str]]:
        """The types of the fields of columns, by collection."""
        return {part.collection: fields_of(self.uri, part.collection) for part in self.parts}

    def check(self) -> None:
        """Raise `WorkspaceError` where a collection is gone or another one."""
        for part in self.parts:
            check(self.uri, part.collection, part.n_rows, self.widths)

    def nearest(self, head: str, query: Any, k: int, allowed: Allowed) -> np.ndarray:
        if not allowed.is_all:
            assert allowed.mask is not None
            left = np.flatnonzero(allowed.mask)
            if len(left) <= k:
                return left
        filters = self._filters(allowed)
        limit = k if allowed.is_all or filters is not None else FURTHER * k
        while True:
            positions, scores, least = self._found(head, query, min(limit, MOST_FOUND), filters)
            if allowed.mask is not None:
                kept = allowed.mask[positions]
                positions, scores = positions[kept], scores[kept]
            is_sure = least == -np.inf or np.count_nonzero(scores >= least) >= k
            if not is_sure and limit >= MOST_FOUND and allowed.mask is not None:
                positions, scores = self._among(head, query, k, np.flatnonzero(allowed.mask))
            if is_sure or limit >= MOST_FOUND:
                # Equal scores by row, as they are ranked here.
                return positions[np.lexsort((positions, -scores))][:k]
            limit *= FURTHER

    def _among(
        self, head: str, query: Any, k: int, items: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of these items, which are named some thousands at a time, the best, with their scores."""
        found = []
        for begin in range(0, len(items), MOST_NAMED):
            named = self._named(items[begin : begin + MOST_NAMED])
            found.append(self._found(head, query, k, named)[:2])
        positions, scores = zip(*found, strict=True)
        return np.concatenate(positions), np.concatenate(scores)

    def above(self, head: str, query: Any, level: float) -> np.ndarray:
        limit = KEYS_AT_A_TIME
        while True:
            positions, scores, least = self._found(head, query, min(limit, MOST_FOUND), None)
            if least <= level:
                return positions[scores > level]
            if limit >= MOST_FOUND:
                raise WorkspaceError(
                    f"more than {MOST_FOUND:,} items match by {head}, and Milvus finds no more at "
                    "a time: ask without facets, or for fewer items"
                )
            limit *= FURTHER

    def rows(self, head: str, positions: np.ndarray) -> np.ndarray:
        found = np.empty((len(positions), self.widths[head]), np.float32)
        stored = self.stored[positions]
        for part in self.parts:
            ours = np.flatnonzero((stored >= part.start) & (stored < part.start + part.n_rows))
            for begin in range(0, len(ours), KEYS_AT_A_TIME):
                some = ours[begin : begin + KEYS_AT_A_TIME]
                found[some] = self._keys(head, part, stored[some] - part.start)
        return found

    def _keys(self, head: str, part: StoredPiece, rows: np.ndarray) -> np.ndarray:
        """Of a collection's rows (n,), in their order."""
        wanted, numbers = np.unique(rows, return_inverse=True)
        with told(self.uri, f"cannot read {part.collection}"), released():
            client = connect(self.uri)
            answer = client.get(part.collection, wanted.tolist(), output_fields=[ROW, head])
        if len(answer) != len(wanted):
            raise WorkspaceError(
                f"{self.uri}: the collection {part.collection} has {len(answer):,} of "
                f"{len(wanted):,} rows that were written: build the workspace again"
            )
        order = np.argsort([row[ROW] for row in answer])
        keys = np.array([row[head] for row in answer], np.float32)
        return np.asarray(keys[order][numbers])

    def _found(
        self, head: str, query: Any, limit: int, filters: Sequence[str] | None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Items that are still there, (n,), with their scores, (n,), of each segment the best; and
        what no other item scores more than.
        """
        if head == LEXICAL:
            query = {dimension(term.encode()): weight for term, weight in query.items()}
        positions, scores, least = [], [], -np.inf
        for i, part in enumerate(self.parts):
            with told(self.uri, f"cannot search {part.collection}"), released():
                [hits] = connect(self.uri).search(
                    part.collection,
                    data=[query],
                    anns_field=head,
                    limit=min(limit, part.n_rows),
                    filter="" if filters is None else filters[i],
                    search_params={"metric_type": "IP"},
                    output_fields=[ROW],
                )
                rows, values = _columns(hits)
            if len(rows) >= limit:
                least = max(least, float(values.min()))
            positions.append(self.place[rows + part.start])
            scores.append(values)
        found, values = np.concatenate(positions), np.concatenate(scores)
        return found[found >= 0], values[found >= 0], least

    def _filters(self, allowed: Allowed) -> list[str] | None:
        """Of each segment, what is to be looked for alone; None where that is everything."""
        if allowed.is_all:
            return None
        if allowed.where is not None:
            fields = [self._fields[part.collection] for part in self.parts]
            found = [self.condition_of(allowed.where, of_part) for of_part in fields]
            if None not in found:
                return list(filter(None, found))
        assert allowed.mask is not None
        left = np.flatnonzero(allowed.mask)
        return self._named(left) if len(left) <= MOST_NAMED else None

    def _named(self, items: np.ndarray) -> list[str]:
        """Of each segment the filter that leaves these items alone."""
        stored = self.stored[items]
        return [
            f"{ROW} in {(ours - part.start).tolist()}"
            for part in self.parts
            for ours in [stored[(stored >= part.start) & (stored < part.start + part.n_rows)]]
        ]


def rows_of(uri: str, collection: str, head: str, n_rows: int, width: int) -> RemoteRows:
    """The keys of a head in one collection, in the order of its rows."""
    every = np.arange(n_rows)
    store = MilvusKeys(uri, [StoredPiece(collection, n_rows, 0)], every, every, {head: width})
    return RemoteRows(store, head, width)


def _columns(hits: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows and scores, (n,) each, without an object for each hit."""
    return np.array(hits.ids, np.int64), np.array(hits.distances, np.float32)
