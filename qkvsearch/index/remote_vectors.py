"""The keys of a build that has them elsewhere, by the collections of its segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.retrieval.remote_keys import BLOCK, DRAWN, RemoteKeys, RemoteRows
from qkvsearch.storage.remote_collections import SUM, RemoteCollection, filter_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qkvsearch.engines.milvus.store import MilvusKeys
    from qkvsearch.query.where import Where
    from qkvsearch.storage import Snapshot

# The arrays by which mean and covariance of a head's keys are known: Σ k, and this, Σ kkᵀ; float64.
PRODUCTS = "key_products"
# Sums of keys that were changed since differ by more, and those of the same ones by less.
SAME = 1e-4


def sums(keys: np.ndarray) -> dict[str, np.ndarray]:
    """Of keys (n, d), by the names of their arrays.

    >>> [values.tolist() for values in sums(np.array([[1.0, 2.0], [3.0, 0.0]])).values()]
    [[4.0, 2.0], [[10.0, 2.0], [2.0, 4.0]]]
    """
    wide = keys.astype(np.float64)
    return {SUM: wide.sum(axis=0), PRODUCTS: wide.T @ wide}


def damaged_keys(snapshot: Snapshot) -> list[DamagedError]:
    """What is not as it was written of keys that are elsewhere: all of them are read, and compared
    with their sums. None where they are here.
    """
    if RemoteCollection.of(snapshot.facts) is None:
        return []
    found = []
    for head in list(snapshot.facts["head_weights"])[1:]:
        try:
            total = snapshot.array(f"{head}.{SUM}")
            store = key_store(snapshot, {head: len(total)})
            rows = RemoteRows(store, head, len(total))  # type: ignore[arg-type]
            blocks = (rows[i : i + BLOCK] for i in range(0, len(rows), BLOCK))
            there = sum(block.sum(axis=0, dtype=np.float64) for block in blocks)
            what = "" if np.allclose(there, total, atol=SAME) else "they are other keys"
        except DamagedError:
            continue  # found among the files
        except WorkspaceError as error:
            what = str(error)
        if what:
            found.append(DamagedError(snapshot.segments[-1].folder / f"{head}.keys", what))
    return found


def key_store(snapshot: Snapshot, widths: dict[str, int]) -> MilvusKeys | None:
    """Where the keys of a build are; None where they are here. widths: of each dense head. Raises
    `WorkspaceError` where they are not what was written.
    """
    place = RemoteCollection.of(snapshot.facts)
    if place is None:
        return None
    from qkvsearch.engines.milvus.store import MilvusKeys, StoredPiece

    parts, start = [], 0
    for segment in snapshot.with_items:
        own = RemoteCollection.of(segment.facts)
        assert own is not None
        parts.append(StoredPiece(own.collection, segment.n_rows, start))
        start += segment.n_rows
    catalog = snapshot.catalog

    def condition_of(where: Where, fields: Mapping[str, str]) -> str | None:
        return filter_of(where, catalog.catalog_columns, fields)

    rows = snapshot.rows
    store = MilvusKeys(place.uri, parts, rows.item_rows, rows.stored, widths, condition_of)
    store.check()
    return store


def remote_keys(rows: RemoteRows, total: np.ndarray, products: np.ndarray) -> RemoteKeys:
    """A head's keys. total, products: as `sums` gives them."""
    n_items = len(rows)
    mean = total / n_items
    covariance = products / n_items - np.outer(mean, mean)
    drawn = np.random.default_rng(0).choice(n_items, min(DRAWN, n_items), replace=False)
    return RemoteKeys(rows, mean, covariance, np.sort(drawn))
