"""Alternating least squares on Spark: `ImplicitALS` in blocks, from the same start, by its solver.

The driver holds the embeddings of the items, as it holds the catalog, and broadcasts them. Those of
the users stay with the executors, in blocks. Each iteration first solves the blocks of users, then
blocks of items: all users are broadcast for it where they are few; otherwise each block of items is
sent the users that it needs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch._utils.validation import model_generator
from qkvsearch.engines.spark import solving
from qkvsearch.engines.spark.blocks import (
    ARRAY,
    ARRAY_SCHEMA,
    PairCounts,
    array_of,
    count_pairs,
    mapped,
    persisted,
    summed,
)
from qkvsearch.engines.spark.solving import USERS_SCHEMA, HalfStep, Start
from qkvsearch.errors import DataError, QkvError
from qkvsearch.models.confidences import Feedback
from qkvsearch.models.implicit_als import (
    AlternatingLeastSquares,
    auto_strengths,
    finite_gram,
    principal_axes,
    require_finite,
)
from qkvsearch.models.user_vectors import ImplicitFactors

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame, SparkSession

# Users are few up to so many bytes of embeddings.
MAX_BROADCAST, BROADCAST_VARIABLE = 64 * 2**20, "QKVSEARCH_SPARK_BROADCAST"
# Random numbers that the driver skips at a time.
MAX_SKIPPED = 1 << 20


@dataclass(frozen=True)
class LogBlocks:
    """A log in blocks of users. frame: rows of `blocks.HISTORIES`, each block in the partition
    of its number. sizes: how many users each block has.
    """

    frame: DataFrame
    sizes: dict[int, int]
    feedback: Feedback
    n_items: int

    @property
    def n_partitions(self) -> int:
        return max(self.sizes) + 1

    @property
    def firsts(self) -> dict[int, int]:
        """The number of each block's first user."""
        blocks = sorted(self.sizes)
        ends = np.cumsum([0, *(self.sizes[block] for block in blocks)])
        return dict(zip(blocks, ends[:-1].tolist(), strict=True))

    @cached_property
    def counts(self) -> PairCounts:
        count = mapped(count_pairs, ARRAY_SCHEMA, self.feedback, self.n_items)
        array = summed(self.frame.mapInArrow(count, ARRAY), len(self.sizes))
        return PairCounts.of(array)


def starts_of(
    rng: np.random.Generator, log: LogBlocks, n_components: int, scale: float
) -> dict[int, Start]:
    """Return where each block begins in the random numbers; `rng` ends where the items begin."""
    starts = {}
    for block in sorted(log.sizes):
        starts[block] = Start(dict(rng.bit_generator.state), n_components, scale)
        left = log.sizes[block] * n_components
        while left:
            n = min(left, MAX_SKIPPED)
            rng.standard_normal(n, dtype=np.float32)
            left -= n
    return starts


def cuts_of(item_counts: np.ndarray, n_blocks: int) -> np.ndarray:
    """Return where blocks of items begin, and the end. All have pairs, about as many."""
    before = np.cumsum(item_counts)
    inner = np.searchsorted(before, np.linspace(0, before[-1], n_blocks + 1)[1:-1]) + 1
    inner = inner[before[inner - 1] < before[-1]]
    return np.unique(np.concatenate([[0], inner, [len(item_counts)]])).astype(np.int64)


def axes_of(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what `principal_axes` does, of a Gram matrix."""
    require_finite(gram)
    values, axes = np.linalg.eigh(gram)
    return values.clip(min=0), axes


def fit(spark: SparkSession, model: AlternatingLeastSquares, log: LogBlocks) -> ImplicitFactors:
    """Learn what `ImplicitALS.fit` does with the parameters of `model`, and return the item side.

    Raise `DataError` as `ImplicitALS` does.
    """
    model._check_parameters()
    if not log.counts.n_likes:
        raise DataError("there is nothing to learn from: no user has interacted with an item")
    run = _Run(spark, model, log)
    try:
        embeddings = run.alternate()
    finally:
        run.close()
    gram = finite_gram(embeddings.astype(np.float64))
    return ImplicitFactors(embeddings, gram, run.alpha0, run.reg, model.nu, run.n_items_active)


class _Run:
    """One fit."""

    def __init__(self, spark: SparkSession, model: AlternatingLeastSquares, log: LogBlocks) -> None:
        self.spark, self.model, self.log = spark, model, log
        n_partitions = max(2 * spark.sparkContext.defaultParallelism, log.n_partitions)
        spark.conf.set("spark.sql.shuffle.partitions", n_partitions)
        d, counts = model.n_components, log.counts
        self.n_items_active = int(np.count_nonzero(counts.likes))
        self.alpha0, self.reg = auto_strengths(
            counts.n_likes / counts.n_users, counts.mean_confidence, self.n_items_active
        )
        if model.alpha0 != "auto":
            self.alpha0 = float(model.alpha0)
        if model.reg != "auto":
            self.reg = float(model.reg)
        rng = model_generator(model.random_state)
        self.starts = starts_of(rng, log, d, model.init_scale)
        start = Start(dict(rng.bit_generator.state), d, model.init_scale)
        # (n_items, d)
        self.items = start.embeddings(counts.likes)
        self.cuts = cuts_of(counts.likes, log.n_partitions)
        max_bytes = int(os.environ.get(BROADCAST_VARIABLE, "") or MAX_BROADCAST)
        self.few_users = 4 * d * sum(log.sizes.values()) <= max_bytes
        # Brings the embeddings of the users, as they are stored, to the axes of the items.
        self.turn = np.eye(d)
        # All turns of the items so far.
        self.rotation = np.eye(d)
        self.frames: list[DataFrame] = []
        self.broadcasts: list[Broadcast[np.ndarray]] = []

    def alternate(self) -> np.ndarray:
        """Return the embeddings of the items, on the axes of the start."""
        send = solving.send_likes(self.log.feedback, self.log.firsts, self.cuts)
        likes = self.log.frame.mapInArrow(send, solving.LIKES)
        make = solving.make_items(self.cuts)
        blocks = likes.groupBy("block").applyInArrow(make, solving.ITEMS)
        self.item_blocks = self._persisted(blocks.repartitionById(len(self.cuts) - 1, "block"))
        make_users = mapped(
            solving.make_users, USERS_SCHEMA, self.log.feedback, self.starts, self.cuts
        )
        self.user_blocks = self._persisted(self.log.frame.mapInArrow(make_users, solving.USERS))
        for iteration in range(1, self.model.max_iter + 1):
            self._iterate()
            if self.model.callback is not None:
                self.model.callback(iteration, self.model.max_iter)
        return self._turned(self.items, self.rotation.T)

    def _iterate(self) -> None:
        """Solve for the users with the items fixed, then for the items."""
        self._solve_users()
        self._solve_items()
        # Those of this iteration; executors have read them.
        for broadcast in self.broadcasts[-2:]:
            broadcast.unpersist()

    def _solve_users(self) -> None:
        """Turn the items to their principal axes, and solve all blocks of users by them."""
        values, axes = principal_axes(self.items)
        self.items = self._turned(self.items, axes)
        self.rotation = self.rotation @ axes
        self.sent_items = self._broadcast(self.items)
        step = self._step(values, self.turn @ axes, self.n_items_active)
        solve = solving.solve_users(step, self.sent_items)
        solved = self._persisted(self.user_blocks.mapInArrow(solve, solving.USERS))
        # Solves them now, so that the blocks before may go.
        grams = solved.selectExpr("gram AS `array`")
        self.users_gram = summed(grams, self.log.n_partitions).reshape(self.turn.shape)
        self.user_blocks.unpersist()
        self.user_blocks = solved

    def _solve_items(self) -> None:
        """Solve all blocks of items by the users, on the users' principal axes."""
        values, self.turn = axes_of(self.users_gram)
        step = self._step(values, self.turn, self.log.counts.n_users)
        if self.few_users:
            solved = self._solved_by_all_users(step)
        else:
            solved = self._solved_by_sent_users(step)
        self._put(solved)
        self.rotation = self.rotation @ self.turn

    def _solved_by_all_users(self, step: HalfStep) -> DataFrame:
        """Send every executor the embeddings of all users, which are few."""
        users = np.concatenate(_embeddings_of(self.user_blocks)).reshape(-1, len(self.turn))
        turned = self._broadcast(self._turned(users, self.turn))
        arguments = step, self.sent_items, self.cuts, turned
        solve = mapped(solving.solve_items, solving.SOLVED_SCHEMA, *arguments)
        return self.item_blocks.mapInArrow(solve, solving.SOLVED)

    def _solved_by_sent_users(self, step: HalfStep) -> DataFrame:
        """Send each block of items the embeddings of the users that it needs."""
        send = solving.send_users(self.turn.astype(np.float32))
        sent = self.user_blocks.mapInArrow(send, solving.SENT).groupBy("block")
        solve = solving.solve_items_with_sent(step, self.sent_items, self.cuts)
        both = self.item_blocks.groupBy("block").cogroup(sent)
        return both.applyInArrow(solve, solving.SOLVED)

    def _step(self, values: np.ndarray, turn: np.ndarray, n_others: int) -> HalfStep:
        spectrum, turn = self.alpha0 * values, turn.astype(np.float32)
        require_finite(spectrum.astype(np.float32))
        strength = self.alpha0 * n_others
        return HalfStep(turn, spectrum, self.reg, strength, self.model.nu, self.model.cg_steps)

    def _turned(self, x: np.ndarray, axes: np.ndarray) -> np.ndarray:
        with one_blas_thread():
            return np.asarray(x @ axes.astype(np.float32))

    # --- blocks ---

    def _put(self, solved: DataFrame) -> None:
        """Take over the embeddings of all blocks of items."""
        arrays = _embeddings_of(solved)
        if len(arrays) != len(self.cuts) - 1:
            raise QkvError(
                f"Spark returned {len(arrays):,} of {len(self.cuts) - 1:,} blocks: try again"
            )
        self.items = np.concatenate(arrays).reshape(self.items.shape)

    def _broadcast(self, x: np.ndarray) -> Callable[[], np.ndarray]:
        """Return what gives an executor these embeddings; the driver keeps them for lost blocks."""
        sent = self.spark.sparkContext.broadcast(x)
        self.broadcasts.append(sent)
        return lambda: sent.value

    def _persisted(self, frame: DataFrame) -> DataFrame:
        self.frames.append(persisted(frame))
        return self.frames[-1]

    def close(self) -> None:
        """Let go of all that executors keep."""
        for frame in self.frames:
            frame.unpersist()
        for broadcast in self.broadcasts:
            broadcast.destroy()


def _embeddings_of(blocks: DataFrame) -> list[np.ndarray]:
    """Bring all blocks' embeddings here, in order; as Arrow, ten times as fast as Python rows."""
    table = blocks.select("block", "x").toArrow()
    arrays = [array_of(x.as_buffer(), np.float32) for x in table["x"]]
    return [arrays[at] for at in np.argsort(table["block"].to_numpy())]
