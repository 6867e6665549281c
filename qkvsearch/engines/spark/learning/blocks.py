"""A log in blocks as the driver sees it: how large they are, and where each begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch.collaborative.confidences import Feedback
from qkvsearch.engines.spark.learning.sides import Start

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Pairs of a block: enough to be worth a task, few enough for its memory (some 30 bytes each, and
# what is asked of the other side).
FEWEST_PAIRS, MOST_PAIRS = 1 << 17, 1 << 22
# Users of a block, whose embeddings are a cell of a table: 16 MiB at 64 components, of which Java
# has several copies at a time.
MOST_USERS = 1 << 16
# Random numbers that the driver passes over at a time.
SKIPPED_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class LogBlocks:
    """A log in blocks of users, row by row of `histories.HISTORIES`, a partition each.

    sizes: of each block that is there how many users. item_counts (n_items,): pairs that count.
    """

    frame: DataFrame
    n_partitions: int
    sizes: dict[int, int]
    feedback: Feedback
    item_counts: np.ndarray
    n_active_users: int
    n_counting: int
    mean_confidence: float

    @property
    def firsts(self) -> dict[int, int]:
        """The number of each block's first user."""
        sizes = np.array([self.sizes[block] for block in sorted(self.sizes)])
        return dict(zip(sorted(self.sizes), (np.cumsum(sizes) - sizes).tolist(), strict=True))


def n_blocks_of(n_pairs: int, n_users: int, cores: int) -> int:
    """As few blocks as can be, two for each core where there are pairs enough."""
    wanted = max(2 * cores, -(-n_pairs // MOST_PAIRS), -(-n_users // MOST_USERS))
    return max(1, min(wanted, -(-n_pairs // FEWEST_PAIRS)))


def runs_of(n_bytes: dict[int, int], most: int) -> list[list[int]]:
    """Blocks after one another, of so many bytes together at the most, or one alone."""
    found: list[list[int]] = []
    left = 0
    for block, n in n_bytes.items():
        if n > left or not found:
            found.append([])
            left = most
        found[-1].append(block)
        left -= n
    return found


def cuts_of(item_counts: np.ndarray, n_blocks: int) -> np.ndarray:
    """Where blocks of items begin, and the end: as many pairs in each as can be."""
    reached = np.cumsum(item_counts)
    wanted = np.linspace(0, reached[-1], n_blocks + 1)[1:-1]
    inner = np.searchsorted(reached, wanted, side="left") + 1
    return np.unique(np.concatenate([[0], inner, [len(item_counts)]])).astype(np.int64)


def state_of(rng: np.random.Generator) -> dict[str, Any]:
    return dict(rng.bit_generator.state)


def starts_of(
    rng: np.random.Generator, log: LogBlocks, n_components: int, scale: float
) -> dict[int, Start]:
    """Where the users of each block begin in the sequence of random numbers. The driver passes over
    it; it is left where the items begin.
    """
    found = {}
    for block in sorted(log.sizes):
        found[block] = Start(state_of(rng), n_components, scale)
        left = log.sizes[block] * n_components
        while left:
            n = min(left, SKIPPED_AT_ONCE)
            rng.standard_normal(n, dtype=np.float32)
            left -= n
    return found
