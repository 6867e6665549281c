"""Alternating least squares on Spark: `ImplicitALS` in blocks, by the same start and solver.

Users stay where they are: each half iteration makes blocks with new embeddings of theirs. Items are
held by the driver, where the catalog lives. What one side needs of the other is broadcast up to
BROADCAST bytes; else each block of it is sent the rows that it asks for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from qkvsearch.collaborative.als import (
    AlternatingLeastSquares,
    auto_strengths,
    finite_gram,
    principal_axes,
    require_finite,
)
from qkvsearch.collaborative.factors import ImplicitFactors
from qkvsearch.engines.spark.blocks import LogBlocks, cuts_of, starts_of, state_of
from qkvsearch.engines.spark.folder import Folder
from qkvsearch.engines.spark.sides import (
    ASKED,
    PIECES,
    Start,
    ask_for_items,
    join_pieces,
    make_pieces,
    make_sides,
)
from qkvsearch.engines.spark.solving import (
    ROWS_ASKED,
    SIDE,
    SIDE_SCHEMA,
    SOLVED,
    SOLVED_SCHEMA,
    HalfStep,
    add_up,
    array_of,
    gram_of,
    pick_rows,
    send_rows,
    solve_items,
    solve_users,
    solve_with_sent,
)
from qkvsearch.engines.spark.source import kept
from qkvsearch.errors import DataError
from qkvsearch.parameters import random_generator
from qkvsearch.threads import one_blas_thread

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame, SparkSession

# The embeddings of a side are broadcast up to so many bytes.
BROADCAST = 64 * 2**20
BROADCAST_BYTES = "QKVSEARCH_SPARK_BROADCAST"
# After so many iterations the state is kept, from which a driver that was killed goes on.
CHECKPOINT_EVERY = 3
# From so many parts on they are added up in two steps.
ADDED_AT_ONCE = 16
STATE, USERS, ITEMS = "state.json", "users", "items"


def broadcast_bytes() -> int:
    """Up to so many bytes of embeddings are broadcast, as the environment says."""
    return int(os.environ.get(BROADCAST_BYTES, "") or BROADCAST)


def added_up(parts: DataFrame, n_parts: int, dtype: Any = np.float64) -> np.ndarray:
    """The sum of the cells `part`, as a tree: a single task never has all of them."""
    groups = max(1, round(n_parts**0.5))
    if n_parts > ADDED_AT_ONCE:
        parts = parts.mapInArrow(add_up(dtype), "part binary").repartition(groups)
    found = parts.mapInArrow(add_up(dtype), "part binary").collect()
    return np.asarray(sum(array_of(row.part, dtype).copy() for row in found))


@dataclass
class DistributedALS:
    """`fit` is that of `ImplicitALS`, for a log in blocks.

    model: its parameters. checkpoint: where the state is kept, None for nowhere.
    """

    spark: SparkSession
    model: AlternatingLeastSquares
    checkpoint: Folder | None = None

    def fit(self, log: LogBlocks) -> ImplicitFactors:
        """The item side of the model. Raises `DataError` as `ImplicitALS.fit` does."""
        self.model._check_parameters()
        if not log.n_counting:
            raise DataError("there is nothing to learn from: no user has interacted with an item")
        n_items_active = int(np.count_nonzero(log.item_counts))
        length = log.n_counting / log.n_active_users
        auto = auto_strengths(length, log.mean_confidence, n_items_active)
        given = (self.model.alpha0, self.model.reg)
        alpha0, reg = (
            chosen if value == "auto" else float(value)
            for value, chosen in zip(given, auto, strict=True)
        )
        run = _Run(self.spark, log, self.model, alpha0, reg, n_items_active, self.checkpoint)
        try:
            embeddings = run.alternate()
        finally:
            run.close()
        gram = finite_gram(embeddings.astype(np.float64))
        return ImplicitFactors(embeddings, gram, alpha0, reg, self.model.nu, n_items_active)


class _Run:
    """One alternation. users: blocks with their embeddings as they are stored, `turn` before the
    axes that they are in; items (n_items, d); rotation: all axes so far.
    """

    def __init__(
        self,
        spark: SparkSession,
        log: LogBlocks,
        model: AlternatingLeastSquares,
        alpha0: float,
        reg: float,
        n_items_active: int,
        checkpoint: Folder | None,
    ) -> None:
        self.spark, self.log, self.model = spark, log, model
        self.alpha0, self.reg, self.n_items_active = alpha0, reg, n_items_active
        self.checkpoint = checkpoint
        d, n_users, n_items = model.n_components, sum(log.sizes.values()), len(log.item_counts)
        self.sends_users = 4 * n_users * d > broadcast_bytes()
        self.sends_items = 4 * n_items * d > broadcast_bytes()
        self.cuts = cuts_of(log.item_counts, log.n_partitions)
        self.broadcasts: list[Broadcast[Any]] = []
        self.persisted: list[DataFrame] = []
        self.asked: DataFrame | None = None
        self.user_blocks: list[np.ndarray] = []
        self.turn = self.rotation = np.eye(d)
        rng = random_generator(model.random_state)
        self.starts = starts_of(rng, log, d, model.init_scale)
        lengths = log.item_counts
        self.items = Start(state_of(rng), d, model.init_scale).rows(lengths)

    def alternate(self) -> np.ndarray:
        """The embeddings of the items, (n_items, d), on the axes of the start."""
        done = self._resumed()
        by_item = self._by_item()
        if not done:
            self.users = self._kept(self._sides())
        for iteration in range(done + 1, self.model.max_iter + 1):
            self._solve_users()
            self._solve_items(by_item)
            if iteration % CHECKPOINT_EVERY == 0 and iteration < self.model.max_iter:
                self._keep(iteration)
            if self.model.callback is not None:
                self.model.callback(iteration, self.model.max_iter)
        with one_blas_thread():
            return np.asarray(self.items @ self.rotation.T.astype(np.float32))

    # --- halves of an iteration ---

    def _solve_users(self) -> None:
        values, axes = principal_axes(self.items)
        self._turn(axes)
        step = self._step(values, self.turn @ axes, self.n_items_active)
        if self.sends_items:
            solved = self._with_sent(self.users, step, self._item_rows(), SIDE, SIDE_SCHEMA)
        else:
            items = self._broadcast(self.items)
            solved = self.users.mapInArrow(solve_users(step, lambda: items.value), SIDE)
        former, self.users = self.users, self._kept(solved)
        if self.sends_users:
            self.user_gram = added_up(self.users.selectExpr("gram part"), self.log.n_partitions)
        else:
            self.user_blocks = self._user_blocks()
            grams = (array_of(gram_of(x), np.float64) for x in self.user_blocks)
            self.user_gram = np.asarray(sum(grams))
        former.unpersist()
        self.turn = np.eye(len(axes))

    def _solve_items(self, by_item: DataFrame) -> None:
        d = len(self.turn)
        values, axes = axes_of(self.user_gram.reshape(d, d))
        before = self.items
        self._turn(axes)
        self.turn = axes
        step = self._step(values, axes, self.log.n_active_users)
        if self.sends_users:
            sent = self.users.mapInArrow(send_rows(axes.astype(np.float32)), ROWS_ASKED)
            blocks = self._with_slices(by_item, before)
            solved = self._with_sent(blocks, step, sent, SOLVED, SOLVED_SCHEMA)
        else:
            users, mine = self._broadcast(self._all_users(axes)), self._broadcast(before)
            cuts = self.cuts
            solved = by_item.mapInArrow(
                solve_items(
                    step,
                    lambda: users.value,
                    lambda block: mine.value[cuts[block] : cuts[block + 1]],
                ),
                SOLVED,
            )
        for row in solved.collect():
            self._put_items(row)

    def _put_items(self, row: Any) -> None:
        """The embeddings of a block in their place."""
        span = slice(self.cuts[row.block], self.cuts[row.block + 1])
        self.items[span] = array_of(row.x, np.float32).reshape(-1, self.items.shape[1])

    def _turn(self, axes: np.ndarray) -> None:
        """The items to other axes."""
        with one_blas_thread():
            self.items = self.items @ axes.astype(np.float32)
        self.rotation = self.rotation @ axes

    def _step(self, values: np.ndarray, turn: np.ndarray, n_others: int) -> HalfStep:
        spectrum = self.alpha0 * values
        require_finite(spectrum.astype(np.float32))
        return HalfStep(
            turn.astype(np.float32), spectrum, self.reg, self.alpha0 * n_others, self.model.nu,
            self.model.cg_steps,
        )  # fmt: skip

    # --- what travels ---

    def _broadcast(self, array: np.ndarray) -> Broadcast[Any]:
        """Kept until the run ends: a block that is lost is made again by what it was made by."""
        found = self.spark.sparkContext.broadcast(array)
        self.broadcasts.append(found)
        return found

    def _user_blocks(self) -> list[np.ndarray]:
        """The embeddings of few users, block by block, each (n, d); as Arrow, for rows of Python
        take ten times as long.
        """
        table = self.users.select("block", "x").toArrow().sort_by("block")
        d = len(self.turn)
        return [array_of(x.as_buffer(), np.float32).reshape(-1, d) for x in table.column("x")]

    def _all_users(self, axes: np.ndarray) -> np.ndarray:
        """(n_users, d), few, turned to these axes."""
        turn, blocks = axes.astype(np.float32), self.user_blocks
        self.user_blocks = []
        with one_blas_thread():
            return np.concatenate([x @ turn for x in blocks])

    def _with_slices(self, by_item: DataFrame, items: np.ndarray) -> DataFrame:
        """The blocks of items with their embeddings."""
        joined = by_item.drop("x").join(self._slices(items), "block")
        return joined.select(*SIDE_SCHEMA.names)

    def _slices(self, items: np.ndarray) -> DataFrame:
        """The embeddings of each block of items, which the driver sends."""
        rows = pa.table(
            {
                "block": pa.array(range(len(self.cuts) - 1), pa.int32()),
                "x": [items[a:b].tobytes() for a, b in zip(self.cuts, self.cuts[1:], strict=False)],
            }
        )
        return self.spark.createDataFrame(rows)

    def _item_rows(self) -> DataFrame:
        """To each block of users the items that it asks for."""
        if self.asked is None:
            ask = ask_for_items(self.log.feedback, self.cuts)
            self.asked = self._kept(self.log.frame.mapInArrow(ask, ASKED))
        joined = self.asked.join(self._slices(self.items), "block")
        return joined.mapInArrow(pick_rows(self.items.shape[1]), ROWS_ASKED)

    def _with_sent(
        self, blocks: DataFrame, step: HalfStep, sent: DataFrame, form: str, schema: pa.Schema
    ) -> DataFrame:
        """Blocks solved by what was sent to them."""
        return (
            blocks.groupBy("block")
            .cogroup(sent.groupBy("target"))
            .applyInArrow(solve_with_sent(step, schema), form)
        )

    # --- blocks ---

    def _sides(self) -> DataFrame:
        make = make_sides(
            self.log.feedback, self.starts, self.cuts, self.sends_users, self.sends_items
        )
        return self.log.frame.mapInArrow(make, SIDE)

    def _by_item(self) -> DataFrame:
        """The same pairs in blocks of items."""
        make = make_pieces(self.log.feedback, self.log.firsts, self.cuts, self.sends_users)
        pieces = self.log.frame.mapInArrow(make, PIECES)
        pieces = pieces.repartitionById(len(self.cuts) - 1, "target")
        found = pieces.groupBy("target").applyInArrow(join_pieces, SIDE)
        return self._kept(found)

    def _kept(self, frame: DataFrame) -> DataFrame:
        """Until the run ends."""
        found = kept(frame)
        self.persisted.append(found)
        return found

    # --- checkpoints ---

    def _keep(self, iteration: int) -> None:
        """All that the next iteration needs, complete before it counts."""
        if self.checkpoint is None:
            return
        table = f"{USERS}-{iteration}"
        self.checkpoint.write_table(table, self.users.select("block", "x"))
        self.checkpoint.write_table(f"{ITEMS}-{iteration}", self._slices(self.items))
        former = self.checkpoint.read_json(STATE)
        state = {
            "iteration": iteration,
            "turn": self.turn.tolist(),
            "rotation": self.rotation.tolist(),
        }
        self.checkpoint.write_json(STATE, state)
        if former is not None:
            for name in (USERS, ITEMS):
                self.checkpoint.remove(f"{name}-{former['iteration']}")
        self._start_from(iteration)

    def _start_from(self, iteration: int) -> None:
        """Blocks as they were kept: what is lost from now on is made again from there."""
        assert self.checkpoint is not None
        stored = self.checkpoint.read_table(f"{USERS}-{iteration}")
        former = getattr(self, "users", None)
        joined = self._sides().drop("x").join(stored, "block").select(*SIDE_SCHEMA.names)
        self.users = self._kept(joined.repartitionById(self.log.n_partitions, "block"))
        if former is not None:
            self.users.count()
            former.unpersist()

    def _resumed(self) -> int:
        """How many iterations an interrupted run had kept."""
        state = None if self.checkpoint is None else self.checkpoint.read_json(STATE)
        if state is None or state["iteration"] >= self.model.max_iter:
            return 0
        assert self.checkpoint is not None
        for row in self.checkpoint.read_table(f"{ITEMS}-{state['iteration']}").collect():
            self._put_items(row)
        self.turn, self.rotation = np.array(state["turn"]), np.array(state["rotation"])
        self._start_from(state["iteration"])
        return int(state["iteration"])

    def close(self) -> None:
        for frame in self.persisted:
            frame.unpersist()
        for broadcast in self.broadcasts:
            broadcast.destroy()


def axes_of(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `principal_axes`, of a Gram matrix that is there already."""
    require_finite(gram)
    values, axes = np.linalg.eigh(gram)
    return values.clip(min=0), axes
