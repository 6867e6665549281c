"""Interactions: the log of views, likes or ratings, one row a (user, item) pair."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

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
        stamps = None if times is None else np.asarray(times, dtype=np.int64)
        order = keep if stamps is None else keep[np.argsort(stamps[keep], kind="stable")]
        pair = user_codes[order].astype(np.int64) * max(len(item_ids), 1) + item_codes[order]
        _, last, of_pair = np.unique(pair[::-1], return_index=True, return_inverse=True)
        last, of_pair = len(order) - 1 - last, of_pair[::-1]
        chosen = order[last]
        net, counts = None, np.ones(len(order), dtype=bool)
        if weights is not None:
            left = _left(of_pair, np.asarray(weights, dtype=np.float64)[order], report)
            net = np.bincount(of_pair, left, len(chosen))
            counts = (left > 0) | (net <= 0)[of_pair]
        latest = None
        if stamps is not None:  # of what is left
            latest = np.full(len(chosen), np.iinfo(np.int64).min)
            np.maximum.at(latest, of_pair[counts], stamps[order[counts]])
        if report is not None:
            report.merged += len(order) - len(chosen)
        return cls(
            users=user_codes[chosen],
            items=item_codes[chosen],
            user_ids=user_ids,
            item_ids=item_ids,
            ratings=_last_known(ratings, order, of_pair, chosen),
            times=latest,
            times_comparable=times_comparable,
            weights=None if net is None else net.astype(np.float32),
            scale=scale,
        )

    def __len__(self) -> int:
        return len(self.users)

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


def _last_known(
    ratings: Any, order: np.ndarray, of_pair: np.ndarray, chosen: np.ndarray
) -> np.ndarray | None:
    """The last rating of each pair: a later interaction without one does not remove it."""
    if ratings is None:
        return None
    values = np.asarray(ratings, dtype=np.float32)
    found = values[chosen]
    rated = np.isfinite(values[order])
    pairs, last = np.unique(of_pair[rated][::-1], return_index=True)
    found[pairs] = values[order[rated][::-1][last]]
    return found


def _left(pairs: np.ndarray, weights: np.ndarray, report: ReadReport | None) -> np.ndarray:
    """What is left of each row's weight (n,); rows are oldest first."""
    missing = np.isnan(weights)
    if missing.any():
        positive = weights[weights > 0]
        weights = np.where(missing, np.median(positive) if len(positive) else 1.0, weights)
    left, unmatched = what_is_left(pairs, weights)
    if report is not None:
        refunds = int((weights < 0).sum())
        gone = np.bincount(pairs, left) <= 0
        report.note(int(missing.sum()), "{n} without a weight count as the median of the others")
        report.note(refunds - unmatched, "{n} refunds took back what was there before them")
        report.note(unmatched, "{n} refunds are of more than was there before them")
        report.note(int(gone.sum()), "{n} pairs have no weight left: known, but no reason")
    return left
