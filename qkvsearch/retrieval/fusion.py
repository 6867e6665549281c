"""A head, one query's scores against every key; and where heads are added up to one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qkvsearch.errors import QkvError
from qkvsearch.retrieval.scope import Scope
from qkvsearch.retrieval.score_components import Components, PartsOf, ScoreComponent
from qkvsearch.retrieval.topk import top_k

# Cormack, Clarke and Büttcher 2009, section 3: chosen on pilot runs, and the results hardly move.
RANK_CONSTANT = 60
# Scores whose deviation is a smaller share of the largest differ by rounding errors alone.
LEAST_SPREAD = 1e-6


@dataclass(frozen=True)
class Scores:
    """Scores of all items for one query, before the mask and the softmax.

    scores: float32 (n_items,). answers: bool (n_items,), the items that this head has anything to
    say about, or None for all. `parts(position)` add up to `scores[position]`. A fused head keeps
    the heads that it is the sum of as `addends`. `notes`: what whoever asked should know.

    Of many items scores may be approximate: then `exact(positions)` gives the exact ones, from
    which they differ by at most `error`, and those of at least `exact_from` are exact already.

    scope: the items that are scored, where keys are elsewhere and not all are; `scores` and
    `answers` are of these alone, (m,). level: mean and deviation of the scores of all items, where
    these are known otherwise. beyond: what no other item that may be ranked scores more than.
    """

    name: str
    scores: np.ndarray
    parts: PartsOf
    answers: np.ndarray | None = None
    addends: Sequence[Scores] = ()
    notes: Sequence[str] = ()
    exact: Callable[[np.ndarray], np.ndarray] | None = None
    error: float = 0.0
    exact_from: float = -math.inf
    scope: Scope | None = None
    level: tuple[float, float] | None = None
    beyond: float = -math.inf

    def taken(self, values: np.ndarray) -> np.ndarray:
        """Of values (n_items,) those of the scored items."""
        return values if self.scope is None else values[self.scope.items]

    def places(self, positions: np.ndarray) -> np.ndarray:
        """Where the items in these rows stand in `scores`."""
        return positions if self.scope is None else self.scope.places(positions)

    def positions(self, places: np.ndarray) -> np.ndarray:
        """The rows of the items at these places of `scores`."""
        return places if self.scope is None else self.scope.items[places]

    def moments(self) -> tuple[float, float]:
        """Mean and deviation of the scores of all items, the latter 0 where no score differs from
        another by more than rounding.
        """
        if self.level is not None:
            return self.level
        return moments(self.scores) if self.scope is None else self._estimated()

    def _estimated(self) -> tuple[float, float]:
        """By the sample among the scored items; of a sum of heads, the moments of each are known,
        and only how they go together is estimated.
        """
        assert self.scope is not None
        if not self.addends:
            return self.scope.moments(self.scores)
        levels = np.array([head.moments() for head in self.addends])
        together = self.scope.correlations(np.array([head.scores for head in self.addends]))
        variance = float(levels[:, 1] @ together @ levels[:, 1])
        return float(levels[:, 0].sum()), math.sqrt(max(variance, 0.0))

    def within(self, scope: Scope) -> Scores:
        """Of the items of a scope alone, with mean and deviation of all."""
        if self.scope is not None:
            raise ValueError("a head that does not score all items")
        positions = scope.items
        return replace(
            self,
            scores=self.exact_at(positions),
            answers=None if self.answers is None else self.answers[positions],
            exact=None,
            error=0.0,
            exact_from=-math.inf,
            scope=scope,
            level=moments(self.scores),
        )

    def has_best(self, k: int, mask: np.ndarray | None = None) -> bool:
        """Whether the k best of all items that `mask` leaves are sure to be among the scored ones
        (the threshold algorithm of Fagin, Lotem and Naor 2003, section 4, ends by the same rule).
        """
        if self.beyond == -math.inf:
            return True
        best = top_k(self.scores, k, self.allowed(mask))
        return self.beyond <= (self.scores[best[-1]] if 0 < k <= len(best) else -math.inf)

    def exact_at(self, positions: np.ndarray) -> np.ndarray:
        """The exact scores at these positions, (n,)."""
        return self.scores[positions] if self.exact is None else self.exact(positions)

    def largest(self) -> float:
        """The largest score, exact; 0 where none is above."""
        largest = float(self.scores.max(initial=0))
        if self.exact is None:
            return largest
        near = np.flatnonzero(self.scores >= largest - 2 * self.error)
        return max(0.0, float(self.exact(near).max(initial=0)))

    def above(self, level: float) -> np.ndarray:
        """bool (n_items,): the items of which the exact score is above a level."""
        found = self.scores > level
        if self.exact is not None:
            near = np.flatnonzero(np.abs(self.scores - np.float32(level)) <= self.error)
            found[near] = self.exact(near) > level
        return found

    def rescored(self, k: int, mask: np.ndarray | None = None) -> Scores:
        """With the exact scores of all items that may be among the `k` best of those that `mask`
        leaves, so that these are the ones that the exact scores of all would give; as well where
        less is left.
        """
        if self.exact is None or not k:
            return self
        allowed = self.allowed(mask)
        best = top_k(self.scores, k, allowed)
        if not len(best) or self.scores[best[-1]] >= self.exact_from:
            return self
        least = float(self.scores[best[-1]]) - 2 * self.error
        near = np.flatnonzero((self.scores >= least) & allowed)
        return replace(self._with_exact(near), exact_from=least)

    def _with_exact(self, positions: np.ndarray) -> Scores:
        if self.exact is None:
            return self
        addends = [head._with_exact(positions) for head in self.addends]
        scores = self.scores.copy()
        exact = sum(head.scores[positions] for head in addends) if addends else None
        scores[positions] = self.exact(positions) if exact is None else exact
        return replace(self, scores=scores, addends=addends)

    def allowed(self, mask: np.ndarray | None = None) -> np.ndarray:
        """Of the scored items those that `mask`, bool (n_items,), leaves and that it answers."""
        left = np.ones(len(self.scores), dtype=bool) if mask is None else self.taken(mask)
        return left if self.answers is None else left & self.answers

    def above_mean(self) -> Scores:
        """Of a fused head, which answers only the items that one of its heads finds a word in, or
        scores higher than the mean item; all where none tells items apart.
        """
        found = np.zeros(len(self.scores), dtype=bool)
        for head in self.addends or [self]:
            found |= head.scores > 0
            if head.answers is not None:
                found |= head.answers
        if not found.any():
            return self
        return replace(self, answers=found if self.answers is None else self.answers & found)

    def by_name(self, position: int) -> dict[str, float]:
        """What each fused head adds to one score."""
        return self.by_names(np.array([position]))[0]

    def by_names(self, positions: np.ndarray) -> list[dict[str, float]]:
        """The same of each of the items in these rows."""
        heads, places = self.addends or [self], self.places(positions)
        names = [head.name for head in heads]
        columns = [head.scores[places].tolist() for head in heads]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def fuse(heads: Sequence[Scores], weights: Sequence[float]) -> Scores:
    """One head from several: the weighted sum of their scores in standard deviations from the mean.

    Heads measure in units of their own (BM25 is open-ended, a cosine is not), so each is
    standardized over all items before the sum (Lee 1997, "Analyses of multiple evidence
    combination", on score normalization). Weights are scaled to sum to 1 over the heads present.
    In the parts the mean appears as a constant of its own, with neither query nor key.
    """
    return _fused(heads, weights, _standardize)


def fuse_ranks(heads: Sequence[Scores], weights: Sequence[float]) -> Scores:
    """One head from several by the ranks that they give: Σ weight / (60 + rank).

    Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009, section 2), with weights that are
    scaled to sum to 1. Only the order counts, not how sure a head is: an item that a head does not
    answer gets nothing from it. Each head is one part of a score, named by its rank.
    """
    return _fused(heads, weights, _by_rank)


def fuse_known(scored: Mapping[str, Scores | None], weights: Mapping[str, float]) -> Scores | None:
    """The heads that know anything of the query, as one; None where none does."""
    present = {name: head for name, head in scored.items() if head is not None}
    if not present:
        return None
    return fuse(list(present.values()), [weights[name] for name in present])


def summed(heads: Sequence[Scores]) -> Scores:
    """One head with the first one's name: the sum of the scores, which are in the same units."""
    return Scores(
        name=heads[0].name,
        scores=np.asarray(sum(head.scores for head in heads), dtype=np.float32),
        parts=lambda position: Components.joined([head.parts(position) for head in heads]),
        answers=_any_answer(heads),
        scope=heads[0].scope,
    )


def plus(head: Scores, name: str, values: np.ndarray, parts: PartsOf | None = None) -> Scores:
    """A head with `values`, one for each of its scores, added to these: as the sum of these parts,
    or as a part with neither query nor key."""

    def constant(position: int) -> Components:
        place = head.places(np.array([position]))[0]
        return Components.of([ScoreComponent(name, None, None, float(values[place]))])

    parts = parts or constant
    added = Scores(name, np.asarray(values, dtype=np.float32), parts, scope=head.scope)
    return Scores(
        name=f"{head.name}+{name}",
        scores=np.asarray(head.scores + values, dtype=np.float32),
        parts=lambda position: Components.joined([head.parts(position), added.parts(position)]),
        answers=head.answers,
        addends=[*(head.addends or [head]), added],
        exact=head.exact and (lambda positions: head.exact_at(positions) + values[positions]),
        error=head.error,
        exact_from=math.inf if head.exact else -math.inf,
        scope=head.scope,
    )


def mean_and_deviation(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of scores (..., n_items), (..., 1) each and float64; a deviation of 0 where scores differ by
    rounding errors alone, and so tell no item from another.
    """
    mean = scores.mean(axis=-1, dtype=np.float64, keepdims=True)
    deviation = scores.std(axis=-1, dtype=np.float64, keepdims=True)
    largest = np.abs(scores).max(axis=-1, initial=0, keepdims=True)
    return mean, np.where(deviation > LEAST_SPREAD * largest, deviation, 0)


def moments(scores: np.ndarray) -> tuple[float, float]:
    """The same of one query's scores (n_items,)."""
    n_items = max(len(scores), 1)
    centred = scores.astype(np.float64)
    mean = float(np.add.reduce(centred)) / n_items
    centred -= mean
    deviation = math.sqrt(float(centred @ centred) / n_items)
    # No score is farther from the mean than that.
    largest = abs(mean) + deviation * math.sqrt(n_items)
    if deviation <= LEAST_SPREAD * largest:
        largest = float(np.abs(scores).max(initial=0))
    return mean, 0.0 if deviation <= LEAST_SPREAD * largest else deviation


def _fused(
    heads: Sequence[Scores],
    weights: Sequence[float],
    scale: Callable[[Scores, float], Scores],
) -> Scores:
    """The sum of the heads, each scaled with its share of the weights."""
    given = np.asarray(weights, dtype=np.float64)
    shares = (given / given.sum()).tolist()
    scaled = [scale(head, share) for head, share in zip(heads, shares, strict=True)]
    total = scaled[0].scores.copy()
    for head in scaled[1:]:
        total += head.scores
    return Scores(
        name="+".join(head.name for head in heads),
        scores=total,
        parts=lambda position: Components.joined([head.parts(position) for head in scaled]),
        answers=_any_answer(heads),
        addends=scaled,
        scope=scaled[0].scope,
        beyond=sum(head.beyond for head in scaled),
        **_approximate(scaled),
    )


def _approximate(heads: Sequence[Scores]) -> dict[str, Any]:
    """What a sum of heads, some of them approximate, is to be made exact by."""
    if all(head.exact is None for head in heads):
        return {}

    def exact(positions: np.ndarray) -> np.ndarray:
        return np.asarray(sum(head.exact_at(positions) for head in heads))

    return {"exact": exact, "error": sum(head.error for head in heads), "exact_from": math.inf}


def _any_answer(heads: Sequence[Scores]) -> np.ndarray | None:
    """What some head answers; None where one of them answers all."""
    answering = [head.answers for head in heads if head.answers is not None]
    return np.any(answering, axis=0) if len(answering) == len(heads) else None


def _by_rank(head: Scores, share: float) -> Scores:
    """`share` / (60 + rank) for each item that the head answers, 0 for the others."""
    if head.scope is not None:
        raise QkvError(
            "ranks count every item, and keys that are elsewhere are asked for the best alone: "
            "fuse by scores"
        )
    exact = head.exact_at(np.arange(len(head.scores)))
    order = np.argsort(-exact, kind="stable")  # ties by row, which is by id
    if head.answers is not None:
        order = order[head.answers[order]]
    ranks = np.zeros(len(head.scores), dtype=np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    scores = np.where(ranks > 0, share / (RANK_CONSTANT + ranks), 0).astype(np.float32)

    def parts(position: int) -> Components:
        place = f"rank {ranks[position]:,}"
        part = ScoreComponent(head.name, place, place, float(scores[position]))
        return Components.of([part] if ranks[position] else [])

    return Scores(head.name, scores, parts, head.answers)


def _standardize(head: Scores, share: float) -> Scores:
    """`share` · (scores − mean) / standard deviation, and its parts."""
    mean, deviation = head.moments()
    factor = share / deviation if deviation else 0.0
    level = None if head.scope is None else (0.0, share if deviation else 0.0)
    beyond = (head.beyond - mean) * factor if factor else min(head.beyond, 0.0)

    taken_off = Components.of([ScoreComponent(head.name, None, None, -mean * factor)])

    def parts(position: int) -> Components:
        return Components.joined([head.parts(position).scaled(factor), taken_off])

    def scaled(scores: np.ndarray) -> np.ndarray:
        centred = scores - np.float32(mean)
        centred *= np.float32(factor)
        return centred

    is_exact = head.exact is None
    return Scores(
        head.name,
        scaled(head.scores),
        parts,
        head.answers,
        exact=None if is_exact else lambda positions: scaled(head.exact_at(positions)),
        error=head.error * factor,
        exact_from=-math.inf if is_exact else math.inf,
        scope=head.scope,
        level=level,
        beyond=beyond,
    )
