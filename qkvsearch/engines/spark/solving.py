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
from qkvsearch.collaborative.confidences import Feedback
from qkvsearch.collaborative.solver import LANES, blocks, solve_rows
from qkvsearch.engines.spark.blocks import Batches, array_of, arrow_schema, as_batch, each_row
from qkvsearch.engines.spark.histories import BlockHistory

# Columns are items. gram: XᵀX, float64. needed: the rows that each block of items needs, int32,
# block after block; ends: where those of each begin and end, int64.
USERS = (
    "block int, indptr binary, columns binary, confidences binary, x binary, gram binary, "
    "needed binary, ends binary"
)
# Columns are users: row numbers of all, or of those that are sent to the block.
ITEMS = "block int, indptr binary, columns binary, confidences binary"
# The pairs of a block of users with a block of items. lengths: int32, how many each item has;
# n_needed: how many users the columns are row numbers of.
PIECES = "block int, source int, lengths binary, columns binary, confidences binary, n_needed int"
SENT = "block int, source int, x binary"
SOLVED = "block int, x binary"
USERS_SCHEMA, ITEMS_SCHEMA, PIECES_SCHEMA, SENT_SCHEMA, SOLVED_SCHEMA = map(
    arrow_schema, (USERS, ITEMS, PIECES, SENT, SOLVED)
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

    def embeddings_of(self, row: dict[str, Any]) -> np.ndarray:
        """Return the embeddings (n, d) in a row of a block."""
        return array_of(row["x"], np.float32).reshape(-1, len(self.spectrum))

    def solve(self, block: dict[str, Any], rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return new embeddings (n, d) of the rows of a block; `others` (m, d) are turned."""
        d = len(self.spectrum)
        n_blocks, width = blocks(d)
        padding = n_blocks * LANES * len(width) - d
        with one_blas_thread():
            solved = _padded(rows @ self.turn, padding)
        indptr = np.array(array_of(block["indptr"], np.int64))
        lengths = np.diff(indptr)
        ridges = (self.reg * (lengths + self.strength) ** self.nu).astype(np.float32)
        solve_rows(
            np.flatnonzero(lengths),
            indptr,
            np.array(array_of(block["columns"], np.int32)),
            np.array(array_of(block["confidences"], np.float32)),
            np.pad(self.spectrum.astype(np.float32), (0, padding)),
            ridges,
            _padded(others, padding),
            solved,
            self.cg_steps,
            width,
        )
        solved[lengths == 0] = 0
        return np.ascontiguousarray(solved[:, :d])


def _padded(rows: np.ndarray, n: int) -> np.ndarray:
    padded = np.pad(rows, ((0, 0), (0, n))) if n else rows
    return np.ascontiguousarray(padded, dtype=np.float32)


# --- the two sides ---


@dataclass(frozen=True)
class _Likes:
    """The pairs of a block of users that have a confidence above 0. equal: all have 1."""

    indptr: np.ndarray
    items: np.ndarray
    confidences: np.ndarray
    equal: bool

    @classmethod
    def of(cls, row: dict[str, Any], feedback: Feedback) -> _Likes:
        history = BlockHistory.of(row)
        confidences = history.confidences(feedback)
        equal = history.ratings is None and history.weights is None
        if confidences.all():
            return cls(history.indptr, history.items, confidences, equal)
        likes = confidences > 0
        indptr = np.concatenate([[0], np.cumsum(likes)])[history.indptr].astype(np.int64)
        return cls(indptr, history.items[likes], confidences[likes], equal)

    def shared(self, confidences: np.ndarray) -> np.ndarray:
        """Return a single confidence where all pairs of the log have it."""
        return np.ones(1, np.float32) if self.equal else confidences

    def by_item(self, cuts: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return for each block of items how many pairs each item has, and the users, by item, then
        user, and confidences of these pairs.
        """
        users = np.repeat(np.arange(len(self.indptr) - 1, dtype=np.int32), np.diff(self.indptr))
        order = np.argsort(self.items, kind="stable")
        lengths = np.bincount(self.items, minlength=cuts[-1]).astype(np.int32)
        ends = np.searchsorted(self.items[order], cuts)
        return [
            (
                lengths[cuts[at] : cuts[at + 1]],
                users[order[ends[at] : ends[at + 1]]],
                self.confidences[order[ends[at] : ends[at + 1]]],
            )
            for at in range(len(cuts) - 1)
        ]


def make_users(
    feedback: Feedback, starts: dict[int, Start], cuts: np.ndarray, few: bool
) -> Callable[[Batches], Batches]:
    """Make blocks of users of a log's blocks. cuts: where blocks of items begin. few: blocks of
    items get the embeddings of all users.
    """

    def make(batches: Batches) -> Batches:
        for row in each_row(batches):
            likes = _Likes.of(row, feedback)
            needed = [] if few else [np.unique(users) for _, users, _ in likes.by_item(cuts)]
            block = {
                "block": row["block"],
                "indptr": likes.indptr,
                "columns": likes.items,
                "confidences": likes.shared(likes.confidences),
                "x": starts[row["block"]].embeddings(np.diff(likes.indptr)),
                "needed": np.concatenate([*needed, np.zeros(0, np.int32)]).astype(np.int32),
                "ends": np.cumsum([0, *map(len, needed)]).astype(np.int64),
            }
            yield as_batch([block], USERS_SCHEMA)

    return make


def make_pieces(
    feedback: Feedback, firsts: dict[int, int], cuts: np.ndarray, few: bool
) -> Callable[[Batches], Batches]:
    """Split a log's blocks into pieces, one for each block of items. firsts: the number of each
    block's first user.
    """

    def make(batches: Batches) -> Batches:
        for row in each_row(batches):
            likes = _Likes.of(row, feedback)
            for target, (lengths, users, confidences) in enumerate(likes.by_item(cuts)):
                needed, columns = np.zeros(0, np.int32), users + firsts[row["block"]]
                if not few:
                    needed, columns = np.unique(users, return_inverse=True)
                piece = {
                    "block": target,
                    "source": row["block"],
                    "lengths": lengths,
                    "columns": columns.astype(np.int32),
                    "confidences": likes.shared(confidences),
                    "n_needed": len(needed),
                }
                yield as_batch([piece], PIECES_SCHEMA)

    return make


def join_pieces(pieces: pa.Table) -> pa.Table:
    """Join the pieces of a block of items to its compressed rows."""
    rows = list(each_row(iter(pieces.sort_by("source").to_batches())))
    lengths, columns, confidences = (
        [array_of(row[name], dtype) for row in rows]
        for name, dtype in (("lengths", "i4"), ("columns", "i4"), ("confidences", "f4"))
    )
    starts = np.cumsum([0, *(row["n_needed"] for row in rows)])[:-1]
    order = np.argsort(
        np.concatenate([np.repeat(np.arange(len(n)), n) for n in lengths]), kind="stable"
    )
    joined = np.ones(1, np.float32)
    if not all(len(c) == 1 and c[0] == 1 for c in confidences):
        sizes = map(len, columns)
        joined = np.concatenate(list(map(np.broadcast_to, confidences, sizes)))[order]
    columns = [piece + start for piece, start in zip(columns, starts, strict=True)]
    block = {
        "block": rows[0]["block"],
        "indptr": np.concatenate([[0], np.cumsum(sum(lengths))]).astype(np.int64),
        "columns": np.concatenate(columns)[order].astype(np.int32),
        "confidences": joined,
    }
    return pa.Table.from_batches([as_batch([block], ITEMS_SCHEMA)])


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
    step: HalfStep,
    items: Callable[[], np.ndarray],
    cuts: np.ndarray,
    users: Callable[[], np.ndarray],
) -> Callable[[Batches], Batches]:
    """Solve blocks of items by the embeddings of all users, which are few."""

    def solve(batches: Batches) -> Batches:
        for row in each_row(batches):
            yield _solved_items(step, row, items()[slice(*cuts[row["block"] :][:2])], users())

    return solve


def solve_items_with_sent(
    step: HalfStep, items: Callable[[], np.ndarray], cuts: np.ndarray
) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """Solve a block of items by the embeddings that `send_users` sent to it."""

    def solve(block: pa.Table, sent: pa.Table) -> pa.Table:
        parts = [
            step.embeddings_of(row) for row in each_row(iter(sent.sort_by("source").to_batches()))
        ]
        users = np.concatenate([np.zeros((0, len(step.spectrum)), np.float32), *parts])
        [row] = each_row(iter(block.to_batches()))
        rows = items()[slice(*cuts[row["block"] :][:2])]
        return pa.Table.from_batches([_solved_items(step, row, rows, users)])

    return solve


def _solved_items(
    step: HalfStep, row: dict[str, Any], rows: np.ndarray, users: np.ndarray
) -> pa.RecordBatch:
    solved = {"block": row["block"], "x": step.solve(row, rows, users)}
    return as_batch([solved], SOLVED_SCHEMA)


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
