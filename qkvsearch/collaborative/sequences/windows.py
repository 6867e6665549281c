"""Histories cut into windows to train on, so that every interaction but a first one is a target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qkvsearch.data.interactions import Interactions
from qkvsearch.errors import DataError

# Windows are sorted by length within this many batches, which leaves little to pad.
BATCHES_SORTED = 32


class Batch(NamedTuple):
    """Windows side by side: the items read, the item that follows each, and which places count.

    All (B, L); where `counts` is False a window has ended, and 0 stands there.
    """

    items: np.ndarray
    targets: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class Sequences:
    """The items that each user interacted with, oldest first, one user after another.

    items: int64 (n,), those of user u from starts[u] on, lengths[u] of them. starts, lengths: int64
    (n_users,); a user without a history has length 0.

    >>> log = Interactions.from_columns(["a", "a", "b"], [7, 5, 5], times=[2, 1, 1])
    >>> Sequences.of(log).items
    array([0, 1, 0])
    """

    items: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, log: Interactions) -> Sequences:
        """By time; of equally late items, in the log's order, which is that of the catalog.

        Raises `DataError` for a log without times.
        """
        if log.times is None:
            raise DataError(
                "what comes next needs to know what came before: the interactions have no times; "
                "give a time column"
            )
        order = np.lexsort((log.times, log.users))
        lengths = np.bincount(log.users, minlength=len(log.user_ids))
        return cls(log.items[order].astype(np.int64), np.cumsum(lengths) - lengths, lengths)

    def histories(self, users: np.ndarray, n_left_out: int = 0) -> list[np.ndarray]:
        """The items of these users, all but the last `n_left_out`."""
        ends = self.starts + self.lengths - n_left_out
        return [self.items[self.starts[user] : ends[user]] for user in users]


class Windows:
    """Every history in windows of at most `size` items, cut at other places each time through.

    held_out: users whose last item is no target. A window is read from its first item on; what
    came before it is not, as in truncated backpropagation.
    """

    def __init__(
        self,
        sequences: Sequences,
        size: int,
        batch_size: int,
        held_out: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        self.items, self.starts = sequences.items, sequences.starts
        self.size, self.batch_size, self.rng = size, batch_size, rng
        self.n_targets = sequences.lengths - 1
        self.n_targets[held_out] -= 1

    def __len__(self) -> int:
        """How many batches there are on average: a first window's length is random."""
        is_cut = self.n_targets > self.size
        n_windows = np.sum(self.n_targets > 0) + np.sum((self.n_targets[is_cut] - 1) / self.size)
        return max(1, int(np.ceil(n_windows / self.batch_size)))

    def __iter__(self) -> Iterator[Batch]:
        starts, lengths = self._cut()
        order = self.rng.permutation(len(starts))
        pool = self.batch_size * BATCHES_SORTED
        batches = []
        for first in range(0, len(order), pool):
            some = order[first : first + pool]
            some = some[np.argsort(lengths[some], kind="stable")]
            batches += np.split(some, range(self.batch_size, len(some), self.batch_size))
        for place in self.rng.permutation(len(batches)):
            chosen = batches[place]
            yield self._batch(starts[chosen], lengths[chosen])

    def _cut(self) -> tuple[np.ndarray, np.ndarray]:
        """Where windows start among the items, and how many of them each reads."""
        # A long history's first window has a random length, the others the greatest.
        first = self.rng.integers(1, self.size + 1, len(self.n_targets))
        first[self.n_targets <= self.size] = self.size
        n_windows = 1 - (first - self.n_targets) // self.size
        n_windows[self.n_targets <= 0] = 0
        owners = np.repeat(np.arange(len(n_windows)), n_windows)
        turns = np.arange(len(owners)) - np.repeat(np.cumsum(n_windows) - n_windows, n_windows)
        begin = np.where(turns > 0, first[owners] + (turns - 1) * self.size, 0)
        end = np.minimum(first[owners] + turns * self.size, self.n_targets[owners])
        return self.starts[owners] + begin, end - begin

    def _batch(self, starts: np.ndarray, lengths: np.ndarray) -> Batch:
        steps = np.arange(lengths.max())
        counts = steps < lengths[:, None]
        places = np.where(counts, starts[:, None] + steps, 0)
        items = np.where(counts, self.items[places], 0)
        # The next item is the same user's: a window never reads a history's last one.
        targets = np.where(counts, self.items[np.where(counts, places + 1, 0)], 0)
        return Batch(items, targets, counts)
