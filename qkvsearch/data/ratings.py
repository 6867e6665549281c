"""The scale of ratings, told or inferred; and numbers in a column of ratings that are counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

Scale = tuple[float, float] | None

# The share of the ratings, at either end, that may be input errors.
OUTLIERS = 0.005
# Where scales usually begin and end.
USUAL_BOTTOMS = (0.0, 1.0)
USUAL_TOPS = (1.0, 5.0, 10.0, 100.0)
# Counts are mostly 0 or 1, and large ones are few; people rate mostly what they like.
LEAST_ONES = 0.4
MOST_HIGH = 0.2


@dataclass(frozen=True)
class Inferred:
    """scale: the lowest and the highest rating that can be given; None without any, and for counts.
    are_counts: whether the numbers say how often or how many rather than how well liked. why: the
    reason, for a person.
    """

    scale: Scale
    are_counts: bool = False
    why: str = ""


def infer_scale(ratings: np.ndarray, counts: np.ndarray | None = None) -> Inferred:
    """What the numbers in a column of ratings mean, by those that occur. counts (n,): how often
    each does, once by default.

    The highest that occurs is the top of the scale: of what people choose themselves, some is as
    good as can be. The bottom may never occur. It is 1 where all are 1 or more, 0 where all are
    from 0 to 1, the lowest that occurs where that is from 0 to 1 and others are more (half stars),
    and otherwise as far below 0 as the top is above it, or further where one is. A rating far from
    all others is no end of the scale (`_without_outliers`).

    Whole numbers are counts where at least 40% are 0 or 1 and less than 20% are in the upper half
    of the scale, or where only 1 and 2 occur: nobody gives most things the lowest mark.

    >>> infer_scale(np.array([4., 5., 5.])).scale, infer_scale(np.array([1., -1., 1.])).scale
    ((1.0, 5.0), (-1.0, 1.0))
    >>> infer_scale(np.array([1.] * 97 + [2.] * 3)).are_counts
    True
    """
    known = np.asarray(ratings, dtype=np.float64)
    counts = np.ones(len(known)) if counts is None else np.asarray(counts, dtype=np.float64)
    finite = np.isfinite(known)
    known, counts = known[finite], counts[finite]
    if not len(known):
        return Inferred(None)
    lowest, highest = _without_outliers(known, counts)
    scale = _from_ends(lowest, highest)
    kept = known >= lowest
    if _are_counts(known[kept], counts[kept], scale):  # a few refunds make them no ratings
        why = f"whole numbers, {_share(known <= 1, counts):.0%} of them 0 or 1"
        if known.min() == 1 and known.max() == 2:
            why = "1s and 2s alone, which could also be dislikes and likes"
        return Inferred(None, True, why)
    return Inferred(scale, False, f"{known.min():g} to {known.max():g} occur")


def ends_of(ratings: np.ndarray) -> tuple[float, float]:
    """The lowest and the highest rating that occur, without input errors; some must be finite."""
    known = np.asarray(ratings, dtype=np.float64)
    known = known[np.isfinite(known)]
    return _without_outliers(known, np.ones(len(known)))


def _without_outliers(known: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """The lowest and the highest that are no input errors.

    An input error is one of the 0.5% lowest or highest, and beyond a usual end of a scale that the
    others reach, below 0 where they are not, or further from them than their scale is wide. A 35
    among ratings from 1 to 5 would otherwise be the top, and all other ratings count as dislikes.
    """
    # Ratings that occur, not points between two: in a small log these are its ends.
    low, high = _order_statistics(known, counts, [OUTLIERS, 1 - OUTLIERS])
    bottom, top = _from_ends(low, high)
    width = top - bottom
    lowest = low if low in USUAL_BOTTOMS else low - width
    if low >= 0:  # -1 stands for a missing rating in many files
        lowest = max(lowest, 0.0)
    highest = high if high in USUAL_TOPS else high + width
    kept = known[(known >= lowest) & (known <= highest)]
    return float(kept.min()), float(kept.max())


def _from_ends(lowest: float, highest: float) -> tuple[float, float]:
    """The scale on which these are the lowest and the highest that occur."""
    lowest, highest = float(lowest), float(highest)
    if lowest >= 1 and highest > 1:
        return 1.0, highest
    if lowest >= 0 and 0 < highest <= 1:
        return 0.0, highest
    if lowest < 0 < highest:
        return min(lowest, -highest), highest
    return lowest, highest


def _are_counts(known: np.ndarray, counts: np.ndarray, scale: tuple[float, float]) -> bool:
    most = known.max()
    if known.min() < 0 or most <= 1 or (known % 1).any():
        return False
    if known.min() == 1 and most == 2:
        return _share(known == 1, counts) >= LEAST_ONES
    high = _share(known > sum(scale) / 2, counts)
    return _share(known <= 1, counts) >= LEAST_ONES and high < MOST_HIGH


def _share(which: np.ndarray, counts: np.ndarray) -> float:
    return float(counts[which].sum() / counts.sum())


def _order_statistics(
    known: np.ndarray, counts: np.ndarray, shares: list[float]
) -> tuple[float, ...]:
    """The least number that at least such a share of all is not above, for each of them."""
    order = np.argsort(known, kind="stable")
    reached = np.cumsum(counts[order])
    wanted = [max(math.ceil(share * reached[-1]), 1) for share in shares]
    return tuple(float(known[order[at]]) for at in np.searchsorted(reached, wanted))
