"""The middle of numbers that no machine has all of: counted by their bits, in two looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch.engines.spark.learning.als import added_up
from qkvsearch.engines.spark.tables import PART_SCHEMA, Rows, array_of, as_batch, each_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HALF = 16


def median_of(weights: DataFrame, n_blocks: int) -> float | None:
    """The median of the logarithms of the cells `weights`, float32 above 0; None without any.

    Positive floats are in the order of their bits: how often each of the upper 16 occurs says which
    of them the middle has, and how often each of the lower ones, which it is.
    """
    highs = added_up(weights.mapInArrow(count_bits(None), "part binary"), n_blocks, np.int64)
    n = int(highs.sum())
    if not n:
        return None
    middle = []
    for rank in {(n - 1) // 2, n // 2}:
        high = int(np.searchsorted(np.cumsum(highs), rank, side="right"))
        before = int(highs[:high].sum())
        parts = weights.mapInArrow(count_bits(high), "part binary")
        lows = added_up(parts, n_blocks, np.int64)
        low = int(np.searchsorted(np.cumsum(lows), rank - before, side="right"))
        bits = np.array([(high << HALF) | low], dtype=np.uint32)
        middle.append(float(np.log(bits.view(np.float32).astype(np.float64))[0]))
    return float(np.mean(middle))


def count_bits(high: int | None) -> Callable[[Rows], Rows]:
    """How often the upper bits of weights above 0 occur; high: the lower ones of those with these
    upper ones."""

    def count(batches: Rows) -> Rows:
        for row in each_row(batches):
            weights = array_of(row["weights"], np.float32)
            bits = weights[weights > 0].view(np.uint32)
            upper = bits >> HALF
            chosen = upper if high is None else bits[upper == high] & ((1 << HALF) - 1)
            counts = np.bincount(chosen, minlength=1 << HALF).astype(np.int64)
            yield as_batch([{"part": counts.tobytes()}], PART_SCHEMA)

    return count
