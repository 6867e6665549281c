"""What executors compute for alternating least squares: blocks of users and of items, solved in
turn.

A block holds histories in compressed rows: indptr int64, columns int32, and confidences float32,
one a pair or a single one where all pairs have it. Embeddings x are float32 (n, d).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.engines.spark.blocks import (
    Batches,
    BlockHistory,
    Row,
    array_of,
    arrow_schema,
    as_batch,
    each_row,
)
from qkvsearch.models.als_training import LANES, Equations, solve_rows, width_of
from qkvsearch.models.confidences import Feedback
from qkvsearch.models.pairs import Pairs

# Columns are items. gram: XᵀX, float64. needed: the rows that each block of items needs, int32,
# block after block; ends: where those of each begin and end, int64.
USERS = (
    "block int, indptr binary, columns binary, confidences binary, x binary, gram binary, "
    "needed binary, ends binary"
)
# Columns are row numbers of `users`, int32: the numbers of the users that the block needs.
ITEMS = "block int, indptr binary, columns binary, confidences binary, users binary"
# Pairs on their way from blocks of users to blocks of items, and embeddings likewise.
LIKES = "block int, item int, user int, confidence float"
SENT = "block int, source int, x binary"
SOLVED = "block int, x binary"
USERS_SCHEMA, ITEMS_SCHEMA, LIKES_SCHEMA, SENT_SCHEMA, SOLVED_SCHEMA = map(
    arrow_schema, (USERS, ITEMS, LIKES, SENT, SOLVED)
)


@dataclass(frozen=True)
class Start:
    """The random embeddings of a block, a part of the one sequence that all rows have, whatever the
    blocks. state: of the generator before the block's first row.
    """

    state: dict[str, Any]
    n_components: int
    scale: float

    def embeddings(self, lengths: np.ndarray) -> np.ndarray:
        """Return the embeddings (n, d), zero for rows without a history."""
        rng = np.random.default_rng()
        rng.bit_generator.state = self.state
        x = rng.standard_normal((len(lengths), self.n_components), dtype=np.float32)
        x *= np.float32(self.scale / np.sqrt(self.n_components))
        x[lengths == 0] = 0
        return x


@dataclass(frozen=True)
class HalfStep:
    """Half of an iteration: the rows of one side are solved, those of the other held fixed.

    turn (d, d), float32: turns the rows, as they are stored, to the principal axes of the others.
    spectrum (d,): α₀ times the others' eigenvalues. strength: α₀ times how many others have a
    history.
    """

    turn: np.ndarray
    spectrum: np.ndarray
    reg: float
    strength: float
    nu: float
    cg_steps: int

    def embeddings_of(self, row: Row) -> np.ndarray:
        """Return the embeddings (n, d) in a row of a block."""
        return array_of(row["x"], np.float32).reshape(-1, len(self.spectrum))

    def solve(self, block: Row, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return new embeddings (n, d) of the rows of a block; `others` (m, d) are turned."""
        d = len(self.spectrum)
        width = width_of(d)
        padding = LANES * len(width) - d
        with one_blas_thread():
            solved = _padded(rows @ self.turn, padding)
        pairs = Pairs(
            starts=np.array(array_of(block["indptr"], np.int64)),
            columns=np.array(array_of(block["columns"], np.int32)),
            confidences=np.array(array_of(block["confidences"], np.float32)),
        )
        lengths = pairs.lengths
        equations = Equations(
            spectrum=np.pad(self.spectrum.astype(np.float32), (0, padding)),
            ridges=(self.reg * (lengths + self.strength) ** self.nu).astype(np.float32),
            others=_padded(others, padding),
        )
        rows_with_pairs = np.flatnonzero(lengths)
        solve_rows(rows_with_pairs, pairs, equations, solved, self.cg_steps, width)
        solved[lengths == 0] = 0
        return np.ascontiguousarray(solved[:, :d])


def _padded(rows: np.ndarray, n: int) -> np.ndarray:
    padded = np.pad(rows, ((0, 0), (0, n))) if n else rows
    return np.ascontiguousarray(padded, dtype=np.float32)


# --- the two sides ---


def likes_of(row: Row, feedback: Feedback) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs of a block that have a confidence above 0: indptr, items, confidences."""
    history = BlockHistory.of(row)
    confidences = history.confidences(feedback)
    likes = confidences > 0
    ends = np.concatenate([[0], np.cumsum(likes)])[history.indptr]
    return ends.astype(np.int64), history.items[likes], confidences[likes]


def shared(confidences: np.ndarray) -> np.ndarray:
    """Return a single confidence where all are 1."""
    return np.ones(1, np.float32) if (confidences == 1).all() else confidences


def make_users(row: Row, feedback: Feedback, starts: dict[int, Start], cuts: np.ndarray) -> Row:
    """Make a block of users of a log's block. cuts: where blocks of items begin, and the end."""
    indptr, items, confidences = likes_of(row, feedback)
    n, users = len(indptr) - 1, np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    needed = np.unique((np.searchsorted(cuts, items, side="right") - 1) * n + users)
    return {
        "block": row["block"],
        "indptr": indptr,
        "columns": items,
        "confidences": shared(confidences),
        "x": starts[row["block"]].embeddings(np.diff(indptr)),
        "needed": (needed % n).astype(np.int32),
        "ends": np.searchsorted(needed, n * np.arange(len(cuts))),
    }


def send_likes(
    feedback: Feedback, firsts: dict[int, int], cuts: np.ndarray
) -> Callable[[Batches], Batches]:
    """Send a log's pairs to blocks of items. firsts: the number of each block's first user."""

    def send(batches: Batches) -> Batches:
        for row in each_row(batches):
            indptr, items, confidences = likes_of(row, feedback)
            users = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)) + firsts[row["block"]]
            blocks = np.searchsorted(cuts, items, side="right") - 1
            columns = blocks, items - cuts[blocks], users, confidences
            arrays = map(pa.array, columns, LIKES_SCHEMA.types)
            yield pa.RecordBatch.from_arrays(list(arrays), schema=LIKES_SCHEMA)

    return send


def make_items(cuts: np.ndarray) -> Callable[[pa.Table], pa.Table]:
    """Make a block of items of the pairs that were sent to it."""

    def make(likes: pa.Table) -> pa.Table:
        blocks, items, users, confidences = (column.to_numpy() for column in likes.columns)
        order, block = np.lexsort((users, items)), int(blocks[0])
        lengths = np.bincount(items, minlength=cuts[block + 1] - cuts[block])
        needed, columns = np.unique(users, return_inverse=True)
        item_block = {
            "block": block,
            "indptr": np.concatenate([[0], np.cumsum(lengths)]),
            "columns": columns[order].astype(np.int32),
            "confidences": shared(confidences[order]),
            "users": needed,
        }
        return pa.Table.from_batches([as_batch([item_block], ITEMS_SCHEMA)])

    return make


# --- the halves of an iteration ---


def solve_users(step: HalfStep, items: Callable[[], np.ndarray]) -> Callable[[Batches], Batches]:
    """Solve blocks of users; items: returns the embeddings (n_items, d)."""

    def solve(batches: Batches) -> Batches:
        for batch in batches:
            for at in range(batch.num_rows):
                block = batch.slice(at, 1)
                row = next(each_row(iter([block])))
                x = step.solve(row, step.embeddings_of(row), items())
                with one_blas_thread():
                    gram = (x.T @ x).astype(np.float64)
                for name, array in (("x", x), ("gram", gram)):
                    cell = pa.array([array.tobytes()], pa.binary())
                    block = block.set_column(block.schema.get_field_index(name), name, cell)
                yield block

    return solve


def solve_items(
    row: Row,
    step: HalfStep,
    items: Callable[[], np.ndarray],
    cuts: np.ndarray,
    users: Callable[[], np.ndarray],
) -> Row:
    """Solve a block of items by the embeddings of all users, which are few."""
    rows = items()[slice(*cuts[row["block"] :][:2])]
    x = step.solve(row, rows, users()[array_of(row["users"], np.int32)])
    return {"block": row["block"], "x": x}


def solve_items_with_sent(
    step: HalfStep, items: Callable[[], np.ndarray], cuts: np.ndarray
) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """Solve a block of items by the embeddings that `send_users` sent to it."""

    def solve(block: pa.Table, sent: pa.Table) -> pa.Table:
        [row] = each_row(iter(block.to_batches()))
        sent_blocks = each_row(iter(sent.sort_by("source").to_batches()))
        users = np.concatenate([step.embeddings_of(sent_block) for sent_block in sent_blocks])
        x = step.solve(row, items()[slice(*cuts[row["block"] :][:2])], users)
        solved = as_batch([{"block": row["block"], "x": x}], SOLVED_SCHEMA)
        return pa.Table.from_batches([solved])

    return solve


def send_users(turn: np.ndarray) -> Callable[[Batches], Batches]:
    """Send each block of items the users' embeddings that it needs, turned to their axes."""

    def send(batches: Batches) -> Batches:
        for row in each_row(batches):
            x = array_of(row["x"], np.float32).reshape(-1, len(turn))
            needed, ends = array_of(row["needed"], np.int32), array_of(row["ends"], np.int64)
            for target in np.flatnonzero(np.diff(ends)).tolist():
                with one_blas_thread():
                    turned = x[needed[ends[target] : ends[target + 1]]] @ turn
                sent = {"block": target, "source": row["block"], "x": turned.astype(np.float32)}
                yield as_batch([sent], SENT_SCHEMA)

    return send
