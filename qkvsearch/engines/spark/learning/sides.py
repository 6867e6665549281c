"""What an executor does to make the two sides of an alternation of a log in blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from qkvsearch.collaborative.confidences import Feedback
from qkvsearch.engines.spark.histories import BlockHistory
from qkvsearch.engines.spark.learning.solving import SIDE_SCHEMA, gram_of
from qkvsearch.engines.spark.tables import Rows, array_of, arrow_schema, as_batch, each_row

# Of a block of users, its pairs with the items of one block: of each of these how many, int32; the
# users, as places among those asked for, int32; how many are asked for.
PIECES = "target int, source int, lengths binary, columns binary, confidences binary, n_asked int"
PIECES_SCHEMA = arrow_schema(PIECES)
# Rows of a block of items that a block of users asks for, int32.
ASKED = "block int, target int, asked binary"
ASKED_SCHEMA = arrow_schema(ASKED)


@dataclass(frozen=True)
class Start:
    """Where a block's random embeddings are in the one sequence that all rows have, whatever the
    blocks: the state of the generator before its first row.
    """

    state: dict[str, Any]
    n_components: int
    scale: float

    def rows(self, lengths: np.ndarray) -> np.ndarray:
        """(n, d), zero for rows without a history."""
        rng = np.random.default_rng()
        rng.bit_generator.state = self.state
        found = rng.standard_normal((len(lengths), self.n_components), dtype=np.float32)
        found *= np.float32(self.scale / np.sqrt(self.n_components))
        found[lengths == 0] = 0
        return found


def make_sides(
    feedback: Feedback, starts: dict[int, Start], cuts: np.ndarray, ask: bool, ask_items: bool
) -> Callable[[Rows], Rows]:
    """Blocks of a log to blocks of users. cuts: where blocks of items begin. ask: users are many,
    so that each block has its embeddings, and sends blocks of items the rows that they ask for.
    ask_items: the other way round, so that columns are places among those that a block asks for.
    """

    def make(batches: Rows) -> Rows:
        for row in each_row(batches):
            counted = _Counted.of(BlockHistory.of(row), feedback)
            asked, ends, of_many = np.zeros(0, np.int32), np.zeros(0, np.int64), {}
            if ask:
                x = starts[row["block"]].rows(np.diff(counted.indptr))
                of_many = {"x": x.tobytes(), "gram": gram_of(x)}
                wanted = [np.unique(users) for _, users, _ in counted.pieces(cuts)]
                asked = np.concatenate([*wanted, asked])
                ends = np.concatenate([[0], np.cumsum([len(users) for users in wanted])])
            columns = counted.items
            if ask_items:
                columns = np.unique(columns, return_inverse=True)[1].astype(np.int32)
            side = {
                "block": row["block"],
                "indptr": counted.indptr.tobytes(),
                "columns": columns.tobytes(),
                "confidences": counted.shared().tobytes(),
                "asked": asked.astype(np.int32).tobytes(),
                "asked_ends": ends.astype(np.int64).tobytes(),
                **of_many,
            }
            yield as_batch([side], SIDE_SCHEMA)

    return make


def ask_for_items(feedback: Feedback, cuts: np.ndarray) -> Callable[[Rows], Rows]:
    """Of each block of users the items that it asks for, by blocks of items: places in these."""

    def ask(batches: Rows) -> Rows:
        for row in each_row(batches):
            items = np.unique(_Counted.of(BlockHistory.of(row), feedback).items)
            ends = np.searchsorted(items, cuts)
            for at in np.flatnonzero(np.diff(ends)).tolist():
                rows = (items[ends[at] : ends[at + 1]] - cuts[at]).astype(np.int32)
                asked = {"block": at, "target": row["block"], "asked": rows.tobytes()}
                yield as_batch([asked], ASKED_SCHEMA)

    return ask


def make_pieces(
    feedback: Feedback, firsts: dict[int, int], cuts: np.ndarray, ask: bool
) -> Callable[[Rows], Rows]:
    """Blocks of a log to their pieces, one for each block of items. firsts: the number of each
    block's first user."""

    def make(batches: Rows) -> Rows:
        for row in each_row(batches):
            counted = _Counted.of(BlockHistory.of(row), feedback)
            for target, (lengths, users, confidences) in enumerate(counted.pieces(cuts)):
                n_asked, columns = 0, users + firsts[row["block"]]
                if ask:
                    asked, columns = np.unique(users, return_inverse=True)
                    n_asked = len(asked)
                piece = {
                    "target": target,
                    "source": row["block"],
                    "lengths": lengths.tobytes(),
                    "columns": columns.astype(np.int32).tobytes(),
                    "confidences": confidences.tobytes(),
                    "n_asked": n_asked,
                }
                yield as_batch([piece], PIECES_SCHEMA)

    return make


@dataclass(frozen=True)
class _Counted:
    """The pairs of a block that count for anything."""

    indptr: np.ndarray
    items: np.ndarray
    confidences: np.ndarray
    alike: bool

    @classmethod
    def of(cls, history: BlockHistory, feedback: Feedback) -> _Counted:
        confidences = history.confidences(feedback)
        alike = history.ratings is None and history.weights is None
        if confidences.all():
            return cls(history.indptr, history.items, confidences, alike)
        counts = confidences > 0
        ends = np.concatenate([[0], np.cumsum(counts)])[history.indptr]
        return cls(ends.astype(np.int64), history.items[counts], confidences[counts], alike)

    def shared(self) -> np.ndarray:
        """One confidence a pair, or one for all where they are equal in the whole log."""
        return np.ones(1, np.float32) if self.alike else self.confidences

    def pieces(self, cuts: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For each block of items: of each item how many pairs, int32; the users of these, by item,
        then user; the confidences."""
        users = np.repeat(np.arange(len(self.indptr) - 1, dtype=np.int32), np.diff(self.indptr))
        order = np.argsort(self.items, kind="stable")
        items = self.items[order]
        ends, found = np.searchsorted(items, cuts), []
        for target in range(len(cuts) - 1):
            span = slice(ends[target], ends[target + 1])
            lengths = np.bincount(
                items[span] - cuts[target], minlength=cuts[target + 1] - cuts[target]
            )
            confidences = np.ones(1, np.float32) if self.alike else self.confidences[order[span]]
            found.append((lengths.astype(np.int32), users[order[span]], confidences))
        return found


def join_pieces(pieces: pa.Table) -> pa.Table:
    """All pieces of a block of items to its compressed rows."""
    pieces = pieces.sort_by("source")
    rows = list(each_row(iter(pieces.to_batches())))
    lengths = [array_of(row["lengths"], np.int32) for row in rows]
    starts = np.cumsum([0, *(row["n_asked"] for row in rows)])
    of_item = np.concatenate([np.repeat(np.arange(len(n)), n) for n in lengths])
    columns = np.concatenate(
        [
            array_of(row["columns"], np.int32) + start
            for row, start in zip(rows, starts, strict=False)
        ]
    )
    order = np.argsort(of_item, kind="stable")
    confidences = [array_of(row["confidences"], np.float32) for row in rows]
    counts = [len(array_of(row["columns"], np.int32)) for row in rows]
    one_for_all = all(len(c) == 1 and c[0] == 1 for c in confidences)
    if one_for_all:
        joined = np.ones(1, np.float32)
    else:
        joined = np.concatenate(
            [np.broadcast_to(c, n) for c, n in zip(confidences, counts, strict=True)]
        )[order]
    side = {
        "block": rows[0]["target"],
        "indptr": np.concatenate([[0], np.cumsum(sum(lengths))]).astype(np.int64).tobytes(),
        "columns": columns[order].astype(np.int32).tobytes(),
        "confidences": joined.tobytes(),
    }
    return pa.Table.from_batches([as_batch([side], SIDE_SCHEMA)])
