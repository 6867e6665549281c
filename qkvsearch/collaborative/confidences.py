"""Confidences from ratings: how much each says that the user wants more of the same."""

from __future__ import annotations

import numpy as np

# The share of the ratings, at either end, that may be input errors.
SLIPS = 0.005


def rating_scale(ratings: np.ndarray) -> tuple[float, float] | None:
    """The lowest and the highest rating, without input errors; None where no rating is finite.

    An input error is one of the 0.5% lowest or highest ratings, and further from the others than
    their range is wide. A 35 among ratings from 1 to 5 would otherwise be the top of the scale, and
    all other ratings count as lowest. A rare rating that is nearer stays, such as a 1 that few
    give.

    >>> rating_scale(np.array([1., 2., 3., 4., 5.] * 100 + [35.]))
    (1.0, 5.0)
    """
    known = np.asarray(ratings, dtype=float)
    known = known[np.isfinite(known)]
    if not len(known):
        return None
    # Ratings that occur, not points between two: in a small log these are its ends.
    low, high = np.quantile(known, [SLIPS, 1 - SLIPS], method="inverted_cdf")
    kept = known[(known >= low - (high - low)) & (known <= high + (high - low))]
    return float(kept.min()), float(kept.max())


def confidences(
    ratings: np.ndarray | None, n_pairs: int, scale: tuple[float, float] | None
) -> np.ndarray:
    """One confidence a pair (n_pairs,), float32, from 0 (the lowest rating) to 1 (the highest).

    ((rating − lowest) / (highest − lowest))², ratings outside the scale counting as its ends; 1 for
    a pair without a rating (NaN), and for every pair where there are no ratings or only one value.
    Squaring makes a middling rating count much less than a high one. Of the formulas compared in
    `benchmarks/rating_confidences.py` it is a compromise: its relevance is within 5% of the best on
    each data set, and it gives few disliked hits.

    >>> confidences(np.array([1., 3., 5.]), 3, (1., 5.)).tolist()
    [0.0, 0.25, 1.0]
    """
    if ratings is None or scale is None or scale[0] == scale[1]:
        return np.ones(n_pairs, dtype=np.float32)
    lowest, highest = scale
    height = np.clip((np.asarray(ratings) - lowest) / (highest - lowest), 0, 1)
    return np.where(np.isnan(height), 1, height**2).astype(np.float32)
