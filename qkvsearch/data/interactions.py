"""Interactions: the log of views, likes or ratings, one row a (user, item) pair."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qkvsearch.data.ids import Ids, factorize
from qkvsearch.data.ratings import Scale
from qkvsearch.data.refunds import what_is_left

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from qkvsearch.data.report import ReadReport


@dataclass(frozen=True)
class Interactions:
    """Distinct (user, item) pairs as row numbers, with the ids of the rows.

    users, items: int32 (n,), sorted by user, then item. ratings: float32 (n,) or None; NaN for a
    pair without a rating.
    times: int64 (n,) or None, comparable only within a user unless `times_comparable`.
    weights: float32 (n,) or None: how much of each pair there was, all its rows together, without
    what was taken back; 0 where nothing is left.
    scale: the lowest and the highest rating that can be given, None where nobody said.

    >>> log = Interactions.from_columns(["ann", "bob", "ann"], [10, 10, 20], ratings=[5, 3, 4])
    >>> log.matrix(log.ratings).toarray()
    array([[5., 4.],
           [3., 0.]], dtype=float32)
    """

    users: np.ndarray
    items: np.ndarray
    user_ids: Ids
    item_ids: Ids
    ratings: np.ndarray | None = None
    times: np.ndarray | None = None
    times_comparable: bool = True
    weights: np.ndarray | None = None
    scale: Scale = None

    @classmethod
    def from_columns(
        cls,
        users: Any,
        items: Any,
        ratings: Any = None,
        times: Any = None,
        *,
        weights: Any = None,
        item_ids: Ids | None = None,
        times_comparable: bool = True,
        scale: Scale = None,
        fold_ids: bool = False,
        report: ReadReport | None = None,
    ) -> Interactions:
        """From columns of equal length, with the ids of the data.

        Of a repeated pair the latest rating is kept, by time, then by place in the file; its time
        is the latest of all. Weights add up; negative ones take back what they refund, as
        `refunds.what_is_left` says, and a missing one is the median of the others. Rows without a
        user or an item, or with an item that is not in `item_ids` (default: all that occur), are
        left out; callers that must report them compare ids first. fold_ids: ids that differ in case
        alone are one. report: where what becomes of repeated rows is counted.
        """
        user_codes, user_ids = factorize(users, fold=fold_ids)
        item_codes, item_ids = factorize(items, item_ids, fold=fold_ids)
        keep = np.flatnonzero((user_codes >= 0) & (item_codes >= 0))
        ratings, times, weights = (
            None if column is None else np.asarray(column, dtype)[keep]
            for column, dtype in ((ratings, np.float32), (times, np.int64), (weights, np.float64))
        )
        missing = 0 if weights is None else int(np.isnan(weights).sum())
        if missing and weights is not None:
            weights = np.where(np.isnan(weights), usual_weight(weights), weights)
        pairs = merge_rows(
            user_codes[keep], item_codes[keep], ratings, times, weights, n_items=len(item_ids)
        )
        if report is not None:
            replace(pairs.counts, missing=missing).say(report, weights is not None)
        return cls(
            users=pairs.users,
            items=pairs.items,
            user_ids=user_ids,
            item_ids=item_ids,
            ratings=pairs.ratings,
            times=pairs.times,
            times_comparable=times_comparable,
            weights=pairs.weights,
            scale=scale,
        )

    def __len__(self) -> int:
        return len(self.users)

    @property
    def n_users(self) -> int:
        return len(self.user_ids)

    def take(self, keep: np.ndarray) -> Interactions:
        """The pairs for which `keep` (bool, n) is True, with all users and items as before."""
        return replace(
            self,
            users=self.users[keep],
            items=self.items[keep],
            ratings=None if self.ratings is None else self.ratings[keep],
            times=None if self.times is None else self.times[keep],
            weights=None if self.weights is None else self.weights[keep],
        )

    def rated(self) -> Interactions:
        """The pairs that have a rating; none where there are no ratings at all."""
        if self.ratings is None:
            return self.take(np.zeros(len(self), dtype=bool))
        return self.take(np.isfinite(self.ratings))

    def matrix(self, values: np.ndarray | None = None) -> csr_matrix:
        """Users × items in compressed rows, float32; `values` per pair, 1 by default."""
        from scipy.sparse import csr_matrix

        data = np.ones(len(self), np.float32) if values is None else values.astype(np.float32)
        shape = (len(self.user_ids), len(self.item_ids))
        return csr_matrix((data, (self.users, self.items)), shape=shape)


@dataclass(frozen=True)
class MergeCounts:
    """What became of rows that repeat a pair, or take back what others added: how many there are of
    each kind.
    """

    merged: int = 0
    missing: int = 0
    refunds: int = 0
    unmatched: int = 0
    gone: int = 0

    def __add__(self, other: MergeCounts) -> MergeCounts:
        both = zip(astuple(self), astuple(other), strict=True)
        return MergeCounts(*(one + more for one, more in both))

    def say(self, report: ReadReport, has_weights: bool) -> None:
        """In a report."""
        report.merged += self.merged
        if has_weights:
            matched = self.refunds - self.unmatched
            report.note(self.missing, "{n} without a weight count as the median of the others")
            report.note(matched, "{n} refunds took back what was there before them")
            report.note(self.unmatched, "{n} refunds are of more than was there before them")
            report.note(self.gone, "{n} pairs have no weight left: known, but no reason")


class Pairs(NamedTuple):
    """Distinct pairs, as the arrays of `Interactions`, and what became of the rows."""

    users: np.ndarray
    items: np.ndarray
    ratings: np.ndarray | None
    times: np.ndarray | None
    weights: np.ndarray | None
    counts: MergeCounts


def merge_rows(
    users: np.ndarray,
    items: np.ndarray,
    ratings: np.ndarray | None,
    times: np.ndarray | None,
    weights: np.ndarray | None,
    *,
    n_items: int,
) -> Pairs:
    """Rows in the order of the file, users and items as row numbers, to one row a pair, as
    `Interactions.from_columns` says; weights without gaps. What becomes of a user's rows does not
    depend on the other users.

    >>> merge_rows(np.zeros(2, int), np.ones(2, int), None, None, None, n_items=2).counts.merged
    1
    """
    order = np.arange(len(users)) if times is None else np.argsort(times, kind="stable")
    pair = users[order].astype(np.int64) * max(n_items, 1) + items[order]
    _, last, of_pair = np.unique(pair[::-1], return_index=True, return_inverse=True)
    last, of_pair = len(order) - 1 - last, of_pair[::-1]
    chosen = order[last]
    net, counts, said = None, np.ones(len(order), dtype=bool), MergeCounts()
    if weights is not None:
        left, unmatched = what_is_left(of_pair, weights[order])
        net = np.bincount(of_pair, left, len(chosen))
        counts = (left > 0) | (net <= 0)[of_pair]
        gone = int((np.bincount(of_pair, left) <= 0).sum())
        said = MergeCounts(refunds=int((weights < 0).sum()), unmatched=unmatched, gone=gone)
    latest = None
    if times is not None:  # of what is left
        latest = np.full(len(chosen), np.iinfo(np.int64).min)
        np.maximum.at(latest, of_pair[counts], times[order[counts]])
    return Pairs(
        users[chosen],
        items[chosen],
        _last_known(ratings, order, of_pair, chosen),
        latest,
        None if net is None else net.astype(np.float32),
        replace(said, merged=len(order) - len(chosen)),
    )


def usual_weight(weights: np.ndarray) -> float:
    """What a missing weight counts as: the median of those above 0, 1 where there are none."""
    positive = weights[weights > 0]
    return float(np.median(positive)) if len(positive) else 1.0


def _last_known(
    ratings: np.ndarray | None, order: np.ndarray, of_pair: np.ndarray, chosen: np.ndarray
) -> np.ndarray | None:
    """The last rating of each pair: a later interaction without one does not remove it."""
    if ratings is None:
        return None
    found = ratings[chosen]
    rated = np.isfinite(ratings[order])
    pairs, last = np.unique(of_pair[rated][::-1], return_index=True)
    found[pairs] = ratings[order[rated][::-1][last]]
    return found
