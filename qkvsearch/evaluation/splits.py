"""Protocols: split a log into a part to learn from and a part to evaluate on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qkvsearch._utils.validation import random_generator
from qkvsearch.errors import DataError, QkvError, suggest
from qkvsearch.tables.interactions import Interactions

TEST_SHARE = 0.2


@dataclass(frozen=True)
class Split:
    """A split of a log. All parts use the row numbers of the log's users and items."""

    # The pairs that the models learn from.
    train: Interactions
    # The pairs by which the users of `test` are described, and which are not recommended to them
    # again. The same as `train`, unless training excludes these users.
    history: Interactions
    # The pairs held out.
    test: Interactions
    # The number of users left out of `test` because they have no history.
    newcomers: int = 0

    def rated(self) -> Split:
        """Return the parts without unrated pairs."""
        train = self.train.rated()
        history = train if self.history is self.train else self.history.rated()
        return replace(self, train=train, history=history, test=self.test.rated())


def split(log: Interactions, protocol: str, random_state: Any = 0) -> Split:
    """Split a log by one of `PROTOCOLS`, reproducibly for each `random_state`.

    Raises `QkvError` for a protocol that does not exist, or that this log does not allow.

    >>> log = Interactions.from_columns(list("aaaaab"), [1, 2, 3, 4, 5, 1])
    >>> parts = split(log, "random")
    >>> len(parts.train), len(parts.test)
    (5, 1)
    """
    if protocol not in PROTOCOLS:
        near = suggest(protocol, list(PROTOCOLS))
        raise QkvError(f"no protocol {protocol!r}{near} (there are {', '.join(PROTOCOLS)})")
    parts = PROTOCOLS[protocol](log, random_generator(random_state))
    if not len(parts.train) or not len(parts.test):
        raise DataError(
            f"`protocol` {protocol}: too few interactions; nothing is left to learn from, or "
            "nobody with a history to judge by"
        )
    return parts


def split_random(log: Interactions, rng: np.random.Generator) -> Split:
    """Hold out a fifth of each user's interactions, at least one, except of users with only one."""
    return _hold_out(log, _random_fifth(log, rng))


def split_leave_last_out(log: Interactions, rng: np.random.Generator) -> Split:
    """Hold out each user's last interaction, except of users with only one; ties are random.

    He et al. 2017, "Neural collaborative filtering", section 4.1, but ranked against the whole
    catalog. Times need only order one user's interactions.
    """
    if log.times is None:
        raise DataError(
            "`protocol` leave-last-out needs to know what came last: build with a time column"
        )
    ranks, lengths = ranks_within_users(log, rng.random(len(log)), log.times)
    return _hold_out(log, (ranks == lengths - 1) & (lengths > 1))


def split_time(log: Interactions, rng: np.random.Generator) -> Split:
    """Hold out the last fifth of all interactions; those of the same time stay together.

    Only in this split is nothing learned from the future (Ji, Sun, Zhang and Li 2023, "A critical
    study on data leakage in recommender system offline evaluation"). Users without earlier
    interactions are left out.
    """
    if log.times is None or not log.times_comparable:
        reason = "has no times" if log.times is None else "only ranks times within each user"
        raise DataError(
            f"`protocol` time needs timestamps that compare between users, and this log {reason}: "
            "build with a time column, or use random, leave-last-out or strong"
        )
    cut = np.sort(log.times)[int((1 - TEST_SHARE) * len(log))] if len(log) else 0
    n_simultaneous = np.count_nonzero(log.times == cut)
    if n_simultaneous > max(1, (1 - TEST_SHARE) * len(log)):
        raise DataError(
            f"`protocol` time: {n_simultaneous:,} of {len(log):,} interactions have the same time, "
            "so that early and late cannot be told apart; use random or strong"
        )
    held_out = log.times >= cut
    has_history = np.isin(log.users, log.users[~held_out])
    parts = _hold_out(log, held_out, held_out & has_history)
    return replace(parts, newcomers=len(np.unique(log.users[held_out & ~has_history])))


def split_strong(log: Interactions, rng: np.random.Generator) -> Split:
    """Exclude a fifth of the users from training; four fifths of their interactions are their
    history, the others are held out.

    Strong generalization: Marlin 2004, "Collaborative filtering: a machine learning perspective";
    Liang et al. 2018, "Variational autoencoders for collaborative filtering", section 4.
    """
    held_out = _random_fifth(log, rng)
    eligible = np.unique(log.users[held_out])
    n_unseen = int(np.ceil(TEST_SHARE * len(eligible)))
    unseen = np.isin(log.users, rng.choice(eligible, n_unseen, replace=False))
    return Split(
        train=log.take(~unseen),
        history=log.take(unseen & ~held_out),
        test=log.take(unseen & held_out),
    )


PROTOCOLS: dict[str, Callable[[Interactions, np.random.Generator], Split]] = {
    "random": split_random,
    "leave-last-out": split_leave_last_out,
    "time": split_time,
    "strong": split_strong,
}


def _hold_out(log: Interactions, held_out: np.ndarray, test: np.ndarray | None = None) -> Split:
    train = log.take(~held_out)
    return Split(train, train, log.take(held_out if test is None else test))


def _random_fifth(log: Interactions, rng: np.random.Generator) -> np.ndarray:
    """Return a random fifth of each user's pairs, bool (n,): rounded, at least one, never all."""
    ranks, lengths = ranks_within_users(log, rng.random(len(log)))
    quota = np.maximum(np.floor(TEST_SHARE * lengths + 0.5), 1)
    return (ranks < quota) & (lengths > 1)


def ranks_within_users(log: Interactions, *keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rank of each pair among its user's pairs, from 0, and that user's number of pairs.

    Pairs are sorted by the last of `keys`, (n,) each, then by the one before, as in `np.lexsort`.
    """
    order = np.lexsort((*keys, log.users))
    lengths = np.bincount(log.users, minlength=len(log.user_ids))
    starts = np.cumsum(lengths) - lengths
    ranks = np.empty(len(log), dtype=np.int64)
    ranks[order] = np.arange(len(log)) - starts[log.users[order]]
    return ranks, lengths[log.users]
