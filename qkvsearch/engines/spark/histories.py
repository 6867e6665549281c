"""What an executor does with the rows of a log: one block of users at a time, by our own rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from qkvsearch.collaborative.confidences import Feedback
from qkvsearch.collaborative.factors import ImplicitFactors
from qkvsearch.data.interactions import MergedRows
from qkvsearch.engines.spark.tables import (
    PART_SCHEMA,
    Rows,
    array_of,
    arrow_schema,
    as_batch,
    each_row,
)

# Blocks of users as a log has them: their ids, ascending; int64 indptr, int32 items, float32
# ratings and weights, int64 times, where there are any; and what became of the rows.
HISTORIES = (
    "block int, n_users int, n_pairs bigint, ids binary, indptr binary, items binary, "
    "ratings binary, times binary, weights binary, counts string"
)
HISTORIES_SCHEMA = arrow_schema(HISTORIES)


@dataclass(frozen=True)
class LogShape:
    """What the columns of a log's rows hold. n_items: of the catalog. usual_weight: what a missing
    weight counts as. integer: whether users are whole numbers."""

    n_items: int
    integer: bool
    has_ratings: bool
    has_weights: bool
    has_times: bool
    usual_weight: float = 1.0


def pack_ids(ids: pa.Array) -> bytes:
    """A column of ids as bytes."""
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([ids], names=["id"])
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def unpack_ids(packed: Any) -> pa.Array:
    with pa.ipc.open_stream(pa.py_buffer(packed)) as stream:
        return stream.read_all().column("id").combine_chunks()


def make_histories(shape: LogShape) -> Callable[[Rows], Rows]:
    """Rows of a partition (row, user, item, rating, weight, time) to its block. All rows of a user
    are in it.
    """

    def make(batches: Rows) -> Rows:
        from pyspark import TaskContext

        parts = [batch for batch in batches if batch.num_rows]
        if not parts:
            return
        table = pa.Table.from_batches(parts)
        context = TaskContext.get()
        assert context is not None
        yield as_batch([history_of(table, shape, context.partitionId())], HISTORIES_SCHEMA)

    return make


def history_of(table: pa.Table, shape: LogShape, block: int) -> dict[str, Any]:
    table = table.sort_by("row")
    coded = table.column("user").combine_chunks().dictionary_encode()
    order = pa.compute.sort_indices(coded.dictionary)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    columns = {name: _numbers(table, name) for name in ("item", "rating", "weight", "time")}
    merged = MergedRows(
        shape.n_items,
        columns["rating"] if shape.has_ratings else None,
        columns["time"] if shape.has_times else None,
        columns["weight"] if shape.has_weights else None,
        shape.usual_weight,
    )
    merged.add(rank[coded.indices.to_numpy()], columns["item"], np.arange(len(table)))
    pairs = merged.whole()
    users = pairs.pop("users")
    indptr = np.searchsorted(users, np.arange(len(order) + 1)).astype(np.int64)
    return {
        "block": block,
        "n_users": len(order),
        "n_pairs": len(users),
        "ids": pack_ids(coded.dictionary.take(order)),
        "indptr": indptr.tobytes(),
        **dict.fromkeys(("ratings", "times", "weights")),
        **{name: one.tobytes() for name, one in pairs.items()},
        "counts": json.dumps(asdict(merged.counts)),
    }


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    return table.column(name).combine_chunks().to_numpy(zero_copy_only=False)


@dataclass(frozen=True)
class BlockHistory:
    """A block's arrays; None where the log has none."""

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


def count_pairs(feedback: Feedback, n_items: int) -> Callable[[Rows], Rows]:
    """Of each item how many pairs, and how many that count; then, of the block, how many users and
    items count, the pairs that do, and their confidences together: float64."""

    def count(batches: Rows) -> Rows:
        for row in each_row(batches):
            history = BlockHistory.of(row)
            confidences = history.confidences(feedback)
            likes = confidences > 0
            of_user = (
                np.add.reduceat(np.append(likes, False), history.indptr[:-1])
                if len(history.indptr) > 1
                else np.zeros(0)
            )
            parts = [
                np.bincount(history.items, minlength=n_items),
                np.bincount(history.items[likes], minlength=n_items),
                [np.count_nonzero(of_user), likes.sum(), confidences.sum(dtype=np.float64)],
            ]
            part = np.concatenate([np.asarray(one, np.float64) for one in parts])
            yield as_batch([{"part": part.tobytes()}], PART_SCHEMA)

    return count


def place_users(
    factors: Callable[[], ImplicitFactors], feedback: Feedback
) -> Callable[[Rows], Rows]:
    """The embeddings of a log's users at length 1, solved exactly: float32."""

    def place(batches: Rows) -> Rows:
        from scipy.sparse import csr_matrix

        from qkvsearch.labelled import unit_rows

        for row in each_row(batches):
            history = BlockHistory.of(row)
            shape = (len(history.indptr) - 1, len(factors().item_embeddings))
            matrix = csr_matrix(
                (history.confidences(feedback), history.items, history.indptr), shape=shape
            )
            found = unit_rows(factors().fold_in_many(matrix)).astype(np.float32)
            yield as_batch([{"part": found.tobytes()}], PART_SCHEMA)

    return place


def weigh_items(n_items: int) -> Callable[[Rows], Rows]:
    """Of each item how many weights above 0, and the sum of their logarithms: float64."""

    def weigh(batches: Rows) -> Rows:
        for row in each_row(batches):
            items, weights = array_of(row["items"], np.int32), array_of(row["weights"], np.float32)
            left = weights > 0
            logs = np.log(weights[left].astype(np.float64))
            counts = np.bincount(items[left], minlength=n_items).astype(np.float64)
            sums = np.bincount(items[left], logs, n_items)
            part = np.concatenate([counts, sums])
            yield as_batch([{"part": part.tobytes()}], PART_SCHEMA)

    return weigh


def count_likes(feedback: Feedback) -> Callable[[Rows], Rows]:
    """How many pairs of a block count."""
    schema = arrow_schema("block int, n bigint")

    def count(batches: Rows) -> Rows:
        for row in each_row(batches):
            n = int(np.count_nonzero(BlockHistory.of(row).confidences(feedback)))
            yield as_batch([{"block": row["block"], "n": n}], schema)

    return count


def find_likes(feedback: Feedback, wanted: dict[int, list[int]]) -> Callable[[Rows], Rows]:
    """The items of those pairs of a block that count and are wanted, by their places."""
    schema = arrow_schema("block int, items binary")

    def find(batches: Rows) -> Rows:
        for row in each_row(batches):
            history = BlockHistory.of(row)
            liked = history.items[history.confidences(feedback) > 0]
            items = liked[wanted.get(row["block"], [])].astype(np.int32)
            yield as_batch([{"block": row["block"], "items": items.tobytes()}], schema)

    return find
