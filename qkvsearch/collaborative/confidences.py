"""Confidences from ratings and weights: how much each says that the user wants more of the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from qkvsearch.data.files.scratch import pieces_of, scratch_array
from qkvsearch.data.interactions import Interactions, ones
from qkvsearch.data.ratings import Scale, infer_scale

# Of so many weights the usual one of an item is as much the log's as its own.
SHRINKAGE = 5.0


@dataclass(frozen=True)
class Feedback:
    """What the numbers of a log are worth.

    scale: the lowest and the highest rating; None without ratings. usual_weight: of all pairs; None
    without weights. usual_weights: of each item (n_items,), 0 where nobody knows it.
    """

    scale: Scale = None
    usual_weight: float | None = None
    usual_weights: np.ndarray | None = None

    @classmethod
    def of(cls, log: Interactions) -> Self:
        """As its numbers are, or as the log says."""
        return cls(scale_of(log), *usual_weights(log))

    def confidences(
        self, items: np.ndarray, ratings: np.ndarray | None, weights: np.ndarray | None
    ) -> np.ndarray:
        """One a pair (n,), float32, from 0: what is disliked, and what was taken back.

        That of the rating (`rating_confidences`) times that of the weight (`weight_confidences`):
        the rating decides whether it is liked, the weight how much that counts.
        """
        if ratings is None and weights is None:
            return ones(len(items))
        found = scratch_array(len(items), np.float32)
        for some in pieces_of(len(items)):
            found[some] = self._confidences(
                items[some],
                None if ratings is None else ratings[some],
                None if weights is None else weights[some],
            )
        return found

    def _confidences(
        self, items: np.ndarray, ratings: np.ndarray | None, weights: np.ndarray | None
    ) -> np.ndarray:
        found = rating_confidences(ratings, len(items), self.scale)
        if weights is None or self.usual_weight is None or self.usual_weights is None:
            return found
        usual = self.usual_weights[items]
        return found * weight_confidences(weights, np.where(usual > 0, usual, self.usual_weight))


def scale_of(log: Interactions) -> Scale:
    """The lowest and the highest rating, as the log says or inferred; None without ratings."""
    if log.scale is not None or log.ratings is None:
        return log.scale
    return infer_scale(log.ratings).scale


def rating_confidences(ratings: np.ndarray | None, n_pairs: int, scale: Scale) -> np.ndarray:
    """One confidence a pair (n_pairs,), float32, from 0 (disliked) to 1 (the highest rating).

    ((rating − lowest) / (highest − lowest))², ratings outside the scale counting as its ends, and 0
    below the middle; 1 for a pair without a rating (NaN), and for every pair where there are no
    ratings or only one value. Squaring makes a middling rating count much less than a high one. Of
    the rules compared in `benchmarks/defaults/rating_confidences.py` none of those that never count
    a dislike is better on both data sets.

    >>> rating_confidences(np.array([1., 2., 3., 5.]), 4, (1., 5.)).tolist()
    [0.0, 0.0, 0.25, 1.0]
    """
    if ratings is None or scale is None or scale[0] == scale[1]:
        return np.asarray(ones(n_pairs))
    lowest, highest = scale
    height = np.clip((np.asarray(ratings) - lowest) / (highest - lowest), 0, 1)
    found = np.where(np.isnan(height), 1, height**2).astype(np.float32)
    found[height < 0.5] = 0
    return found


def weight_confidences(weights: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """One confidence a pair (n,), float32: (1 + ln(1 + w/m)) / (1 + ln 2), with m the item's usual
    weight; 1 for that and where no weight is known (NaN), 0 where nothing is left.

    Ten hours of a game that is over in two say more than ten of one that others play for months;
    and any use at all says the most. Chosen in `benchmarks/defaults/weights_and_scales.py`.

    >>> weight_confidences(np.array([0, 1, 2, 2e4]), np.full(4, 2.)).round(2)
    array([0.  , 0.83, 1.  , 6.03], dtype=float32)
    """
    ratio = np.maximum(np.asarray(weights, dtype=np.float64), 0) / usual
    found = np.where(ratio > 0, (1 + np.log1p(ratio)) / (1 + np.log(2)), 0)
    return np.where(np.isnan(ratio), 1, found).astype(np.float32)


def usual_weights(log: Interactions) -> tuple[float | None, np.ndarray | None]:
    """The median weight, and that of each item (n_items,), float32: the geometric mean of its
    weights and of five median ones, since few users tell little. Both None without weights.
    """
    if log.weights is None:
        return None, None
    left = log.weights > 0
    items, logs = log.items[left], np.log(log.weights[left].astype(np.float64))
    median = float(np.median(logs)) if len(logs) else None
    return usual_by_sums(median, *(np.bincount(items, x, len(log.item_ids)) for x in (None, logs)))


def usual_by_sums(
    median: float | None, counts: np.ndarray, sums: np.ndarray
) -> tuple[float, np.ndarray]:
    """The same, by the median of the logarithms of all weights above 0, None without any; and of
    each item how many there are, and their sum.
    """
    if median is None:
        return 1.0, np.zeros(len(counts), np.float32)
    means = (sums + SHRINKAGE * median) / (counts + SHRINKAGE)
    return float(np.exp(median)), np.exp(means).astype(np.float32)
