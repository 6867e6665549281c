"""Arrays in the cells of Arrow tables, as executors get and give them: bytes, a row a block."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa

Rows = Iterator[pa.RecordBatch]
FREEZES = count()


def array_of(cell: Any, dtype: Any) -> np.ndarray:
    """The array in a cell of bytes, without a copy; empty for a gap."""
    return np.frombuffer(b"" if cell is None else cell, dtype)


def each_row(batches: Rows) -> Iterator[dict[str, Any]]:
    """The rows of tables one by one; bytes are views."""
    # After each task Spark's worker looks for garbage in all that it has imported, which with Numba
    # takes longer than many a task. What is frozen is passed over; later on, nothing is imported.
    if next(FREEZES) < 3:
        gc.freeze()
    for batch in batches:
        for place in range(batch.num_rows):
            yield {
                name: _view(batch.column(at)[place]) for at, name in enumerate(batch.schema.names)
            }


def _view(cell: Any) -> Any:
    return cell.as_buffer() if isinstance(cell, pa.BinaryScalar) and cell.is_valid else cell.as_py()


def as_batch(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows of a table; what they lack is a gap."""
    columns = [
        pa.array([_plain(row.get(field.name)) for row in rows], field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain(cell: Any) -> Any:
    return cell.to_pybytes() if isinstance(cell, pa.Buffer) else cell


def add_up(dtype: Any) -> Callable[[Rows], Rows]:
    """Cells of bytes, all of one shape, added up to one of each partition."""

    def add(batches: Rows) -> Rows:
        total = None
        for row in each_row(batches):
            part = array_of(row["part"], dtype)
            total = part.copy() if total is None else total + part
        if total is not None:
            yield as_batch([{"part": total.tobytes()}], PART_SCHEMA)

    return add


def arrow_schema(of: str) -> pa.Schema:
    """The same in Arrow: types match to the bit, or Spark refuses them."""
    kinds = {"int": pa.int32(), "bigint": pa.int64(), "binary": pa.binary(), "string": pa.string()}
    return pa.schema(
        [(name, kinds[kind]) for name, kind in (one.split() for one in of.split(", "))]
    )


PART_SCHEMA = arrow_schema("part binary")
