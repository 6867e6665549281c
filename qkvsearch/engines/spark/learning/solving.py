"""What an executor does with a block of users or of items: compressed rows, and their embeddings.

Arrays travel as bytes in the cells of Arrow tables, one row a block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from qkvsearch.collaborative.solver import LANES, blocks, solve_rows
from qkvsearch.engines.spark.tables import Rows, array_of, arrow_schema, as_batch, each_row
from qkvsearch.threads import one_blas_thread

# A side of the alternation, a row a block: histories in compressed rows, int64 and int32; their
# confidences, float32, one a pair or one for all; embeddings (n, d), float32; XᵀX of these,
# float64; and which of its rows each block of the other side asks for, int32, one after the other,
# with where each block's begin, int64.
SIDE = (
    "block int, indptr binary, columns binary, confidences binary, asked binary, "
    "asked_ends binary, x binary, gram binary"
)
# What a block asked for, on its way.
ROWS_ASKED = "target int, source int, x binary"
SOLVED = "block int, x binary"


@dataclass(frozen=True)
class HalfStep:
    """One half of an iteration: the rows of one side are solved by the embeddings of the other.

    turn (d, d), float32: brings the rows, as they are stored, to the principal axes of the others.
    spectrum (d,): α₀ times the others' eigenvalues. strength: α₀ times how many others are active.
    """

    turn: np.ndarray
    spectrum: np.ndarray
    reg: float
    strength: float
    nu: float
    cg_steps: int

    def solve(
        self,
        indptr: np.ndarray,
        columns: np.ndarray,
        confidences: np.ndarray,
        others: np.ndarray,
        rows: np.ndarray,
    ) -> np.ndarray:
        """New embeddings (n, d) of the rows; `others` (m, d) is in its principal axes already."""
        d = len(self.spectrum)
        n_blocks, width = blocks(d)
        added = n_blocks * LANES * len(width) - d
        with one_blas_thread():
            solved = _wider(rows @ self.turn, added)
        lengths = np.diff(indptr)
        ridges = (self.reg * (lengths + self.strength) ** self.nu).astype(np.float32)
        solve_rows(
            np.flatnonzero(lengths),
            np.array(indptr, np.int64),
            np.array(columns, np.int32),
            np.array(confidences, np.float32),
            np.pad(self.spectrum.astype(np.float32), (0, added)),
            ridges,
            _wider(others, added),
            solved,
            self.cg_steps,
            width,
        )
        solved[lengths == 0] = 0
        return np.ascontiguousarray(solved[:, :d])


def _wider(rows: np.ndarray, added: int) -> np.ndarray:
    """With so many components more, which are zero."""
    wider = np.pad(rows, ((0, 0), (0, added))) if added else rows
    return np.ascontiguousarray(wider, dtype=np.float32)


def gram_of(rows: np.ndarray) -> bytes:
    """XᵀX of a block (n, d), in float64."""
    with one_blas_thread():
        return (rows.T @ rows).astype(np.float64).tobytes()


def solve_users(step: HalfStep, items: Callable[[], np.ndarray]) -> Callable[[Rows], Rows]:
    """Blocks of users with new embeddings. items: gives the embeddings (n_items, d)."""

    def solve(batches: Rows) -> Rows:
        for batch in batches:
            for place in range(batch.num_rows):
                one = batch.slice(place, 1)
                x, gram = solved_block(next(each_row(iter([one]))), step, items())
                columns = {"x": pa.array([x], pa.binary()), "gram": pa.array([gram], pa.binary())}
                cells = [columns.get(name, one.column(name)) for name in SIDE_SCHEMA.names]
                yield pa.RecordBatch.from_arrays(cells, schema=SIDE_SCHEMA)

    return solve


def solved_block(row: dict[str, Any], step: HalfStep, others: np.ndarray) -> tuple[bytes, bytes]:
    """The new embeddings of a row of a side, and their Gram matrix."""
    d = len(step.spectrum)
    solved = step.solve(
        array_of(row["indptr"], np.int64),
        array_of(row["columns"], np.int32),
        array_of(row["confidences"], np.float32),
        others,
        array_of(row["x"], np.float32).reshape(-1, d),
    )
    return solved.tobytes(), gram_of(solved)


def solve_blocks(
    step: HalfStep, others: Callable[[], np.ndarray], mine: Callable[[int], np.ndarray | None]
) -> Callable[[Rows], Rows]:
    """Blocks solved by all embeddings of the other side. mine: gives those of a block, None where
    they are in it.
    """

    def solve(batches: Rows) -> Rows:
        for row in each_row(batches):
            rows = mine(row["block"])
            row["x"] = row["x"] if rows is None else rows.tobytes()
            x, _ = solved_block(row, step, others())
            yield as_batch([{"block": row["block"], "x": x}], SOLVED_SCHEMA)

    return solve


def send_rows(turn: np.ndarray) -> Callable[[Rows], Rows]:
    """To each block of the other side those rows that it asks for, turned to their axes."""

    def send(batches: Rows) -> Rows:
        for row in each_row(batches):
            x = array_of(row["x"], np.float32).reshape(-1, len(turn))
            asked, ends = array_of(row["asked"], np.int32), array_of(row["asked_ends"], np.int64)
            for target in np.flatnonzero(np.diff(ends)).tolist():
                rows = asked[ends[target] : ends[target + 1]]
                with one_blas_thread():
                    sent = (x[rows] @ turn).astype(np.float32, copy=False)
                sending = {"target": target, "source": row["block"], "x": sent.tobytes()}
                yield as_batch([sending], ROWS_SCHEMA)

    return send


def pick_rows(n_components: int) -> Callable[[Rows], Rows]:
    """Rows of a block of items (block, target, asked, x) to the block of users that asks."""

    def pick(batches: Rows) -> Rows:
        for row in each_row(batches):
            x = array_of(row["x"], np.float32).reshape(-1, n_components)
            sent = x[array_of(row["asked"], np.int32)]
            sending = {"target": row["target"], "source": row["block"], "x": sent.tobytes()}
            yield as_batch([sending], ROWS_SCHEMA)

    return pick


def solve_with_sent(step: HalfStep, keep: pa.Schema) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """A block and what was sent to it, by source, to the block with new embeddings."""

    def solve(block: pa.Table, sent: pa.Table) -> pa.Table:
        d, solved = len(step.spectrum), []
        others = np.zeros((0, d), np.float32)
        if sent.num_rows:
            parts = sent.sort_by("source").column("x").to_pylist()
            others = np.concatenate([array_of(part, np.float32).reshape(-1, d) for part in parts])
        for row in each_row(iter(block.to_batches())):
            x, gram = solved_block(row, step, others)
            solved.append({**row, "x": x, "gram": gram})
        return pa.Table.from_batches([as_batch(solved, keep)])

    return solve


SIDE_SCHEMA, ROWS_SCHEMA, SOLVED_SCHEMA = map(arrow_schema, (SIDE, ROWS_ASKED, SOLVED))
