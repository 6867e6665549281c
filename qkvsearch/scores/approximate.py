"""Exact scores of the candidates alone, where to score all items would read too many keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from qkvsearch.scores.fusion import Scores
from qkvsearch.scores.topk import best_of_groups, top_k

# Candidates that each head names, per hit.
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
        """Return scores of all items, exact for the candidates, int64 (n,)."""


def fuse_candidates(
    heads: Mapping[str, Scores | ApproximateQuery],
    fuse: Callable[[Mapping[str, Scores]], Scores],
    allowed: Filter = ALL_ITEMS,
    preferred: np.ndarray | None = None,
) -> tuple[Mapping[str, Scores], Scores]:
    """Return the scores of each head, and of all heads fused.

    Exact scores are fused as they are. Otherwise each head names candidates, whose scores are then
    exact. The best items by the fused scores become candidates as well, and no estimate of another
    item is left among the scores of the hits. So hits are always candidates. Where only the best
    item of a group is a hit, more candidates are named until there are enough groups.

    preferred: bool (n_items,), items the best of which are candidates as well.
    """
    if not any(isinstance(head, ApproximateQuery) for head in heads.values()):
        exact: Mapping[str, Scores] = heads  # type: ignore[assignment]
        return exact, fuse(exact)
    search = _CandidateSearch(heads, fuse, allowed)
    found = search.fused(search.first_candidates(preferred), allowed, search.n_named)
    if allowed.groups is not None:
        found = search.until_enough_groups(found)
    return found.by_head, found.fused


def score_candidates(
    head: Scores | ApproximateQuery | None, allowed: Filter = ALL_ITEMS
) -> Scores | None:
    """Return the scores of one head, as `fuse_candidates` does; None for None."""
    if head is None:
        return None
    return fuse_candidates({"": head}, lambda heads: heads[""], allowed)[1]


class _Fused(NamedTuple):
    """The scores of all items, exact for the candidates."""

    candidates: np.ndarray
    by_head: Mapping[str, Scores]
    fused: Scores


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
        # How many candidates each head names.
        self.n_named = max(SPARE * allowed.k, *minima)
        # How many of the best items by the fused scores must be candidates.
        self.n_best = SPARE * allowed.k or self.n_named

    def first_candidates(self, preferred: np.ndarray | None) -> np.ndarray:
        """Return the best allowed items of each head, its best preferred ones, and its best item of
        all, which decides whether the catalog answers the query.
        """
        named = self._named_by_each(self.n_named, self.allowed)
        if not self.allowed.is_all:
            named += self._named_by_each(1, ALL_ITEMS)
        if preferred is not None:
            named += self._named_by_each(self.n_named, self.allowed.only(preferred))
        return np.unique(np.concatenate(named))

    def fused(self, candidates: np.ndarray, allowed: Filter, n_limit: int) -> _Fused:
        """Return the fused scores, with no estimate among those of the best allowed candidates.

        Exact scores of more items may move others to the front, but this is done only once. Any
        estimate that is left there is lowered below the `n_limit` best candidates.
        """
        found = self._scored(candidates)
        estimates = self._estimates_among_best(found, allowed)
        if not len(estimates):
            return found
        found = self._scored(np.union1d(candidates, estimates))
        if not len(self._estimates_among_best(found, allowed)):
            return found
        return _limited(found, replace(allowed, groups=None), n_limit)

    def until_enough_groups(self, found: _Fused) -> _Fused:
        """Widen the candidates until the best ones are of as many groups as there shall be hits.

        Each round looks for the best items of groups that have none yet. It finds at least one more
        group, or fewer items than it looks for, and then there are no more. So `k` rounds suffice.
        """
        item_groups = self.allowed.groups
        assert item_groups is not None
        groups = np.zeros(0, np.int64)
        without_group = self.allowed
        n_named = self.n_named
        for _ in range(self.allowed.k):
            best = self._best(found, without_group)
            groups = np.union1d(groups, item_groups[best])
            if len(groups) >= self.allowed.k or len(best) < self.n_best:
                break
            without_group = self.allowed.only(~np.isin(item_groups, groups))
            n_named = max(n_named, min(4 * n_named, MAX_WIDENED))
            more = self._named_by_each(n_named, without_group)
            candidates = np.unique(np.concatenate([found.candidates, *more]))
            found = self.fused(candidates, without_group, n_named)
        return _limited(found, self.allowed, max(self.allowed.k, 1))

    def _named_by_each(self, n: int, allowed: Filter) -> list[np.ndarray]:
        """Return the rows of the n best allowed items of each head."""
        named = []
        for head in self.heads.values():
            if isinstance(head, Scores):
                named.append(top_k(head.scores, n, head.allowed(allowed.mask)))
            else:
                named.append(head.nearest(n, allowed))
        return named

    def _scored(self, candidates: np.ndarray) -> _Fused:
        by_head = {}
        for name, head in self.heads.items():
            by_head[name] = head if isinstance(head, Scores) else head.scores(candidates)
        return _Fused(candidates, by_head, self.fuse(by_head))

    def _best(self, found: _Fused, allowed: Filter) -> np.ndarray:
        """Return the rows of the best allowed items by the fused scores."""
        return top_k(found.fused.scores, self.n_best, found.fused.allowed(allowed.mask))

    def _estimates_among_best(self, found: _Fused, allowed: Filter) -> np.ndarray:
        return np.setdiff1d(self._best(found, allowed), found.candidates)


def _limited(found: _Fused, allowed: Filter, n: int) -> _Fused:
    """Return the scores with all estimates below the n best candidates, of different groups."""
    fused = found.fused
    is_allowed = fused.allowed(allowed.mask)
    is_candidate = np.zeros(len(fused.scores), dtype=bool)
    is_candidate[found.candidates] = True
    best = best_of_groups(fused.scores, n, is_allowed & is_candidate, allowed.groups)
    if not len(best):
        return found
    limit = np.nextafter(fused.scores[best[-1]], np.float32(-np.inf))
    estimates = np.flatnonzero(is_allowed & ~is_candidate)
    scores = fused.scores.copy()
    scores[estimates] = np.minimum(scores[estimates], limit)
    return found._replace(fused=replace(fused, scores=scores))
