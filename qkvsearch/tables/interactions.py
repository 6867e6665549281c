"""Interactions: the log of views, likes or ratings, one row a (user, item) pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils import scratch
from qkvsearch._utils.scratch import GrowingArray, grouped, pieces_of
from qkvsearch._utils.validation import FLOAT32_MAX, check_flag, displayed, is_finite, require
from qkvsearch.errors import DataError
from qkvsearch.tables.ids import Ids, factorize
from qkvsearch.tables.ratings import Scale

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from qkvsearch.tables.report import ReadReport

# No neighbours of items are learned from users with more items: each would take as long as
# thousands of others.
MAX_HISTORY = 20_000
# Weights are decimal fractions: 0.1 + 0.2 − 0.3 leaves nothing.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Interactions:
    """Distinct (user, item) pairs as row numbers, with the ids of the rows.

    users, items: int32 (n,), sorted by user, then item. ratings: float32 (n,) or None; NaN for a
    pair without a rating. times: int64 (n,) or None, the lowest number for a pair without one,
    comparable only within a user unless `times_comparable`. weights: float32 (n,) or None, the sum
    of a pair's rows minus refunds; 0 where nothing is left. scale: the lowest and the highest
    rating that can be given, or None.

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
        """Make interactions of columns of equal length, with the ids of the data.

        times: whole numbers, or dates, which become microseconds since 1970. A missing time is
        before all others, and a missing rating is none.

        A repeated pair has its latest rating, by time, then by row, and its latest time. Weights
        add up; negative ones are refunds (see `apply_refunds`), and a missing one counts as the
        median of the others. Rows without a user or an item, or with an item that is not in
        `item_ids` (default: all that occur), are left out, uncounted. fold_ids: ids that differ in
        case alone are one. report: counts repeated rows and refunds.

        Raises `DataError` for columns of different lengths, for ratings and weights that are not
        finite in float32, for weights of a pair that add up to more, and for times that are neither
        whole numbers nor dates.
        """
        # With pandas, which a search does not need.
        from qkvsearch.tables.pair_columns import as_column, as_numbers, as_times, check_lengths

        check_flag("fold_ids", fold_ids)
        given = {"users": users, "items": items}
        optional = {"ratings": ratings, "times": times, "weights": weights}
        given |= {name: values for name, values in optional.items() if values is not None}
        columns = {name: as_column(name, values) for name, values in given.items()}
        check_lengths(columns)
        user_codes, user_ids = _codes("users", columns["users"], None, fold_ids)
        item_codes, item_ids = _codes("items", columns["items"], item_ids, fold_ids)
        numbers = {
            name: as_numbers(name, columns[name])
            for name in ("ratings", "weights")
            if name in columns
        }
        return cls.from_numbers(
            user_codes,
            item_codes,
            user_ids,
            item_ids,
            times=as_times("times", columns["times"]) if "times" in columns else None,
            times_comparable=times_comparable,
            scale=_checked_scale(scale),
            report=report,
            **numbers,
        )

    @classmethod
    def from_numbers(
        cls,
        users: np.ndarray,
        items: np.ndarray,
        user_ids: Ids,
        item_ids: Ids,
        *,
        ratings: np.ndarray | None = None,
        times: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        times_comparable: bool = True,
        scale: Scale = None,
        report: ReadReport | None = None,
    ) -> Interactions:
        """Make interactions of row numbers, int32 (n,), −1 where an id is missing.

        The rows of a few users at a time are merged, and long arrays are in files, so that memory
        does not grow with the rows. `users` is changed: −1 where the item is missing.
        """
        for rows in pieces_of(len(users)):
            users[rows][items[rows] < 0] = -1
        starts, order = grouped(users, len(user_ids))
        merged = MergedRows(len(item_ids), ratings, times, weights)
        merged.ids = user_ids, item_ids
        if weights is not None:
            merged.usual = usual_weight(weights, order)
        for first, last in _user_batches(starts):
            batch = order[starts[first] : starts[last]]
            merged.add(users[batch], items[batch], batch)
        if report is not None:
            merged.counts.add_to(report)
        return cls(
            user_ids=user_ids,
            item_ids=item_ids,
            times_comparable=times_comparable,
            scale=scale,
            **merged.whole(),
        )

    def __len__(self) -> int:
        return len(self.users)

    @property
    def n_users(self) -> int:
        return len(self.user_ids)

    def take(self, keep: np.ndarray) -> Interactions:
        """Return the pairs for which `keep` (bool, n) is True, or the pairs in these rows (m,). All
        users and items stay. Raises `DataError` for another number of booleans, and for rows that
        are not there.
        """
        keep = np.asarray(keep)
        if not keep.size and keep.dtype != bool:
            keep = keep.astype(np.intp)  # an empty list
        if keep.dtype != bool:
            self._check_rows(keep)
        if keep.dtype == bool and keep.shape != self.users.shape:
            raise DataError(
                f"`keep` must have True or False for each of the {len(self):,} pairs, and has the "
                f"shape {keep.shape}"
            )
        return replace(
            self,
            users=self.users[keep],
            items=self.items[keep],
            ratings=None if self.ratings is None else self.ratings[keep],
            times=None if self.times is None else self.times[keep],
            weights=None if self.weights is None else self.weights[keep],
        )

    def _check_rows(self, rows: np.ndarray) -> None:
        n = len(self)
        are_whole = rows.dtype.kind in "iu"
        if not are_whole or ((rows < -n) | (rows >= n)).any():
            raise DataError(
                f"`keep` must be rows, whole numbers from 0 to below {n:,}, or True or False for "
                f"each pair, and is {displayed(rows.tolist())}"
            )

    def rated(self) -> Interactions:
        """Return the pairs that have a rating."""
        if self.ratings is None:
            return self.take(np.zeros(len(self), dtype=bool))
        return self.take(np.isfinite(self.ratings))

    def matrix(self, values: np.ndarray | None = None) -> csr_matrix:
        """Return users × items in compressed rows, float32, with `values` (n,), 1 by default.

        Nothing is copied, so the matrix must not be written to. Raises `DataError` for another
        number of values.
        """
        from scipy.sparse import csr_matrix

        try:
            data = ones(len(self)) if values is None else np.asarray(values, np.float32)
        except (TypeError, ValueError, OverflowError):
            raise DataError(f"`values` must be numbers, not {displayed(values)}") from None
        if data.shape != self.users.shape:
            raise DataError(f"there are {len(self):,} pairs, and values of shape {data.shape}")
        of_rows = np.int32 if len(self) < 2**31 else np.int64
        starts = np.searchsorted(self.users, np.arange(len(self.user_ids) + 1)).astype(of_rows)
        shape = (len(self.user_ids), len(self.item_ids))
        return csr_matrix((data, self.items, starts), shape=shape)


def _codes(name: str, column: Any, known: Ids | None, fold: bool) -> tuple[np.ndarray, Ids]:
    """Return the row number of each id, and the ids. Raises `DataError` for what is no id."""
    if known is not None and not isinstance(known, Ids):
        raise DataError("`item_ids` must be `Ids`, as those of other interactions are")
    try:
        return factorize(column, known, fold=fold)
    except UnicodeEncodeError as error:
        raise DataError(
            f"`{name}` must be ids: {displayed(error.object)} has a lone surrogate, "
            "which no file can contain"
        ) from None
    except TypeError as error:
        raise DataError(f"`{name}` must be ids: {error}") from None


def _checked_scale(scale: Scale) -> Scale:
    """Return a scale. Raise `DataError` unless it is two finite numbers, the lower one first."""
    if scale is None:
        return None
    ends = tuple(scale) if isinstance(scale, list | tuple) else ()
    is_pair = len(ends) == 2 and all(map(is_finite, ends)) and ends[0] < ends[1]
    require(is_pair, "scale", scale, "the lowest and the highest rating, such as (1, 5)")
    return float(ends[0]), float(ends[1])


def ones(count: int) -> np.ndarray:
    """Return ones, float32 (count,), that take no memory and cannot be written to."""
    return np.broadcast_to(np.float32(1), count)


def _user_batches(starts: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield batches of users, the first and the one after the last, of about as many rows each.

    starts: where the rows of each user begin, int64 (n_users + 1,).
    """
    first, n_users = 0, len(starts) - 1
    while first < n_users:
        end = starts[first] + 4 * scratch.ROWS_AT_ONCE
        last = int(np.searchsorted(starts, end, side="right")) - 1
        last = min(max(last, first + 1), n_users)
        yield first, last
        first = last


@dataclass(frozen=True)
class MergeCounts:
    """Numbers of rows that repeat a pair, lack a weight, or are refunds.

    unmatched: refunds of more than was bought before. gone: pairs without any weight left.
    """

    merged: int = 0
    missing: int = 0
    refunds: int = 0
    unmatched: int = 0
    gone: int = 0

    def __add__(self, other: MergeCounts) -> MergeCounts:
        both = zip(astuple(self), astuple(other), strict=True)
        return MergeCounts(*(one + more for one, more in both))

    def add_to(self, report: ReadReport) -> None:
        """Write the numbers into a report."""
        report.merged += self.merged
        matched = self.refunds - self.unmatched
        report.note(
            self.missing, "{n} without a weight {n:counts|count} as the median of the others"
        )
        report.note(matched, "{n} {n:refund|refunds} took back earlier purchases")
        report.note(
            self.unmatched,
            "{n} {n:refund exceeds the purchases before it|"
            "refunds exceed the purchases before them}",
        )
        report.note(
            self.gone,
            "{n} {n:pair is|pairs are} fully refunded: not recommended again, not used as a reason",
        )


def usual_weight(weights: np.ndarray, rows: np.ndarray) -> float:
    """Return the weight of a row without one: the median of the positive ones."""
    known = weights[rows] if np.isnan(weights).any() else np.empty(0)
    positive = known[known > 0]
    return float(np.median(positive)) if len(positive) else 1.0


class MergedRows:
    """The pairs of a log, sorted, added batch by batch of users: see `Interactions.from_columns`.

    ratings, times, weights: of all rows of the log (n,), None where it has none. usual: the weight
    of a row without one. ids: of users and items, for errors, where they are known. counts: the
    numbers of the rows so far.

    >>> merged = MergedRows(2, weights=np.array([3.0, -1.0]))
    >>> merged.add(np.zeros(2, np.int32), np.ones(2, np.int32), np.arange(2))
    >>> merged.whole()["weights"].tolist(), merged.counts.refunds
    ([2.0], 1)
    """

    def __init__(
        self,
        n_items: int,
        ratings: np.ndarray | None = None,
        times: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        usual: float = 1.0,
    ) -> None:
        self.n_items = max(n_items, 1)
        self.ratings = ratings
        self.times = times
        self.weights = weights
        self.usual = usual
        self.ids: tuple[Sequence[Any], Sequence[Any]] | None = None
        self.counts = MergeCounts()
        self._columns = {"users": GrowingArray(np.int32), "items": GrowingArray(np.int32)}
        if ratings is not None:
            self._columns["ratings"] = GrowingArray(np.float32)
        if times is not None:
            self._columns["times"] = GrowingArray(np.int64)
        if weights is not None:
            self._columns["weights"] = GrowingArray(np.float32)

    def add(self, users: np.ndarray, items: np.ndarray, rows: np.ndarray) -> None:
        """Add all rows of some users, in the order of the file; rows (n,): their indices. Raises
        `DataError` for a pair whose weights add up to more than float32 can contain.
        """
        # A pair as one number, so that sorted pairs are sorted by user, then item.
        pair_of_row = users.astype(np.int64) * self.n_items + items
        if self.ratings is None and self.times is None and self.weights is None:
            pair_of_row.sort()
            is_first = np.diff(pair_of_row, prepend=-1) != 0
            return self._add_pairs(pair_of_row[is_first], len(rows))
        times = None
        if self.times is not None:
            times = self.times[rows]
            oldest_first = np.argsort(times, kind="stable")
            pair_of_row, rows = pair_of_row[oldest_first], rows[oldest_first]
            times = times[oldest_first]
        pairs, of_pair, latest = _distinct_pairs(pair_of_row)
        is_left = None  # of each row, whether refunds leave something of it
        if self.weights is not None:
            is_left = self._add_weights(pairs, of_pair, self.weights[rows])
        if times is not None:
            self._columns["times"].append(_latest_times(times, of_pair, len(pairs), is_left))
        if self.ratings is not None:
            ratings = self.ratings[rows].astype(np.float32)
            self._columns["ratings"].append(_last_ratings(ratings, of_pair, latest))
        self._add_pairs(pairs, len(rows))

    def _add_weights(
        self, pairs: np.ndarray, of_pair: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Add the weight of each pair, and return which rows count for its time (bool, n).

        weights: of the rows (n,), oldest first. Rows that refunds took back do not count, unless
        nothing is left of the whole pair.
        """
        left = self._left(of_pair, weights)
        sums = np.bincount(of_pair, left, len(pairs))
        self._check_sums(pairs, sums)
        self._columns["weights"].append(sums)
        return np.asarray((left > 0) | (sums <= 0)[of_pair])

    def _add_pairs(self, pairs: np.ndarray, n_rows: int) -> None:
        self.counts += MergeCounts(merged=n_rows - len(pairs))
        self._columns["users"].append(pairs // self.n_items)
        self._columns["items"].append(pairs % self.n_items)

    def _check_sums(self, pairs: np.ndarray, sums: np.ndarray) -> None:
        """Raise `DataError` for the first pair with too large a weight for the models."""
        too_large = np.flatnonzero(sums > FLOAT32_MAX)
        if not len(too_large):
            return
        user, item = divmod(int(pairs[too_large[0]]), self.n_items)
        where = f"user in row {user}, item in row {item}"
        if self.ids is not None:
            user_ids, item_ids = self.ids
            where = f"user {user_ids[user]!r}, item {item_ids[item]!r}"
        raise DataError(
            f"{where}: `weights` add up to {sums[too_large[0]]:g}, and must stay below "
            f"{FLOAT32_MAX:g}: use a larger unit"
        )

    def _left(self, pairs: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return what refunds leave of each row's weight (n,); rows are oldest first."""
        missing = np.isnan(weights)
        weights = np.where(missing, self.usual, weights)
        left, unmatched = apply_refunds(pairs, weights)
        self.counts += MergeCounts(
            missing=int(missing.sum()),
            refunds=int((weights < 0).sum()),
            unmatched=unmatched,
            gone=int((np.bincount(pairs, left) <= 0).sum()),
        )
        return left

    def whole(self) -> dict[str, np.ndarray]:
        """Return the arrays by the names of `Interactions`; nothing can be added any more."""
        return {name: column.whole() for name, column in self._columns.items()}


def _distinct_pairs(pair_of_row: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct pairs, ascending (m,); the place of each row's pair among them (n,); and
    the last row of each pair (m,).
    """
    # `np.unique` returns the first row of each, so it is given the rows in reverse.
    pairs, last_reversed, of_pair_reversed = np.unique(
        pair_of_row[::-1], return_index=True, return_inverse=True
    )
    return pairs, of_pair_reversed[::-1], len(pair_of_row) - 1 - last_reversed


def _latest_times(
    times: np.ndarray, of_pair: np.ndarray, n_pairs: int, counts: np.ndarray | None
) -> np.ndarray:
    """Return the latest time of each pair (m,), of the rows that count (bool, n), or of all."""
    if counts is not None:
        times, of_pair = times[counts], of_pair[counts]
    latest = np.full(n_pairs, np.iinfo(np.int64).min)
    np.maximum.at(latest, of_pair, times)
    return latest


def _last_ratings(values: np.ndarray, of_pair: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the last rating of each pair; a later row without one does not remove it."""
    ratings = values[last]
    rated = np.isfinite(values)
    pairs, rows = np.unique(of_pair[rated][::-1], return_index=True)
    ratings[pairs] = values[rated][::-1][rows]
    return ratings


def apply_refunds(pairs: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, int]:
    """Return what is left of each row's weight (n,), and the number of unmatched refunds.

    pairs: the pair of user and item of each row, as a number (n,); rows are oldest first. A refund,
    a negative weight, reduces the rows of its pair before it, the latest first. It is unmatched
    where they have too little: the purchase was before the log began.

    >>> apply_refunds(np.array([0, 0, 0, 1]), np.array([2.0, 1.0, -2.0, -1.0]))
    (array([1., 0., 0., 0.]), 1)
    """
    left = np.maximum(weights, 0)
    unmatched = 0
    bought: dict[int, list[int]] = {}
    with_refunds = np.flatnonzero(np.isin(pairs, pairs[weights < 0]))
    for row, pair, weight in zip(
        with_refunds.tolist(),
        pairs[with_refunds].tolist(),
        weights[with_refunds].tolist(),
        strict=True,
    ):
        rows = bought.setdefault(pair, [])
        if weight > 0:
            rows.append(row)
            continue
        owed = -weight
        while rows and owed > 0:
            amount = min(owed, left[rows[-1]])
            left[rows[-1]] -= amount
            owed -= amount
            if left[rows[-1]] <= TOLERANCE * -weight:
                left[rows.pop()] = 0
        unmatched += int(owed > TOLERANCE * -weight)
    return left, unmatched
