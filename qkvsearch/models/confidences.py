"""Confidences of interactions, from ratings and weights."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from qkvsearch._utils.scratch import pieces_of, scratch_array
from qkvsearch.tables.interactions import Interactions, ones
from qkvsearch.tables.ratings import Scale, infer_scale

# An item's usual weight is its own mean and the log's median to equal parts at this many weights.
SHRINKAGE = 5.0


@dataclass(frozen=True)
class Feedback:
    """The scale of a log's ratings and its usual weights, which turn both into confidences."""

    # The lowest and the highest rating; None without ratings.
    scale: Scale = None
    # Of all pairs; None without weights.
    usual_weight: float | None = None
    # Of each item (n_items,), 0 for items without interactions.
    usual_weights: np.ndarray | None = None

    @classmethod
    def of(cls, log: Interactions) -> Self:
        """Compute the scale, unless the log declares it, and the usual weights."""
        return cls(scale_of(log), *usual_weights(log))

    def confidences(
        self, items: np.ndarray, ratings: np.ndarray | None, weights: np.ndarray | None
    ) -> np.ndarray:
        """Return the confidence of each pair, float32 (n,); 0 for disliked and refunded items.

        It is the product of `rating_confidences`, which tell whether the item is liked, and
        `weight_confidences`, which tell how much that counts.
        """
        if ratings is None and weights is None:
            return ones(len(items))
        confidences = scratch_array(len(items), np.float32)
        for rows in pieces_of(len(items)):
            confidences[rows] = self._confidences(
                items[rows],
                None if ratings is None else ratings[rows],
                None if weights is None else weights[rows],
            )
        return confidences

    def _confidences(
        self, items: np.ndarray, ratings: np.ndarray | None, weights: np.ndarray | None
    ) -> np.ndarray:
        by_rating = rating_confidences(ratings, len(items), self.scale)
        if weights is None or self.usual_weight is None or self.usual_weights is None:
            return by_rating
        usual = self.usual_weights[items]
        return by_rating * weight_confidences(
            weights, np.where(usual > 0, usual, self.usual_weight)
        )


def scale_of(log: Interactions) -> Scale:
    """Return the lowest and the highest rating, declared or inferred; None without ratings."""
    if log.scale is not None or log.ratings is None:
        return log.scale
    return infer_scale(log.ratings)


def rating_confidences(ratings: np.ndarray | None, n_pairs: int, scale: Scale) -> np.ndarray:
    """Return a confidence for each pair, float32 (n_pairs,), from 0 (disliked) to 1 (the best).

    It is ((rating − lowest) / (highest − lowest))², with ratings clipped to the scale, and 0 below
    the middle; 1 for pairs without a rating (NaN), and for all pairs if there are no ratings or all
    are equal. By squaring, a medium rating counts much less than a high one. Of the rules in
    `benchmarks/defaults/rating_confidences.py` that never count a dislike, none is better on both
    data sets.

    >>> rating_confidences(np.array([1., 2., 3., 5.]), 4, (1., 5.)).tolist()
    [0.0, 0.0, 0.25, 1.0]
    """
    if ratings is None or scale is None or scale[0] == scale[1]:
        return np.asarray(ones(n_pairs))
    lowest, highest = scale
    height = np.clip((np.asarray(ratings) - lowest) / (highest - lowest), 0, 1)
    confidences = np.where(np.isnan(height), 1, height**2).astype(np.float32)
    confidences[height < 0.5] = 0
    return confidences


def weight_confidences(weights: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Return a confidence for each pair, float32 (n,): (1 + ln(1 + w/m)) / (1 + ln 2), with m the
    item's usual weight. It is 1 for that weight and for unknown ones (NaN), and 0 for weight 0.

    Ten hours of a game that takes two mean more than ten hours of one that others play for months,
    and the first use means most. Chosen in `benchmarks/defaults/weights_and_scales.py`.

    >>> weight_confidences(np.array([0, 1, 2, 2e4]), np.full(4, 2.)).round(2)
    array([0.  , 0.83, 1.  , 6.03], dtype=float32)
    """
    ratio = np.maximum(np.asarray(weights, dtype=np.float64), 0) / usual
    confidences = np.where(ratio > 0, (1 + np.log1p(ratio)) / (1 + np.log(2)), 0)
    return np.where(np.isnan(ratio), 1, confidences).astype(np.float32)


def usual_weights(log: Interactions) -> tuple[float | None, np.ndarray | None]:
    """Return the median weight, and each item's usual weight, float32 (n_items,).

    The latter is the geometric mean of its weights and, as smoothing, five times the median. Both
    are None without weights.
    """
    if log.weights is None:
        return None, None
    is_positive = log.weights > 0
    items = log.items[is_positive]
    logs = np.log(log.weights[is_positive].astype(np.float64))
    median = float(np.median(logs)) if len(logs) else None
    n_items = len(log.item_ids)
    counts = np.bincount(items, minlength=n_items)
    sums = np.bincount(items, logs, n_items)
    return usual_by_sums(median, counts, sums)


def usual_by_sums(
    median: float | None, counts: np.ndarray, sums: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the usual weights from statistics of the logarithms of all weights above 0.

    median: of all, None without any. counts, sums (n_items,): of each item's.
    """
    if median is None:
        return 1.0, np.zeros(len(counts), np.float32)
    means = (sums + SHRINKAGE * median) / (counts + SHRINKAGE)
    return float(np.exp(median)), np.exp(means).astype(np.float32)
