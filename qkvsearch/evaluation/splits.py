"""Protocols: which part of a log the models may learn from, and which part they are judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from qkvsearch.data.interactions import Interactions
from qkvsearch.errors import DataError, QkvError, suggest

TEST_SHARE = 0.2


@dataclass(frozen=True)
class Split:
    """Parts of one log, with its users and items in its rows, whoever occurs in which part.

    train: what the models learn from. history: what the users of `test` are known by when they are
    recommended to, and are not recommended again; the train part, unless they were kept out of it.
    test: the pairs held out, which neither holds. newcomers: users left out of `test` because they
    have no history.
    """

    train: Interactions
    history: Interactions
    test: Interactions
    newcomers: int = 0

    def rated(self) -> Split:
        """The same parts, of pairs with a rating alone."""
        train = self.train.rated()
        history = train if self.history is self.train else self.history.rated()
        return replace(self, train=train, history=history, test=self.test.rated())


def split(log: Interactions, protocol: str, random_state: int = 0) -> Split:
    """The parts of a log under one of `PROTOCOLS`, the same for the same `random_state`.

    Raises `QkvError` for a protocol that does not exist, or that this log cannot follow.

    >>> log = Interactions.from_columns(list("aaaaab"), [1, 2, 3, 4, 5, 1])
    >>> parts = split(log, "random")
    >>> len(parts.train), len(parts.test)
    (5, 1)
    """
    if protocol not in PROTOCOLS:
        near = suggest(protocol, list(PROTOCOLS))
        raise QkvError(f"no protocol {protocol!r}{near} (there are {', '.join(PROTOCOLS)})")
    parts = PROTOCOLS[protocol](log, np.random.default_rng(random_state))
    if not len(parts.train) or not len(parts.test):
        raise DataError(
            f"`protocol` {protocol}: too few interactions; nothing is left to learn from, or "
            "nobody with a history to judge by"
        )
    return parts


def split_random(log: Interactions, rng: np.random.Generator) -> Split:
    """A fifth of every user's interactions, at least one; who has a single one keeps it."""
    return _hold_out(log, _random_fifth(log, rng))


def split_leave_last_out(log: Interactions, rng: np.random.Generator) -> Split:
    """Each user's latest interaction, of equally late ones any; who has a single one keeps it.

    He et al. 2017, "Neural collaborative filtering", section 4.1, but ranked against the whole
    catalog. Times need only order one user's interactions.
    """
    if log.times is None:
        raise DataError(
            "`protocol` leave-last-out needs to know what came last: build with a time column"
        )
    place, lengths = places(log, rng.random(len(log)), log.times)
    return _hold_out(log, (place == lengths - 1) & (lengths > 1))


def split_time(log: Interactions, rng: np.random.Generator) -> Split:
    """The last fifth of all interactions; what happened at the same time stays together.

    The one split in which nothing is learned from the future (Ji, Sun, Zhang and Li 2023, "A
    critical study on data leakage in recommender system offline evaluation"). Users who come only
    after it are left out.
    """
    if log.times is None or not log.times_comparable:
        reason = "has no times" if log.times is None else "only ranks times within each user"
        raise DataError(
            f"`protocol` time needs timestamps that compare between users, and this log {reason}: "
            "build with a time column, or use random, leave-last-out or strong"
        )
    cut = np.sort(log.times)[int((1 - TEST_SHARE) * len(log))] if len(log) else 0
    at_once = np.count_nonzero(log.times == cut)
    if at_once > max(1, (1 - TEST_SHARE) * len(log)):
        raise DataError(
            f"`protocol` time: the times do not tell early from late: {at_once:,} of {len(log):,} "
            "interactions have the same one; use random or strong"
        )
    held_out = log.times >= cut
    known = np.isin(log.users, log.users[~held_out])
    parts = _hold_out(log, held_out, held_out & known)
    return replace(parts, newcomers=len(np.unique(log.users[held_out & ~known])))


def split_strong(log: Interactions, rng: np.random.Generator) -> Split:
    """A fifth of the users, of whom training sees nothing: four fifths of their interactions are
    their history, the others are held out.

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
    """bool (n,): of each user's pairs a random fifth, rounded, at least one and never all."""
    place, lengths = places(log, rng.random(len(log)))
    quota = np.maximum(np.floor(TEST_SHARE * lengths + 0.5), 1)
    return (place < quota) & (lengths > 1)


def places(log: Interactions, *keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each pair (n,): its place, from 0, among its user's when sorted by the last of `keys`,
    then the one before; and how many that user has.
    """
    order = np.lexsort((*keys, log.users))
    lengths = np.bincount(log.users, minlength=len(log.user_ids))
    starts = np.cumsum(lengths) - lengths
    place = np.empty(len(log), dtype=np.int64)
    place[order] = np.arange(len(log)) - starts[log.users[order]]
    return place, lengths[log.users]
