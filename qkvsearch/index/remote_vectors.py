"""The remote keys of a build, in the collections of its segments."""

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

# The array with Σ kkᵀ, float64. With the array `SUM`, Σ k, it gives mean and covariance of a head's
# keys.
PRODUCTS = "key_products"
# Sums of changed keys differ by more.
TOLERANCE = 1e-4


def sums(keys: np.ndarray) -> dict[str, np.ndarray]:
    """Return the sums of keys (n, d) by the names of their arrays.

    >>> [values.tolist() for values in sums(np.array([[1.0, 2.0], [3.0, 0.0]])).values()]
    [[4.0, 2.0], [[10.0, 2.0], [2.0, 4.0]]]
    """
    wide = keys.astype(np.float64)
    return {SUM: wide.sum(axis=0), PRODUCTS: wide.T @ wide}


def damaged_keys(snapshot: Snapshot) -> list[DamagedError]:
    """Read all remote keys, compare them with their sums, and return an error for each head whose
    keys differ; none where the keys are local.
    """
    if RemoteCollection.of(snapshot.facts) is None:
        return []
    errors = []
    for head in list(snapshot.facts["head_weights"])[1:]:
        try:
            total = snapshot.array(f"{head}.{SUM}")
            store = key_store(snapshot, {head: len(total)})
            rows = RemoteRows(store, head, len(total))  # type: ignore[arg-type]
            blocks = (rows[i : i + BLOCK] for i in range(0, len(rows), BLOCK))
            actual = sum(block.sum(axis=0, dtype=np.float64) for block in blocks)
            what = (
                ""
                if np.allclose(actual, total, atol=TOLERANCE)
                else "the keys differ from those that were written"
            )
        except DamagedError:
            continue  # reported with the files
        except WorkspaceError as error:
            what = str(error)
        if what:
            errors.append(DamagedError(snapshot.segments[-1].folder / f"{head}.keys", what))
    return errors


def key_store(snapshot: Snapshot, widths: dict[str, int]) -> MilvusKeys | None:
    """Connect to the remote keys of a build; return None where they are local. widths: length of
    the keys of each dense head. Raises `WorkspaceError` where the collections differ from those
    that were written.
    """
    remote = RemoteCollection.of(snapshot.facts)
    if remote is None:
        return None
    from qkvsearch.engines.milvus.store import MilvusKeys, StoredPiece

    pieces, start = [], 0
    for segment in snapshot.with_items:
        own = RemoteCollection.of(segment.facts)
        assert own is not None
        pieces.append(StoredPiece(own.collection, segment.n_rows, start))
        start += segment.n_rows
    catalog = snapshot.catalog

    def condition_of(where: Where, fields: Mapping[str, str]) -> str | None:
        return filter_of(where, catalog.catalog_columns, fields)

    rows = snapshot.rows
    store = MilvusKeys(remote.uri, pieces, rows.item_rows, rows.stored, widths, condition_of)
    store.check()
    return store


def remote_keys(rows: RemoteRows, total: np.ndarray, products: np.ndarray) -> RemoteKeys:
    """Return the keys of a head. total, products: the sums of its keys."""
    n_items = len(rows)
    mean = total / n_items
    covariance = products / n_items - np.outer(mean, mean)
    drawn = np.random.default_rng(0).choice(n_items, min(DRAWN, n_items), replace=False)
    return RemoteKeys(rows, mean, covariance, np.sort(drawn))
