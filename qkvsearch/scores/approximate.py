"""Exact scores of the candidates alone, where to score all items would read too many keys.

Where a head's keys are int8, or stored on a server, an exact score is costly. So each head names
candidates by cheap estimates, and only their scores are exact. Every hit is a candidate:

1. Each head names its best items, and all heads are fused.
2. Items among the best by the fused scores may be there by an estimate. They become candidates, and
   all heads are fused again.
3. The new scores may move other estimates to the front. These are lowered below the best
   candidates, which ends the search.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from qkvsearch.scores.fusion import Scores
from qkvsearch.scores.topk import best_of_groups, top_k

# How many candidates there are per hit. They are more than the hits, as fusion changes the order.
SPARE = 2
# The limit to which candidates are widened where the best ones are of too few groups.
MAX_WIDENED = 2**14


@dataclass(frozen=True)
class Filter:
    """Which items a query may find, and how many."""

    # bool (n_items,), True = may be a hit; None for all items.
    mask: np.ndarray | None = None
    # The number of hits.
    k: int = 0
    # The number of each item's group, int (n_items,), of which only the best item is a hit; None
    # where each item is one.
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
    """The query of a head whose scores are exact for candidates, and estimates for other items."""

    # How many candidates each head names at least.
    min_candidates: ClassVar[int]

    @abstractmethod
    def nearest(self, k: int, allowed: Filter) -> np.ndarray:
        """Return the rows of the k best allowed items, and perhaps of more, in any order."""

    @abstractmethod
    def scores(self, candidates: np.ndarray) -> Scores:
        """Return scores of all items, exact for the candidates, int64 (n,), with `exact_above`."""

    @abstractmethod
    def above(self, threshold: float) -> np.ndarray:
        """Return which items have an exact score above a threshold, bool (n_items,)."""


def fuse_candidates(
    heads: Mapping[str, Scores | ApproximateQuery],
    fuse: Callable[[Mapping[str, Scores]], Scores],
    allowed: Filter = ALL_ITEMS,
    preferred: np.ndarray | None = None,
) -> tuple[Mapping[str, Scores], Scores]:
    """Return the scores of each head, and of all heads fused.

    Exact scores are fused as they are. Otherwise only the candidates' scores are exact, and the
    hits are candidates, as the module says. Where only the best item of a group is a hit, more
    candidates are named until there are enough groups.

    preferred: bool (n_items,), items the best of which are candidates as well.
    """
    if not any(isinstance(head, ApproximateQuery) for head in heads.values()):
        exact: Mapping[str, Scores] = heads  # type: ignore[assignment]
        return exact, fuse(exact)
    search = _CandidateSearch(heads, fuse, allowed)
    result = search.fused_from(search.first_candidates(preferred), allowed, search.n_per_head)
    if allowed.groups is not None:
        result = search.until_enough_groups(result)
    return result.by_head, result.fused


def score_candidates(
    head: Scores | ApproximateQuery | None, allowed: Filter = ALL_ITEMS
) -> Scores | None:
    """Return the scores of one head, as `fuse_candidates` does; None for None."""
    if head is None:
        return None
    return fuse_candidates({"": head}, lambda heads: heads[""], allowed)[1]


@dataclass(frozen=True)
class _FusedScores:
    """The scores of all items, exact for the candidates and estimates for other items."""

    # The rows of the candidates, ascending.
    candidates: np.ndarray
    by_head: Mapping[str, Scores]
    fused: Scores

    def estimates_among(self, rows: np.ndarray) -> np.ndarray:
        """Return those of the rows whose scores are estimates."""
        return np.setdiff1d(rows, self.candidates)

    def with_estimates_below(self, n: int, allowed: Filter) -> _FusedScores:
        """Return the scores with all estimates below the n best allowed candidates.

        Where `allowed` has groups, these are the best candidates of n groups.
        """
        scores = self.fused.scores
        is_allowed = self.fused.allowed(allowed.mask)
        is_exact = np.zeros(len(scores), dtype=bool)
        is_exact[self.candidates] = True
        best = best_of_groups(scores, n, is_allowed & is_exact, allowed.groups)
        if not len(best):
            return self
        just_below = np.nextafter(scores[best[-1]], np.float32(-np.inf))
        estimates = np.flatnonzero(is_allowed & ~is_exact)
        scores = scores.copy()
        scores[estimates] = np.minimum(scores[estimates], just_below)
        return replace(self, fused=replace(self.fused, scores=scores))


class _CandidateSearch:
    """The search for the candidates of one query to several heads."""

    def __init__(
        self,
        heads: Mapping[str, Scores | ApproximateQuery],
        fuse: Callable[[Mapping[str, Scores]], Scores],
        allowed: Filter,
    ) -> None:
        self.heads = heads
        self.fuse = fuse
        self.allowed = allowed
        minima = [h.min_candidates for h in heads.values() if isinstance(h, ApproximateQuery)]
        # How many candidates each head names. The rougher its estimates are, the larger is the
        # minimum that a head asks for.
        self.n_per_head = max(SPARE * allowed.k, *minima)
        # How many of the best items by the fused scores must be candidates. Each estimate among
        # them costs another exact score, so there are only as many as the hits need. A caller that
        # wants scores and no hits has k = 0.
        self.n_must_be_exact = SPARE * allowed.k if allowed.k else self.n_per_head

    def first_candidates(self, preferred: np.ndarray | None) -> np.ndarray:
        """Return the best allowed items of each head, its best preferred ones, and its best item of
        all, which decides whether the catalog answers the query.
        """
        named = self._named_by_each(self.n_per_head, self.allowed)
        if not self.allowed.is_all:
            named += self._named_by_each(1, ALL_ITEMS)
        if preferred is not None:
            named += self._named_by_each(self.n_per_head, self.allowed.only(preferred))
        return np.unique(np.concatenate(named))

    def fused_from(
        self, candidates: np.ndarray, allowed: Filter, n_kept_ahead: int
    ) -> _FusedScores:
        """Return the fused scores, with no estimate among the `n_must_be_exact` best allowed items.

        candidates: rows to begin with; the result may have more. n_kept_ahead: where an estimate is
        left after the second round, the number of best candidates that all estimates go below.
        """
        result = self._scored(candidates)
        estimates = result.estimates_among(self._best(result, allowed))
        if not len(estimates):
            return result
        result = self._scored(np.union1d(candidates, estimates))
        if not len(result.estimates_among(self._best(result, allowed))):
            return result
        # The estimates that are left are of items that are among the best of no head. To put them
        # below the candidates is a trade: such an item might score better than one of these by all
        # heads together. But exact scores change a head's mean and deviation, and so the fused
        # scores of all items: each further round would read more keys, and might bring others to
        # the front again. The scores of the hits are exact either way.
        return result.with_estimates_below(n_kept_ahead, replace(allowed, groups=None))

    def until_enough_groups(self, result: _FusedScores) -> _FusedScores:
        """Widen the candidates until the best ones are of as many groups as there shall be hits.

        Each round looks for the best items of groups that have none yet. It finds at least one more
        group, or fewer items than it looks for, and then there are no more. So `k` rounds suffice.
        """
        item_groups = self.allowed.groups
        assert item_groups is not None
        groups_found = np.zeros(0, np.int64)
        of_other_groups = self.allowed
        n_per_head = self.n_per_head
        for _ in range(self.allowed.k):
            best = self._best(result, of_other_groups)
            groups_found = np.union1d(groups_found, item_groups[best])
            has_enough = len(groups_found) >= self.allowed.k
            are_all = len(best) < self.n_must_be_exact
            if has_enough or are_all:
                break
            of_other_groups = self.allowed.only(~np.isin(item_groups, groups_found))
            # Four times as many each time, but not fewer than before where k is above the limit.
            n_per_head = max(n_per_head, min(4 * n_per_head, MAX_WIDENED))
            more = self._named_by_each(n_per_head, of_other_groups)
            candidates = np.unique(np.concatenate([result.candidates, *more]))
            result = self.fused_from(candidates, of_other_groups, n_per_head)
        # Each round compared only the items of some groups: now all are compared.
        return result.with_estimates_below(max(self.allowed.k, 1), self.allowed)

    def _named_by_each(self, n: int, allowed: Filter) -> list[np.ndarray]:
        """Return the rows of the n best allowed items of each head."""
        named = []
        for head in self.heads.values():
            if isinstance(head, Scores):
                named.append(top_k(head.scores, n, head.allowed(allowed.mask)))
            else:
                named.append(head.nearest(n, allowed))
        return named

    def _scored(self, candidates: np.ndarray) -> _FusedScores:
        """Return the scores of all heads, exact for the candidates, and fuse them."""
        by_head = {}
        for name, head in self.heads.items():
            by_head[name] = head if isinstance(head, Scores) else head.scores(candidates)
        return _FusedScores(candidates, by_head, self.fuse(by_head))

    def _best(self, result: _FusedScores, allowed: Filter) -> np.ndarray:
        """Return the rows of the best allowed items by the fused scores."""
        return top_k(result.fused.scores, self.n_must_be_exact, result.fused.allowed(allowed.mask))
