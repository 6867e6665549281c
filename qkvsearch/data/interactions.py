"""Interactions: the log of views, likes or ratings, one row a (user, item) pair."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch.data.ids import Ids, factorize

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Interactions:
    """Distinct (user, item) pairs as row numbers, with the ids of the rows.

    users, items: int32 (n,), sorted by user, then item. ratings: float32 (n,) or None; NaN for a
    pair without a rating.
    times: int64 (n,) or None, comparable only within a user unless `times_comparable`.

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

    @classmethod
    def from_columns(
        cls,
        users: Any,
        items: Any,
        ratings: Any = None,
        times: Any = None,
        *,
        item_ids: Ids | None = None,
        times_comparable: bool = True,
    ) -> Interactions:
        """From columns of equal length, with the ids of the data.

        Of a repeated pair the latest is kept, by time, then by place in the file, but one with a
        rating before one without; its time is the latest of all. Rows without a user or an item,
        or with an item that is not in `item_ids` (default: all that occur), are left out; callers
        that must report them compare ids first.
        """
        user_codes, user_ids = factorize(users)
        item_codes, seen_ids = factorize(items)
        if item_ids is None:
            item_ids = seen_ids
        else:
            known = [item_ids._position.get(text, -1) for text in seen_ids.texts]
            item_codes = np.array([*known, -1], dtype=np.int32)[item_codes]
        keep = np.flatnonzero((user_codes >= 0) & (item_codes >= 0))
        stamps = None if times is None else np.asarray(times, dtype=np.int64)
        order = keep if stamps is None else keep[np.argsort(stamps[keep], kind="stable")]
        values = None if ratings is None else np.asarray(ratings, dtype=np.float32)
        if values is not None:  # a later interaction without a rating does not remove one
            is_rated = np.isfinite(values[order])
            order = np.concatenate([order[~is_rated], order[is_rated]])
        pair = user_codes[order].astype(np.int64) * max(len(item_ids), 1) + item_codes[order]
        _, last, of_pair = np.unique(pair[::-1], return_index=True, return_inverse=True)
        chosen = order[len(order) - 1 - last]
        latest = None
        if stamps is not None:
            latest = stamps[chosen]
            np.maximum.at(latest, of_pair, stamps[order[::-1]])
        return cls(
            users=user_codes[chosen],
            items=item_codes[chosen],
            user_ids=user_ids,
            item_ids=item_ids,
            ratings=None if values is None else values[chosen],
            times=latest,
            times_comparable=times_comparable,
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
