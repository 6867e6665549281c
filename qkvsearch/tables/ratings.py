"""The scale of ratings, and counts in a column that is named as ratings are."""

from __future__ import annotations

import numpy as np

# Larger ratings and weights are errors, and their squares could not be added up.
LARGEST = 1e12

Scale = tuple[float, float] | None

# The largest share of the ratings, at either end, that may be input errors.
OUTLIERS = 0.005
# Ratings stand apart beyond a gap that stars from 1 to 5 cannot have; or times that of few others.
MIN_GAP, TIMES = 4, 4
# The usual ends of scales.
USUAL_BOTTOMS = (0.0, 1.0)
USUAL_TOPS = (1.0, 5.0, 10.0, 100.0)
# Most counts are 0 or 1, and few are large; most ratings are high.
MIN_ONES = 0.4
MAX_HIGH = 0.2


def infer_scale(ratings: np.ndarray, counts: np.ndarray | None = None) -> Scale:
    """Return the lowest and the highest rating that can be given; None without ratings, and for
    numbers that may as well be counts. counts (n,): how often each rating occurs.

    The highest rating is the top of the scale: people like some of what they choose as much as can
    be. The bottom may never occur. It is 1 if all ratings are 1 or more, 0 if all are from 0 to 1,
    the lowest rating if that is from 0 to 1 and others are more (half stars), and otherwise as far
    below 0 as the top is above it, or further if one is. A rating far from all others is no end of
    the scale (`_without_outliers`).

    Whole numbers may be counts if at least 40% are 0 or 1 and less than 20% are in the upper half
    of the scale, or if only 1 and 2 occur: nobody gives most things the lowest mark.

    >>> infer_scale(np.array([4., 5., 5.])), infer_scale(np.array([1., -1., 1.]))
    ((1.0, 5.0), (-1.0, 1.0))
    >>> infer_scale(np.array([1.] * 97 + [2.] * 3)) is None
    True
    """
    values = np.asarray(ratings, dtype=np.float64)
    counts = np.ones(len(values)) if counts is None else np.asarray(counts, dtype=np.float64)
    finite = np.isfinite(values)
    values, counts = values[finite], counts[finite]
    if not len(values):
        return None
    lowest, highest = _without_outliers(values, counts)
    scale = _from_ends(lowest, highest)
    inside = values >= lowest  # a few refunds make counts no ratings
    return None if _are_counts(values[inside], counts[inside], scale) else scale


def standing_apart(ratings: np.ndarray, counts: np.ndarray) -> dict[float, str]:
    """Return the ratings that may mean "not rated", and why.

    ratings, counts (n,): the distinct ones, ascending. They are those beyond the widest gap if it
    exceeds the range of the others (`TIMES` that of two, and for several) and `MIN_GAP`, and they
    are not on the scale of the others; the only negative one of four or more; or a 0 that is more
    common than each of four others or more. Rarer ones than `OUTLIERS` are input errors.

    >>> standing_apart(np.array([-1., 1, 2, 3, 4, 99]), np.array([9, 5, 5, 5, 5, 9]))
    {99.0: 'far from all others', -1.0: 'the only negative one'}
    """
    if len(ratings) < 3:
        return {}
    cut = int(np.diff(ratings).argmax()) + 1
    few, others = sorted((ratings[:cut], ratings[cut:]), key=len)
    low, high = _from_ends(others[0], others[-1])
    needed = np.ptp(others) * (1 if len(few) == 1 and len(others) > 2 else TIMES)
    apart, why = few[(few < low) | (few > high)], "far from all others"
    if ratings[cut] - ratings[cut - 1] <= max(needed, MIN_GAP) or not len(apart):
        is_zero = len(ratings) > 4 and counts[0] > counts[1:].max() and ratings[-1] > 1
        if len(ratings) > 3 and ratings[0] < 0 <= ratings[1]:
            apart, why = ratings[:1], "the only negative one"
        elif ratings[0] == 0 and is_zero:
            apart, why = ratings[:1], "the most common one"
        else:
            return {}
    is_apart = np.isin(ratings, apart)
    is_common = counts[is_apart].sum() > OUTLIERS * counts.sum()
    rest = standing_apart(ratings[~is_apart], counts[~is_apart])
    return (dict.fromkeys(apart.tolist(), why) if is_common else {}) | rest


def ends_of(ratings: np.ndarray) -> tuple[float, float]:
    """Return the lowest and the highest rating without input errors; some must be finite."""
    values = np.asarray(ratings, dtype=np.float64)
    values = values[np.isfinite(values)]
    return _without_outliers(values, np.ones(len(values)))


def _without_outliers(values: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Return the lowest and the highest rating that are no input errors.

    An input error is one of the 0.5% lowest or highest, and beyond a usual end of a scale that the
    others reach, below 0 if they are not, or further from them than their scale is wide. Otherwise
    a 35 among ratings from 1 to 5 would be the top, and all others would be dislikes.
    """
    # Ratings that occur, not points between two: in a small log these are its ends.
    shares = [OUTLIERS, 1 - OUTLIERS]
    low, high = np.quantile(values, shares, weights=counts, method="inverted_cdf").tolist()
    bottom, top = _from_ends(low, high)
    width = top - bottom
    lowest = low if low in USUAL_BOTTOMS else low - width
    if low >= 0:  # -1 stands for a missing rating in many files
        lowest = max(lowest, 0.0)
    highest = high if high in USUAL_TOPS else high + width
    inside = values[(values >= lowest) & (values <= highest)]
    return float(inside.min()), float(inside.max())


def _from_ends(lowest: float, highest: float) -> tuple[float, float]:
    """Return the scale on which these are the lowest and the highest rating."""
    lowest, highest = float(lowest), float(highest)
    if lowest >= 1 and highest > 1:
        return 1.0, highest
    if lowest >= 0 and 0 < highest <= 1:
        return 0.0, highest
    if lowest < 0 < highest:
        return min(lowest, -highest), highest
    return lowest, highest


def _are_counts(values: np.ndarray, counts: np.ndarray, scale: tuple[float, float]) -> bool:
    highest, n, n_low = values.max(), counts.sum(), counts[values <= 1].sum()
    if values.min() < 0 or highest <= 1 or (values % 1).any():
        return False
    is_pair = values.min() == 1 and highest == 2
    n_high = counts[values > sum(scale) / 2].sum()
    return bool(n_low / n >= MIN_ONES and (is_pair or n_high / n < MAX_HIGH))
