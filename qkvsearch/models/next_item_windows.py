"""The histories that `NextItem` is trained on, cut into windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qkvsearch.errors import DataError
from qkvsearch.tables.interactions import Interactions

# Windows are sorted by length within this many batches, which leaves little to pad.
BATCHES_SORTED = 32


class Batch(NamedTuple):
    """A batch of windows, each array (B, L)."""

    # 0 after the end of a window.
    items: np.ndarray
    # The next item after each, 0 after the end of a window.
    targets: np.ndarray
    # False after the end of a window.
    counts: np.ndarray


@dataclass(frozen=True)
class Sequences:
    """The items that each user interacted with, oldest first, one user after another.

    >>> log = Interactions.from_columns(["a", "a", "b"], [7, 5, 5], times=[2, 1, 1])
    >>> Sequences.of(log).items
    array([0, 1, 0])
    """

    # int64 (n,): those of user u from starts[u] on, lengths[u] of them.
    items: np.ndarray
    # int64 (n_users,); a user without a history has length 0.
    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, log: Interactions) -> Sequences:
        """Sort a log by user and time; items of the same time stay in the order of the catalog.

        Raises `DataError` for a log without times.
        """
        if log.times is None:
            raise DataError(
                "what comes next needs to know what came before: the interactions have no times; "
                "give a time column"
            )
        order = np.lexsort((log.times, log.users))
        lengths = np.bincount(log.users, minlength=len(log.user_ids))
        starts = np.cumsum(lengths) - lengths
        return cls(log.items[order].astype(np.int64), starts, lengths)

    def histories(self, users: np.ndarray, n_left_out: int = 0) -> list[np.ndarray]:
        """Return the items of these users, without the last `n_left_out`."""
        ends = self.starts + self.lengths - n_left_out
        return [self.items[self.starts[user] : ends[user]] for user in users]


class Windows:
    """All histories in windows of at most `size` items, split differently in each iteration.

    held_out: users whose last item is no target. The model does not see the items before a window,
    as in truncated backpropagation.
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
        """Return the mean number of batches; the length of a first window is random."""
        is_cut = self.n_targets > self.size
        n_windows = np.sum(self.n_targets > 0) + np.sum((self.n_targets[is_cut] - 1) / self.size)
        return max(1, int(np.ceil(n_windows / self.batch_size)))

    def __iter__(self) -> Iterator[Batch]:
        starts, lengths = self._spans()
        order = self.rng.permutation(len(starts))
        pool = self.batch_size * BATCHES_SORTED
        batches = []
        for first in range(0, len(order), pool):
            block = order[first : first + pool]
            block = block[np.argsort(lengths[block], kind="stable")]
            batches += np.split(block, range(self.batch_size, len(block), self.batch_size))
        for i in self.rng.permutation(len(batches)):
            chosen = batches[i]
            yield self._batch(starts[chosen], lengths[chosen])

    def _spans(self) -> tuple[np.ndarray, np.ndarray]:
        """Draw windows: where each starts among the items, and its length."""
        # A long history's first window has a random length, the others the greatest.
        first = self.rng.integers(1, self.size + 1, len(self.n_targets))
        first[self.n_targets <= self.size] = self.size
        n_windows = 1 - (first - self.n_targets) // self.size
        n_windows[self.n_targets <= 0] = 0
        owners = np.repeat(np.arange(len(n_windows)), n_windows)
        window_numbers = np.arange(len(owners)) - np.repeat(
            np.cumsum(n_windows) - n_windows, n_windows
        )
        begin = np.where(window_numbers > 0, first[owners] + (window_numbers - 1) * self.size, 0)
        end = np.minimum(first[owners] + window_numbers * self.size, self.n_targets[owners])
        return self.starts[owners] + begin, end - begin

    def _batch(self, starts: np.ndarray, lengths: np.ndarray) -> Batch:
        steps = np.arange(lengths.max())
        counts = steps < lengths[:, None]
        indices = np.where(counts, starts[:, None] + steps, 0)
        items = np.where(counts, self.items[indices], 0)
        # The next item is the same user's: a window never reads a history's last one.
        targets = np.where(counts, self.items[np.where(counts, indices + 1, 0)], 0)
        return Batch(items, targets, counts)
