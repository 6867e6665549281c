"""Blocks of users' histories: how executors make them from the rows of a log, and what they count.

All rows of a user are in one block, and the blocks are in the order of the users' ids.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from qkvsearch.collaborative.confidences import Feedback
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

# ids: the users', ascending, as Arrow writes them; indptr int64, items int32, ratings and weights
# float32, times int64, where the log has any; counts: what became of repeated rows, as JSON.
HISTORIES = (
    "block int, n_users int, n_pairs bigint, ids binary, indptr binary, items binary, "
    "ratings binary, times binary, weights binary, counts string"
)
HISTORIES_SCHEMA = arrow_schema(HISTORIES)
HALF = 16  # bits


@dataclass(frozen=True)
class LogShape:
    """What a log's rows hold. n_items: of the catalog. usual_weight: replaces a missing weight."""

    n_items: int
    has_ratings: bool
    has_weights: bool
    has_times: bool
    usual_weight: float = 1.0


@dataclass(frozen=True)
class BlockHistory:
    """The arrays of one block; None where the log has none."""

    indptr: np.ndarray
    items: np.ndarray
    ratings: np.ndarray | None
    times: np.ndarray | None
    weights: np.ndarray | None

    @classmethod
    def of(cls, row: dict[str, Any]) -> BlockHistory:
        def optional(name: str, dtype: Any) -> np.ndarray | None:
            return None if row.get(name) is None else array_of(row[name], dtype)

        return cls(
            array_of(row["indptr"], np.int64),
            array_of(row["items"], np.int32),
            optional("ratings", np.float32),
            optional("times", np.int64),
            optional("weights", np.float32),
        )

    def confidences(self, feedback: Feedback) -> np.ndarray:
        return feedback.confidences(self.items, self.ratings, self.weights)


# --- rows to blocks ---


def make_histories(shape: LogShape) -> Callable[[Batches], Batches]:
    """Turn the rows of a partition (part, row, user, item, rating, weight, time) into its block."""

    def make(batches: Batches) -> Batches:
        from pyspark import TaskContext

        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            context = TaskContext.get()
            assert context is not None
            block = history_of(pa.Table.from_batches(filled), shape, context.partitionId())
            yield as_batch([block], HISTORIES_SCHEMA)

    return make


def history_of(rows: pa.Table, shape: LogShape, block: int) -> dict[str, Any]:
    """Return the block of all rows of some users; repeated pairs are merged as on one machine."""
    rows = rows.sort_by([("part", "ascending"), ("row", "ascending")])
    coded = rows.column("user").combine_chunks().dictionary_encode()
    order = pa.compute.sort_indices(coded.dictionary)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    merged = MergedRows(
        shape.n_items,
        _column(rows, "rating") if shape.has_ratings else None,
        _column(rows, "time") if shape.has_times else None,
        _column(rows, "weight") if shape.has_weights else None,
        shape.usual_weight,
    )
    merged.add(rank[coded.indices.to_numpy()], _column(rows, "item"), np.arange(len(rows)))
    pairs = merged.whole()
    users = pairs.pop("users")
    return {
        "block": block,
        "n_users": len(order),
        "n_pairs": len(users),
        "ids": pack_ids(coded.dictionary.take(order)),
        "indptr": np.searchsorted(users, np.arange(len(order) + 1)).astype(np.int64),
        **pairs,
        "counts": json.dumps(asdict(merged.counts)),
    }


def _column(rows: pa.Table, name: str) -> np.ndarray:
    return rows.column(name).combine_chunks().to_numpy(zero_copy_only=False)


def pack_ids(ids: pa.Array) -> bytes:
    """Return an array of ids as bytes."""
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([ids], names=["id"])
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def unpack_ids(packed: Any) -> list[Any]:
    """Return the ids that `pack_ids` packed."""
    with pa.ipc.open_stream(pa.py_buffer(packed)) as stream:
        return list(stream.read_all().column("id").to_pylist())


# --- counts and sums of blocks ---


def count_pairs(feedback: Feedback, n_items: int) -> Callable[[Batches], Batches]:
    """Count the pairs of each item, its likes, and then the block's users with a like, its likes,
    and the sum of their confidences: float64 (2 · n_items + 3,).
    """

    def count(batches: Batches) -> Batches:
        for row in each_row(batches):
            history = BlockHistory.of(row)
            confidences = history.confidences(feedback)
            likes = confidences > 0
            before = np.concatenate([[0], np.cumsum(likes)])[history.indptr]
            totals = np.count_nonzero(np.diff(before)), likes.sum(), confidences.sum(dtype="f8")
            counts = [
                np.bincount(history.items, minlength=n_items),
                np.bincount(history.items[likes], minlength=n_items),
                np.array(totals),
            ]
            yield as_batch([{"array": np.concatenate(counts).astype(np.float64)}], ARRAY_SCHEMA)

    return count


def sum_weights(n_items: int) -> Callable[[Batches], Batches]:
    """Count the weights above 0 of each item, and sum their logarithms: float64 (2 · n_items,)."""

    def weigh(batches: Batches) -> Batches:
        for row in each_row(batches):
            items, weights = array_of(row["items"], np.int32), array_of(row["weights"], np.float32)
            left = weights > 0
            logs = np.log(weights[left].astype(np.float64))
            counts = np.bincount(items[left], minlength=n_items).astype(np.float64)
            sums = np.bincount(items[left], logs, n_items)
            yield as_batch([{"array": np.concatenate([counts, sums])}], ARRAY_SCHEMA)

    return weigh


def median_log_weight(blocks: DataFrame, n_blocks: int) -> float | None:
    """Return the median of the logarithms of all weights above 0, None where there are none.

    No machine has to hold all weights. Positive floats are in the order of their bits: the counts
    of their upper 16 bits tell the upper bits of the median, and then those of the lower 16 bits
    the median itself.
    """
    weights = blocks.select("weights")
    uppers = summed(weights.mapInArrow(count_bits(None), ARRAY), n_blocks, np.int64)
    n = int(uppers.sum())
    if not n:
        return None
    middle = []
    for rank in {(n - 1) // 2, n // 2}:
        upper = int(np.searchsorted(np.cumsum(uppers), rank, side="right"))
        lowers = summed(weights.mapInArrow(count_bits(upper), ARRAY), n_blocks, np.int64)
        lower = np.searchsorted(np.cumsum(lowers), rank - uppers[:upper].sum(), side="right")
        bits = np.array([(upper << HALF) | int(lower)], dtype=np.uint32)
        middle.append(float(np.log(bits.view(np.float32).astype(np.float64))[0]))
    return float(np.mean(middle))


def count_bits(upper: int | None) -> Callable[[Batches], Batches]:
    """Count the upper 16 bits of the weights above 0, or the lower ones beside these upper ones."""

    def count(batches: Batches) -> Batches:
        for row in each_row(batches):
            weights = array_of(row["weights"], np.float32)
            bits = weights[weights > 0].view(np.uint32)
            half = bits >> HALF
            if upper is not None:
                half = bits[half == upper] & ((1 << HALF) - 1)
            counts = np.bincount(half, minlength=1 << HALF).astype(np.int64)
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
