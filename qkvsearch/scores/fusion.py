"""The scores of a head, and the fusion of several heads into one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.scores.components import Components, PartsOf, ScoreComponent

# Scores whose deviation is a smaller share of the largest differ by rounding errors alone.
MIN_SPREAD = 1e-6
# Smaller deviations have no reciprocal in float32.
MIN_DEVIATION = 2.0**-126


class BestPassages(NamedTuple):
    """The passages that items have their scores of."""

    # The number of each item's best passage, int64 (n_items,), as `heads.passages.Units` has them.
    of_items: np.ndarray
    # The scores of all passages, float32.
    scores: np.ndarray


@dataclass(frozen=True)
class Scores:
    """Scores of all items for one query, before the mask and the softmax."""

    # The head's name. A fused head is named after its addends, joined by "+".
    name: str
    # float32 (n_items,).
    scores: np.ndarray
    # parts(position): what adds up to `scores[position]`, computed when a score is explained.
    parts: PartsOf
    # bool (n_items,), the items that the head knows anything about; None for all.
    covered: np.ndarray | None = None
    # The heads that a fused head is the sum of.
    addends: Sequence[Scores] = ()
    # Notes for the user.
    notes: Sequence[str] = ()
    # The heads of a search before fusion, in their own units, by name: hits are graded by them.
    raw: Mapping[str, Scores] = field(default_factory=dict)
    # Where passages are scored: the one that each item has its scores of.
    best: BestPassages | None = None
    # Of a short query whose words the catalog lacks: the items that are near it, bool (n_items,).
    near: np.ndarray | None = None
    # Where the scores of most items are estimates: returns which have an exact one above a number,
    # bool (n_items,).
    exact_above: Callable[[float], np.ndarray] | None = None
    # Whether this is a sum of heads with such estimates.
    has_estimates: bool = False
    # Whether a high score speaks for an item. What an owner adds is no answer to a query.
    is_evidence: bool = True
    # Whether the catalog answers the query. Otherwise the best items only come nearest to it.
    is_answer: bool = True
    # Whether scores only compare some items with one another: the best of them may be no answer.
    is_relative: bool = False

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of the scores.

        The deviation is 0 where no score differs from another by more than rounding.
        """
        return moments(self.scores)

    def evidence(self) -> Scores:
        """Return the same without what an owner adds, which is no sign that an item matches."""
        heads = [head for head in self.addends if head.is_evidence]
        return self if len(heads) == len(self.addends) else summed(heads)

    def allowed(self, mask: np.ndarray | None = None) -> np.ndarray:
        """Return the items of `mask`, bool (n_items,), that the head knows anything about."""
        if mask is None:
            mask = np.ones(len(self.scores), dtype=bool)
        return mask if self.covered is None else mask & self.covered

    def renamed(self, name: str) -> Scores:
        """Return the same scores and parts under one name, also those of a fused head."""

        def parts(position: int) -> Components:
            return self.parts(position).renamed(lambda source: source._replace(head=name))

        return Scores(name, self.scores, parts, self.covered, notes=self.notes)

    def above_mean(self) -> Scores:
        """Return a fused head that covers only items that one of its heads speaks for.

        A head speaks for an item whose score is higher than the mean item's, or that it finds a
        word in. Where no head speaks for any item, all items have the same scores, and all stay.
        """
        above = np.zeros(len(self.scores), dtype=bool)
        for head in self.addends or [self]:
            if head.is_relative or not head.is_evidence:
                continue
            above |= head.scores > 0
            if head.covered is not None:
                above |= head.covered
        if not above.any():
            return self
        return replace(self, covered=self.allowed(above))

    def by_names(self, positions: np.ndarray) -> list[dict[str, float]]:
        """Return what each fused head adds to the scores of items."""
        heads = self.addends or [self]
        names = [head.name for head in heads]
        columns = [head.scores[positions].tolist() for head in heads]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def fuse(heads: Sequence[Scores], weights: Sequence[float]) -> Scores:
    """Return the weighted sum of heads in standard deviations from their means.

    Heads measure in units of their own (BM25 is open-ended, a cosine is not), so each is
    standardized over all items before the sum (Lee 1997, "Analyses of multiple evidence
    combination", on score normalization). Weights, of which one at least is positive, are scaled to
    sum to 1. In the parts the mean appears as a constant of its own, with neither query nor key;
    where the head's own parts have such a constant, as a sum with it.
    """
    total_weight = float(np.sum(np.asarray(weights, dtype=np.float64)))
    scaled = [
        _standardize(head, weight / total_weight)
        for head, weight in zip(heads, weights, strict=True)
    ]
    total = scaled[0].scores.copy()
    for head in scaled[1:]:
        total += head.scores
    return Scores(
        name="+".join(head.name for head in heads),
        scores=total,
        parts=lambda position: Components.joined([head.parts(position) for head in scaled]),
        covered=_any_covered(heads),
        addends=scaled,
    )


def weighted_sum(heads: Sequence[Scores], factors: Sequence[float]) -> Scores:
    """Return the sum of the heads, each multiplied by its factor.

    The factors are the same for all queries, so a change of one head leaves what the others add.
    """
    scaled = [_scaled(head, factor) for head, factor in zip(heads, factors, strict=True)]
    return replace(summed(scaled), name="+".join(head.name for head in heads), addends=scaled)


def summed(heads: Sequence[Scores]) -> Scores:
    """Return the sum of scores in the same units, with the first head's name."""
    return Scores(
        name=heads[0].name,
        scores=np.asarray(sum(head.scores for head in heads), dtype=np.float32),
        parts=lambda position: Components.joined([head.parts(position) for head in heads]),
        covered=_any_covered(heads),
    )


def plus(
    head: Scores,
    name: str,
    values: np.ndarray,
    parts: PartsOf | None = None,
    *,
    is_evidence: bool = True,
    is_relative: bool = False,
) -> Scores:
    """Add values (n_items,) to the scores of a head, under a name of their own.

    parts: the function whose parts add up to a value. By default a value is one part, which has
    neither query nor key. is_evidence, is_relative: what the values say, as in `Scores`.
    """

    def constant(position: int) -> Components:
        return Components.of([ScoreComponent(name, None, None, float(values[position]))])

    added = Scores(
        name,
        np.asarray(values, dtype=np.float32),
        parts or constant,
        is_evidence=is_evidence,
        is_relative=is_relative,
    )
    return Scores(
        name=f"{head.name}+{name}",
        scores=np.asarray(head.scores + values, dtype=np.float32),
        parts=lambda position: Components.joined([head.parts(position), added.parts(position)]),
        covered=head.covered,
        addends=[*(head.addends or [head]), added],
    )


def mean_and_deviation(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of scores (..., n_items), float64 (..., 1) each.

    The deviation is 0 where scores differ by rounding errors alone: they tell no item from another.
    """
    mean = scores.mean(axis=-1, dtype=np.float64, keepdims=True)
    deviation = scores.std(axis=-1, dtype=np.float64, keepdims=True)
    largest = np.abs(scores).max(axis=-1, initial=0, keepdims=True)
    is_spread = deviation > np.maximum(MIN_SPREAD * largest, MIN_DEVIATION)
    return mean, np.where(is_spread, deviation, 0)


def moments(scores: np.ndarray) -> tuple[float, float]:
    """Return `mean_and_deviation` of one query's scores (n_items,)."""
    n_items = max(len(scores), 1)
    centred = scores.astype(np.float64)
    mean = float(np.add.reduce(centred)) / n_items
    centred -= mean
    deviation = math.sqrt(float(centred @ centred) / n_items)
    # No score is farther from the mean, so this is an upper bound of the largest score. Mostly it
    # decides, and saves a pass over all scores.
    largest = abs(mean) + deviation * math.sqrt(n_items)
    if deviation <= MIN_SPREAD * largest:
        largest = float(np.abs(scores).max(initial=0))
    if deviation <= max(MIN_SPREAD * largest, MIN_DEVIATION):
        return mean, 0.0
    return mean, deviation


def _any_covered(heads: Sequence[Scores]) -> np.ndarray | None:
    """Return the items that some head covers; None where one of them covers all."""
    covered = [head.covered for head in heads if head.covered is not None]
    if len(covered) < len(heads):
        return None
    return np.any(covered, axis=0)


def _scaled(head: Scores, factor: float) -> Scores:
    """Return the scores and their parts times a factor."""
    scores = np.asarray(head.scores * np.float32(factor), dtype=np.float32)
    return Scores(head.name, scores, lambda i: head.parts(i).scaled(factor), head.covered)


def _standardize(head: Scores, share: float) -> Scores:
    """Return `share` · (scores − mean) / standard deviation, and its parts."""
    mean, deviation = head.moments
    factor = share / deviation if deviation else 0.0

    def parts(position: int) -> Components:
        return head.parts(position).scaled(factor).with_constant(head.name, -mean * factor)

    scores = head.scores - np.float32(mean)
    scores *= np.float32(factor)
    return Scores(head.name, scores, parts, head.covered)
