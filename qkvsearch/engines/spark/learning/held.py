"""A side of the alternation whose embeddings the driver holds: the items, and users while few.

Its pairs stay with the executors in blocks. Embeddings go to them by a broadcast, which serves both
halves of an iteration, or block by block where they are too large.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from qkvsearch.engines.spark.learning.solving import SIDE_SCHEMA, SOLVED, HalfStep, solve_blocks
from qkvsearch.engines.spark.tables import array_of
from qkvsearch.errors import QkvError
from qkvsearch.threads import one_blas_thread

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame, SparkSession

# The embeddings of a side are broadcast up to so many bytes.
BROADCAST = 64 * 2**20
BROADCAST_BYTES = "QKVSEARCH_SPARK_BROADCAST"


def is_small(n: int, d: int) -> bool:
    """Whether so many embeddings are broadcast, as the environment says."""
    most = int(os.environ.get(BROADCAST_BYTES, "") or BROADCAST)
    return 4 * n * d <= most


class HeldSide:
    """x (n, d), float32; cuts: where its blocks begin, and the end; frame: these, rows of `SIDE`
    without embeddings.
    """

    def __init__(self, spark: SparkSession, x: np.ndarray, cuts: np.ndarray) -> None:
        self._spark, self.x, self.cuts = spark, x, cuts
        self.frame: DataFrame
        self._sent: Broadcast[np.ndarray] | None = None
        self._broadcasts: list[Broadcast[np.ndarray]] = []

    @property
    def small(self) -> bool:
        return is_small(*self.x.shape)

    def value(self) -> Callable[[], np.ndarray]:
        """What gives an executor all embeddings as they are now."""
        if self._sent is None:
            self._sent = self._spark.sparkContext.broadcast(self.x)
            self._broadcasts.append(self._sent)
        sent = self._sent
        return lambda: sent.value

    def set(self, x: np.ndarray) -> None:
        """Others in their place. What was made of the former can be made again until `close`."""
        if self._sent is not None:
            self._sent.unpersist()
        self.x, self._sent = x, None

    def turn(self, axes: np.ndarray) -> None:
        """To other axes."""
        with one_blas_thread():
            self.set(self.x @ axes.astype(np.float32))

    def solve(self, step: HalfStep, others: Callable[[], np.ndarray]) -> None:
        """Solved by all embeddings of the other side, which are small."""
        cuts, mine = self.cuts, self.value() if self.small else None

        def rows(block: int) -> np.ndarray | None:
            return None if mine is None else mine()[cuts[block] : cuts[block + 1]]

        blocks = self.frame if self.small else self.with_rows()
        self.put(blocks.mapInArrow(solve_blocks(step, others, rows), SOLVED))

    def with_rows(self) -> DataFrame:
        """The blocks with their embeddings."""
        joined = self.frame.drop("x").join(self.slices(), "block")
        return joined.select(*SIDE_SCHEMA.names)

    def slices(self) -> DataFrame:
        """The embeddings of each block, which the driver sends."""
        x = [x.tobytes() for x in self.blocks()]
        rows = pa.table({"block": pa.array(range(len(x)), pa.int32()), "x": x})
        return self._spark.createDataFrame(rows)

    def blocks(self) -> Iterable[np.ndarray]:
        """The embeddings of each block, (n, d)."""
        return np.split(self.x, self.cuts[1:-1])

    def put(self, solved: DataFrame) -> None:
        """The embeddings of all blocks, as `SOLVED`; as Arrow, for rows of Python take ten times as
        long.
        """
        found = solved.toArrow()
        there = np.flatnonzero(np.diff(self.cuts)).tolist()
        blocks = found.column("block").to_pylist()
        if sorted(blocks) != there:
            raise QkvError(f"of {len(there)} blocks Spark gave back {len(blocks)}: try again")
        for block, cell in zip(blocks, found.column("x"), strict=True):
            span = slice(self.cuts[block], self.cuts[block + 1])
            self.x[span] = array_of(cell.as_buffer(), np.float32).reshape(self.x[span].shape)
        self.set(self.x)

    def close(self) -> None:
        for broadcast in self._broadcasts:
            broadcast.destroy()
