"""Alternating least squares on Spark: `ImplicitALS` in blocks, by the same start and solver.

Items are held by the driver, where the catalog lives, and users too while they are few. Many users
stay where they are: each half iteration makes blocks with new embeddings of theirs. What one side
needs of the other is broadcast up to `held.BROADCAST` bytes; else each block of it is sent the rows
that it asks for.
"""

from __future__ import annotations

from collections.abc import Callable
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
from qkvsearch.engines.spark.folder import Folder
from qkvsearch.engines.spark.learning.blocks import LogBlocks, cuts_of, starts_of, state_of
from qkvsearch.engines.spark.learning.held import HeldSide, is_small
from qkvsearch.engines.spark.learning.sides import (
    ASKED,
    PIECES,
    Start,
    ask_for_items,
    join_pieces,
    make_pieces,
    make_sides,
)
from qkvsearch.engines.spark.learning.solving import (
    ROWS_ASKED,
    SIDE,
    SIDE_SCHEMA,
    SOLVED,
    SOLVED_SCHEMA,
    HalfStep,
    gram_of,
    pick_rows,
    send_rows,
    solve_users,
    solve_with_sent,
)
from qkvsearch.engines.spark.source import kept
from qkvsearch.engines.spark.tables import add_up, array_of
from qkvsearch.errors import DataError
from qkvsearch.parameters import random_generator
from qkvsearch.threads import one_blas_thread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# After so many iterations the state is kept, from which a driver that was killed goes on.
CHECKPOINT_EVERY = 3
# From so many parts on they are added up in two steps.
ADDED_AT_ONCE = 16
STATE, USERS, ITEMS = "state.json", "users", "items"


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
    """One alternation. users: what the driver holds of them, None where they are many, whose blocks
    are `user_blocks`, with embeddings as they are stored, `turn` before the axes that they are in;
    rotation: all axes of the items so far.
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
        d, lengths = model.n_components, log.item_counts
        self.persisted: list[DataFrame] = []
        self.asked: DataFrame | None = None
        self.turn = self.rotation = np.eye(d)
        rng = random_generator(model.random_state)
        self.starts = starts_of(rng, log, d, model.init_scale)
        start = Start(state_of(rng), d, model.init_scale).rows(lengths)
        self.items = HeldSide(spark, start, cuts_of(lengths, log.n_partitions))
        self.users = self._held_users() if is_small(sum(log.sizes.values()), d) else None

    def _held_users(self) -> HeldSide:
        sizes = [self.log.sizes.get(block, 0) for block in range(max(self.log.sizes) + 1)]
        x = [self.starts[block].rows(np.ones(n)) for block, n in enumerate(sizes) if n]
        return HeldSide(self.spark, np.concatenate(x), np.cumsum([0, *sizes]))

    def alternate(self) -> np.ndarray:
        """The embeddings of the items, (n_items, d), on the axes of the start."""
        self.items.frame = self._by_item()
        done = self._resumed()
        if self.users is not None:
            self.users.frame = self._kept(self._sides())
        elif not done:
            self.user_blocks = self._kept(self._sides())
        for iteration in range(done + 1, self.model.max_iter + 1):
            self._solve_users()
            self._solve_items()
            if iteration % CHECKPOINT_EVERY == 0 and iteration < self.model.max_iter:
                self._keep(iteration)
            if self.model.callback is not None:
                self.model.callback(iteration, self.model.max_iter)
        with one_blas_thread():
            return np.asarray(self.items.x @ self.rotation.T.astype(np.float32))

    # --- halves of an iteration ---

    def _solve_users(self) -> None:
        values, axes = principal_axes(self.items.x)
        self.items.turn(axes)
        self.rotation = self.rotation @ axes
        step = self._step(values, self.turn @ axes, self.n_items_active)
        if self.users is None:
            self._solve_user_blocks(step)
        else:
            self._solve_held(self.users, step, self._item_rows)
            grams = (array_of(gram_of(x), np.float64) for x in self.users.blocks())
            self.user_gram = np.asarray(sum(grams))
        self.turn = np.eye(len(axes))

    def _solve_user_blocks(self, step: HalfStep) -> None:
        """Of many users, who stay where they are."""
        if self.items.small:
            solved = self.user_blocks.mapInArrow(solve_users(step, self.items.value()), SIDE)
        else:
            solved = self._with_sent(self.user_blocks, step, self._item_rows(), SIDE, SIDE_SCHEMA)
        former, self.user_blocks = self.user_blocks, self._kept(solved)
        self.user_gram = added_up(self.user_blocks.selectExpr("gram part"), self.log.n_partitions)
        former.unpersist()

    def _solve_items(self) -> None:
        d = len(self.turn)
        values, axes = axes_of(self.user_gram.reshape(d, d))
        step = self._step(values, axes, self.log.n_active_users)
        if self.users is not None:
            self.users.turn(axes)
        else:
            self.turn = axes
        self._solve_held(self.items, step, self._user_rows)
        self.rotation = self.rotation @ axes

    def _solve_held(self, side: HeldSide, step: HalfStep, asked: Callable[[], DataFrame]) -> None:
        """A side by the other: `asked` gives the rows of this that were asked for, where it is not
        broadcast."""
        other = self.items if side is self.users else self.users
        if other is not None and other.small:
            side.solve(step, other.value())
        else:
            blocks = side.with_rows()
            side.put(self._with_sent(blocks, step, asked(), SOLVED, SOLVED_SCHEMA))

    def _step(self, values: np.ndarray, turn: np.ndarray, n_others: int) -> HalfStep:
        spectrum = self.alpha0 * values
        require_finite(spectrum.astype(np.float32))
        return HalfStep(
            turn.astype(np.float32), spectrum, self.reg, self.alpha0 * n_others, self.model.nu,
            self.model.cg_steps,
        )  # fmt: skip

    # --- what travels ---

    def _user_rows(self) -> DataFrame:
        """To each block of items the users that it asks for."""
        return self.user_blocks.mapInArrow(send_rows(self.turn.astype(np.float32)), ROWS_ASKED)

    def _item_rows(self) -> DataFrame:
        """To each block of users the items that it asks for."""
        if self.asked is None:
            ask = ask_for_items(self.log.feedback, self.items.cuts)
            self.asked = self._kept(self.log.frame.mapInArrow(ask, ASKED))
        joined = self.asked.join(self.items.slices(), "block")
        return joined.mapInArrow(pick_rows(len(self.turn)), ROWS_ASKED)

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
            self.log.feedback, self.starts, self.items.cuts, self.users is None,
            not self.items.small,
        )  # fmt: skip
        return self.log.frame.mapInArrow(make, SIDE)

    def _by_item(self) -> DataFrame:
        """The same pairs in blocks of items."""
        cuts = self.items.cuts
        make = make_pieces(self.log.feedback, self.log.firsts, cuts, self.users is None)
        pieces = self.log.frame.mapInArrow(make, PIECES)
        pieces = pieces.repartitionById(len(cuts) - 1, "target")
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
        users = self.user_blocks.select("block", "x") if self.users is None else self.users.slices()
        self.checkpoint.write_table(f"{USERS}-{iteration}", users)
        self.checkpoint.write_table(f"{ITEMS}-{iteration}", self.items.slices())
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
        if self.users is None:
            self._start_from(iteration)

    def _start_from(self, iteration: int) -> None:
        """Blocks as they were kept: what is lost from now on is made again from there."""
        assert self.checkpoint is not None
        stored = self.checkpoint.read_table(f"{USERS}-{iteration}")
        former = getattr(self, "user_blocks", None)
        joined = self._sides().drop("x").join(stored, "block").select(*SIDE_SCHEMA.names)
        self.user_blocks = self._kept(joined.repartitionById(self.log.n_partitions, "block"))
        if former is not None:
            self.user_blocks.count()
            former.unpersist()

    def _resumed(self) -> int:
        """How many iterations an interrupted run had kept."""
        state = None if self.checkpoint is None else self.checkpoint.read_json(STATE)
        if state is None or state["iteration"] >= self.model.max_iter:
            return 0
        assert self.checkpoint is not None
        iteration = int(state["iteration"])
        self.items.put(self.checkpoint.read_table(f"{ITEMS}-{iteration}"))
        self.turn, self.rotation = np.array(state["turn"]), np.array(state["rotation"])
        if self.users is None:
            self._start_from(iteration)
        else:
            self.users.put(self.checkpoint.read_table(f"{USERS}-{iteration}"))
        return iteration

    def close(self) -> None:
        for frame in self.persisted:
            frame.unpersist()
        for side in (self.items, self.users):
            if side is not None:
                side.close()


def axes_of(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `principal_axes`, of a Gram matrix that is there already."""
    require_finite(gram)
    values, axes = np.linalg.eigh(gram)
    return values.clip(min=0), axes
