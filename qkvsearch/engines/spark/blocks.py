"""Blocks of a log: arrays in the cells of Arrow tables, one row a block."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Batches = Iterator[pa.RecordBatch]

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
    """Return the sum of the float64 arrays in the column `array`; of many as a tree, so that no
    task holds all of them.
    """
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
