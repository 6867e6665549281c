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
from qkvsearch.data.interactions import merge_rows
from qkvsearch.engines.spark.solving import (
    PART_SCHEMA,
    SIDE_SCHEMA,
    Rows,
    array_of,
    arrow_schema,
    as_batch,
    each_row,
    gram_of,
)

# Blocks of users as a log has them: their ids, ascending; int64 indptr, int32 items, float32
# ratings and weights, int64 times, where there are any; and what became of the rows.
HISTORIES = (
    "block int, n_users int, n_pairs bigint, ids binary, indptr binary, items binary, "
    "ratings binary, times binary, weights binary, counts string"
)
HISTORIES_SCHEMA = arrow_schema(HISTORIES)
# Of a block of users, its pairs with the items of one block: of each of these how many, int32; the
# users, as places among those asked for, int32; how many are asked for.
PIECES = "target int, source int, lengths binary, columns binary, confidences binary, n_asked int"
PIECES_SCHEMA = arrow_schema(PIECES)
# Rows of a block of items that a block of users asks for, int32.
ASKED = "block int, target int, asked binary"
ASKED_SCHEMA = arrow_schema(ASKED)


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
    weights = columns["weight"] if shape.has_weights else None
    missing = 0
    if weights is not None:
        gaps = np.isnan(weights)
        missing, weights = int(gaps.sum()), np.where(gaps, shape.usual_weight, weights)
    pairs = merge_rows(
        rank[coded.indices.to_numpy()],
        columns["item"],
        columns["rating"].astype(np.float32) if shape.has_ratings else None,
        columns["time"] if shape.has_times else None,
        weights,
        n_items=shape.n_items,
    )
    indptr = np.searchsorted(pairs.users, np.arange(len(order) + 1)).astype(np.int64)
    arrays = {"ratings": pairs.ratings, "times": pairs.times, "weights": pairs.weights}
    return {
        "block": block,
        "n_users": len(order),
        "n_pairs": len(pairs.users),
        "ids": pack_ids(coded.dictionary.take(order)),
        "indptr": indptr.tobytes(),
        "items": pairs.items.astype(np.int32).tobytes(),
        **{name: None if one is None else one.tobytes() for name, one in arrays.items()},
        "counts": json.dumps({**asdict(pairs.counts), "missing": missing}),
    }


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    return table.column(name).combine_chunks().to_numpy(zero_copy_only=False)


@dataclass(frozen=True)
class History:
    """A block's arrays; None where the log has none."""

    indptr: np.ndarray
    items: np.ndarray
    ratings: np.ndarray | None
    times: np.ndarray | None
    weights: np.ndarray | None

    @classmethod
    def of(cls, row: dict[str, Any]) -> History:
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
    """Blocks of a log to blocks of users. cuts: where blocks of items begin. ask: rows are sent to
    these where they are asked for. ask_items: the other way round, so that columns are places among
    the items that a block asks for."""

    def make(batches: Rows) -> Rows:
        for row in each_row(batches):
            counted = _Counted.of(History.of(row), feedback)
            x = starts[row["block"]].rows(np.diff(counted.indptr))
            asked, ends = np.zeros(0, np.int32), np.zeros(0, np.int64)
            if ask:
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
                "x": x.tobytes(),
                "gram": gram_of(x),
            }
            yield as_batch([side], SIDE_SCHEMA)

    return make


def ask_for_items(feedback: Feedback, cuts: np.ndarray) -> Callable[[Rows], Rows]:
    """Of each block of users the items that it asks for, by blocks of items: places in these."""

    def ask(batches: Rows) -> Rows:
        for row in each_row(batches):
            items = np.unique(_Counted.of(History.of(row), feedback).items)
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
            counted = _Counted.of(History.of(row), feedback)
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
    def of(cls, history: History, feedback: Feedback) -> _Counted:
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


def count_pairs(feedback: Feedback, n_items: int) -> Callable[[Rows], Rows]:
    """Of each item how many pairs, and how many that count; then, of the block, how many users and
    items count, the pairs that do, and their confidences together: float64."""

    def count(batches: Rows) -> Rows:
        for row in each_row(batches):
            history = History.of(row)
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
            history = History.of(row)
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
            n = int(np.count_nonzero(History.of(row).confidences(feedback)))
            yield as_batch([{"block": row["block"], "n": n}], schema)

    return count


def find_likes(feedback: Feedback, wanted: dict[int, list[int]]) -> Callable[[Rows], Rows]:
    """The items of those pairs of a block that count and are wanted, by their places."""
    schema = arrow_schema("block int, items binary")

    def find(batches: Rows) -> Rows:
        for row in each_row(batches):
            history = History.of(row)
            liked = history.items[history.confidences(feedback) > 0]
            items = liked[wanted.get(row["block"], [])].astype(np.int32)
            yield as_batch([{"block": row["block"], "items": items.tobytes()}], schema)

    return find
