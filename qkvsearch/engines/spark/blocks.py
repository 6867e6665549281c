"""Blocks of users of a log: Arrow cells of arrays, how executors make them, and what they count.

All rows of a user are in one block, and the blocks are in the order of the users' ids. A block is
a row of an Arrow table whose cells are arrays.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from qkvsearch.models.confidences import Feedback, usual_by_sums
from qkvsearch.tables.interactions import MergedRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Batches = Iterator[pa.RecordBatch]
Row = dict[str, Any]

# A block has pairs enough to be worth a task, and few enough for its memory: some 30 bytes each.
MIN_PAIRS, MAX_PAIRS = 1 << 17, 1 << 22
# The embeddings of a block's users are one cell: 16 MiB at 64 components, and Java holds several
# copies of a cell at a time.
MAX_USERS = 1 << 16
# More parts than this are summed in two steps.
MAX_SUMMED_AT_ONCE = 16
CALLS = count()


def array_of(cell: Any, dtype: Any) -> np.ndarray:
    """Return the array in a cell of bytes, without a copy; an empty one for a missing cell."""
    return np.frombuffer(b"" if cell is None else cell, dtype)


def each_row(batches: Batches) -> Iterator[dict[str, Any]]:
    """Iterate over the rows; cells of bytes are views."""
    # After each task, Spark's worker collects garbage in all imported modules. With numba that
    # takes longer than many tasks; frozen objects are passed over.
    if next(CALLS) < 3:
        gc.freeze()
    for batch in batches:
        for row in range(batch.num_rows):
            cells = (batch.column(name)[row] for name in batch.schema.names)
            yield dict(zip(batch.schema.names, map(_view, cells), strict=True))


def _view(cell: Any) -> Any:
    return cell.as_buffer() if isinstance(cell, pa.BinaryScalar) and cell.is_valid else cell.as_py()


def mapped(
    function: Callable[..., Mapping[str, Any]], schema: pa.Schema, *arguments: Any
) -> Callable[[Batches], Batches]:
    """Return what an executor runs: it makes of each row the row `function(row, *arguments)`."""

    def run(batches: Batches) -> Batches:
        for row in each_row(batches):
            yield as_batch([function(row, *arguments)], schema)

    return run


def as_batch(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as a batch; what a row lacks is missing. Arrays become bytes."""
    columns = [
        pa.array([_plain(row.get(field.name)) for row in rows], field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain(cell: Any) -> Any:
    if isinstance(cell, np.ndarray):
        return cell.tobytes()
    return cell.to_pybytes() if isinstance(cell, pa.Buffer) else cell


def arrow_schema(spark_schema: str) -> pa.Schema:
    """Return the Arrow schema of a Spark schema such as "block int, x binary"."""
    types = {"int": pa.int32(), "bigint": pa.int64(), "binary": pa.binary(), "string": pa.string()}
    types |= {"float": pa.float32(), "array<string>": pa.list_(pa.string())}
    fields = (field.split() for field in spark_schema.split(", "))
    return pa.schema([(name, types[type_]) for name, type_ in fields])


ARRAY = "array binary"
ARRAY_SCHEMA = arrow_schema(ARRAY)


def summed(arrays: DataFrame, n_arrays: int) -> np.ndarray:
    """Return the sum of the float64 arrays in the column `array`; of many as a tree."""
    if n_arrays > MAX_SUMMED_AT_ONCE:
        arrays = arrays.mapInArrow(add_up, ARRAY).repartition(max(1, round(n_arrays**0.5)))
    rows = arrays.mapInArrow(add_up, ARRAY).collect()
    return np.asarray(sum(array_of(row.array, np.float64) for row in rows))


def add_up(batches: Batches) -> Batches:
    """Sum the arrays of a partition."""
    total: Any = 0
    for row in each_row(batches):
        total = total + array_of(row["array"], np.float64)
    if np.ndim(total):
        yield as_batch([{"array": total}], ARRAY_SCHEMA)


def persisted(frame: DataFrame) -> DataFrame:
    """Have the executors keep a frame, in memory as far as it fits; a lost block is made again."""
    from pyspark import StorageLevel

    return frame.persist(StorageLevel.MEMORY_AND_DISK)


def n_blocks_of(n_pairs: int, n_users: int, cores: int) -> int:
    """Return how many blocks a log has: as few as fit, and two a core where there are enough pairs.

    >>> n_blocks_of(100, 10, cores=2), n_blocks_of(10**7, 10, cores=2), n_blocks_of(10**8, 10, 2)
    (1, 4, 24)
    """
    n_fitting = max(2 * cores, -(-n_pairs // MAX_PAIRS), -(-n_users // MAX_USERS))
    return max(1, min(n_fitting, -(-n_pairs // MIN_PAIRS)))


def runs_of(n_bytes: Mapping[int, int], max_bytes: int) -> list[list[int]]:
    """Split blocks, in their order, into runs of at most so many bytes; a larger one is alone.

    >>> runs_of({0: 4, 1: 6, 3: 1, 4: 20, 5: 3}, 10)
    [[0, 1], [3], [4], [5]]
    """
    runs: list[list[int]] = []
    left = 0
    for block, n in n_bytes.items():
        if n > left or not runs:
            runs.append([])
            left = max_bytes
        runs[-1].append(block)
        left -= n
    return runs


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
        """Make the counts from the sums of `count_pairs`."""
        (pairs, likes), (n_users, total) = sums[:-2].reshape(2, -1).astype(np.int32), sums[-2:]
        n_likes = int(likes.sum(dtype=np.int64))
        return cls(pairs, likes, int(n_users), n_likes, float(total) / max(n_likes, 1))


def count_pairs(row: Row, feedback: Feedback, n_items: int) -> Row:
    """Count pairs and likes of items, users with likes, sum confidences: (2 · n_items + 2,)."""
    history = BlockHistory.of(row)
    confidences = history.confidences(feedback)
    likes = confidences > 0
    before = np.concatenate([[0], np.cumsum(likes)])[history.indptr]
    n_pairs = np.bincount(history.items, minlength=n_items)
    n_likes = np.bincount(history.items[likes], minlength=n_items)
    totals = np.count_nonzero(np.diff(before)), confidences.sum(dtype=np.float64)
    return {"array": np.concatenate([n_pairs, n_likes, totals])}


def usual_weights(blocks: DataFrame, n_blocks: int, n_items: int) -> tuple[float, np.ndarray]:
    """Return what `confidences.usual_by_sums` does. No machine has to hold all weights.

    Positive floats are in the order of their bits: the counts of their upper 16 bits tell the upper
    bits of the median, and then those of the lower 16 bits the median itself.
    """
    weights = blocks.select("items", "weights")
    sums = summed(weights.mapInArrow(mapped(sum_weights, ARRAY_SCHEMA, n_items), ARRAY), n_blocks)
    uppers, counts, logs = np.split(sums, [1 << HALF, (1 << HALF) + n_items])
    n = int(uppers.sum())
    middle = []
    for rank in {(n - 1) // 2, n // 2} if n else ():
        upper = int(np.searchsorted(np.cumsum(uppers), rank, side="right"))
        count = mapped(count_lower_bits, ARRAY_SCHEMA, upper)
        lowers = summed(weights.mapInArrow(count, ARRAY), n_blocks)
        lower = np.searchsorted(np.cumsum(lowers), rank - uppers[:upper].sum(), side="right")
        bits = np.array([(upper << HALF) | int(lower)], dtype=np.uint32)
        middle.append(np.log(bits.view(np.float32).astype(np.float64))[0])
    return usual_by_sums(float(np.mean(middle)) if n else None, counts, logs)


def sum_weights(row: Row, n_items: int) -> Row:
    """Count the upper 16 bits of the weights above 0, and for each item these weights; and sum the
    logarithms of the latter: float64 (2¹⁶ + 2 · n_items,).
    """
    items, weights = array_of(row["items"], np.int32), array_of(row["weights"], np.float32)
    items, weights = items[weights > 0], weights[weights > 0]
    uppers = np.bincount(weights.view(np.uint32) >> HALF, minlength=1 << HALF)
    logs = np.bincount(items, np.log(weights.astype(np.float64)), n_items)
    return {"array": np.concatenate([uppers, np.bincount(items, minlength=n_items), logs])}


def count_lower_bits(row: Row, upper: int) -> Row:
    """Count the lower 16 bits of the weights above 0 that have these upper ones."""
    weights = array_of(row["weights"], np.float32)
    bits = weights[weights > 0].view(np.uint32)
    lower = bits[bits >> HALF == upper] & ((1 << HALF) - 1)
    return {"array": np.bincount(lower, minlength=1 << HALF).astype(np.float64)}
