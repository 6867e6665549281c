"""Exact scores of the candidates alone, where to score all items would read too many keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from qkvsearch.scores.fusion import Scores
from qkvsearch.scores.topk import best_of_groups, top_k

# Candidates that each head names, per hit.
SPARE = 2
# The limit to which candidates are widened where the best ones are of too few groups.
MAX_WIDENED = 2**14


@dataclass(frozen=True)
class Filter:
    """Which items a query may find, and how many.

    mask: bool (n_items,), None for all items. k: the number of hits. groups: as `rank` has them.
    """

    mask: np.ndarray | None = None
    k: int = 0
    groups: np.ndarray | None = None

    @property
    def is_all(self) -> bool:
        """Whether all items are allowed."""
        return self.mask is None or bool(self.mask.all())

    def only(self, items: np.ndarray) -> Filter:
        """Return a filter that allows, of these items, bool (n_items,), those that it allows."""
        return replace(self, mask=items if self.mask is None else self.mask & items)


ALL_ITEMS = Filter()


class ApproximateQuery(ABC):
    """The query of a head whose scores are exact for candidates, and estimates for other items.

    min_candidates: how many candidates each head names at least.
    """

    min_candidates: ClassVar[int]

    @abstractmethod
    def nearest(self, k: int, allowed: Filter) -> np.ndarray:
        """Return the rows of the k best allowed items, and perhaps of more, in any order."""

    @abstractmethod
    def scores(self, candidates: np.ndarray) -> Scores:
        """Return scores of all items, exact for the candidates, int64 (n,)."""


def fuse_candidates(
    heads: Mapping[str, Scores | ApproximateQuery],
    fuse: Callable[[Mapping[str, Scores]], Scores],
    allowed: Filter = ALL_ITEMS,
    preferred: np.ndarray | None = None,
) -> tuple[Mapping[str, Scores], Scores]:
    """Return the scores of each head, and of all heads fused.

    Exact scores are fused as they are. Otherwise the candidates are the best allowed items of each
    head and its best item of all, and then the best ones by the fused scores. In the fused scores
    no estimate is among those of the best candidates, so hits are always candidates. Where groups
    of items make one hit, more candidates are taken among the items of other groups until there are
    enough hits.

    preferred: bool (n_items,), items the best of which are candidates as well.
    """
    approximate = [head for head in heads.values() if isinstance(head, ApproximateQuery)]
    if not approximate:
        exact: Mapping[str, Scores] = heads  # type: ignore[assignment]
        return exact, fuse(exact)
    n = max(SPARE * allowed.k, *(head.min_candidates for head in approximate))
    rows = [_nearest(head, n, allowed) for head in heads.values()]
    if not allowed.is_all:
        rows += [_nearest(head, 1, ALL_ITEMS) for head in heads.values()]
    if preferred is not None:
        rows += [_nearest(head, n, allowed.only(preferred)) for head in heads.values()]
    candidates = np.unique(np.concatenate(rows))
    n_best, others, groups = SPARE * allowed.k or n, allowed, np.zeros(0, np.int64)
    while True:
        scored = _scored(heads, candidates)
        fused = fuse(scored)
        estimates = _estimates(fused, candidates, others.mask, n_best)
        if len(estimates):
            candidates = np.union1d(candidates, estimates)
            scored = _scored(heads, candidates)
            fused = fuse(scored)
            if len(_estimates(fused, candidates, others.mask, n_best)):
                fused = _limited(fused, candidates, replace(others, groups=None), n)
        if allowed.groups is None:
            return scored, fused
        best = top_k(fused.scores, n_best, fused.allowed(others.mask))
        groups = np.union1d(groups, allowed.groups[best])
        if len(groups) >= allowed.k or len(best) < n_best:
            return scored, _limited(fused, candidates, allowed, max(allowed.k, 1))
        others = allowed.only(~np.isin(allowed.groups, groups))
        n = max(n, min(4 * n, MAX_WIDENED))
        candidates = np.unique(
            np.concatenate([candidates, *(_nearest(head, n, others) for head in heads.values())])
        )


def _estimates(
    fused: Scores, candidates: np.ndarray, mask: np.ndarray | None, k: int
) -> np.ndarray:
    """Return which of the k best items have scores that are still estimates."""
    return np.setdiff1d(top_k(fused.scores, k, fused.allowed(mask)), candidates)


def _limited(fused: Scores, candidates: np.ndarray, allowed: Filter, n: int) -> Scores:
    """Return the scores with all estimates below the n best candidates, of different groups."""
    is_allowed = fused.allowed(allowed.mask)
    is_candidate = np.zeros(len(fused.scores), dtype=bool)
    is_candidate[candidates] = True
    best = best_of_groups(fused.scores, n, is_allowed & is_candidate, allowed.groups)
    if not len(best):
        return fused
    limit = np.nextafter(fused.scores[best[-1]], np.float32(-np.inf))
    estimates = np.flatnonzero(is_allowed & ~is_candidate)
    scores = fused.scores.copy()
    scores[estimates] = np.minimum(scores[estimates], limit)
    return replace(fused, scores=scores)


def score_candidates(
    head: Scores | ApproximateQuery | None, allowed: Filter = ALL_ITEMS
) -> Scores | None:
    """Return the scores of one head, as `fuse_candidates` does; None for None."""
    if head is None:
        return None
    return fuse_candidates({"": head}, lambda heads: heads[""], allowed)[1]


def _nearest(head: Scores | ApproximateQuery, k: int, allowed: Filter) -> np.ndarray:
    if isinstance(head, Scores):
        return top_k(head.scores, k, head.allowed(allowed.mask))
    return head.nearest(k, allowed)


def _scored(
    heads: Mapping[str, Scores | ApproximateQuery], candidates: np.ndarray
) -> dict[str, Scores]:
    return {
        name: head if isinstance(head, Scores) else head.scores(candidates)
        for name, head in heads.items()
    }
