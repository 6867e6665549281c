"""Blocks of users' histories: how executors make them from the rows of a log, and what they count.

All rows of a user are in one block, and the blocks are in the order of the users' ids.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from qkvsearch.collaborative.confidences import Feedback, usual_by_sums
from qkvsearch.collaborative.factors import ImplicitFactors
from qkvsearch.data.interactions import MergedRows
from qkvsearch.engines.spark.blocks import (
    ARRAY,
    ARRAY_SCHEMA,
    Batches,
    array_of,
    arrow_schema,
    as_batch,
    each_row,
    summed,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# ids: the users', ascending. counts: what became of repeated rows, as JSON.
HISTORIES = (
    "block int, n_users int, n_pairs bigint, ids array<string>, indptr binary, items binary, "
    "ratings binary, times binary, weights binary, counts string"
)
HISTORIES_SCHEMA = arrow_schema(HISTORIES)
HALF = 16  # bits


DTYPES = {"indptr": "i8", "items": "i4", "ratings": "f4", "times": "i8", "weights": "f4"}


class BlockHistory(NamedTuple):
    """The arrays of one block; None where the log has none."""

    indptr: np.ndarray
    items: np.ndarray
    ratings: np.ndarray | None
    times: np.ndarray | None
    weights: np.ndarray | None

    @classmethod
    def of(cls, row: dict[str, Any]) -> BlockHistory:
        arrays: Any = {
            name: None if row.get(name) is None else array_of(row[name], dtype)
            for name, dtype in DTYPES.items()
        }
        return cls(**arrays)

    def confidences(self, feedback: Feedback) -> np.ndarray:
        return feedback.confidences(self.items, self.ratings, self.weights)


# --- rows to blocks ---


def make_histories(n_items: int, usual_weight: float) -> Callable[[Batches], Batches]:
    """Turn the rows of a partition (part, row, user, item, and rating, weight, time where there are
    any) into its block. usual_weight: replaces a missing weight.
    """

    def make(batches: Batches) -> Batches:
        from pyspark import TaskContext

        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            context = TaskContext.get()
            assert context is not None
            rows = pa.Table.from_batches(filled)
            block = history_of(rows, n_items, usual_weight)
            yield as_batch([{"block": context.partitionId(), **block}], HISTORIES_SCHEMA)

    return make


def history_of(rows: pa.Table, n_items: int, usual_weight: float = 1.0) -> dict[str, Any]:
    """Return the block of all rows of some users; repeated pairs are merged as on one machine."""
    rows = rows.sort_by([("part", "ascending"), ("row", "ascending")])
    arrays = {
        name: rows.column(name).combine_chunks().to_numpy(zero_copy_only=False)
        for name in rows.column_names
        if name != "user"
    }
    coded = rows.column("user").combine_chunks().dictionary_encode()
    order = pa.compute.sort_indices(coded.dictionary)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    rating, time, weight = (arrays.get(name) for name in ("rating", "time", "weight"))
    merged = MergedRows(n_items, rating, time, weight, usual_weight)
    merged.add(rank[coded.indices.to_numpy()], arrays["item"], np.arange(len(rows)))
    pairs = merged.whole()
    users = pairs.pop("users")
    return {
        "n_users": len(order),
        "n_pairs": len(users),
        "ids": coded.dictionary.take(order).cast(pa.string()).to_pylist(),
        "indptr": np.searchsorted(users, np.arange(len(order) + 1)).astype(np.int64),
        **pairs,
        "counts": json.dumps(asdict(merged.counts)),
    }


# --- counts and sums of blocks ---


class PairCounts(NamedTuple):
    """Of each item (n_items,) its pairs, and its likes; and of all users with likes how many there
    are, their likes, and the mean confidence of these.
    """

    pairs: np.ndarray
    likes: np.ndarray
    n_users: int
    n_likes: int
    mean_confidence: float

    @classmethod
    def of(cls, sums: np.ndarray) -> PairCounts:
        """From the sum of what `count_pairs` counts."""
        (pairs, likes), (n_users, total) = sums[:-2].reshape(2, -1).astype(np.int32), sums[-2:]
        n_likes = int(likes.sum(dtype=np.int64))
        return cls(pairs, likes, int(n_users), n_likes, float(total) / max(n_likes, 1))


def count_pairs(feedback: Feedback, n_items: int) -> Callable[[Batches], Batches]:
    """Count the pairs and the likes of each item, then the users with likes, and sum all
    confidences: float64 (2 · n_items + 2,).
    """

    def count(batches: Batches) -> Batches:
        for row in each_row(batches):
            history = BlockHistory.of(row)
            confidences = history.confidences(feedback)
            likes = confidences > 0
            before = np.concatenate([[0], np.cumsum(likes)])[history.indptr]
            n_pairs = np.bincount(history.items, minlength=n_items)
            n_likes = np.bincount(history.items[likes], minlength=n_items)
            totals = np.count_nonzero(np.diff(before)), confidences.sum(dtype=np.float64)
            yield as_batch([{"array": np.concatenate([n_pairs, n_likes, totals])}], ARRAY_SCHEMA)

    return count


def usual_weights(blocks: DataFrame, n_blocks: int, n_items: int) -> tuple[float, np.ndarray]:
    """Return what `confidences.usual_by_sums` does. No machine has to hold all weights.

    Positive floats are in the order of their bits: the counts of their upper 16 bits tell the upper
    bits of the median, and then those of the lower 16 bits the median itself.
    """
    weights = blocks.select("items", "weights")
    sums = summed(weights.mapInArrow(sum_weights(n_items), ARRAY), n_blocks)
    uppers, counts, logs = np.split(sums, [1 << HALF, (1 << HALF) + n_items])
    n = int(uppers.sum())
    middle = []
    for rank in {(n - 1) // 2, n // 2} if n else ():
        upper = int(np.searchsorted(np.cumsum(uppers), rank, side="right"))
        lowers = summed(weights.mapInArrow(count_lower_bits(upper), ARRAY), n_blocks)
        lower = np.searchsorted(np.cumsum(lowers), rank - uppers[:upper].sum(), side="right")
        bits = np.array([(upper << HALF) | int(lower)], dtype=np.uint32)
        middle.append(np.log(bits.view(np.float32).astype(np.float64))[0])
    return usual_by_sums(float(np.mean(middle)) if n else None, counts, logs)


def sum_weights(n_items: int) -> Callable[[Batches], Batches]:
    """Count the upper 16 bits of the weights above 0, and for each item these weights; and sum the
    logarithms of the latter: float64 (2¹⁶ + 2 · n_items,).
    """

    def weigh(batches: Batches) -> Batches:
        for row in each_row(batches):
            items, weights = array_of(row["items"], np.int32), array_of(row["weights"], np.float32)
            items, weights = items[weights > 0], weights[weights > 0]
            uppers = np.bincount(weights.view(np.uint32) >> HALF, minlength=1 << HALF)
            logs = np.bincount(items, np.log(weights.astype(np.float64)), n_items)
            sums = np.concatenate([uppers, np.bincount(items, minlength=n_items), logs])
            yield as_batch([{"array": sums}], ARRAY_SCHEMA)

    return weigh


def count_lower_bits(upper: int) -> Callable[[Batches], Batches]:
    """Count the lower 16 bits of the weights above 0 that have these upper ones."""

    def count(batches: Batches) -> Batches:
        for row in each_row(batches):
            weights = array_of(row["weights"], np.float32)
            bits = weights[weights > 0].view(np.uint32)
            lower = bits[bits >> HALF == upper] & ((1 << HALF) - 1)
            counts = np.bincount(lower, minlength=1 << HALF).astype(np.float64)
            yield as_batch([{"array": counts}], ARRAY_SCHEMA)

    return count


def place_users(
    factors: Callable[[], ImplicitFactors], feedback: Feedback
) -> Callable[[Batches], Batches]:
    """Solve the users' embeddings exactly, at length 1: float32 (n_users, d)."""

    def place(batches: Batches) -> Batches:
        from scipy.sparse import csr_matrix

        from qkvsearch.text.labelled import unit_rows

        for row in each_row(batches):
            history = BlockHistory.of(row)
            shape = (len(history.indptr) - 1, len(factors().item_embeddings))
            arrays = (history.confidences(feedback), history.items, history.indptr)
            embeddings = factors().fold_in_many(csr_matrix(arrays, shape=shape))
            yield as_batch([{"array": unit_rows(embeddings).astype(np.float32)}], ARRAY_SCHEMA)

    return place
